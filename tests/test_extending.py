"""Follows docs/how-to/extend.md: adds its examples to a copy of the source tree, and uses them there."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Literal, cast, get_args

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import TypeAdapter

from app.cli.terminal.ingest import explain_page
from app.service.answer_service import AnswerService
from ingestion.sources.markdown import markdown_content
from ingestion.sources.pages import PageContent, PageFolderReader
from ingestion.sources.registry import (
    FileTaskReader,
    SourceReader,
    get_reader,
    read_source,
)
from runnables.models.chat_models import open_chat_models
from runnables.tools.lookup_tools import TOOLS
from schemas.choices import LANGUAGES
from schemas.document import SourceDocument
from schemas.errors import ConfigurationError
from schemas.platform import MarkdownSourceConfig, PageFolderConfig, SourceConfig, SourceLimits
from schemas.settings import read_settings
from tests.model_script import Reply, ToolCall
from tests.model_server import ModelServer
from tests.product_modules import PACKAGES, ROOT
from tests.research_steps import ResearchSteps, tool_texts, write_answers

DOCS = ROOT / "docs" / "how-to" / "extend.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = FENCE.findall(DOCS.read_text(encoding="utf-8"))
KINDS = [
    get_args(config.model_fields["kind"].annotation)[0]
    for config in get_args(get_args(SourceConfig)[0])
]
"""Every kind of source in the union SourceConfig."""
TOOL, SOURCE = "runnables/tools/error_code.py", "ingestion/sources/faq.py"
"""The modules that the examples add; each example begins with a comment that names its module."""
TEST_FILES = [
    f"tests/{name}.py"
    for name in ("__init__", "conftest", "product_modules", "test_layout", "test_prompts")
]
EXPORT = re.compile(r"^export (\w+)=(.*)$", re.MULTILINE)


def block(kind: str, holds: str) -> str:
    """The only code block of this kind that contains `holds`."""
    (found,) = [text for k, text in BLOCKS if k == kind and holds in text]
    assert isinstance(found, str)
    return found


def insert(path: Path, before: str, text: str) -> None:
    """Insert `text` into a file, in front of the only occurrence of `before`."""
    content = path.read_text(encoding="utf-8")
    assert content.count(before) == 1
    path.write_text(content.replace(before, text + before), encoding="utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the product and of some tests, in which the examples are added as the document says."""
    tree = tmp_path_factory.mktemp("tree")
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("pyproject.toml", *TEST_FILES):
        (tree / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tree / name)

    (tree / TOOL).write_text(block("python", f"# {TOOL}"), encoding="utf-8")
    tools = tree / "runnables" / "tools" / "lookup_tools.py"
    added = block("python", "import error_code\n")
    insert(tools, "from runnables.tools.tool_context import", added)
    insert(tools, '}\n"""The tools by name', block("python", '"error_code": error_code,'))

    (tree / SOURCE).write_text(block("python", f"# {SOURCE}"), encoding="utf-8")
    platform = tree / "schemas" / "platform.py"
    config = block("python", "class FaqSourceConfig")
    insert(platform, "SourceConfig = Annotated[", f"{config}\n\n")
    insert(platform, "    | LoaderSourceConfig\n", "    | FaqSourceConfig\n")

    for language in LANGUAGES:
        template = tree / "prompts" / f"headline.{language}.md.j2"
        template.write_text(block("jinja", "headline"), encoding="utf-8")
    insert(tree / "prompts" / "chat_prompts.py", '    "condense",\n', '    "headline",\n')
    (tree / "show.py").write_text(block("python", "print(*read_source("), encoding="utf-8")
    (tree / "render.py").write_text(block("python", "load_prompt("), encoding="utf-8")
    return tree


def run(tree: Path, *arguments: str) -> str:
    """The output of Python in `tree`, whose modules are imported instead of those of this process."""
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=environment | {"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_code_block_is_tested() -> None:
    assert [kind for kind, _ in BLOCKS] == [
        *["python", "python", "python"],
        *["toml", "python", "python", "python"],
        *["sh", "sh"],
        *["jinja", "python"],
    ]


@pytest.mark.acceptance
def test_examples_pass_the_checks_of_the_project(tree: Path) -> None:
    files = (TOOL, SOURCE, "runnables/tools/lookup_tools.py", "schemas/platform.py")
    run(tree, "-m", "ruff", "check", *files)
    run(tree, "-m", "ruff", "format", "--check", *files)
    run(
        tree,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "tests/test_layout.py",
        "tests/test_prompts.py",
    )


USE_EXAMPLES = """
import json
import runpy
import sys

import runnables.tools.error_code
from ingestion.sources.registry import count_files, digest_source, read_source
from pydantic import TypeAdapter
from runnables.tools.lookup_tools import TOOLS
from schemas.platform import SourceConfig, SourceLimits

source = TypeAdapter(SourceConfig).validate_json(sys.argv[1])
document, refused = read_source(source, SourceLimits())
(section,) = document.sections
print(json.dumps({
    "tools": list(TOOLS),
    "files": count_files(source),
    "has_digest": bool(digest_source(source, SourceLimits())),
    "page": [document.page_url, *section.heading, section.body],
    "refused": str(refused),
    "prompt": [message.text for message in runpy.run_path("render.py")["messages"]],
}))
"""
"""Imports the examples, uses them, and prints what they return."""


@pytest.mark.acceptance
def test_examples_work_in_a_program(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "keys.csv").write_text("question,answer\nHow many keys?,Twenty a team.\n")
    (tmp_path / "wrong.csv").write_text("frage,antwort\na,b\n")
    source = {"name": "faq", "kind": "faq", "path": str(tmp_path), "page_url": "https://x.y/{path}"}

    used = json.loads(run(tree, "-c", USE_EXAMPLES, json.dumps(source)))
    shutil.copytree(tmp_path, tree / "answers")
    shown = run(tree, "show.py")

    assert used["tools"] == [*TOOLS, "error_code"]
    assert (used["files"], used["has_digest"]) == (2, True)
    assert used["page"] == ["https://x.y/keys", "How many keys?", "Twenty a team."]
    assert "Twenty a team." in shown
    assert used["refused"] == "wrong.csv: has no column 'answer'"
    system, human = used["prompt"]
    assert system.startswith("# Context")
    assert "how do I ship an order?" in human
    assert human.count("</question>") == 1


def test_new_tool_is_offered_and_called(
    tree: Path, sample_service: AnswerService, model_server: ModelServer
) -> None:
    spec = spec_from_file_location("runnables.tools.error_code", tree / TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    tools = TOOLS | {"error_code": module.error_code}

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
        return markdown_content(f"<!-- -->\n{text}")._replace(values=values)

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
