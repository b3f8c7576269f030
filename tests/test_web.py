"""Tests of web search: requests, citable content of replies, and answers despite failures."""

import asyncio
import logging
import socket
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml
from langchain_core.runnables import RunnableConfig
from pydantic import SecretStr

from ingestion.text.language import estimate_tokens
from runnables.retrieval.web_search import (
    RUN_NAME,
    WEB_SEARCH_SETTING,
    WebSearch,
    build_web_search,
    open_web_search,
)
from runnables.run_context import with_deadline
from runnables.state import Classification, PipelineState
from schemas.answer import Source
from schemas.document import RetrievedChunk
from schemas.errors import ConfigurationError
from schemas.question import Filters, Question, StructuredQuestion
from schemas.settings import read_settings
from tests.chunks import page
from tests.model_script import Reply
from tests.traces import Trace
from tests.web_server import KEY, WebServer, error_reply, result, search_reply

pytestmark = pytest.mark.acceptance

QUESTION = "How do I rotate the signing key?"
URL = "https://docs.example.com/keys"
BODY = "Rotate it on the console. The old key works for a day."
SECRET = SecretStr(KEY)
TLS = httpx.create_ssl_context()
"""Created once: it takes longer than a test."""


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore keys and proxies of the environment."""
    monkeypatch.setattr(httpx, "create_ssl_context", lambda: TLS)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("TAVILY_API_KEY", "TAVILY_PROJECT", "TAVILY_ORG_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer() as scripted:
        yield scripted
    assert not scripted.faults


def open_search(server: WebServer, **overrides: object) -> WebSearch:
    defaults = {"web_search": "tavily", "web_api_key": SECRET, "web_base_url": server.base_url}
    web = open_web_search(read_settings(**(defaults | overrides)))
    assert web is not None
    return web


def question_of(text: str = QUESTION, **filters: object) -> Question:
    return Question(text=text, k=5, language="en", filters=Filters.model_validate(filters))


def find(
    web: WebSearch, question: Question | None = None, config: RunnableConfig | None = None
) -> list[RetrievedChunk]:
    return asyncio.run(web.search(question or question_of(), config or {}))


def bodies(server: WebServer, *results: object, **overrides: object) -> list[str]:
    """Return the bodies of the chunks from a reply with `results`."""
    server.reply(search_reply(*results))
    return [each.chunk.body for each in find(open_search(server, **overrides))]


def state_of(question: Question, chunks: list[RetrievedChunk]) -> PipelineState:
    classified = Classification(StructuredQuestion(type="general"))
    return PipelineState(
        question=question,
        classification=classified,
        retrieved=chunks,
        further=[],
        chunks=chunks,
    )


def documents(count: int) -> list[RetrievedChunk]:
    chunks = page("签名", *(f"正文 {number}" for number in range(count)))
    return [RetrievedChunk(chunk=chunk, score=0.1) for chunk in chunks]


# --- requests ------------------------------------------------------------------------------------


def test_request_format(server: WebServer) -> None:
    server.reply(search_reply())

    find(open_search(server))

    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"query": QUESTION, "search_depth": "basic", "max_results": 3}
    assert KEY not in str(request.headers | {"authorization": ""})


def test_settings_limit_results_and_domains(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APIDESK_WEB_DOMAINS", "Docs.example.com, *.example.org,")
    monkeypatch.setenv("APIDESK_WEB_RESULTS", "10")
    server.reply(search_reply())

    find(open_search(server))

    body = server.requests[0].body
    assert body["include_domains"] == ["docs.example.com", "*.example.org"]
    assert body["max_results"] == 10


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("为什么报错 40014？ https://h.example/dop/v1/ship?token=abc123", "为什么报错 40014？ /dop/v1/ship"),
        ('Why? {"code": 40014, "msg": "denied", "trace_id": "a1b2c3d4e5"}', "Why? 40014 denied"),
        ("word " * 200, "word " * 79 + "word"),
        ("怎么取消揽收" * 100, ("怎么取消揽收" * 100)[:400]),
    ],
    ids=["url", "response", "long", "long zh"],
)  # fmt: skip
def test_query_is_short_and_without_pasted_values(server: WebServer, text: str, query: str) -> None:
    server.reply(search_reply())
    find(open_search(server), question_of(text))
    assert server.requests[0].body["query"] == query


@pytest.mark.parametrize(
    ("variables", "is_accepted"),
    [
        ({"APIDESK_WEB_API_KEY": KEY, "TAVILY_API_KEY": "other"}, True),
        ({"APIDESK_WEB_API_KEY": "", "TAVILY_API_KEY": KEY}, True),
        ({"TAVILY_API_KEY": KEY}, True),
        ({"APIDESK_WEB_API_KEY": "other", "TAVILY_API_KEY": KEY}, False),
    ],
    ids=["both", "empty", "usual", "wrong"],
)
def test_key_is_read_from_either_variable(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], is_accepted: bool
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    server.default = search_reply(result(URL, BODY))
    settings = read_settings(web_search="tavily", web_base_url=server.base_url)
    web = open_web_search(settings)
    assert web is not None
    assert bool(find(web)) is is_accepted


def test_proxy_of_the_environment_is_used(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.base_url)
    monkeypatch.setenv("http_proxy", server.base_url)
    find(open_search(server, web_base_url="http://tavily.example/v2"))
    assert server.requests[0].path == "http://tavily.example/v2/search"


@pytest.mark.parametrize(
    "question",
    [
        question_of(source="guides"),
        question_of(service="12"),
        question_of(metadata={"version": "2"}),
        question_of(" \n "),
    ],
    ids=["source", "service", "metadata", "empty"],
)
def test_question_with_filters_sends_no_request(server: WebServer, question: Question) -> None:
    assert find(open_search(server), question) == []
    assert server.requests == []


# --- replies --------------------------------------------------------------------------------------


def test_result_becomes_a_citable_chunk(server: WebServer) -> None:
    server.reply(
        search_reply(result(URL, BODY, "Keys", 0.81), result(f"{URL}/2", "两把密钥", "密钥", 0.3))
    )

    first, second = find(open_search(server))

    assert first.score == 0.81
    chunk = first.chunk
    assert (chunk.source, chunk.document_id, chunk.page_url) == ("web", URL, URL)
    assert (chunk.title, chunk.section, chunk.kind, chunk.body) == ("Keys", "", "prose", BODY)
    assert (chunk.language, second.chunk.language) == ("en", "zh")
    assert chunk.metadata == {"web": "true"}
    assert chunk.text == f"---\npageUrl: {URL}\nweb: 'true'\n---\n# Keys\n\n{BODY}"
    assert Source.from_chunk(6, first).metadata == {"web": "true"}


def test_same_result_gives_the_same_chunk(server: WebServer) -> None:
    server.default = search_reply(result(URL, BODY))
    web = open_search(server)
    assert find(web) == find(web)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([], []),
        ([result(URL, "  "), result(URL, ""), result(URL, None), result(URL, 7), result(URL, "[...]")], []),
        ([{"url": URL}, "no", None, [], {"content": BODY}, 3], []),
        ([result(url, BODY) for url in (
            "javascript:alert(1)", "data:text/html,x", "ftp://h.example/a", "//h.example", "", None, 7,
            "https://", "https://h.example/a b", "https://u:p@h.example/", "https://h.example/\n",
            "https://h.example/<b>", "https://h.example/" + "a" * 2_000, "https://[::1", "https://h.example/\u202eabc",
        )], []),
        ([result(URL, "one"), result(URL, "two"), result(URL, "one")], ["one\n\ntwo"]),
        ([result(f"{URL}#/a", "one"), result(f"{URL}#/b", "two")], ["one", "two"]),
        ([result(f"{URL}/{n}", f"page {n}") for n in range(30)], ["page 0", "page 1", "page 2"]),
        ([result(URL, "a &lt;b&gt; &amp;&nbsp;c &#39;d&#39; &quot;")], ["a <b> &\u00a0c 'd' \""]),
        ([result(URL, "a\u202eb\u200b\x00c\ud800d\U000e0041\r\ne\u2028f")], ["abcd\ne\nf"]),
        ([result(URL, "one [...] two […]three")], ["one\n\ntwo\n\nthree"]),
        ([result(URL, "| a | b |\n|---|---|\n| 1 | 2 |")], ["| a | b |\n|---|---|\n| 1 | 2 |"]),
    ],
    ids=[
        "none", "no content", "no results", "no links", "same page", "fragments", "too many", "entities",
        "invisible characters", "passages", "table",
    ],
)  # fmt: skip
def test_only_citable_results_become_chunks(
    server: WebServer, results: list[object], expected: list[str]
) -> None:
    assert bodies(server, *results) == expected


@pytest.mark.parametrize(
    ("score", "expected"),
    [(0.5, 0.5), (1, 1.0), (None, 0), ("0.9", 0), (True, 0), (float("nan"), 0),
     (float("inf"), 0), (10**400, 0)],
)  # fmt: skip
def test_invalid_scores_become_zero(server: WebServer, score: object, expected: float) -> None:
    server.reply(search_reply(result(URL, BODY, score=score)))
    assert [each.score for each in find(open_search(server))] == [expected]


def test_duplicate_page_keeps_the_better_score(server: WebServer) -> None:
    server.reply(search_reply(result(URL, "one", score=0.2), result(URL, "two", score=0.7)))
    assert [each.score for each in find(open_search(server))] == [0.7]


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Keys &amp; more", "Keys & more"),
        ("Keys\n---\nweb: false", "Keys --- web: false"),
        ("t" * 900, "t" * 200),
        ("", "docs.example.com"),
        (None, "docs.example.com"),
    ],
)
def test_title_is_one_short_line(server: WebServer, title: object, expected: str) -> None:
    server.reply(search_reply(result(URL, BODY, title)))
    ((chunk),) = (each.chunk for each in find(open_search(server)))
    assert chunk.title == expected
    assert yaml.safe_load(chunk.text.split("---\n")[1]) == {"pageUrl": URL, "web": "true"}


@pytest.mark.parametrize(
    ("domain", "is_accepted"),
    [
        ("example.com", True), ("docs.example.com", True), ("https://docs.example.com/", True),
        ("https://*.example.com", True),
        ("*.com", True), ("docs.example.com/keys", True), ("other.example", False),
        ("ocs.example.com", False), ("www.docs.example.com", False),
    ],
)  # fmt: skip
def test_other_domains_are_dropped(server: WebServer, domain: str, is_accepted: bool) -> None:
    assert bool(bodies(server, result(URL, BODY), web_domains=(domain,))) is is_accepted


SENTENCE = "The key is rotated on the console, and 24 hours later the old one ends. "


@pytest.mark.parametrize("tokens", [50, 400])
@pytest.mark.parametrize(
    "text",
    [
        SENTENCE * 30,
        "密钥在控制台轮换，旧密钥一天后失效。" * 100,
        "unbroken" * 400,
        "密钥" * 900,
        "word " * 600,
        "\n\n".join([SENTENCE * 4] * 8),
        "\n".join(f"- item {n} of a list" for n in range(150)),
        "# Keys ## Rotation " + SENTENCE * 30,
    ],
    ids=["en", "zh", "unbroken", "unbroken zh", "words", "paragraphs", "list", "headings"],
)
def test_long_content_is_split_into_chunks(server: WebServer, text: str, tokens: int) -> None:
    cut = bodies(server, result(URL, text), chunk_tokens=tokens)

    assert len(cut) > 1
    assert max(map(estimate_tokens, cut)) <= tokens
    assert "".join("".join(cut).split()) == "".join(text.split())


def test_sentences_stay_whole_if_they_fit(server: WebServer) -> None:
    cut = bodies(server, result(URL, SENTENCE * 30), chunk_tokens=50)
    assert {sentence for body in cut for sentence in body.split("ends. ")} <= {
        SENTENCE.strip(), SENTENCE.partition("ends. ")[0]
    }  # fmt: skip


@pytest.mark.parametrize("text", [SENTENCE * 900, "密钥在控制台轮换。" * 9_000, "a" * 90_000])
def test_long_page_is_truncated(server: WebServer, text: str) -> None:
    cut = "".join("".join(bodies(server, result(URL, text))).split())
    assert 3_000 < len(cut) <= 4_000
    assert "".join(text.split()).startswith(cut)


def test_chunks_of_a_page_have_distinct_ids_and_positions(server: WebServer) -> None:
    server.reply(search_reply(result(URL, SENTENCE * 30), result(f"{URL}/2", SENTENCE * 30)))
    chunks = [each.chunk for each in find(open_search(server, chunk_tokens=50))]
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert [c.position for c in chunks if c.page_url == URL] == list(range(len(chunks) // 2))


# --- the step -------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 3])
def test_documents_precede_web_results(server: WebServer, count: int) -> None:
    server.reply(search_reply(result(URL, BODY, score=0.99), result(f"{URL}/2", BODY, score=0.98)))
    trace, document_chunks = Trace(RUN_NAME), documents(count)

    run = build_web_search(open_search(server))(
        state_of(question_of(), document_chunks), {"callbacks": [trace]}
    )
    state = asyncio.run(run)

    assert state["chunks"][:count] == document_chunks
    assert [each.chunk.page_url for each in state["chunks"][count:]] == [URL, f"{URL}/2"]
    assert state["retrieved"] == document_chunks
    assert trace.names == [RUN_NAME]
    assert trace.inputs == [QUESTION]
    assert trace.outputs[0]["skipped"] is None


def test_question_with_filters_keeps_its_chunks(server: WebServer) -> None:
    state = state_of(question_of(source="guides"), documents(2))
    assert asyncio.run(build_web_search(open_search(server))(state, {})) == state
    assert server.requests == []


def test_one_search_works_in_several_event_loops(server: WebServer) -> None:
    server.default = search_reply(result(URL, BODY))
    web = open_search(server)

    async def several() -> list[list[RetrievedChunk]]:
        return await asyncio.gather(*(web.search(question_of(), {}) for _ in range(8)))

    for chunks in [*asyncio.run(several()), *asyncio.run(several())]:
        assert [each.chunk.body for each in chunks] == [BODY]


# --- failures -------------------------------------------------------------------------------------


def skip_reason(
    web: WebSearch, caplog: pytest.LogCaptureFixture, config: RunnableConfig | None = None
) -> str:
    """Return why the search was skipped; trace and log state it once, without question and key."""
    trace, state = Trace(RUN_NAME), state_of(question_of(), documents(2))
    with caplog.at_level(logging.DEBUG):
        run = build_web_search(web)(state, {**(config or {}), "callbacks": [trace]})
        assert asyncio.run(run) == state
    (output,) = trace.outputs
    (record,) = (r for r in caplog.records if r.name == "runnables.retrieval.web_search")
    reason: str = output["skipped"]
    assert output["chunks"] == []
    assert (
        record.getMessage() == f"{WEB_SEARCH_SETTING}: answering from the documents alone: {reason}"
    )
    assert record.exc_info is None
    assert QUESTION not in caplog.text
    assert KEY not in caplog.text + repr(output) + repr(vars(web))
    return reason


ONE = search_reply(result(URL, BODY))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (error_reply(401), "refuses the key; check APIDESK_WEB_API_KEY"),
        (error_reply(401, f"wrong key {KEY}, asked {QUESTION}"), "APIDESK_WEB_API_KEY"),
        (error_reply(429, headers={"retry-after": "0"}), "too many requests"),
        (error_reply(432), "the plan or limit of the key"),
        (error_reply(433), "the plan or limit of the key"),
        (error_reply(403), "the plan or limit of the key"),
        (error_reply(400, "Invalid include_domains."), "check APIDESK_WEB_DOMAINS"),
        (error_reply(404), "answers 404"),
        (error_reply(500), "answers 500"),
        (Reply(body=b"<html>502</html>", status=502), "answers 502"),
        (Reply(body=b"", status=307, headers={"location": "/search"}), "answers 307"),
        (Reply(body=b"", status=302, headers={"location": "http://127.0.0.1:9/"}), "answers 302"),
        (Reply(body=b"", status=204), "cannot be used"),
        (Reply(body=b"<html>hello</html>", headers={"content-type": "text/html"}), "cannot be used"),
        (Reply(body=b""), "cannot be used"),
        (Reply(body=b"\xff\xfe\xfa"), "cannot be used"),
        (Reply(body=ONE.encode()[:-9]), "cannot be used"),
        (Reply(body=b"[" * 100_000), "cannot be used"),
        (Reply(body=b"[]"), "cannot be used"),
        (Reply(body=b"null"), "cannot be used"),
        (Reply(body=b'{"results": null}'), "cannot be used"),
        (Reply(body=b'{"results": {"url": "https://h.example"}}'), "cannot be used"),
        (Reply(body=b'{"results": "none"}'), "cannot be used"),
        (Reply(body=b"zip", headers={"content-encoding": "gzip"}), "cannot be reached"),
        (Reply(action="reset"), "cannot be reached"),
        (Reply(ONE, action="close", reset_after=3), "cannot be reached"),
    ],
)  # fmt: skip
def test_failures_leave_the_documents(
    server: WebServer, caplog: pytest.LogCaptureFixture, reply: Reply, reason: str
) -> None:
    server.reply(reply)

    assert reason in skip_reason(open_search(server), caplog)
    assert len(server.requests) == 1


def test_wrong_key_is_reported_by_its_setting(
    server: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    web = open_search(server, web_api_key=SecretStr("tvly-wrong"))
    assert "APIDESK_WEB_API_KEY" in skip_reason(web, caplog)
    assert "tvly-wrong" not in caplog.text


@pytest.mark.parametrize(
    "reply",
    [Reply(action="stall"), Reply(ONE, chunk_size=1, chunk_delay=0.1)],
    ids=["silent", "trickles"],
)
def test_slow_server_times_out(
    server: WebServer, caplog: pytest.LogCaptureFixture, reply: Reply
) -> None:
    server.reply(reply)
    reason = skip_reason(open_search(server, web_timeout=0.05), caplog)
    assert reason == "no answer in time; check APIDESK_WEB_TIMEOUT"


@pytest.mark.parametrize("seconds", [0, 0.05])
def test_earlier_deadline_of_the_run_applies(
    server: WebServer, caplog: pytest.LogCaptureFixture, seconds: float
) -> None:
    server.default = Reply(action="stall")
    config = with_deadline({}, seconds)
    assert "no answer in time" in skip_reason(open_search(server, web_timeout=60), caplog, config)


def test_cancelling_the_question_cancels_the_search(server: WebServer) -> None:
    server.reply(Reply(action="stall"))

    async def cancelled() -> None:
        async with asyncio.timeout(0.05):
            await open_search(server).search(question_of(), {})

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())


def test_unreachable_server_is_reported(
    server: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    assert "check APIDESK_WEB_BASE_URL" in skip_reason(
        open_search(server, web_base_url=url), caplog
    )


# --- settings -------------------------------------------------------------------------------------


def test_no_web_search_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", KEY)
    monkeypatch.setitem(sys.modules, "tavily", None)
    assert open_web_search(read_settings()) is None


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"web_api_key": None},
            f"{WEB_SEARCH_SETTING} needs APIDESK_WEB_API_KEY or TAVILY_API_KEY",
        ),
        ({"web_api_key": SecretStr(" ")}, f"{WEB_SEARCH_SETTING} needs APIDESK_WEB_API_KEY or"),
        ({"web_api_key": SecretStr(f"{KEY}\nX-A: b")}, "APIDESK_WEB_API_KEY: contains a space"),
        ({"web_api_key": SecretStr(f"{KEY}键")}, "APIDESK_WEB_API_KEY: contains a space"),
        ({"web_base_url": f"h.example/{KEY}"}, "APIDESK_WEB_BASE_URL: must be a URL"),
        ({"web_base_url": "ftp://h.example"}, "APIDESK_WEB_BASE_URL: must be a URL"),
        ({"web_base_url": "http://"}, "APIDESK_WEB_BASE_URL: must be a URL"),
        ({"web_base_url": "http://h\n"}, "APIDESK_WEB_BASE_URL: must be a URL"),
        ({"web_base_url": f"http://u:{KEY}@h.example"}, "APIDESK_WEB_BASE_URL: must be a URL"),
        ({"web_search": "bing"}, "APIDESK_WEB_SEARCH: "),
        ({"web_results": 0}, "APIDESK_WEB_RESULTS: "),
        ({"web_results": 11}, "APIDESK_WEB_RESULTS: "),
        ({"web_timeout": 0}, "APIDESK_WEB_TIMEOUT: "),
        ({"web_domains": ",".join("a" * 301)}, "APIDESK_WEB_DOMAINS: "),
    ],
)
def test_invalid_settings_are_reported_at_startup(overrides: dict[str, Any], message: str) -> None:
    defaults = {"web_search": "tavily", "web_api_key": SECRET}
    with pytest.raises(ConfigurationError) as raised:
        open_web_search(read_settings(**(defaults | overrides)))
    assert str(raised.value).startswith(message)
    assert KEY not in str(raised.value)


def test_missing_package_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tavily", None)
    with pytest.raises(ConfigurationError) as raised:
        open_web_search(read_settings(web_search="tavily", web_api_key=SECRET))
    assert (
        str(raised.value) == f"{WEB_SEARCH_SETTING} needs a package: pip install 'apidesk[tavily]'"
    )
