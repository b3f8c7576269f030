"""Finds the version of a document, and whether it is deprecated. Both become metadata of the document."""

import re
from collections.abc import Sequence
from pathlib import Path

from ingestion.sources.api_pages.columns import text_of
from ingestion.text.markdown_blocks import MarkdownBlock
from ingestion.text.version_names import version_of_paths

_DEPRECATED_TEXT = re.compile(
    r"\W*(?:(?:warning|caution|danger|important|note|警告|注意)\W+)?(?:deprecated(?:\W*\Z|\s*[.:!,;—–*_]|\s+(?:since|in|as|and|by|from|on|at)\b)"
    r"|this (?:\w+ ){1,2}(?:is|has been) deprecated"
    r"|(?:[该此本](?:接口|页面|文档|版本|方法|\s*API))?\s*已(?:经)?(?:被)?(?:废弃|弃用))",
    re.IGNORECASE,
)
"""Matches the start of a remark such as "Deprecated since 2.0" or "该接口已废弃"."""
_DEPRECATED_TITLE = re.compile(r"[(\[（【](?:deprecated|已?(?:废弃|弃用))[)\]）】]", re.IGNORECASE)


def document_version(
    document_id: str, page_url: str, source_path: Path | None, source_name: str, api_url: str = ""
) -> str:
    """Return the first version that the arguments, in their order, contain; empty if there is none.

    For the id `v2/quotas`, the version is `v2`. `source_path` is the folder or file of the document's
    source; None if its pages are downloaded.
    """
    return (
        version_of_paths([document_id, page_url])
        or folder_version(source_path)
        or version_of_paths([f"{source_name}/", api_url])
    )


def folder_version(folder: Path | None) -> str:
    """Return the version that the path of a source contains; empty if it contains none.

    Only the last two parts of the path count. In a Docusaurus site with a folder `versioned_docs`, the
    version of the folder `docs` is `next`, because its pages are not released yet.
    """
    if folder is None:
        return ""
    if folder.name == "docs" and (folder.parent / "versioned_docs").is_dir():
        return "next"
    return version_of_paths(["/".join([*folder.parts[-2:], ""])])


def is_deprecated(blocks: Sequence[MarkdownBlock], title_level: int = 6) -> bool:
    """Return whether a title, or a remark near it, says that the page or the API is deprecated.

    The title is the first heading, if its level is at most `title_level`. Remarks count only before the
    heading that follows the title or, if there is no title, before the first heading.
    """
    has_title = False
    for block in blocks:
        if block.kind == "heading":
            if has_title or block.level > title_level:
                return False
            has_title = True
            if _DEPRECATED_TITLE.search(block.title):
                return True
        elif block.kind in ("paragraph", "other") and _DEPRECATED_TEXT.match(text_of(block.text)):
            return True
    return False
