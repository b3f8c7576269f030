"""The MCP tools, tested with the SDK's client over HTTP and stdio."""

import ast
import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from litestar import Litestar
from litestar.testing import TestClient
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent, TextResourceContents, Tool
from pydantic import SecretStr

from app.api.mcp import server as mcp_server
from app.security.api_keys import ApiKeyStore
from app.service.answer_service import AnswerService
from schemas.errors import StoreUnavailable
from tests.cli.commands import environment_of, write_platform
from tests.live_server import live_server
from tests.model_replies import draft, structured
from tests.model_script import Reply
from tests.model_server import ModelServer
from tests.serving_process import APIDESK

pytestmark = pytest.mark.acceptance

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

ACCEPT = {"accept": "application/json, text/event-stream"}

Mode = Literal["auto", "legacy"]


@asynccontextmanager
async def connected(url: str, key: str = "", mode: Mode = "auto") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=20) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def call(
    url: str, tool: str, *, key: str = "", mode: Mode = "auto", **arguments: Any
) -> CallToolResult:
    """Call a tool and return its text and structured result."""

    async def calling() -> CallToolResult:
        async with connected(url, key, mode) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(calling())


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.fixture(scope="module")
def url(sample_service: AnswerService) -> Iterator[str]:
    """A server without a model and without keys."""
    with live_server(sample_service) as address:
        yield address


# Tools


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_are_described(url: str, mode: Mode) -> None:
    async def listing() -> tuple[list[Tool], str]:
        async with connected(url, mode=mode) as client:
            return (await client.list_tools()).tools, client.instructions or ""

    tools, instructions = asyncio.run(listing())
    assert "Qingqiao Open Platform" in instructions
    assert {tool.name: tool.input_schema["required"] for tool in tools} == {
        "ask": ["question"], "search": ["query"], "outline": ["name"], "open": ["document"],
    }  # fmt: skip
    for tool in tools:
        assert tool.title
        assert tool.description
        assert "\n " not in tool.description
        assert tool.output_schema
        assert all(field["description"] for field in tool.input_schema["properties"].values())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_ask_returns_the_answer_with_its_sources(url: str, mode: Mode) -> None:
    result = call(url, "ask", mode=mode, question="what does error 44203 mean?")
    assert not result.is_error
    text = text_of(result)
    page = "https://open.example.com/#/api?apiId=1206"
    assert text.endswith(f"**Sources**\n\n- [1] [Update SKU Price > Error codes]({page})")
    content = result.structured_content
    assert text.startswith("\n\n".join(content["answer"]))
    assert content["sources"] == [
        {"number": 1, "title": "Update SKU Price", "section": "Error codes", "pageUrl": page}
    ]
    assert (content["type"], content["nearest"]) == ("api_call", [])
    assert (content["unsupported"], content["degraded"]) == ([], None)
    assert content["confidence"] in ("high", "medium")


def test_ask_answers_in_the_requested_language(url: str) -> None:
    text = text_of(call(url, "ask", question="44203", language="en"))
    assert "**Sources**" in text


def test_agent_can_search_list_and_open_documents(url: str) -> None:
    """Each result leads to the next: from a name to a document to a section."""
    documents = call(url, "outline", name="订单发货").structured_content["documents"]
    (shipping,) = [document for document in documents if document["apiName"] == "订单发货"]
    heading = next(h for h in shipping["headings"] if "错误码" in h)

    opened = call(url, "open", document=shipping["title"], section=heading)
    passages = opened.structured_content["passages"]
    assert {passage["apiName"] for passage in passages} == {"订单发货"}
    assert all(passage["section"] == heading for passage in passages)
    assert text_of(opened).startswith(
        f"# {shipping['title']} > {heading}\n{shipping['pageUrl']}\n\n"
    )

    result = call(url, "search", query="发货失败", document="订单发货", section="错误码")
    assert result.structured_content["passages"][0] in passages


def test_open_lists_the_sections_of_a_document(url: str) -> None:
    (document, *_) = call(url, "outline", name="订单发货").structured_content["documents"]
    result = call(url, "open", document=document["title"])
    content = result.structured_content
    assert (content["passages"], content["sections"]) == ([], document["headings"])
    assert content["documents"] == [document]
    assert all(f"\n    {heading}" in text_of(result) for heading in document["headings"])


