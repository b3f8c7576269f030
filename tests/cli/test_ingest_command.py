"""`apidesk ingest`: errors are one line and an exit code, and leave nothing half-written."""

import re
from pathlib import Path

import pytest
from pymilvus import MilvusClient

from tests.cli.commands import PLATFORM, QUESTION, answer, assert_single_error_line, run

UNREADABLE = Path("/proc/self/mem")

BAD_PLATFORMS = {
    "not TOML": ("[platform]", "[platform", ["not valid TOML", "line 1"]),
    "a missing table": ("[platform", "[platfrom", ["platform is missing", "platfrom"]),
    "misspelled [[sources]]": ("[[sources]]", "[[source]]", ["source is not a known key"]),
    "a missing key": ('tone = "dry"\n', "", ["platform.tone is missing"]),
    "an empty value": ('"dry"', '" "', ["platform.tone"]),
    "a wrong type": ('"dry"', "1", ["platform.tone"]),
    "an unknown language": ('language = "en"', 'language = "xx"', ["platform.language"]),
    "misspelled in [platform]": ("tone =", "tonne =", ["platform.tonne is not a known key"]),
    "misspelled in greeting": ("en = ", "eng = ", ["platform.greeting", "eng"]),
    "misspelled in markdown": (
        'path = "guides"',
        'pth = "g"',
        ["source `guides`: pth is not a known key"],
    ),
    "misspelled in api_docs": (
        'path = "api"',
        'pth = "a"',
        ["source `reference`: pth is not a known key"],
    ),
    "metadata for api_docs": (
        'path = "api"',
        'path = "api"\ntitle = "t"',
        ["source `reference`: title is"],
    ),
    "a wrong type in metadata": ('= "category"', "= 1", ["source `guides`: metadata.category - "]),
    "an unknown kind": (
        '"api_docs"',
        '"swagger"',
        ["source `reference` - ", "'swagger'", "'api_docs'"],
    ),
    "a source without a name": (
        'name = "guides"\nkind = "markdown"\n',
        'kind = "markdown"\n',
        ["sources.0.markdown.name is missing"],
    ),
    "no kind": ('kind = "api_docs"\n', "", ["source `reference` - ", "kind"]),
    "duplicate source names": ('"reference"', '"guides"', ["two sources are named 'guides'"]),
    "an invalid schedule": (
        "[platform]\n",
        '[ingestion]\nschedule = "often"\n[platform]\n',
        ["ingestion.schedule: 'often'"],
    ),
    "an unknown time zone": (
        "[platform]\n",
        '[ingestion]\nschedule = "* * * * *"\ntimezone = "Mars"\n[platform]\n',
        ["ingestion.timezone: unknown time zone 'Mars'"],
    ),
    "an invalid pattern": (
        'path = "guides"',
        'path = "guides"\nfile_name = "("',
        ["source `guides`: file_name - "],
    ),
}

BAD_SOURCES = {
    "a missing source path": ('"guides"\n\n', '"guidse"\n\n', ["guidse: no such folder"]),
    "a file as source path": ('"guides"\n\n', '"guides/orders.md"\n\n', ["no such folder"]),
    "an empty source folder": (
        '"guides"\n\n',
        '"empty"\n\n',
        ["empty: contains no .md or .mdx file"],
    ),
    "a folder without its kind": (
        '"guides"\n\n',
        '"api"\n\n',
        ["api: contains no .md or .mdx file"],
    ),
}

BAD_DOCUMENTS = {
    "broken front matter": ("guides/a.md", b"---\ntitle: [a\n---\ntext", ["a.md: front matter"]),
    "front matter that is not UTF-8": (
        "guides/a.md",
        b"---\ntitle: \xff\n---\ntext",
        ["a.md: not UTF-8"],
    ),
    "Markdown that is not UTF-8": ("guides/a.mdx", b"text \xff", ["a.mdx: not UTF-8 (byte 5)"]),
    "JSON that is not UTF-8": (
        "api/0.json",
        b'{"serviceId": "\xff"}',
        ["0.json: not UTF-8 (byte 15)"],
    ),
    "broken JSON": ("api/0.json", b'{"serviceId": ', ["0.json: the file"]),
    "an empty JSON file": ("api/0.json", b"", ["0.json: the file"]),
    "JSON that is no object": ("api/0.json", b"[]", ["0.json: the file"]),
    "JSON without a key": ("api/0.json", b'{"serviceId": "s"}', ["0.json: apiId"]),
    "JSON with an unknown key": (
        "api/0.json",
        b'{"serviceId": "s", "apiId": "0", "name": "n", "url": "/u", "nmae": "n"}',
        ["0.json: nmae"],
    ),
    "JSON with a wrong type": (
        "api/0.json",
        b'{"serviceId": "s", "apiId": "0", "name": "n", "url": "/u", '
        b'"requestParameters": [{"name": 1}]}',
        ["0.json: requestParameters.0.name"],
    ),
}


