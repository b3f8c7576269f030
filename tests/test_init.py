"""`apidesk init`: writes a platform.toml from a few answers and tries it."""

import json
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result

from app.cli.main import main
from app.cli.setup.platform_file import (
    MAX_ABOUT_CHARS,
    PlatformDraft,
    describe_platform,
    render,
    write_platform_file,
)
from app.cli.setup.survey import DocumentSurvey, distinct_hosts, survey_documents
from ingestion.platform_config import read_platform
from ingestion.sources.openapi.reader import DescriptionSummary
from schemas.errors import SourceError
from schemas.platform import MarkdownSourceConfig, OpenApiSourceConfig, PlatformConfig, SourceLimits

DESCRIPTION: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {
        "title": "Acme Cloud",
        "version": "1",
        "description": "Stores\ndocuments.\n\nAnd more.",
    },
    "servers": [{"url": "https://api.acme.example/v1"}],
    "paths": {
        "/documents": {
            "post": {
                "operationId": "uploadDocument",
                "summary": "Upload a document",
                "tags": ["documents"],
                "responses": {"201": {"description": "The document was stored."}},
            }
        }
    },
}

SWAGGER = {
    "swagger": "2.0",
    "info": {"title": "青桥", "version": "1"},
    "host": "api.example.cn",
    "paths": {"/orders": {"get": {"summary": "查询订单列表", "responses": {"200": {"description": "订单列表"}}}}},
}  # fmt: skip

PAGE = "# 发货流程\n\n## 第一步\n\n先拉取待发货订单，再逐个发货。\n"
HTML = "<html><head><title>Quotas</title></head><body><h1>Quotas</h1><p>Ask support for more tokens.</p></body></html>"

SPECIAL_CHARACTERS = (
    "a \"quoted\" \\ back\\slash, a\ttab\nand a line, \x00\x1b[31m\x7f\ud800 # = [x] ''' 青桥"
)


def folder_of(folder: Path, **files: str) -> Path:
    """Write files; in their names `__` stands for the last dot and `_of_` for a slash."""
    for name, text in files.items():
        path = folder / name.replace("_of_", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


FOLDERS: dict[str, tuple[dict[str, str], list[tuple[str, str, str]], str]] = {
    "Markdown": (
        {"docs_of_a__md": PAGE, "docs_of_b__mdx": PAGE},
        [("pages", "markdown", "2 Markdown pages")],
        "zh",
    ),
    "Sphinx": (
        {
            "a__md": PAGE,
            "_templates_of_layout__html": "<h1>{{ title }}</h1>",
            "_static_of_api__json": json.dumps(DESCRIPTION),
        },
        [
            ("reference", "openapi", "“Acme Cloud”, 1 operation"),
            ("pages", "markdown", "1 Markdown page"),
        ],
        "en",
    ),
    "a description": (
        {"openapi__json": json.dumps(DESCRIPTION)},
        [("reference", "openapi", "“Acme Cloud”, 1 operation")],
        "en",
    ),
    "all kinds": (
        {
            "api__json": json.dumps(DESCRIPTION),
            "old__json": json.dumps(SWAGGER),
            "a__md": PAGE,
            "b__html": HTML,
            "notes__txt": "no page",
            "data__json": "[]",
            "broken__yaml": "openapi: [",
            "fragment__yaml": "type: object\ntitle: about openapi",
        },
        [
            ("reference", "openapi", "“Acme Cloud”, 1 operation"),
            ("reference-2", "openapi", "“青桥”, 1 operation"),
            ("pages", "markdown", "1 Markdown page"),
            ("files", "files", "1 file (.html)"),
        ],
        "en",
    ),
}

UNREADABLE: dict[str, tuple[dict[str, str], str, str]] = {
    "no such place": ({}, "nope", "nope: no such file or folder"),
    "an empty folder": ({}, ".", "contains no Markdown, no OpenAPI description and no HTML"),
    "a folder of something else": ({"a__py": "x", "b__json": "{}"}, ".", "contains no Markdown"),
    "a file that is no description": ({"a__md": PAGE}, "a.md", "a.md: "),
    "a description of nothing": (
        {"a__json": json.dumps(DESCRIPTION | {"paths": {}})},
        "a.json",
        "describes no operation",
    ),
    "pages that cannot be read": ({"a__md": "---\ntitle: [\n---\nx"}, ".", "can be used: a.md: "),
    "pages without a body": (
        {"a__md": "# Title", "b__md": "---\ntitle: b\n---", "c__md": "", "d__md": "", "e__md": ""},
        ".",
        "can be used: a.md has no body; b.md has no body; c.md has no body; and 2 more",
    ),
    "a private address": ({}, "http://127.0.0.1:9/openapi.json", "APIDESK_PRIVATE_HOSTS"),
}


@pytest.mark.parametrize(("files", "sources", "language"), FOLDERS.values(), ids=FOLDERS)
def test_survey_finds_sources_and_language(
    tmp_path: Path, files: dict[str, str], sources: list[tuple[str, str, str]], language: str
) -> None:
    found = survey_documents(str(folder_of(tmp_path, **files)), SourceLimits())
    named = [
        (s.name, s.kind, holds) for s, holds in zip(found.sources, found.contents, strict=True)
    ]
    assert named == sources
    assert found.language == language


@pytest.mark.parametrize(("files", "where", "said"), UNREADABLE.values(), ids=UNREADABLE)
def test_survey_without_documents_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], where: str, said: str
) -> None:
    monkeypatch.chdir(folder_of(tmp_path, **files))
    with pytest.raises(SourceError) as caught:
        survey_documents(where, SourceLimits())
    assert said in str(caught.value)
    assert str(caught.value).count("\n") == 0