def test_open_lists_each_matching_document_with_its_sections(url: str) -> None:
    result = call(url, "open", document="订单")
    first, second = result.structured_content["documents"]
    text = text_of(result)
    for document in (first, second):
        assert f"{document['title']} · {document['apiUrl']}" in text
        assert all(f"\n    {heading}" in text for heading in document["headings"])
    assert first["apiUrl"] != second["apiUrl"]
    headings = [*first["headings"], *second["headings"]]
    assert result.structured_content["sections"] == list(dict.fromkeys(headings))


def test_documents_are_resources(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "RESOURCES_PER_PAGE", 3)

    async def reading() -> tuple[dict[str, str], str]:
        async with connected(url) as client:
            listed = await uris_by_title(client)
            uri = listed["订单发货"]
            with pytest.raises(MCPError, match="no document has the URI"):
                await client.read_resource(uri + "x")
            for cursor in ("x", "-3", "9" * 5_000):
                with pytest.raises(MCPError, match="cursor: not issued by this server"):
                    await client.list_resources(cursor=cursor)
            (content,) = (await client.read_resource(uri)).contents
            assert isinstance(content, TextResourceContents)
            return listed, content.text

    listed, text = asyncio.run(reading())
    assert len(listed) > 6
    assert text.startswith("# 订单发货 > ")
    assert "> 错误码" in text


