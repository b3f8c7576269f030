"""Anchors of headings, as documentation generators derive them from the text of a heading."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import replace
from typing import Literal

from ingestion.text.markdown_blocks import MarkdownBlock

AnchorRule = Literal["github", "docusaurus", "vitepress", "mkdocs"]

_CUSTOM_ID = re.compile(r"\{\s*#([\w:.-]+)[^}]*\}\s*#*\s*$")
_ANCHOR = re.compile(r"#[^/?=!&#]*$")


def add_anchors(blocks: Iterable[MarkdownBlock], rule: AnchorRule) -> Iterator[MarkdownBlock]:
    """Yield the blocks of a page; headings have the anchors that `rule` gives them, unique in the page.

    A heading's own id, `{#id}`, takes precedence, except on GitHub, which does not read it.
    """
    used: set[str] = set()
    for block in blocks:
        if block.kind == "heading":
            custom = _CUSTOM_ID.search(block.text) if rule != "github" else None
            anchor = custom[1] if custom else _RULES[rule](block.title, used)
            used.add(anchor)
            yield replace(block, anchor=anchor)
        else:
            yield block


def strip_anchor(url: str) -> str:
    """Return `url` without the anchor of a section.

    A fragment that is a route (`#/users`) or has a value (`#id=1`) stays.
    """
    return _ANCHOR.sub("", url)


def _github(title: str, used: Set[str]) -> str:
    """The rule of GitHub, as github-slugger implements it for Docusaurus."""
    kept = (c for c in title.lower() if c in "-_ " or unicodedata.category(c)[0] in "LNM")
    return _numbered("".join(kept).replace(" ", "-"), used, "-")


def _vitepress(title: str, used: Set[str]) -> str:
    """The rule of @mdit-vue/shared."""
    text = re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFKD", title))
    text = re.sub(r"[\u0000-\u001f]", "", text)
    text = re.sub(r"[\s~`!@#$%^&*()\-_+=\[\]{}|\\;:\"'“”‘’<>,.?/]+", "-", text).strip("-")
    return _numbered(re.sub(r"^(\d)", r"_\1", text).lower(), used, "-")


def _mkdocs(title: str, used: Set[str]) -> str:
    """The rule of Python-Markdown's extension `toc`, which removes all Chinese characters."""
    text = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    text = re.sub(r"[^\w\s-]", "", text).strip().lower()
    return _numbered(re.sub(r"[-\s]+", "-", text), used, "_")


def _numbered(slug: str, used: Set[str], separator: str) -> str:
    """Return `slug`, or `slug` with the first number that makes it unique and not empty."""
    anchor, number = slug, 0
    while not anchor or anchor in used:
        number += 1
        anchor = f"{slug}{separator}{number}"
    return anchor


_RULES: dict[AnchorRule, Callable[[str, Set[str]], str]] = {
    "github": _github,
    "docusaurus": _github,
    "vitepress": _vitepress,
    "mkdocs": _mkdocs,
}
