"""What the front matter of documentation generators says about a page.

Read are the conventions of Docusaurus, VitePress, Mintlify, MkDocs and Hugo.
"""

from collections.abc import Mapping, Sequence

from ingestion.sources.api_marks import DECLARED_CALL
from ingestion.text.clean_markdown import clean_text
from ingestion.text.language import detect_language
from ingestion.text.markdown_blocks import MarkdownBlock

TITLE_NAMES = ("sidebarTitle", "sidebar_label", "linkTitle", "nav_title")
"""Front matter of Mintlify, Docusaurus and Hugo that names a page without a `title`."""


def text_of_value(value: object) -> str:
    """Return a front matter value as text: the scalar items of a list, nothing for a mapping."""
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, list | tuple | set):
        scalars = (v for v in value if not isinstance(v, list | tuple | set | Mapping))
        return ", ".join(map(str, scalars))
    return str(value).strip()


def declared_operation(values: Mapping[str, object]) -> str:
    """Return the operation that Mintlify's front matter names: `openapi: POST /v1/x`."""
    named = (text_of_value(values.get(name)) for name in ("openapi", "api"))
    return next(filter(DECLARED_CALL.search, named), "")


def lead_blocks(values: Mapping[str, object], title: str) -> list[MarkdownBlock]:
    """Return paragraphs with the page's description and its keywords.

    Keywords are the synonyms by which readers search, so they are indexed as text. Tags are categories;
    as text, they would make the top of a page match better than the section that answers.
    """
    description = " ".join(text_of_value(values.get("description")).split())
    keywords = text_of_value(values.get("keywords"))
    label = "关键词：" if detect_language(title + description) == "zh" else "Keywords: "
    texts = (description, f"{label}{keywords}" if keywords else "")
    return [MarkdownBlock("paragraph", clean_text(text)) for text in texts if text]


def with_lead(
    blocks: Sequence[MarkdownBlock], lead: Sequence[MarkdownBlock]
) -> list[MarkdownBlock]:
    """Return a page's blocks with `lead` below the title; what the page says itself is not repeated."""
    written = {" ".join(block.text.split()) for block in blocks if block.kind == "paragraph"}
    added = [block for block in lead if block.text not in written]
    start = 1 if blocks and blocks[0].kind == "heading" and blocks[0].level == 1 else 0
    return [*blocks[:start], *added, *blocks[start:]]
