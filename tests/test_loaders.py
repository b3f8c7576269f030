"""Sources of kind `loader`: documents of LangChain loaders, from scripted servers of wikis."""

import os
import re
import signal
import time
import tomllib
from collections.abc import Iterator
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from langchain_community.document_loaders.confluence import ConfluenceLoader
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from pydantic import TypeAdapter, ValidationError

from ingestion.loaders.feishu import FeishuError, FeishuWikiLoader
from ingestion.loaders.notion import NotionLoader
from ingestion.loaders.wiki_api import TextRun, inline_markdown
from ingestion.source_reading import ReadOptions
from ingestion.sources.registry import EmptyFile, Waiting, read_source
from ingestion.sync import Sync
from schemas.document import SourceDocument
from schemas.errors import ConfigurationError, IngestionStopped, SourceError
from schemas.ingestion import IngestionOptions, SourceReport
from schemas.platform import LoaderSourceConfig, SourceConfig, SourceLimits
from schemas.settings import read_settings, read_variable
from tests.collections import open_collection, stored_rows
from tests.scripted_server import Fault, Reply, Request, half, hang, serving, status
from tests.wiki_servers import (
    TOKEN,
    WIKIS,
    Feishu,
    Notion,
    Wiki,
    WikiPage,
    feishu_text,
    json_reply,
    notion_block,
    rich_text,
)

pytestmark = pytest.mark.acceptance
"""Each test starts a process for its loader, which takes a second."""

LIMITS = SourceLimits()


def loader_source(**fields: Any) -> LoaderSourceConfig:
    return LoaderSourceConfig.model_validate({"name": "wiki", "kind": "loader", **fields})


def too_frequent(_request: Request, _reply: Reply) -> Reply:
    """Refuse a request as Feishu does above its rate limit."""
    return Reply(b'{"code": 99991400, "msg": "request trigger frequency limit"}', 400)


class Indexed:
    """A collection filled from a source."""

    def __init__(self, folder: Path) -> None:
        settings = read_settings(milvus_uri=str(folder / "milvus.db"))
        self.collection = open_collection(settings, "embedded")

    def sync(self, source: LoaderSourceConfig, **options: bool) -> SourceReport:
        sync = Sync(
            self.collection,
            None,
            ReadOptions(LIMITS, 400),
            IngestionOptions.model_validate(options),
        )
        sync.run([source])
        return sync.reports[0]

    def texts(self) -> str:
        return "\n".join(str(row["text"]) for row in stored_rows(self.collection).values())


@pytest.fixture
def indexed(tmp_path: Path) -> Iterator[Indexed]:
    indexed = Indexed(tmp_path)
    yield indexed
    indexed.collection.close()


@pytest.fixture(params=WIKIS)
def wiki(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wiki]:
    monkeypatch.setenv("WIKI_TOKEN", TOKEN)
    with serving(WIKIS[request.param]()) as server:
        for number in range(1, 6):
            server.pages[f"p{number}"] = WikiPage(f"Page {number}", f"Send parcel {number} today.")
        yield server


def test_pages_keep_title_headings_tables_and_link(wiki: Wiki) -> None:
    source = loader_source(**wiki.source())
    found = [d for d in read_source(source, LIMITS) if not isinstance(d, Waiting)]
    documents = [document for document in found if isinstance(document, SourceDocument)]
    assert found == documents
    assert [document.title for document in documents] == [f"Page {n}" for n in range(1, 6)]
    first = documents[0]
    assert [section.heading for section in first.sections] == [("Sending",), ("Errors",)]
    assert first.sections[0].body == "Send parcel 1 today."
    assert "| 20001 | expired |" in first.sections[1].body
    assert first.page_url.startswith("http")
    assert "p1" in first.page_url


def test_changes_and_deletions_are_followed(wiki: Wiki, indexed: Indexed) -> None:
    source = loader_source(**wiki.source())
    report = indexed.sync(source)
    assert (report.added, report.refused) == (5, [])
    assert indexed.sync(source).written == 0
    wiki.pages["p2"].text = "Collect parcel 2 tomorrow."
    report = indexed.sync(source)
    assert (report.changed, report.unchanged, report.written) == (1, 4, 1)
    del wiki.pages["p3"]
    report = indexed.sync(source)
    assert (report.deleted, report.kept, report.refused) == (1, 0, [])
    assert "Collect parcel 2" in indexed.texts()
    assert "parcel 3" not in indexed.texts()