def test_init_reports_pages_without_a_body(empty_folder: Path) -> None:
    """More of them than are sampled come first; the rest is indexed."""
    empty = {f"docs_of_{number}__md": "# Title" for number in range(6)}
    folder_of(empty_folder, docs_of_last__md=PAGE, **empty)
    given = {"--documents": "docs", "--name": "Acme", "--about": "An API.", "--language": "zh"}
    result = init(*(part for pair in given.items() for part in pair), answers="\n")
    assert result.exit_code == 0, result.output
    assert "pages: files without a body: 0.md, 1.md, 2.md, 3.md, 4.md, 5.md" in result.stdout


def draft(**fields: Any) -> PlatformDraft:
    """A draft over one description and one folder of pages."""
    sources = (
        OpenApiSourceConfig(
            name="reference", kind="openapi", url="https://acme.example/openapi.json"
        ),
        MarkdownSourceConfig(name="pages", kind="markdown", path=Path("docs")),
    )
    summary = DescriptionSummary("Acme", "", (), ("https://api.acme.example/v1", "/v1"), "en", 1)
    found = DocumentSurvey(sources, ("1 operation", "a\r# page"), summary, "en")
    known: dict[str, Any] = {"name": "Acme", "about": "An API.", "language": "en", "survey": found}
    return PlatformDraft(**(known | fields))


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("text", ["Acme", SPECIAL_CHARACTERS, "青桥开放平台"])
@pytest.mark.parametrize(
    "page_url", ["", 'https://acme.example/"{page_path}"', "https://acme.example/#{operationId}"]
)
def test_written_platform_can_be_read(
    tmp_path: Path, language: str, text: str, page_url: str
) -> None:
    """Special characters survive, and comments never become keys."""
    path = tmp_path / "platform.toml"
    made = draft(name=text, about=text, language=language, page_url=page_url)
    write_platform_file(made, path)
    platform = read_platform(path)
    said = "".join(c for c in " ".join(text.replace("\ud800", "\ufffd").split()) if c.isprintable())
    assert (platform.platform.name, platform.platform.description) == (said, said)
    assert platform.platform.language == language
    assert said in platform.platform.greeting.in_language("zh")
    assert set(tomllib.loads(path.read_text(encoding="utf-8"))) == {"platform", "sources"}
    meant = {"": set(), "h": {"pages"}, "#": {"reference"}}
    linked = {source.name for source in platform.sources if source.page_url}
    assert linked == meant["#" if "#" in page_url else page_url[:1]]
    assert list(tmp_path.iterdir()) == [path]


