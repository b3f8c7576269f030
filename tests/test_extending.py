"""Runs the code blocks of docs/how-to/extend.md."""

import asyncio
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, cast, get_args

import pytest
from jinja2 import ChoiceLoader, DictLoader
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import TypeAdapter

import schemas.platform
from app.cli.terminal.ingest import explain_page
from app.service.answer_service import AnswerService
from ingestion.sources.markdown import markdown_content
from ingestion.sources.pages import PageContent, PageFolderReader
from ingestion.sources.registry import (
    FileTaskReader,
    SourceReader,
    count_files,
    digest_source,
    get_reader,
    read_source,
)
from prompts import chat_prompts
from runnables.models.chat_models import open_chat_models
from runnables.tools.lookup_tools import TOOLS
from schemas.document import SourceDocument
from schemas.errors import ConfigurationError, SourceError
from schemas.platform import MarkdownSourceConfig, PageFolderConfig, SourceConfig, SourceLimits
from schemas.settings import read_settings
from tests.model_script import Reply, ToolCall
from tests.model_server import ModelServer
from tests.research_steps import ResearchSteps, tool_texts, write_answers

DOCS = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "extend.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = FENCE.findall(DOCS.read_text(encoding="utf-8"))
KINDS = [
    get_args(config.model_fields["kind"].annotation)[0]
    for config in get_args(get_args(SourceConfig)[0])
]
"""Every kind of source in the union SourceConfig."""
EXPORT = re.compile(r"^export (\w+)=(.*)$", re.MULTILINE)


def block(kind: str, holds: str) -> str:
    """The only code block of this kind that contains `holds`."""
    (found,) = [text for k, text in BLOCKS if k == kind and holds in text]
    assert isinstance(found, str)
    return found


def run(code: str, **names: object) -> dict[str, Any]:
    """The names that `code` defines."""
    defined: dict[str, Any] = {"__name__": "extending"} | names
    exec(code, defined)
    return defined


def test_every_code_block_is_tested() -> None:
    assert [kind for kind, _ in BLOCKS] == [
        *["python", "python"],
        *["toml", "python", "python"],
        *["sh", "sh"],
        *["jinja", "python"],
    ]


def test_new_tool_is_offered_and_called(
    sample_service: AnswerService, model_server: ModelServer
) -> None:
    defined = run(block("python", "async def error_code"))
    line = block("python", '"error_code": error_code,').strip()
    tools = TOOLS | eval(f"{{{line}}}", defined)

    write_answers(model_server)
    model_server.reply(Reply(tool_calls=[ToolCall("error_code", {"code": "44203"})]), Reply("done"))
    looked_up = ResearchSteps(sample_service, model_server).ask("改价失败了", tools=tools)

    offered = {
        t["function"]["name"]: t["function"] for t in model_server.chat_requests[0].body["tools"]
    }
    assert offered.keys() == tools.keys()
    assert offered["error_code"]["description"].startswith("Find out what an error code means")
    assert offered["error_code"]["parameters"]["required"] == ["code"]
    assert offered["error_code"]["parameters"]["properties"].keys() == {"code"}
    (call,) = looked_up.rounds
    assert (call.tool, call.error) == ("error_code", None)
    assert call.results
    assert "44203" in tool_texts(model_server.chat_requests[1])[0]
    assert "44203" in looked_up.state["chunks"][0].chunk.text


def test_markdown_source_needs_no_code() -> None:
    (source,) = tomllib.loads(block("toml", "[[sources]]"))["sources"]
    read: SourceConfig = TypeAdapter[SourceConfig](SourceConfig).validate_python(source)
    assert isinstance(read, MarkdownSourceConfig)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_reader(kind: str) -> None:
    assert isinstance(get_reader(kind), SourceReader | FileTaskReader)


def test_new_kind_needs_a_config_class_and_a_reader_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defined = run(
        "from typing import Literal\n" + block("python", "class FaqSourceConfig"),
        PageFolderConfig=PageFolderConfig,
    )
    monkeypatch.setattr(
        schemas.platform, "FaqSourceConfig", defined["FaqSourceConfig"], raising=False
    )
    module = ModuleType("faq")
    module.__dict__.update(run(block("python", "PageFolderReader[FaqSourceConfig]")))
    monkeypatch.setitem(sys.modules, "ingestion.sources.faq", module)
    (tmp_path / "keys.csv").write_text("question,answer\nHow many keys?,Twenty a team.\n")
    (tmp_path / "wrong.csv").write_text("frage,antwort\na,b\n")
    source = defined["FaqSourceConfig"].model_validate(
        {"name": "faq", "kind": "faq", "path": tmp_path, "page_url": "https://x.y/{path}"}
    )

    document, refused = read_source(source, SourceLimits())

    assert count_files(source) == 2
    assert digest_source(source, SourceLimits())
    assert isinstance(document, SourceDocument)
    assert document.page_url == "https://x.y/keys"
    (section,) = document.sections
    assert (section.heading, section.body) == (("How many keys?",), "Twenty a team.")
    assert isinstance(refused, SourceError)