@pytest.mark.parametrize("wiki", ["yuque"], indirect=True)
def test_deletion_of_many_pages_is_refused(wiki: Wiki, indexed: Indexed) -> None:
    source = loader_source(**wiki.source())
    indexed.sync(source)
    for name in ("p2", "p3", "p4"):
        del wiki.pages[name]
    report = indexed.sync(source)
    assert (report.deleted, report.kept) == (0, 3)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (status(401), "401"),
        (status(429, Retry_After="0"), ""),
        (status(500), ""),
        (half, ""),
        (hang, "timeout_seconds"),
    ],
    ids=["401", "429", "500", "half", "timeout"],
)
def test_failing_server_deletes_nothing(
    wiki: Wiki, indexed: Indexed, fault: Fault, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestion.sources.loader.FIRST_RETRY_S", 0.01)
    fields = {**wiki.source(), "max_errors": 1}
    indexed.sync(loader_source(**fields))
    del wiki.pages["p5"]
    wiki.fail(fault, wiki.content_path)
    started = time.monotonic()
    report = indexed.sync(loader_source(**fields, timeout_seconds=4 if fault is hang else 60))
    assert fault is not hang or time.monotonic() - started < 55  # it hangs for 60 seconds
    assert (report.deleted, report.kept) == (0, 5)
    assert len(report.refused) == 1
    assert reason in report.refused[0]
    assert TOKEN not in report.refused[0]
    assert "parcel 5" in indexed.texts()
    wiki.fault = None
    assert indexed.sync(loader_source(**fields)).deleted == 1


@pytest.mark.parametrize("fault", [status(429, Retry_After="1"), status(500), half])
def test_loader_is_restarted_after_a_passing_fault(
    wiki: Wiki, indexed: Indexed, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestion.sources.loader.FIRST_RETRY_S", 0.01)
    wiki.fail(fault, wiki.content_path, count=1)
    report = indexed.sync(loader_source(**wiki.source()))
    assert (report.added, report.refused) == (5, [])


RICH_NOTION = [
    notion_block("paragraph", rich_text=[*rich_text("Call "), *rich_text("POST /v1/x", code=True), *rich_text(" see "), *rich_text("limits", href="https://a.example/l")]),
    notion_block("bulleted_list_item", rich_text=rich_text("Outer"), id="p1-outer", has_children=True),
    notion_block("code", rich_text=rich_text("a = 1\nb = `2`"), language="python"),
    notion_block("callout", rich_text=rich_text("Keep the key secret.")),
    notion_block("image", caption=rich_text("The console")),
    notion_block("divider"),
]  # fmt: skip
RICH = """Call `POST /v1/x` see [limits](https://a.example/l)

- Outer

  1. Inner

```python
a = 1
b = `2`
```

> Keep the key secret."""


def test_notion_lists_code_links_and_callouts_are_kept() -> None:
    class RichNotion(Notion):
        def children(self, parent_id: str) -> list[dict[str, Any]]:
            inner = notion_block("numbered_list_item", rich_text=rich_text("Inner"))
            return [inner] if parent_id == "p1-outer" else RICH_NOTION

    with serving(RichNotion()) as server:
        server.pages["p1"] = WikiPage("Page 1", "")
        (page,) = NotionLoader(TOKEN, base_url=f"{server.url}/v1").lazy_load()
    assert page.page_content == f"{RICH}\n\nThe console"
    assert page.metadata["Tags"] == ["api", "v2"]


def test_untitled_notion_page_has_an_empty_title() -> None:
    class UntitledNotion(Notion):
        def page(self, page_id: str) -> dict[str, Any]:
            page = super().page(page_id)
            page["properties"]["Name"]["title"] = []
            return page

    with serving(UntitledNotion()) as server:
        server.pages["p1"] = WikiPage("", "Text")
        (page,) = NotionLoader(TOKEN, base_url=f"{server.url}/v1").lazy_load()
    assert page.metadata["title"] == ""


def test_text_and_url_of_a_link_are_escaped() -> None:
    run = TextRun("arr[0]] x", link="https://x.com/a (b)?q=1%202#c")
    assert inline_markdown([run]) == r"[arr\[0\]\] x](https://x.com/a%20%28b%29?q=1%202#c)"


def test_feishu_lists_code_links_and_callouts_are_kept() -> None:
    text = {"elements": [
        *feishu_text("Call ")["elements"], *feishu_text("POST /v1/x", inline_code=True)["elements"],
        *feishu_text(" see ")["elements"],
        *feishu_text("limits", link={"url": "https%3A%2F%2Fa.example%2Fl"})["elements"],
    ]}  # fmt: skip
    blocks = [
        {"block_id": "root", "children": ["a", "b", "d", "e"], "page": feishu_text("Page 1")},
        {"block_id": "a", "text": text},
        {"block_id": "b", "bullet": feishu_text("Outer"), "children": ["c"]},
        {"block_id": "c", "ordered": feishu_text("Inner")},
        {"block_id": "d", "code": feishu_text("a = 1\nb = `2`")},
        {"block_id": "e", "callout": {"emoji_id": "gift"}, "children": ["f"]},
        {"block_id": "f", "text": feishu_text("Keep the key secret.")},
    ]

    class RichFeishu(Feishu):
        def blocks(self, page: WikiPage) -> list[dict[str, Any]]:
            return blocks

    with serving(RichFeishu()) as server:
        server.pages["p1"] = WikiPage("Page 1", "")
        (page,) = FeishuWikiLoader("cli_a1", TOKEN, "70001", base_url=server.url).lazy_load()
        with pytest.raises(FeishuError, match="code 10014: app secret invalid"):
            list(FeishuWikiLoader("cli_a1", "x", "70001", base_url=server.url).lazy_load())
    assert page.page_content == RICH.replace("```python", "```")


@pytest.mark.parametrize(
    "refusal", [status(429, Retry_After="0"), too_frequent], ids=["429", "400"]
)
def test_requests_over_the_rate_limit_are_repeated(refusal: Fault) -> None:
    with serving(Feishu()) as server:
        server.pages["p1"] = WikiPage("Page 1", "Text")
        server.fail(refusal, "/blocks", count=2)
        assert len(FeishuWikiLoader("cli_a1", TOKEN, "70001", base_url=server.url).load()) == 1


def read_after_code(code: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the titles of a wiki whose server once replies to a request for a document with `code`."""

    def refuse(_request: Request, _reply: Reply) -> Reply:
        return json_reply({"code": code, "msg": "refused"})

    monkeypatch.setenv("WIKI_TOKEN", TOKEN)
    monkeypatch.setattr("ingestion.sources.loader.FIRST_RETRY_S", 0.01)
    with serving(Feishu()) as server:
        server.pages["p1"] = WikiPage("Page 1", "Text")
        server.fail(refuse, "/blocks", count=1)
        found = list(read_source(loader_source(**server.source()), LIMITS))
    return [document.title for document in found if isinstance(document, SourceDocument)]


@pytest.mark.parametrize("code", [99991400, 1771001])
def test_loader_is_restarted_after_a_transient_code(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_after_code(code, monkeypatch) == ["Page 1"]


def test_loader_is_not_restarted_after_another_code(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match="the loader failed: FeishuError: code 1770032"):
        read_after_code(1770032, monkeypatch)


class ListLoader(BaseLoader):
    """Loads what it is given; `pid_file` receives the id of its process."""

    def __init__(
        self, documents: list[dict[str, Any]], pid_file: str = "", seconds: float = 0, key: str = ""
    ) -> None:
        self.documents, self.seconds, self.key = documents, seconds, key
        if pid_file:
            Path(pid_file).write_text(str(os.getpid()))

    def lazy_load(self) -> Iterator[Document]:
        for fields in self.documents:
            yield Document(page_content=fields["text"], metadata=fields)
            time.sleep(self.seconds)
        if self.key:
            raise ValueError(f"refused: {self.key}")


def list_source(*documents: dict[str, Any], **fields: Any) -> LoaderSourceConfig:
    arguments = {"documents": list(documents), **fields.pop("arguments", {})}
    return loader_source(
        **{"loader": "tests.test_loaders.ListLoader", "id": "{id}", **fields}, arguments=arguments
    )


def test_stopped_run_ends_the_process_of_the_loader(indexed: Indexed, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    arguments = {"pid_file": str(pid_file), "seconds": 60}
    source = list_source({"id": "a", "text": "Parcels"}, arguments=arguments)

    def stop() -> None:
        if pid_file.exists():
            raise IngestionStopped("stopped")

    options = ReadOptions(LIMITS, 400)
    with pytest.raises(IngestionStopped):
        Sync(indexed.collection, None, options, IngestionOptions(), stop).run([source])
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_loader_is_restarted_after_its_process_is_killed_while_it_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestion.sources.loader.FIRST_RETRY_S", 0.01)
    pid_file = tmp_path / "pid"
    long = {"id": "b", "text": "Refunds " * 100_000}
    arguments = {"pid_file": str(pid_file)}
    source = list_source({"id": "a", "text": "Parcels"}, long, arguments=arguments)
    results = (result for result in read_source(source, LIMITS) if not isinstance(result, Waiting))
    found = [next(results)]
    time.sleep(0.5)  # until the pipe contains the start of the long document
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    found += results
    assert [result.id for result in found if isinstance(result, SourceDocument)] == ["a", "b"]


def test_document_without_id_is_refused_and_the_rest_is_read() -> None:
    source = list_source({"text": "Lost"}, {"id": "b", "text": "Parcels"}, {"id": "c", "text": " "})
    found = [result for result in read_source(source, LIMITS) if not isinstance(result, Waiting)]
    assert str(found[0]) == "a document has no value for id = '{id}'; its metadata has text"
    assert isinstance(found[1], SourceDocument)
    assert isinstance(found[2], EmptyFile)


class ParsedTitleLoader(BaseLoader):
    """Yields a document whose metadata has a text of a class that only the loader's process knows."""

    def lazy_load(self) -> Iterator[Document]:
        class ParsedText(str): ...

        yield Document(page_content="Parcels", metadata={"id": ParsedText("a")})


def test_metadata_may_be_texts_of_a_class_of_the_loader() -> None:
    source = loader_source(loader="tests.test_loaders.ParsedTitleLoader", id="{id}", max_errors=0)
    found = [result for result in read_source(source, LIMITS) if not isinstance(result, Waiting)]
    assert [result.id for result in found if isinstance(result, SourceDocument)] == ["a"]


def test_id_may_have_any_scheme() -> None:
    source = list_source({"id": "s3://parcels/a.md", "text": "Parcels"}, page_url="{id}")
    found = [result for result in read_source(source, LIMITS) if not isinstance(result, Waiting)]
    assert [(each.id, each.page_url) for each in found if isinstance(each, SourceDocument)] == [
        ("s3://parcels/a.md", "")
    ]


def test_malformed_id_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match=r"^id = '{id'"):
        list(read_source(list_source({"id": "a", "text": "Parcels"}, id="{id"), LIMITS))


def test_document_without_id_is_refused_once_if_the_loader_is_restarted(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestion.sources.loader.FIRST_RETRY_S", 0.01)
    documents = ({"text": "Lost"}, {"text": "Lost too"}, {"id": "a", "text": "Parcels"})
    report = indexed.sync(list_source(*documents, arguments={"key": "failing"}))
    assert report.added == 1
    assert [reason.partition(":")[0] for reason in report.refused] == [
        "a document has no value for id = '{id}'; its metadata has text",
        "a document has no value for id = '{id}'; its metadata has text",
        "the loader failed",
    ]


def test_second_document_with_an_id_is_refused() -> None:
    source = list_source({"id": "a", "text": "Parcels"}, {"id": "a", "text": "Refunds"})
    found = [result for result in read_source(source, LIMITS) if not isinstance(result, Waiting)]
    assert isinstance(found[0], SourceDocument)
    assert str(found[1]) == "duplicate document id a: the first document is kept"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"loader": "no_such_package.Loader"}, "No module named 'no_such_package'"),
        ({"loader": "tests.test_loaders.NoLoader"}, "has no attribute 'NoLoader'"),
        ({"arguments": {"colour": "red"}}, "unexpected keyword argument 'colour'"),
        ({"arguments": {"key": {"env": "NO_KEY"}}}, "the environment variable NO_KEY is not set"),
        ({"arguments": {"key": {"env": "WIKI_TOKEN"}}}, "ValueError: refused: ***"),
    ],
)
def test_unusable_loader_is_refused_in_one_line_without_secrets(
    fields: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIKI_TOKEN", TOKEN)
    with pytest.raises(SourceError) as caught:
        list(read_source(list_source(**fields, max_errors=0), LIMITS))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_secret_may_be_in_the_env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("WIKI_KEY=geheim-1\n")
    monkeypatch.chdir(tmp_path)
    assert read_variable("WIKI_KEY") == "geheim-1"
    monkeypatch.setenv("WIKI_KEY", "geheim-2")
    assert read_variable("WIKI_KEY") == "geheim-2"
    assert read_variable("NO_KEY") == ""


def test_secret_in_the_configuration_is_refused() -> None:
    with pytest.raises(ValidationError, match=r'api_key must be written as { env = "NAME" }'):
        list_source(arguments={"oauth2": {"api_key": "geheim"}})


GUIDE = Path(__file__).parents[1] / "docs" / "how-to" / "index-other-systems.md"
EXAMPLES = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_the_guide_are_valid(example: str) -> None:
    (table,) = tomllib.loads(example)["sources"]
    source: SourceConfig = TypeAdapter(SourceConfig).validate_python(table)
    if isinstance(source, LoaderSourceConfig):
        module, _, name = source.loader.rpartition(".")
        loader = getattr(import_module(module), name)
        if issubclass(loader, ConfluenceLoader):  # the subclass passes all arguments on
            loader = ConfluenceLoader
        signature(loader).bind(**source.arguments)