def test_chinese_texts_have_spaces_around_a_latin_name() -> None:
    latin = render(draft(name="ferry-sdk", language="zh"), Path())
    assert "这里是 ferry-sdk 文档助手" in latin
    assert "与 ferry-sdk 无关" in latin
    assert "使用 ferry-sdk 的开发者" in latin
    assert "这里是青桥 API 文档助手" in render(draft(name="青桥 API", language="zh"), Path())


def test_commented_suggestions_are_valid(tmp_path: Path) -> None:
    """The suggestions in comments are valid TOML and valid settings."""
    lines = render(draft(), tmp_path).splitlines()
    suggested = [
        line.removeprefix("# ") if " = " in line or "# [" in line else line for line in lines
    ]
    PlatformConfig.model_validate(tomllib.loads("\n".join(suggested)))
    assert sum(line.startswith("#") for line in lines) >= 12


PROSE = "Acme keeps the documents of a team in one place."


def test_describe_platform() -> None:
    def said(description: str, *tags: str) -> str:
        summary = DescriptionSummary("Acme", description, tags, (), "en", 1)
        return describe_platform(DocumentSurvey((), (), summary, "en"))

    assert said("One\nline.\n\nAnother.", "a", "b") == "One line. (a, b)"
    assert said("") == "Acme"
    assert len(said("word " * 1_000)) <= MAX_ABOUT_CHARS + 2
    assert describe_platform(DocumentSurvey((), (), None, "en")) == ""


@pytest.mark.parametrize(
    ("first", "pages", "expected"),
    [
        ("Acme **stores** documents\nfor all.", 2, "Acme stores documents for all."),
        ("Acme **stores** documents\nfor all.", 1, "Stores documents. (documents)"),
        ("[Build](https://x.y)", 2, "Stores documents. (documents)"),
        ("word " * 70, 2, "Stores documents. (documents)"),
    ],
    ids=["more pages than operations", "as many operations", "too short", "too long"],
)
def test_readme_describes_the_platform(
    tmp_path: Path, first: str, pages: int, expected: str
) -> None:
    readme = {
        "README__md": f"---\ntitle: x\n---\n# Acme\n\n> Hi.\n\n{first}\n\nMore about it here.\n"
    }
    others = {f"page{number}__md": PAGE for number in range(1, pages)}
    folder_of(tmp_path, api__json=json.dumps(DESCRIPTION), **readme, **others)
    assert describe_platform(survey_documents(str(tmp_path), SourceLimits())) == expected


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("[![Build status of Acme](https://b.svg)](https://ci) ![Code coverage](c.svg)", PROSE),
        ("[![Build status of Acme][badge]][ci]\n\n[badge]: https://b.svg\n[ci]: https://ci", PROSE),
        (
            '<p align="center"><a href="/"><img src="l.png" alt="The big blue Acme logo"></a></p>',
            PROSE,
        ),
        ("English | [简体中文](README.zh.md) | [日本語](README.ja.md)", PROSE),
        ("[Documentation](docs/) [Quick start](start.md) [Changelog](https://x.y)", PROSE),
        ('<p><a href="/docs">Documentation</a> •\n<a href="#a">Quick start</a></p>', PROSE),
        ("![Logo](logo.png) [Acme](https://x.y) stores documents.", "Acme stores documents."),
        ("Acme 是一个文档平台。", "Acme 是一个文档平台。"),
        ("开源的接口文档平台。", "开源的接口文档平台。"),
    ],
)
def test_badges_logos_and_bars_do_not_describe_the_platform(
    tmp_path: Path, first: str, expected: str
) -> None:
    folder_of(tmp_path, README__md=f"# Acme\n\n{first}\n\n{PROSE}\n")
    assert survey_documents(str(tmp_path), SourceLimits()).introduction == expected


def test_distinct_hosts() -> None:
    urls = (
        "https://[::1",
        "https://api.a.example/v1",
        "/v1",
        "https://{tenant}.a.example/",
        "http://api.a.example",
        "",
    )
    assert distinct_hosts(urls) == ("api.a.example",)


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*arguments: str, answers: str = "", **environment: str) -> Result:
    """Run the command with `answers` to its prompts."""
    return CliRunner().invoke(main, ["init", *arguments], input=answers, env=environment)


