"""README.zh.md has the headings of README.md and valid links. `test_readme.py` runs the commands."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[1]


def read_tokens(name: str) -> list[Token]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return MarkdownIt("commonmark").enable("table").parse(text)


ENGLISH = read_tokens("README.md")
CHINESE = read_tokens("README.zh.md")


def heading_levels(tokens: list[Token]) -> list[str]:
    return [token.tag for token in tokens if token.type == "heading_open"]


def relative_links(tokens: list[Token]) -> Iterator[str]:
    """Yield the relative paths of links and images, without fragments."""
    for token in tokens:
        for child in token.children or ():
            address = urlsplit(str(child.attrGet("href") or child.attrGet("src") or ""))
            if address.path and not address.netloc:
                yield address.path


def test_headings_have_the_same_levels() -> None:
    assert heading_levels(CHINESE) == heading_levels(ENGLISH)


def test_relative_links_exist() -> None:
    paths = set(relative_links(CHINESE))
    assert "README.md" in paths
    assert {path for path in paths if not (ROOT / path).exists()} == set()
