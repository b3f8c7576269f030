"""Source readers: tests for every kind of source, then tests for each kind."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingestion.sources.registry import (
    FileResult,
    UnchangedFile,
    combine_fingerprints,
    digest_source,
    read_source,
)
from ingestion.text.markdown_blocks import parse_table
from schemas.document import Section, SourceDocument
from schemas.errors import ConfigurationError, SourceError
from schemas.platform import (
    ApiDocsSourceConfig,
    FilesSourceConfig,
    MarkdownSourceConfig,
    SourceConfig,
    SourceLimits,
)

API = {"serviceId": "orders", "apiId": "1110", "name": "订单发货", "url": "/order/ship"}
GUIDE = """---
title: Signing
category: security
updated: 2026-01-31
version: 1.0
url: https://docs.example.com/signing
draft:
---
Intro.

# Signing

## Steps

1. Sort.

### Example

```python
sign()
```

## Errors

isv.invalid-signature
"""


@dataclass(frozen=True)
class Kind:
    """A kind of source, with functions that create its documents."""

    make: Callable[..., SourceConfig]
    suffix: str
    page: Callable[[str], str]
    """Return a valid document with this id."""
    link: str
    """A `page_url` template that every document of this kind can fill."""


def api_json(**fields: object) -> str:
    return json.dumps(API | fields, ensure_ascii=False)


KINDS = {
    "api_docs": Kind(
        lambda **fields: ApiDocsSourceConfig(kind="api_docs", **fields),
        ".json",
        lambda name: api_json(apiId=name),
        "https://x.y/#/api?apiId={apiId}",
    ),
    "markdown": Kind(
        lambda **fields: MarkdownSourceConfig(kind="markdown", **fields),
        ".md",
        lambda name: f"# {name}\n\n这一页说明怎么发货、怎么查询物流、怎么取消订单。",
        "https://x.y/{path}",
    ),
    "files": Kind(
        lambda **fields: FilesSourceConfig(kind="files", suffixes=(".html",), **fields),
        ".html",
        lambda name: f"<h1>{name}</h1><p>这一页说明怎么发货、怎么查询物流、怎么取消订单。",
        "https://x.y/{path}",
    ),
}


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read_results(
    make: Callable[..., SourceConfig], folder: Path, **fields: object
) -> list[FileResult]:
    return list(read_source(make(name="docs", path=folder, **fields), SourceLimits()))


def read(make: Callable[..., SourceConfig], folder: Path, **fields: object) -> list[SourceDocument]:
    documents, refused = split_results(read_results(make, folder, **fields))
    assert not refused
    return [document.model_copy(update={"fingerprint": ""}) for document in documents]


def split_results(results: list[FileResult]) -> tuple[list[SourceDocument], list[str]]:
    """Split results into documents and the messages of refusals."""
    return (
        [item for item in results if isinstance(item, SourceDocument)],
        [str(item) for item in results if isinstance(item, SourceError)],
    )


# --- the contract of every kind


def test_documents_have_all_fields(kind: Kind, tmp_path: Path) -> None:
    for name in ("10", "9", "deep/er/11"):
        write(tmp_path / f"{name}{kind.suffix}", kind.page(name))
    write(tmp_path / "notes.txt", "not a document")
    write(tmp_path / f"folder{kind.suffix}" / "notes.txt", "not a document")

    found = read(kind.make, tmp_path, page_url=kind.link)

    assert [document.id for document in found] == ["10", "9", "deep/er/11"]
    for document in found:
        assert (document.source, document.language) == ("docs", "zh")
        assert document.title
        assert document.page_url.startswith("https://x.y/")
        assert document.page_url.endswith(document.id)
        assert document.sections
        assert all(section.body.strip() for section in document.sections)
    assert read(kind.make, tmp_path, page_url=kind.link) == found


@pytest.mark.parametrize("suffix", [str.upper, str.title], ids=["upper", "title"])
def test_suffixes_are_case_insensitive(
    kind: Kind, tmp_path: Path, suffix: Callable[[str], str]
) -> None:
    write(tmp_path / f"1{suffix(kind.suffix)}", kind.page("1"))
    assert [document.id for document in read(kind.make, tmp_path)] == ["1"]


@pytest.mark.parametrize(
    "change",
    [lambda text: b"\xef\xbb\xbf" + text, lambda text: text.replace(b"\n", b"\r\n")],
    ids=["BOM", "CRLF"],
)
def test_bom_and_line_ends_do_not_change_a_document(
    kind: Kind, tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    page = kind.page("1").encode() if kind.suffix == ".json" else GUIDE.encode()
    path = write(tmp_path / f"1{kind.suffix}", page)
    expected = read(kind.make, tmp_path)
    path.write_bytes(change(page))
    assert read(kind.make, tmp_path) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("", ""),
        ("https://x.y/", "https://x.y/"),
        ("https://x.y/{nothing}", ""),
        ("https://x.y/{}", ""),
        ("https://x.y/{{id}}", "https://x.y/{id}"),
    ],
)
def test_incomplete_page_url_is_empty(
    kind: Kind, tmp_path: Path, template: str, expected: str
) -> None:
    write(tmp_path / f"1{kind.suffix}", kind.page("1"))
    (document,) = read(kind.make, tmp_path, page_url=template)
    assert document.page_url == expected


@pytest.mark.parametrize("template", ["https://x.y/{path", "https://x.y/path}"])
def test_malformed_page_url_is_a_configuration_error(
    kind: Kind, tmp_path: Path, template: str
) -> None:
    write(tmp_path / f"1{kind.suffix}", kind.page("1"))
    with pytest.raises(ConfigurationError, match=r"page_url = 'https://x\.y/"):
        read(kind.make, tmp_path, page_url=template)


def test_missing_folder_is_reported(kind: Kind, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nowhere: no such folder"):
        read(kind.make, tmp_path / "nowhere")


def test_folder_without_matching_files_is_reported(kind: Kind, tmp_path: Path) -> None:
    write(tmp_path / "notes.txt", "text")
    with pytest.raises(SourceError, match=rf"{tmp_path.name}: contains no .*\{kind.suffix}"):
        read(kind.make, tmp_path)


@pytest.mark.parametrize(
    ("make", "files"),
    [
        (KINDS["api_docs"].make, {"a.json": api_json(), "b/c.json": api_json()}),
        (KINDS["markdown"].make, {"a.md": "text", "a.mdx": "text"}),
        (KINDS["files"].make, {"a.html": "text", "a.HTML": "text"}),
    ],
    ids=KINDS,
)
def test_duplicate_document_ids_are_refused(
    tmp_path: Path, make: Callable[..., SourceConfig], files: dict[str, str]
) -> None:
    for name, text in files.items():
        write(tmp_path / name, text)
    documents, refused = split_results(read_results(make, tmp_path))
    assert len(documents) == 1
    assert refused == [f"duplicate document id {documents[0].id}: the first document is kept"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", b'{"apiId": "\xff"}', "not UTF-8 (byte 11)"),
        ("a.json", "", "the file: "),
        ("a.json", "{", "the file: Invalid JSON"),
        ("a.json", "[]", "the file: "),
        ("a.json", "null", "the file: "),
        ("a.json", '{"apiId": "\\ud800"}', "the file: Invalid JSON"),
        ("a.json", "{}", "serviceId: Field required"),
        ("a.json", api_json(apiId=1110), "apiId: Input should be a valid string"),
        ("a.json", api_json(apiId=""), "apiId: String should have at least 1 character"),
        ("a.json", api_json(method="SEND"), "method: Input should be 'GET'"),
        ("a.json", api_json(language="fr"), "language: Input should be 'zh'"),
        ("a.json", api_json(requestParams=[]), "requestParams: Extra inputs"),
        ("a.json", api_json(errorCodes=[{}]), "errorCodes.0.code: Field required"),
        (
            "a.json",
            api_json(requestParameters=[{"name": "a", "children": [{"type": "string"}]}]),
            "requestParameters.0.children.0.name: Field required",
        ),
        ("a.md", b"caf\xe9", "not UTF-8 (byte 3)"),
        ("a.mdx", "订单".encode("gbk"), "not UTF-8 (byte 0)"),
        ("a.md", "---\ntitle: [a\n---\ntext", "front matter: "),
        ("a.md", "---\ntitle: a: b\n---\ntext", "front matter: mapping values are not allowed"),
        ("a.md", "---\nupdated: 2026-13-45\n---\ntext", "front matter: month must be in 1..12"),
        ("a.md", "---\na: !!python/object:os.system x\n---\ntext", "front matter: "),
        ("a.md", "---\n? [a]\n: b\n---\ntext", "front matter: found unhashable key"),
        ("a.md", '{\n"title": \n}\ntext', "front matter: "),
    ],
)
def test_unreadable_document_does_not_stop_the_others(
    tmp_path: Path, name: str, content: str | bytes, problem: str
) -> None:
    kind = KINDS["api_docs" if name.endswith(".json") else "markdown"]
    write(tmp_path / "deep" / name, content)
    write(tmp_path / f"fine{kind.suffix}", kind.page("1"))
    documents, (refused,) = split_results(read_results(kind.make, tmp_path))
    assert refused.startswith(f"deep/{name}: {problem}")
    assert "\n" not in refused
    assert len(documents) == 1


# --- API documents


def read_api(tmp_path: Path, template: str = "", /, **fields: object) -> SourceDocument:
    write(tmp_path / "api.json", api_json(**fields))
    (document,) = read(KINDS["api_docs"].make, tmp_path, page_url=template)
    return document


def section_of(document: SourceDocument, kind: str) -> Section:
    (found,) = (section for section in document.sections if section.kind == kind)
    return found


def test_api_document_has_its_names_as_metadata(tmp_path: Path) -> None:
    document = read_api(tmp_path, serviceName="订单服务", version="v2", deprecated=True)
    assert document.title == document.api_name == "订单发货"
    assert document.id == document.api_id == "1110"
    assert (document.api_url, document.service_id) == ("/order/ship", "orders")
    assert document.service_name == "订单服务"
    assert document.metadata == {"version": "v2", "deprecated": "true"}
    body = section_of(document, "request_url").body
    assert all(word in body for word in ("v2", "订单服务", "已废弃", "`POST`", "`/order/ship`"))


def test_api_without_details_has_a_request_url_section(tmp_path: Path) -> None:
    document = read_api(tmp_path)
    assert [section.kind for section in document.sections] == ["request_url"]
    assert document.metadata == {}


@pytest.mark.parametrize(
    ("fields", "template", "expected"),
    [
        ({"pageUrl": "https://own"}, "https://x.y/{apiId}", "https://own"),
        ({}, "https://x.y/{serviceId}/{apiId}?v={version}", ""),
        ({"version": "v1"}, "https://x.y/{serviceId}/{apiId}?v={version}", "https://x.y/orders/1110?v=v1"),
        ({}, "https://x.y/{api_id}", ""),
    ],
    ids=["its own", "no value", "filled", "camelCase only"],
)  # fmt: skip
def test_api_page_url(tmp_path: Path, fields: dict[str, str], template: str, expected: str) -> None:
    assert read_api(tmp_path, template, **fields).page_url == expected


@pytest.mark.parametrize(
    ("language", "headings", "header"),
    [
        (
            "zh",
            ["请求头", "请求地址", "公共参数", "请求参数", "返回参数", "错误码", "权限包"],
            ["名称", "类型", "必填", "说明", "示例"],
        ),
        (
            "en",
            ["Request headers", "Request URL", "Public parameters", "Request parameters",
             "Response parameters", "Error codes", "Permission package"],
            ["Name", "Type", "Required", "Description", "Example"],
        ),
    ],
)  # fmt: skip
def test_api_has_seven_sections_in_its_language(
    tmp_path: Path, language: str, headings: list[str], header: list[str]
) -> None:
    document = read_api(
        tmp_path,
        language=language,
        requestHeaders=[{"name": "Content-Type"}],
        publicParameters=[{"name": "app_key"}],
        requestParameters=[{"name": "order_no"}],
        responseParameters=[{"name": "shipped"}],
        errorCodes=[{"code": "isv.x"}],
        permissionPackages=[{"name": "orders.write"}],
    )
    assert [section.heading for section in document.sections] == [(h,) for h in headings]
    assert document.language == language
    for section in document.sections[2:5]:
        assert parse_table(section.body)[0] == header


def test_child_parameters_have_dotted_names(tmp_path: Path) -> None:
    document = read_api(
        tmp_path,
        requestParameters=[
            {
                "name": "items[]",
                "type": "array",
                "required": True,
                "children": [
                    {"name": "sku", "children": [{"name": "id", "type": "long", "example": "7"}]},
                    {
                        "name": "unit",
                        "description": "Unit.",
                        "values": [{"value": "kg", "meaning": "千克"}, {"value": "g"}],
                    },
                ],
            },
            {"name": "note"},
        ],
    )
    rows = parse_table(section_of(document, "request_parameters").body)[1:]
    assert rows == [
        ["items[]", "array", "是", "", ""],
        ["items[].sku", "string", "否", "", ""],
        ["items[].sku.id", "long", "否", "", "7"],
        ["items[].unit", "string", "否", "Unit. 可选值: `kg` 千克; `g`", ""],
        ["note", "string", "否", "", ""],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b", "a|b"),
        ("two\nlines\r\n\tand a tab", "two lines and a tab"),
        (r"^a\|b$", r"^a\|b$"),
        ("\\", "\\"),
        ("```\n# no heading", "``` # no heading"),
        ("a\u2028b", "a b"),
        ("<script>{{ x }}</script>", "<script>{{ x }}</script>"),
    ],
)
def test_text_is_escaped_in_table_cells(tmp_path: Path, text: str, expected: str) -> None:
    document = read_api(
        tmp_path, errorCodes=[{"code": "1", "message": text, "cause": text, "remedy": text}]
    )
    rows = parse_table(section_of(document, "error_codes").body)[1:]
    assert rows == [["1", expected, expected, expected]]


@pytest.mark.parametrize("parameters", [[{"name": "order_no"}], []], ids=["with a table", "alone"])
@pytest.mark.parametrize("kind", ["request", "response"])
def test_examples_are_in_the_section_of_their_parameters(
    tmp_path: Path, kind: str, parameters: list[dict[str, str]]
) -> None:
    example = {"说明": "a\n```\n| b |", "n": [1, None]}
    fields: dict[str, object] = {f"{kind}Example": example, f"{kind}Parameters": parameters}
    document = read_api(tmp_path, **fields)
    body = section_of(document, f"{kind}_parameters").body
    fenced = body.partition("```json\n")[2].rpartition("\n```")[0]
    assert json.loads(fenced) == example
    assert "说明" in fenced
    assert len(parse_table(body)) == (2 if parameters else 0)


# --- Markdown pages


def read_page(
    folder: Path, text: str, name: str = "signing.md", **fields: object
) -> SourceDocument:
    write(folder / name, text)
    (document,) = read(KINDS["markdown"].make, folder, **fields)
    return document


def test_page_has_a_section_per_heading_with_a_body(tmp_path: Path) -> None:
    document = read_page(tmp_path, GUIDE)
    assert [(section.heading, section.body) for section in document.sections] == [
        ((), "Intro."),
        (("Steps",), "1. Sort."),
        (("Steps", "Example"), "```python\nsign()\n```"),
        (("Errors",), "isv.invalid-signature"),
    ]
    assert {section.kind for section in document.sections} == {"prose"}
    assert document.language == "en"


def test_heading_path_follows_the_levels(tmp_path: Path) -> None:
    text = "# Page\n\n### deep\n\na\n\n## up\n\nb\n\n#### down\n\nc\n\n#\n\nd\n\n# out\n\ne"
    document = read_page(tmp_path, text)
    assert [section.heading for section in document.sections] == [
        ("deep",), ("up",), ("up", "down"), (), ("out",),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("---\ntitle: Front\n---\n# Heading\n\ntext", "title", "Front"),
        ("---\nname: Front\n---\n# Heading\n\ntext", "name", "Front"),
        ("---\nname: Front\n---\n# Heading\n\ntext", "title", "Heading"),
        ("---\ntitle: ''\n---\n## `code` **heading**\n\ntext", "title", "code heading"),
        ("---\ntitle: 2026\n---\ntext", "title", "2026"),
        ("---\n---\ntext", "title", "signing"),
        ("text", "title", "signing"),
        ("---\ntitle: never closed\n\ntext", "title", "signing"),
        ("text\n\n---\ntitle: no front matter\n---\n", "title", "title: no front matter"),
    ],
)
def test_page_title(tmp_path: Path, text: str, key: str, expected: str) -> None:
    assert read_page(tmp_path, text, title=key).title == expected


def test_metadata_is_read_from_the_configured_keys(tmp_path: Path) -> None:
    wanted = {"topic": "category", "date": "updated", "v": "version", "d": "draft", "no": "nothing"}
    document = read_page(tmp_path, GUIDE, metadata=wanted)
    assert document.metadata == {"topic": "security", "date": "2026-01-31", "v": "1.0"}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{url}", "https://docs.example.com/signing"),
        ("https://x.y/{path}.html", "https://x.y/guides/v1.2/signing.html"),
        ("https://x.y/{stem}", "https://x.y/signing"),
        ("https://x.y/{category}/{stem}#{updated}", "https://x.y/security/signing#2026-01-31"),
        ("https://x.y/{draft}", ""),
        ("{missing}", ""),
    ],
)
def test_page_url_is_filled_from_page_values(tmp_path: Path, template: str, expected: str) -> None:
    document = read_page(tmp_path, GUIDE, "guides/v1.2/signing.md", page_url=template)
    assert document.page_url == expected
    assert document.id == "guides/v1.2/signing"


def test_mdx_is_read_as_markdown(tmp_path: Path) -> None:
    text = "import Tabs from '@tabs'\n\n# Page\n\n<Tabs>\n\n{/* note */}\n\nText.\n\n</Tabs>"
    document = read_page(tmp_path, text, "page.mdx")
    assert (document.id, document.title) == ("page", "Page")
    assert "Text." in document.sections[-1].body


@pytest.mark.parametrize(
    "empty",
    ["", "\n\n", "---\ntitle: a\n---\n", "# only\n\n## headings", "\ufeff"],
    ids=["nothing", "blank", "front matter", "headings", "BOM"],
)
def test_pages_without_a_body_are_skipped(tmp_path: Path, empty: str) -> None:
    write(tmp_path / "empty.md", empty)
    assert read_page(tmp_path, "text").id == "signing"


@pytest.mark.parametrize(
    ("text", "title", "metadata", "body"),
    [
        ("+++\ntitle = 'Toml'\ntags = ['a', 'b']\n+++\ntext", "Toml", {"tags": "a, b"}, "text"),
        ("---\ntitle: Yaml\ntags: [a, 2, true]\n---\ntext", "Yaml", {"tags": "a, 2, True"}, "text"),
        ("---\ntags:\n- a\n- [b]\n- {c: d}\n---\ntext", "post", {"tags": "a"}, "text"),
        ("---\ntags: {a: b}\n---\ntext", "post", {}, "text"),
        ("---\ntags: []\n---\ntext", "post", {}, "text"),
        ("---\n\nA line drawn.\n\n---\n\ntext", "post", {}, "---\n\nA line drawn.\n\n---\n\ntext"),
        ("---\n- a\n- b\n---\n\ntext", "post", {}, "---\n\n- a\n- b\n\n---\n\ntext"),
        ("+++\ntitle = 'Open'\ntext", "post", {}, "+++\ntitle = 'Open'\ntext"),
    ],
    ids=["TOML", "YAML", "nested", "table", "empty", "lines", "list", "never closed"],
)
def test_front_matter_formats(
    tmp_path: Path, text: str, title: str, metadata: dict[str, str], body: str
) -> None:
    document = read_page(tmp_path, text, "post.md", metadata={"tags": "tags"})
    assert (document.title, document.metadata) == (title, metadata)
    assert "\n\n".join(section.body for section in document.sections).endswith(body)


def test_invalid_toml_front_matter_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "+++\ntitle =\n+++\ntext")
    _, (refused,) = split_results(read_results(KINDS["markdown"].make, tmp_path))
    assert refused.startswith("a.md: front matter: Invalid value")


@pytest.mark.parametrize(
    ("draft", "is_read"),
    [("true", False), ("'yes'", False), ("1", False), ("false", True), ("'no'", True), ("0", True)],
)
def test_drafts_are_skipped(tmp_path: Path, draft: str, is_read: bool) -> None:
    write(tmp_path / "a.md", f"+++\ndraft = {draft}\n+++\ntext")
    write(tmp_path / "b.md", "text")
    documents = read(KINDS["markdown"].make, tmp_path, skip=("hidden", "draft"))
    assert [document.id for document in documents] == (["a", "b"] if is_read else ["b"])


def test_file_name_pattern_sets_values_and_filters_files(tmp_path: Path) -> None:
    for name in ("2024-05-06-tides", "about"):
        write(tmp_path / f"{name}.md", "text")
    (document,) = read(
        KINDS["markdown"].make, tmp_path,
        file_name=re.compile(r"^(?P<date>[\d-]{10})-(?P<slug>.+)"),
        page_url="https://blog.example/{date}/{slug}", metadata={"date": "date"}, title="slug",
    )  # fmt: skip
    assert (document.id, document.title) == ("2024-05-06-tides", "tides")
    assert document.page_url == "https://blog.example/2024-05-06/tides"
    assert document.metadata == {"date": "2024-05-06"}


BLOG = ["https://blog.example{url}", "https://blog.example/{page_path}/"]


@pytest.mark.parametrize(
    ("name", "front", "templates", "expected"),
    [
        ("posts/tides.md", "+++\nurl = '/tides/'\n+++\n", BLOG, "https://blog.example/tides/"),
        ("posts/tides.md", "", BLOG, "https://blog.example/posts/tides/"),
        ("posts/tides/index.md", "", BLOG, "https://blog.example/posts/tides/"),
        ("posts/_index.md", "", BLOG, "https://blog.example/posts/"),
        ("posts/README.md", "", BLOG, "https://blog.example/posts/"),
        ("posts/tides/index.md", "", ["https://x.y/{path}"], "https://x.y/posts/tides/index"),
        ("high tide/潮汐.md", "", ["https://x.y/{path}"], "https://x.y/high%20tide/%E6%BD%AE%E6%B1%90"),
        ("high tide/潮汐.md", "", ["https://x.y/{stem}"], "https://x.y/%E6%BD%AE%E6%B1%90"),
        ("high tide/index.md", "", ["https://x.y/{page_path}/"], "https://x.y/high%20tide/"),
        ("a.mdx", "", ["https://x.y/{path}{suffix}"], "https://x.y/a.mdx"),
        ("a.md", "", ["{url}", "{link}"], ""),
    ],
)  # fmt: skip
def test_first_complete_page_url_is_used(
    tmp_path: Path, name: str, front: str, templates: list[str], expected: str
) -> None:
    assert read_page(tmp_path, f"{front}text", name, page_url=templates).page_url == expected


def test_nested_yaml_aliases_in_front_matter_are_cheap(tmp_path: Path) -> None:
    laughs = "\n".join(
        [
            "a0: &a0 [ha, ha]",
            *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)),
        ]
    )
    text = f"---\n{laughs}\ntitle: Laughs\n---\ntext"
    document = read_page(tmp_path, text, metadata={"few": "a0", "many": "a11"})
    assert document.metadata == {"few": "ha, ha"}


# --- files that need not be read again


@pytest.mark.parametrize(
    ("change", "again"),
    [
        (lambda folder, suffix: {}, []),
        (lambda folder, suffix: {"page_url": "https://elsewhere/"}, ["1", "2"]),
        (lambda folder, suffix: touch(folder / f"1{suffix}"), []),
        (lambda folder, suffix: append(folder / f"1{suffix}", " "), ["1"]),
        (
            lambda folder, suffix: (folder / f"1{suffix}").rename(folder / f"3{suffix}") and {},
            ["3"],
        ),
    ],
    ids=["nothing", "the profile", "the date", "a space", "the name"],
)
def test_changed_file_or_configuration_is_read_again(
    kind: Kind,
    tmp_path: Path,
    change: Callable[[Path, str], dict[str, object]],
    again: list[str],
) -> None:
    for name in ("1", "2"):
        write(tmp_path / f"{name}{kind.suffix}", kind.page(name))
    documents, _ = split_results(read_results(kind.make, tmp_path))
    known = {document.fingerprint: frozenset({document.id}) for document in documents}
    before = digest_source(kind.make(name="docs", path=tmp_path), SourceLimits())
    assert before == combine_fingerprints([document.fingerprint for document in documents])
    source = kind.make(name="docs", path=tmp_path, **change(tmp_path, kind.suffix))
    assert (digest_source(source, SourceLimits()) == before) is (not again)
    everything = list(read_source(source, SourceLimits(), known))
    read_again, refused = split_results(everything)
    unchanged = {i for item in everything if isinstance(item, UnchangedFile) for i in item.ids}
    assert not refused
    if kind.suffix != ".json":  # an API document's id is not its file's name
        assert [document.id for document in read_again] == again
    assert len(read_again) == len(again)
    assert unchanged == {"1", "2"} - {document.id for document in read_again} - (
        {"1"} if again == ["3"] else set()
    )


def touch(path: Path) -> dict[str, object]:
    os.utime(path, (0, 0))
    return {}


def append(path: Path, text: str) -> dict[str, object]:
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    return {}