@pytest.fixture
def description_url() -> Iterator[str]:
    """URL of a description."""

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(DESCRIPTION).encode())

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/openapi.json"
        server.shutdown()


def test_init_from_url_asks_no_questions(empty_folder: Path, description_url: str) -> None:
    refused = init("--openapi", description_url)
    assert (refused.exit_code, list(empty_folder.iterdir())) == (2, [])
    assert "APIDESK_PRIVATE_HOSTS" in refused.stderr

    result = init("--openapi", description_url, APIDESK_PRIVATE_HOSTS="127.0.0.1")
    assert result.exit_code == 0, result.output
    for said in (
        "written: platform.toml",
        "› How do I call the “Upload a document” API?",
        "POST /v1/documents",
        "next:\n  apidesk chat\n",
    ):
        assert said in result.stdout
    platform = read_platform(empty_folder / "platform.toml")
    assert platform.platform.name == "Acme Cloud"
    assert platform.platform.description == "Stores documents. (documents)"
    assert platform.platform.hosts == ("api.acme.example",)
    assert (empty_folder / "data" / "milvus.db").exists()

    written = (empty_folder / "platform.toml").read_text(encoding="utf-8")
    again = init("--openapi", description_url)
    assert (again.exit_code, again.stdout) == (2, "")
    assert "platform.toml already exists: pass --force to overwrite it" in again.stderr
    assert (empty_folder / "platform.toml").read_text(encoding="utf-8") == written
    forced = init(
        "--openapi", description_url, "--name", "Acme", "--force", APIDESK_PRIVATE_HOSTS="127.0.0.1"
    )
    assert forced.exit_code == 0, forced.output
    assert read_platform(empty_folder / "platform.toml").platform.name == "Acme"


def test_init_asks_five_questions(empty_folder: Path) -> None:
    """Invalid answers are asked for again; defaults come from the documents."""
    folder_of(empty_folder / "docs", guides_of_a__md=PAGE, api__json=json.dumps(DESCRIPTION))
    wrong = ["nope", "docs"]
    answers = [
        *wrong,
        "",
        "青桥开放平台",
        "zh",
        "docs.example.com",
        "https://docs.example.com/{page_path}",
    ]
    result = init(answers="\n".join([*answers, ""]))
    assert result.exit_code == 0, result.output
    assert "nope: no such file or folder" in result.stderr
    assert "found: “Acme Cloud”, 1 operation; 1 Markdown page" in result.stderr
    assert "the URL of a page must begin with http:// or https://" in result.stderr
    platform = read_platform(empty_folder / "platform.toml")
    assert platform.platform.name == "Acme Cloud"
    assert platform.platform.description == "青桥开放平台"
    assert platform.platform.language == "zh"
    assert platform.platform.hosts == ("api.acme.example", "docs.example.com")
    assert [source.path for source in platform.sources] == [
        empty_folder / "docs" / "api.json",
        empty_folder / "docs",
    ]

    (empty_folder / "docs" / "api.json").unlink()
    four = {"--documents": "docs", "--name": "Acme", "--about": "An API.", "--language": "en"}
    options = [part for pair in four.items() for part in pair]
    other = init("other.toml", *options, answers="\n")
    assert other.exit_code == 2
    assert (
        "documents that are not in the sources of other.toml. "
        "They were indexed under these source names: reference." in other.stderr
    )
    assert (empty_folder / "other.toml").exists()


def test_init_refuses_the_store_of_another_platform(empty_folder: Path) -> None:
    folder_of(empty_folder, a__json=json.dumps(DESCRIPTION), b__json=json.dumps(SWAGGER))
    assert init("a.toml", "--openapi", "a.json").exit_code == 0
    other = init("b.toml", "--openapi", "b.json")
    assert other.exit_code == 2
    assert (
        "documents that are not in the sources of b.toml. "
        "They were indexed under these source names: reference." in other.stderr
    )
    assert other.stdout == "written: b.toml\n"
    assert (empty_folder / "b.toml").exists()  # the five answers are not lost

    written = (empty_folder / "a.toml").read_text(encoding="utf-8")
    assert init("a.toml", "--openapi", "b.json", "--force").exit_code == 2
    assert (empty_folder / "a.toml").read_text(encoding="utf-8") == written
    again = init("a.toml", "--openapi", "a.json", "--force")
    assert again.exit_code == 0, again.output
    assert "next:\n  export APIDESK_PLATFORM=a.toml\n  apidesk chat\n" in again.stdout