def collections(store: Path) -> list[str]:
    """The names of all collections in the store."""
    client = MilvusClient(str(store))
    names: list[str] = client.list_collections()
    client.close()
    return sorted(names)


class TestIngest:
    """`apidesk ingest` with invalid platforms."""

    @pytest.mark.parametrize(("good", "bad", "words"), BAD_PLATFORMS.values(), ids=BAD_PLATFORMS)
    def test_invalid_platform_is_refused(
        self, store: Path, platform: Path, good: str, bad: str, words: list[str]
    ) -> None:
        text = platform.read_text(encoding="utf-8")
        assert good in text
        platform.write_text(text.replace(good, bad), encoding="utf-8")
        self._assert_refused(store, platform, str(platform.parent), *words)

    def test_missing_platform_is_refused(self, store: Path, platform: Path) -> None:
        platform.unlink()
        self._assert_refused(store, platform, f"{platform}: No such file or directory")

    def test_only_source_is_not_called_missing_if_it_is_invalid(
        self, store: Path, platform: Path
    ) -> None:
        text = platform.read_text(encoding="utf-8").partition("[[sources]]")[0]
        platform.write_text(f'{text}[[sources]]\nname = "guides"\nkind = "markdown"\n')
        result = run(store, "ingest", "--platform", platform)
        assert_single_error_line(result, 2, "source `guides`: path is missing")
        assert "at least 1 item" not in result.stderr

    def test_platform_must_be_utf8(self, store: Path, platform: Path) -> None:
        platform.write_bytes(b'[platform]\nname = "\xff"\n')
        self._assert_refused(store, platform, f"{platform}: not valid TOML")

    @pytest.mark.parametrize(("good", "bad", "words"), BAD_SOURCES.values(), ids=BAD_SOURCES)
    def test_invalid_source_is_reported_and_others_are_indexed(
        self, tmp_path: Path, platform: Path, good: str, bad: str, words: list[str]
    ) -> None:
        (platform.parent / "empty").mkdir()
        text = platform.read_text(encoding="utf-8")
        assert good in text
        platform.write_text(text.replace(good, bad), encoding="utf-8")
        self._assert_others_indexed(tmp_path / "milvus.db", platform, "reference", *words)

    @pytest.mark.parametrize(
        ("name", "content", "words"), BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS
    )
    def test_invalid_document_is_reported_and_others_are_indexed(
        self, tmp_path: Path, platform: Path, name: str, content: bytes, words: list[str]
    ) -> None:
        (platform.parent / name).write_bytes(content)
        self._assert_others_indexed(tmp_path / "milvus.db", platform, "guides", *words)

    @pytest.mark.skipif(not UNREADABLE.exists(), reason="needs /proc")
    def test_symbolic_link_out_of_the_source_is_refused(
        self, tmp_path: Path, platform: Path
    ) -> None:
        (platform.parent / "guides" / "a.md").symlink_to(UNREADABLE)
        words = "a.md: symbolic link points outside the source folder"
        self._assert_others_indexed(tmp_path / "milvus.db", platform, "guides", words)

    def _assert_others_indexed(self, store: Path, platform: Path, source: str, *words: str) -> None:
        """Assert that one line reports the refused file, and that `source` is indexed."""
        result = run(store, "ingest", "--platform", platform)
        assert result.exit_code == 1
        (line,) = (line for line in result.stdout.splitlines() if line.startswith("refused"))
        assert [word for word in words if word not in line] == [], line
        assert re.search(rf"{source} +[12] +[12] ", result.stdout)

    def _assert_refused(self, store: Path, platform: Path, *words: str) -> None:
        """Assert a refusal with and without an indexed store, which does not change."""
        before = collections(store)
        assert_single_error_line(run(store, "ingest", "--platform", platform), 2, *words)
        assert collections(store) == before
        new = platform.with_name("new.db")
        assert_single_error_line(run(new, "ingest", "--platform", platform), 2, *words)
        assert collections(new) == []

    def test_repeated_ingestion_changes_nothing(self, store: Path) -> None:
        before = answer(store)
        for options in ((), ("--rebuild",), ("--dry-run",)):
            result = run(store, "ingest", "--platform", store.with_name("platform.toml"), *options)
            assert result.exit_code == 0
            assert re.search(r"guides +2 +0 +0 +2 ", result.stdout)
            warns = "running servers refuse questions" in result.stderr
            assert warns == ("--rebuild" in options)
            assert len(collections(store)) == 1
        assert answer(store) == before

    def test_platform_of_the_working_directory_is_indexed(
        self, tmp_path: Path, platform: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(platform.parent)
        result = run(tmp_path / "milvus.db", "ingest")
        assert re.search(r"guides +2 +2 .*\nreference +1 +1 ", result.stdout)
        assert "HMAC-SHA256" in run(tmp_path / "milvus.db", "ask", QUESTION).stdout

        other = write_other_platform(tmp_path / "other")
        result = run(tmp_path / "new.db", "ingest", APIDESK_PLATFORM=str(other))
        assert re.search(r"other +1 +1 ", result.stdout)

    def test_store_of_another_platform_is_refused(self, store: Path, tmp_path: Path) -> None:
        before = answer(store)
        other = write_other_platform(tmp_path)
        result = run(store, "ingest", "--platform", other)
        names = f"not in the sources of {other}", "source names: guides, reference."
        assert_single_error_line(result, 2, *names, "APIDESK_MILVUS_URI", "--allow-deletes")
        assert answer(store) == before

    def test_page_url_without_links_is_reported(self, tmp_path: Path, platform: Path) -> None:
        folder = 'path = "guides"\n'
        text = platform.read_text(encoding="utf-8")
        template = "https://acme.example/{pagepath}"
        platform.write_text(text.replace(folder, f'{folder}page_url = "{template}"\n'))
        result = run(tmp_path / "milvus.db", "ingest", "--platform", platform)
        assert result.exit_code == 0
        assert (
            "guides: no document has a link, because no document has a value for every name in braces "
            f"in page_url = '{template}'\n" in result.stdout
        )
        right = template.replace("pagepath", "page_path")
        platform.write_text(text.replace(folder, f'{folder}page_url = "{right}"\n'))
        result = run(tmp_path / "milvus.db", "ingest", "--platform", platform)
        assert "no document has a link" not in result.stdout

    def test_new_page_without_a_link_is_not_reported(self, tmp_path: Path, platform: Path) -> None:
        """Other pages of the source have links."""
        folder = 'path = "guides"\n'
        text = platform.read_text(encoding="utf-8")
        platform.write_text(
            text.replace(folder, f'{folder}page_url = "https://a.example/{{title}}"\n')
        )
        for page in ("orders", "new"):
            (platform.parent / "guides" / f"{page}.md").write_text(f"# {page}\n\nText.")
            result = run(tmp_path / "milvus.db", "ingest", "--platform", platform)
            assert "no document has a link" not in result.stdout

    def test_count_of_operations_names_the_pages_that_were_read(
        self, tmp_path: Path, platform: Path
    ) -> None:
        for name in ("a", "b"):
            self._write_operation(platform, name)
            result = run(tmp_path / "milvus.db", "ingest", "--platform", platform)
            line = "guides: 1 API operation on the pages read in this run"
            assert line in result.stdout.splitlines()

    def _write_operation(self, platform: Path, name: str) -> None:
        table = "| Name | Type | Required |\n| --- | --- | --- |\n| name | string | yes |"
        text = f"# Create {name}\n\n`POST /v1/{name}`\n\n## Body\n\n{table}\n"
        (platform.parent / "guides" / f"{name}.md").write_text(text, encoding="utf-8")


def write_other_platform(folder: Path) -> Path:
    """Write a platform whose only source is `other`; return the path of its platform.toml."""
    (folder / "pages").mkdir(parents=True)
    (folder / "pages" / "a.md").write_text("# Boats\n\nA boat floats.\n", encoding="utf-8")
    head = PLATFORM.partition("[[sources]]")[0]
    source = '[[sources]]\nname = "other"\nkind = "markdown"\npath = "pages"\n'
    (folder / "platform.toml").write_text(head + source, encoding="utf-8")
    return folder / "platform.toml"
