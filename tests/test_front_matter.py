"""The front matter of documentation generators becomes titles, links, words and skipped pages."""

from pathlib import Path

import pytest

from ingestion.sources.registry import EmptyFile, read_source
from schemas.document import SourceDocument
from schemas.platform import MarkdownSourceConfig, SourceLimits


def read(folder: Path, front_matter: str, body: str = "Text.", **config: object) -> SourceDocument:
    (folder / "a.md").write_text(f"---\n{front_matter}\n---\n{body}", encoding="utf-8")
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=folder, **config)
    (document,) = read_source(source, SourceLimits())
    assert isinstance(document, SourceDocument)
    return document


@pytest.mark.parametrize("name", ["title", "sidebarTitle", "sidebar_label", "linkTitle"])
def test_title_of_each_generator_is_read(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, f"{name}: Retries").title == "Retries"


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("slug", "https://x.y/{slug}"),
        ("permalink", "https://x.y{permalink}"),
        ("url", "https://x.y{url}"),
    ],
)
def test_own_address_fills_the_link(tmp_path: Path, name: str, template: str) -> None:
    document = read(tmp_path, f"{name}: /guides/retry", page_url=template)
    assert document.page_url == "https://x.y/guides/retry"


@pytest.mark.parametrize(
    ("name", "template", "url"),
    [
        ("slug", "https://x.y/{slug}", "https://x.y/"),
        ("slug", "https://x.y/docs/{slug}/", "https://x.y/docs/"),
        ("slug", "https://x.y/{slug}#{anchor}", "https://x.y/"),
        ("permalink", "https://x.y{permalink}", "https://x.y/"),
    ],
)
def test_home_page_has_the_root_as_its_address(
    tmp_path: Path, name: str, template: str, url: str
) -> None:
    templates = [template, "https://x.y/other/{path}"]
    assert read(tmp_path, f"{name}: /", page_url=templates).page_url == url


def test_empty_slug_is_no_address(tmp_path: Path) -> None:
    templates = ["https://x.y/{slug}", "https://x.y/other/{path}"]
    assert read(tmp_path, 'slug: ""', page_url=templates).page_url == "https://x.y/other/a"


def test_description_leads_the_page_and_keywords_are_indexed(tmp_path: Path) -> None:
    front_matter = "description: How failed calls\n  are &quot;retried&quot;.\nkeywords: [backoff, 重试]\ntags:\n- http"
    document = read(tmp_path, front_matter, "# Retries\n\nWait first.")
    assert document.sections[0].body == (
        'How failed calls are "retried".\n\nKeywords: backoff, 重试\n\nWait first.'
    )


def test_description_that_the_page_repeats_is_written_once(tmp_path: Path) -> None:
    document = read(tmp_path, "description: How calls are retried.", "How calls\nare retried.")
    assert document.sections[0].body == "How calls\nare retried."


def test_description_that_the_page_repeats_with_markup_is_written_once(tmp_path: Path) -> None:
    body = "How `/calls` are\n[retried](#retries)."
    document = read(tmp_path, "description: How /calls are retried.", body)
    assert document.sections[0].body.count("retried") == 1


def test_description_becomes_that_of_the_operation(tmp_path: Path) -> None:
    front_matter = "title: Get a pet\ndescription: Returns one pet.\nopenapi: GET /pets/{id}"
    document = read(tmp_path, front_matter, "# Get a pet")
    assert document.api_url == "/pets/{id}"
    assert any("Returns one pet." in section.body for section in document.sections)


@pytest.mark.parametrize("name", ["draft", "hidden", "unlisted"])
def test_unpublished_pages_are_counted_as_skipped(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.md").write_text(f"---\n{name}: true\n---\nText.", encoding="utf-8")
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path)
    (result,) = read_source(source, SourceLimits())
    assert isinstance(result, EmptyFile)
    assert result.is_skipped


def test_unpublished_pages_can_be_read(tmp_path: Path) -> None:
    assert read(tmp_path, "hidden: true", skip=()).sections[0].body == "Text."
