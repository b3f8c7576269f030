"""Source readers: tests that every kind of source must pass."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from ingestion.sources.registry import (
    UnchangedFile,
    combine_fingerprints,
    digest_source,
    read_source,
)
from schemas.errors import ConfigurationError, SourceError
from schemas.platform import SourceConfig, SourceLimits
from tests.source_kinds import (
    GUIDE,
    KINDS,
    Kind,
    api_json,
    read,
    read_results,
    split_results,
    write,
)


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


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


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        ("files", "a/Start.MD", '; kind = "markdown" reads its .md files'),
        ("markdown", "a.html", '; kind = "files" reads its .html files'),
        ("markdown", "a.rst", ""),
    ],
)
def test_files_of_another_kind_are_reported(
    kind: str, name: str, hint: str, tmp_path: Path
) -> None:
    write(tmp_path / name, "text")
    source = TypeAdapter[SourceConfig](SourceConfig).validate_python(
        {"name": "docs", "kind": kind, "path": tmp_path}
    )
    with pytest.raises(SourceError) as error:
        list(read_source(source, SourceLimits()))
    assert str(error.value).endswith(f" file{hint}")


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
    ids=["api_docs", "markdown", "files"],
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
        ("a.json", api_json(language="xx"), "language: Input should be 'zh'"),
        ("a.json", api_json(requestParams=[]), "requestParams: Extra inputs"),
        ("a.json", api_json(errorCodes=[{}]), "errorCodes.0.code: Field required"),
        (
            "a.json",
            api_json(requestParameters=[{"name": "a", "children": [{"type": "string"}]}]),
            "requestParameters.0.children.0.name: Field required",
        ),
        (
            "a.md",
            b"caf\xe9",
            "not UTF-8 (byte 3): convert it, for example with iconv -f gbk -t utf-8",
        ),
        ("a.md", b"\xff\xfea\0b", "not UTF-16 (byte 4)"),
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
