"""`apidesk ingest --dry-run --explain PAGE` tells how a page is read."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli.commands.platform import ingest
from app.cli.terminal.ingest import explain_page
from schemas.errors import SourceError
from schemas.platform import (
    FilesSourceConfig,
    MarkdownSourceConfig,
    OpenApiSourceConfig,
    SourceLimits,
)

API = """# Create a board

`POST /v1/boards`

## Body

| Name | Type | Required |
| --- | --- | --- |
| name | string | yes |

| Tier | Price |
| --- | --- |
| Free | 0 |
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            API,
            [
                "page.md in docs: 1 API operation",
                "POST /v1/boards  Create a board",
                "  POST /v1/boards is stated",
                "  table [Name | Type | Required] under 'Body': 1 request parameters",
                "  table [Tier | Price] under 'Body': stays prose",
            ],
        ),
        ("# Guide\n\nText.", ["page.md in docs: prose", "  missing: an HTTP method with a URL"]),
        (
            "# Guide\n\n`POST /v1/boards`",
            [
                "page.md in docs: prose",
                "POST /v1/boards  Guide",
                "  POST /v1/boards is stated",
                "  missing: a table or list of parameters, responses or error codes, or a labelled "
                "JSON response",
            ],
        ),
        (
            "# Guide\n\n```sh\ncurl -X POST https://api.example.com/v1/boards\n```",
            [
                "page.md in docs: prose",
                "POST https://api.example.com/v1/boards  Guide",
                "  POST https://api.example.com/v1/boards is called in an example",
                "  missing: a heading or label for parameters and, below it, a list of request parameters, "
                "or a table that says which of them are required",
            ],
        ),
        ("# Guide", ["page.md in docs: not indexed, because the page has no body"]),
        (
            "---\nhidden: true\n---\nText.",
            ["page.md in docs: not indexed, because `hidden` is true"],
        ),
    ],
)
def test_explanation_names_the_evidence(text: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path)
    assert explain_page([source], SourceLimits(), tmp_path / "page.md") == expected


def test_evidence_names_the_kind_of_block(tmp_path: Path) -> None:
    text = (
        "# Create a board\n\n`POST /v1/boards`\n\n## Body\n\n- `name` (string, required): The name.\n\n"
        "## Errors\n\n### 404 — no_board\n\n**409 — name_taken** Choose another name.\n"
    )
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path)
    assert explain_page([source], SourceLimits(), tmp_path / "page.md")[3:] == [
        "  list under 'Body': 1 request parameters",
        "  title under '404 — no_board': 1 error codes",
        "  title under '404 — no_board': 1 error codes",
    ]


def test_explanation_says_that_text_files_are_not_read_as_api_pages(tmp_path: Path) -> None:
    (tmp_path / "page.txt").write_text(API, encoding="utf-8")
    source = FilesSourceConfig(kind="files", name="docs", path=tmp_path)
    assert explain_page([source], SourceLimits(), tmp_path / "page.txt") == [
        "page.txt in docs: prose",
        "  only Markdown and HTML pages are read as API pages",
    ]


def test_file_is_explained_for_the_source_that_reads_its_suffix(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Guide\n\nText.", encoding="utf-8")
    files = FilesSourceConfig(kind="files", name="files", path=tmp_path)
    pages = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path)
    assert explain_page([files, pages], SourceLimits(), tmp_path / "page.md") == [
        "page.md in docs: prose",
        "  missing: an HTTP method with a URL",
    ]
    with pytest.raises(SourceError, match="no configured source reads this file as a page"):
        explain_page([files], SourceLimits(), tmp_path / "page.md")


def test_explanation_says_that_the_file_name_does_not_match(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Guide\n\nText.", encoding="utf-8")
    source = MarkdownSourceConfig.model_validate(
        {"kind": "markdown", "name": "docs", "path": tmp_path, "file_name": "^guide-"}
    )
    assert explain_page([source], SourceLimits(), tmp_path / "page.md") == [
        "page.md in docs: not indexed, because its name does not match `file_name`"
    ]


def test_path_may_be_relative_to_the_folder_of_a_source(tmp_path: Path) -> None:
    """As in the report of a run, which names the page that it refused."""
    page = tmp_path / "docs" / "guides" / "page.md"
    page.parent.mkdir(parents=True)
    page.write_text("# Guide\n\nText.", encoding="utf-8")
    files = FilesSourceConfig(kind="files", name="files", path=tmp_path)
    pages = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path / "docs")
    assert explain_page([files, pages], SourceLimits(), Path("guides/page.md")) == [
        "guides/page.md in docs: prose",
        "  missing: an HTTP method with a URL",
    ]
    with pytest.raises(SourceError, match=r"guides/none\.md: no such file"):
        explain_page([files, pages], SourceLimits(), Path("guides/none.md"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"---\ntitle: a\nabout: b: c\n---\nText.", "not allowed in this context (line 3)"),
        (b"\n\n---\n\ntitle: [a\n---\nText.", "(line 6)"),
        (b"title: a: b\n---\nText.", "(line 1)"),
        (b"text \xff", "not UTF-8 (byte 5)"),
    ],
)
def test_error_names_the_file_and_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "page.md").write_bytes(content)
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path)
    with pytest.raises(SourceError) as raised:
        explain_page([source], SourceLimits(), Path("page.md"))
    assert str(raised.value).startswith("page.md: ")
    assert message in str(raised.value)


def test_page_outside_of_the_sources_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Guide\n\nText.", encoding="utf-8")
    with pytest.raises(SourceError, match="no configured source reads this file as a page"):
        explain_page([], SourceLimits(), tmp_path / "page.md")


def test_options_that_would_be_ignored_are_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Boats\n", encoding="utf-8")
    result = CliRunner().invoke(ingest, ["--dry-run", "--explain", str(page), "--json"])
    assert result.exit_code == 2
    assert "--explain cannot be combined" in result.output


def test_openapi_description_is_not_a_page(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text("{}")
    source = OpenApiSourceConfig(name="reference", kind="openapi", path=tmp_path / "api.json")
    for path in (tmp_path / "api.json", Path("api.json")):
        with pytest.raises(SourceError, match="the source reference reads this file as an OpenAPI"):
            explain_page([source], SourceLimits(), path)