def test_init_names_the_files_that_it_leaves_out(empty_folder: Path) -> None:
    names = ("a.rst", "b.rst", "prices.ods", "LICENSE", ".hidden.rst", "notes.txt", "prices.csv")
    folder_of(empty_folder / "docs", a__md=PAGE, node_modules_of_a__rst="")
    for name in names:
        (empty_folder / "docs" / name).write_text("text", encoding="utf-8")
    given = {"--documents": "docs", "--name": "Acme", "--about": "An API.", "--language": "zh"}
    result = init(*(part for pair in given.items() for part in pair), answers="\n")
    assert result.exit_code == 0, result.output
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("left out: "))
    counts = line.removeprefix("left out: ").split(", ")
    assert counts[0] == "2 .rst"
    assert set(counts[1:]) == {"1 .ods", "1 .txt", "1 without suffix"}
    assert "1 file (.csv)" in result.stderr


def test_survey_leaves_out_json_that_no_description_refers_to(tmp_path: Path) -> None:
    description = DESCRIPTION | {"components": {"schemas": {"A": {"$ref": "parts/a%20b.json#/A"}}}}
    folder_of(
        tmp_path,
        openapi__json=json.dumps(description),
        postman__json='{"item": []}',
        mkdocs__yml="site_name: Acme",
    )
    (tmp_path / "parts").mkdir()
    folder_of(tmp_path / "parts", c__yaml="B: {type: string}", unused__yaml="B: {type: string}")
    (tmp_path / "parts" / "a b.json").write_text('{"A": {"$ref": "./c.yaml#/B"}}', encoding="utf-8")
    survey = survey_documents(str(tmp_path), SourceLimits())
    assert sorted(survey.left_out.split(", ")) == ["1 .json", "1 .yaml", "1 .yml"]


INVALID_ARGUMENTS: dict[str, tuple[list[str], str]] = {
    "a folder as description": (["--openapi", "docs"], "docs: not an OpenAPI description; for a folder, use --documents instead of --openapi"),
    "a page as description": (["--openapi", "docs/a.md"], "a.md: "),
    "no title": (["--openapi", "untitled.json"], "the OpenAPI description has no title: pass --name"),
    "nothing about the platform": (["--openapi", "bare.json", "--name", "Acme"], "nothing about the platform: pass --about"),
    "a template without names": (["--openapi", "api.json", "--page-url", "https://a.example/"], "no placeholder in braces"),
    "a template with an open brace": (["--openapi", "api.json", "--page-url", "https://a.example/{x"], "expected '}'"),
    "a blank name": (["--openapi", "api.json", "--name", " "], "--name must not be blank"),
    "a blank description": (["--documents", "nope", "--about", ""], "--about must not be blank"),
    "a bad template before documents": (["--documents", "nope", "--page-url", "docs"], "--page-url: docs: "),
    "a folder that is not there": (["no/platform.toml", "--openapi", "api.json"], "No such file or directory"),
    "both": (["--openapi", "api.json", "--documents", "docs"], "--openapi and --documents cannot be combined"),
    "no answers": ([], "Aborted!"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), INVALID_ARGUMENTS.values(), ids=INVALID_ARGUMENTS)
def test_invalid_arguments_write_nothing(
    empty_folder: Path, arguments: list[str], said: str
) -> None:
    untitled = DESCRIPTION | {"info": {"version": "1"}}
    untagged = {"/documents": {"post": {"responses": {"201": {"description": "Stored."}}}}}
    files = {
        "docs_of_a__md": PAGE,
        "api__json": json.dumps(DESCRIPTION),
        "untitled__json": json.dumps(untitled),
        "bare__json": json.dumps(untitled | {"paths": untagged}),
    }
    folder_of(empty_folder, **files)
    before = sorted(empty_folder.rglob("*"))
    result = init(*arguments)
    assert result.exit_code in (1, 2), result.output
    assert said in result.stderr
    assert sorted(empty_folder.rglob("*")) == before