class WikiSourceConfig(PageFolderConfig):
    """A folder of pages that are read as Markdown."""

    kind: Literal["wiki"] = "wiki"


def test_new_kind_with_markdown_is_read_like_markdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Markup is converted, the description is indexed, and API operations are recognised."""

    def read_content(_source: PageFolderConfig, _limits: SourceLimits, path: Path) -> PageContent:
        title, _, text = path.read_text().partition("\n")
        values = {"title": title, "description": "For shops."}
        return PageContent(values, markdown_content(text).parts, "markdown")

    module = ModuleType("wiki")
    reader = PageFolderReader[PageFolderConfig](lambda _: {".wiki"}, read_content)
    monkeypatch.setattr(module, "READER", reader, raising=False)
    monkeypatch.setitem(sys.modules, "ingestion.sources.wiki", module)
    source = cast(SourceConfig, WikiSourceConfig(name="docs", path=tmp_path))
    table = "| Name | Type | Required |\n| --- | --- | --- |\n| text | string | yes |"
    (tmp_path / "api.wiki").write_text(f"Add\n`POST /v1/x`\n\n## Parameters\n\n{table}")
    (tmp_path / "guide.wiki").write_text(
        "Guide\n## Tokens\n\n<b>20</b> &amp; more: [Limits](limits.wiki).\n\n:::tip Hint\nAsk us.\n:::"
    )

    api, guide = read_source(source, SourceLimits())

    assert isinstance(api, SourceDocument)
    assert isinstance(guide, SourceDocument)
    assert (api.api_name, api.api_url) == ("Add", "/v1/x")
    assert [section.body for section in guide.sections] == [
        "For shops.",
        "**20** & more: Limits.\n\n**Hint**\n\nAsk us.",
    ]
    explained = explain_page([source], SourceLimits(), tmp_path / "api.wiki")
    assert explained[0] == "api.wiki in docs: 1 API operation"


@pytest.mark.parametrize(
    "example",
    [block("sh", "langchain-groq"), block("sh", "openai:qwen3")],
    ids=["package", "address"],
)
def test_model_provider_is_selected_by_name(
    example: str, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider's package is replaced by one that uses the OpenAI protocol."""
    groq = ModuleType("langchain_groq")
    monkeypatch.setattr(groq, "ChatGroq", type("ChatGroq", (ChatOpenAI,), {}), raising=False)
    monkeypatch.setitem(sys.modules, "langchain_groq", groq)
    for name, value in EXPORT.findall(example):
        monkeypatch.setenv(name, value)
    settings = read_settings()
    assert settings.chat_api_key is not None
    models = open_chat_models(settings.model_copy(update={"chat_base_url": model_server.base_url}))
    assert models is not None

    model_server.reply("hello")
    (writer,) = models.answer_models
    reply = asyncio.run(writer.ask([HumanMessage("hi")], {}))

    assert reply.text == "hello"
    (request,) = model_server.chat_requests
    assert writer.name.endswith(request.body["model"])
    assert request.headers["authorization"] == f"Bearer {settings.chat_api_key.get_secret_value()}"


def test_missing_provider_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APIDESK_CHAT_MODEL", "mistralai:any")
    with pytest.raises(ConfigurationError, match="langchain-mistralai"):
        open_chat_models(read_settings())


def test_new_prompt_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    template = block("jinja", "headline")
    environment = chat_prompts._environment()
    assert environment.loader is not None
    added = DictLoader({"headline.en.md.j2": template})
    monkeypatch.setattr(environment, "loader", ChoiceLoader([added, environment.loader]))

    system, human = run(block("python", "load_prompt("))["messages"]

    assert set(re.findall(r"</?([a-z_]+)>", template)) <= set(chat_prompts.TAGS)
    assert system.text.startswith("# Context")
    assert "how do I ship an order?" in human.text
    assert human.text.count("</question>") == 1