def test_store_failure_is_named_when_resources_are_listed(
    url: str, sample_service: AnswerService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise StoreUnavailable("the store does not answer")

    async def listing() -> None:
        async with connected(url) as client:
            with pytest.raises(MCPError, match="the store does not answer"):
                await client.list_resources()

    monkeypatch.setattr(type(sample_service.collection), "catalogue", fail)
    asyncio.run(listing())


def test_uris_of_documents_have_a_template(url: str) -> None:
    """Clients ask every server with resources for its templates, and show an error if there is none."""

    async def listing() -> tuple[str, str]:
        async with connected(url) as client:
            (template,) = (await client.list_resource_templates()).resource_templates
            return template.uri_template, (await uris_by_title(client))["发货流程"]

    template, uri = asyncio.run(listing())
    assert template.format(source="guides", document="shipping-flow") == uri


async def uris_by_title(client: Client) -> dict[str, str]:
    """Return the URIs of all documents."""
    uris: dict[str, str] = {}
    cursor: str | None = ""
    while cursor is not None:
        page = await client.list_resources(cursor=cursor or None)
        uris |= {resource.title or "": resource.uri for resource in page.resources}
        cursor = page.next_cursor
    return uris


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("outline", {"name": "qqqq"}, "no service or document is called qqqq"),
        ("search", {"query": "订单", "document": "qqqq"}, "no document is called qqqq"),
        (
            "search",
            {"query": "订单", "document": "订单发货", "section": "qqqq"},
            "no such section; the document has: ",
        ),
        (
            "search",
            {"query": "订单", "section": "qqqq"},
            "no passage was found under a heading that contains qqqq",
        ),
    ],
)
def test_missing_documents_are_reported(
    url: str, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    result = call(url, tool, **arguments)
    assert not result.is_error
    assert text_of(result).startswith(sentence)
    assert not any(result.structured_content.values())


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("write", {}, "unknown tool: write; available: ask, outline, search, open"),
        ("ask", {}, "question: Field required"),
        ("ask", {"question": 7}, "question: Input should be a valid string"),
        ("ask", {"question": " "}, "question: must not be blank"),
        ("search", {"query": " "}, "query: must not be blank"),
        ("outline", {"name": ""}, "name: must not be blank"),
        (
            "search",
            {"query": "问" * 20_001},
            "query: 20001 characters, at most 20000 are allowed",
        ),
        ("ask", {"question": "a", "language": "xx"}, "language: Input should be 'zh'"),
        (
            "open",
            {"document": "订单发货", "section": "qqqq"},
            "no such section; the document has: ",
        ),
        (
            "open",
            {"document": "qqqq"},
            "no document is called qqqq; find its name with search or outline",
        ),
    ],
)
def test_invalid_call_returns_one_sentence(
    url: str, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    result = call(url, tool, **arguments)
    assert result.is_error
    assert text_of(result).startswith(sentence)
    assert "\n" not in text_of(result)


def test_model_failure_is_a_tool_error(
    sample_service: AnswerService, model_server: ModelServer
) -> None:
    model_server.default = Reply("no", status=401)
    with live_server(scripted(sample_service, model_server, on_model_failure="error")) as server:
        result = call(server, "ask", question="发货接口是哪个")
    assert result.is_error
    assert "APIDESK_CHAT_MODEL" in text_of(result)


def test_disconnect_cancels_the_model_call(
    sample_service: AnswerService, model_server: ModelServer
) -> None:
    model_server.default = Reply(structured(), action="stall")
    body = PING | {
        "method": "tools/call",
        "params": {"name": "ask", "arguments": {"question": "发货接口是哪个"}},
    }
    with (
        live_server(scripted(sample_service, model_server)) as server,
        httpx2.Client(base_url=server, timeout=3, trust_env=False) as http,
    ):
        with pytest.raises(httpx2.ReadTimeout):
            http.post("/mcp", json=body, headers=ACCEPT)
        assert model_server.abandoned.wait(10)


def scripted(
    sample_service: AnswerService, model_server: ModelServer, **changed: object
) -> AnswerService:
    """A server with the scripted model."""
    changed_settings = sample_service.settings.model_copy(update=model_server.settings | changed)
    return AnswerService(changed_settings, sample_service.platform, sample_service.job)


# Keys and limits


def test_api_keys_and_rate_limits_apply(
    sample_service: AnswerService, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Listing tools does not count as a request. Records belong to the key."""
    database = f"sqlite:///{tmp_path_factory.mktemp('keys') / 'apidesk.db'}"
    limited = {"database_url": database, "rate_limit": "2/hour"}
    settings = sample_service.settings.model_copy(update=limited)
    with closing(ApiKeyStore.open(settings)) as stored:
        key, other = (stored.add(scope, (scope,), None)[1] for scope in ("ask", "ingest"))
    answer_service = AnswerService(settings, sample_service.platform, sample_service.job)
    with (
        live_server(answer_service) as server,
        httpx2.Client(base_url=server, trust_env=False) as http,
    ):
        for wrong, status in (("", 401), ("wrong", 401), (other, 403)):
            response = http.post("/mcp", json=PING, headers=ACCEPT | bearer(wrong))
            assert response.status_code == status
            assert response.headers["content-type"] == "application/problem+json"
        with pytest.raises((MCPError, ExceptionGroup)):
            call(server, "ask", question="发货接口是哪个")

        answer = call(server, "ask", key=key, question="发货接口是哪个").structured_content
        feedback = f"/answers/{answer['id']}/feedback"
        assert http.post(feedback, json={"score": 1}, headers=bearer(key)).status_code == 204
        refused = call(server, "outline", key=key, name="订单发货")
    assert refused.is_error
    assert text_of(refused).startswith("too many requests: the limit is 2 per 1 hour; wait ")


def test_messages_that_return_documents_are_limited(sample_service: AnswerService) -> None:
    key = "a" * 40
    limited = {"admin_key": SecretStr(key), "rate_limit_address": "3/hour"}
    settings = sample_service.settings.model_copy(update=limited)
    answer_service = AnswerService(settings, sample_service.platform, sample_service.job)

    def send(method: str, **params: object) -> str:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return http.post("/mcp", json=message, headers=ACCEPT | bearer(key)).text

    with (
        live_server(answer_service) as server,
        httpx2.Client(base_url=server, trust_env=False) as http,
    ):
        for method in ("tools/list", "ping", "resources/templates/list"):
            assert "result" in send(method)
        assert "apidesk://documents/" in send("resources/list")
        assert "apidesk://documents/" in send("resources/list")
        assert "text/markdown" in send("resources/read", uri="apidesk://documents/guides/signing")
        assert "too many requests" in send("resources/list")
        assert "too many requests" in send("resources/read", uri="apidesk://documents/guides/x")


def test_only_names_of_tools_are_logged(
    sample_service: AnswerService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with live_server(sample_service) as server:
        unknown = call(server, "nope app_secret=8f3kd92jfkd8w2yw")
        call(server, "outline", name="订单发货")
    assert unknown.is_error
    logged = "\n".join(f"{record.msg} {record.args}" for record in caplog.records)
    assert "'tool': 'outline'" in logged
    assert "nope" not in logged


def test_tokens_are_charged_to_the_key(
    sample_service: AnswerService, model_server: ModelServer
) -> None:
    model_server.reply(structured(), draft("调用“订单发货”接口。[1]"))
    with live_server(scripted(sample_service, model_server, token_limit="10/hour")) as server:
        assert not call(server, "ask", question="发货接口是哪个").is_error
        refused = call(server, "ask", question="发货接口是哪个")
    assert text_of(refused).startswith("too many tokens: the limit is 10 per 1 hour; wait ")


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Forwarded": "for=x"}],
)
def test_without_a_key_only_localhost_may_connect(
    client: TestClient[Litestar], headers: dict[str, str]
) -> None:
    assert client.post("/mcp", json=PING, headers=ACCEPT | headers).status_code == 403


def test_request_must_be_a_post_within_the_size_limit(client: TestClient[Litestar]) -> None:
    assert client.get("/mcp", headers=ACCEPT).status_code == 405
    assert client.delete("/mcp").status_code == 405
    large = PING | {"params": {"name": "x" * 2_000_000}}
    response = client.post("/mcp", json=large, headers=ACCEPT)
    assert response.status_code == 413
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["detail"] == "body: larger than the limit of this server"


@pytest.mark.parametrize("body", [[PING, PING], {"id": 1}])
@pytest.mark.parametrize("version", [{}, {"MCP-Protocol-Version": "2026-07-28"}])
def test_body_must_be_one_message(
    client: TestClient[Litestar], body: object, version: dict[str, str]
) -> None:
    response = client.post("/mcp", json=body, headers=ACCEPT | version)
    assert response.status_code == 400
    message = "the body must be one JSON-RPC message; batches are not supported"
    error = {"code": -32600, "message": message}
    assert response.json() == {"jsonrpc": "2.0", "id": None, "error": error}


def test_request_log_names_the_tool(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="app"):
        call(url, "outline", name="订单发货")
    lines = [str(record.msg) for record in caplog.records if "request" in str(record.msg)]
    assert any("'tool': 'outline'" in line and "'route': '/mcp'" in line for line in lines)


# stdio


def test_stdio_opens_the_store(tmp_path: Path) -> None:
    """The process indexes, answers, and writes only protocol messages to stdout."""
    platform = write_platform(tmp_path)
    process = StdioServerParameters(
        command=APIDESK,
        args=["mcp", "--platform", str(platform)],
        env=environment_of(tmp_path / "milvus.db"),
        cwd=tmp_path,
    )

    async def calling() -> tuple[CallToolResult, CallToolResult]:
        async with Client(process) as client:
            answer = await client.call_tool("ask", {"question": "how do I sign a request?"})
            return answer, await client.call_tool("search", {"query": "orders", "service": "s"})

    answer, result = asyncio.run(calling())
    assert "HMAC-SHA256" in text_of(answer)
    assert [p["title"] for p in result.structured_content["passages"]] == ["Search orders"]


def test_sdk_is_imported_on_first_use_only() -> None:
    """The SDK and LangChain's agents load slowly: `--help` and `serve` must not import them."""
    app = Path(__file__).resolve().parents[1] / "app"
    for path in app.rglob("*.py"):
        if path.parent.name == "mcp":
            continue
        body = ast.parse(path.read_text(encoding="utf-8")).body
        modules = {node.module or "" for node in body if isinstance(node, ast.ImportFrom)}
        modules |= {
            name.name for node in body if isinstance(node, ast.Import) for name in node.names
        }
        heavy = ("mcp", "app.api.mcp.server", "app.api.mcp.toolbox")
        assert not [module for module in modules if module.startswith(heavy)], path
