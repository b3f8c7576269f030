"""Reranking at an endpoint: whatever the reply or failure, all chunks remain, each once, and in time."""

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from ingestion.text.language import estimate_tokens, truncate_to_tokens
from runnables.retrieval.compressors import RERANK_DEPTH, Reranker
from runnables.retrieval.rerank import RUN_NAME, RerankStep, build_rerank
from runnables.run_context import with_deadline
from schemas.document import RetrievedChunk
from schemas.errors import ConfigurationError
from schemas.settings import read_settings
from tests.acme import PLATFORM_INFO
from tests.model_replies import MakeClient
from tests.model_script import Reply
from tests.rerank_server import RerankServer, cohere, jina, results, tei, to_json, vllm, voyage
from tests.reranking import KEY, QUESTION, order, retrieved, run, skip_reason
from tests.traces import Trace

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("no_backoff")]


@pytest.fixture
def server() -> Iterator[RerankServer]:
    with RerankServer() as scripted:
        yield scripted
    assert not scripted.faults


def endpoint_rerank(server: RerankServer, **overrides: object) -> RerankStep:
    defaults = {
        "rerank": "endpoint",
        "rerank_url": server.base_url,
        "rerank_model": "scripted-rerank",
        "rerank_api_key": SecretStr(KEY),
    }
    rerank = build_rerank(read_settings(**(defaults | overrides)), None, PLATFORM_INFO)
    assert rerank is not None
    return rerank


SCORES = {2: 0.9, 0: 0.5, 1: 0.1}
NAN = float("nan")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (jina(SCORES), [2, 0, 1, 3]),
        (cohere(SCORES), [2, 0, 1, 3]),
        (vllm(SCORES), [2, 0, 1, 3]),
        (voyage(SCORES), [2, 0, 1, 3]),
        (tei(SCORES), [2, 0, 1, 3]),
        ({"results": tei(SCORES)}, [2, 0, 1, 3]),
        (jina({0: 0.1, 1: 0.3, 3: 0.9, 2: 0.2}), [3, 1, 2, 0]),
        (jina({3: -1.5, 2: -4, 0: 7.25, 1: -9}), [0, 3, 2, 1]),
        (jina({3: 0.5, 1: 0.5}), [1, 3, 0, 2]),
        ({"results": [*results({1: 0.2}), *results({3: 0.5}), *results({1: 0.9})]}, [1, 3, 0, 2]),
        (jina({99: 0.9, -1: 0.8, 4: 0.7, 3: 0.6}), [3, 0, 1, 2]),
        (jina({0: NAN, 1: float("inf"), 3: 0.1}), [3, 0, 1, 2]),
        (jina({0: 10**400, 3: 1}), [3, 0, 1, 2]),
        (["no", {"index": True, "score": 1}, {"index": "1", "score": 1}, *tei({2: 1})], [2, 0, 1, 3]),
        ([*tei({2: 1}), {"index": 1}, {"index": 3, "score": "0.5"}, {"score": 4}], [2, 0, 1, 3]),
    ],
    ids=[
        "jina", "cohere", "vllm", "voyage", "tei", "score", "unsorted", "logits", "ties",
        "duplicates", "out of range", "not finite", "overflow", "invalid items", "invalid scores",
    ],
)  # fmt: skip
def test_reply_formats_are_parsed(server: RerankServer, reply: object, expected: list[int]) -> None:
    found = retrieved(4)
    server.reply(to_json(reply))

    assert order(run(endpoint_rerank(server), found), found) == expected


def test_scored_chunks_get_the_relevance_and_others_keep_their_score(
    server: RerankServer,
) -> None:
    server.reply(jina({2: 0.75, 1: -3.5}))

    reranked = run(endpoint_rerank(server), retrieved(3))

    assert [each.score for each in reranked] == [0.75, -3.5, 100]


def test_request_format(server: RerankServer) -> None:
    server.reply(jina({0: 1.0}))

    run(endpoint_rerank(server), retrieved(2, "取消揽收"))

    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "scripted-rerank",
        "query": QUESTION,
        "documents": ["取消 > 节\n取消揽收 0", "取消 > 节\n取消揽收 1"],
        "top_n": 2,
        "return_documents": False,
    }


def test_model_and_key_are_optional(server: RerankServer) -> None:
    server.reply(jina({0: 1.0}))

    run(endpoint_rerank(server, rerank_model=None, rerank_api_key=None), retrieved(2))

    (request,) = server.requests
    assert "model" not in request.body
    assert "authorization" not in request.headers


@pytest.mark.parametrize("ending", ["", "/", "/rerank", "/rerank/", "?api-version=2"])
def test_url_with_or_without_rerank_is_accepted(server: RerankServer, ending: str) -> None:
    found = retrieved(3)
    server.reply(jina(SCORES))

    rerank = endpoint_rerank(server, rerank_url=server.base_url + ending)

    assert order(run(rerank, found), found) == [2, 0, 1]


def test_only_the_first_thirty_chunks_are_reranked(server: RerankServer) -> None:
    found = retrieved(45)
    server.reply(jina({29: 0.9, 44: 0.8, 30: 0.7, 5: 0.6}))

    reranked = run(endpoint_rerank(server), found)

    assert len(server.requests[0].body["documents"]) == RERANK_DEPTH == 30
    assert order(reranked, found)[:3] == [29, 5, 0]
    assert reranked[30:] == found[30:]


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_chunks_send_no_request(server: RerankServer, count: int) -> None:
    found = retrieved(count)
    assert run(endpoint_rerank(server), found) == found
    assert server.requests == []


@pytest.mark.parametrize("text", ["取消揽收。", "word "], ids=["zh", "en"])
def test_long_texts_are_truncated(server: RerankServer, text: str) -> None:
    server.reply(jina({0: 1.0}))

    run(endpoint_rerank(server), retrieved(2, text * 900), question=text * 4_000)

    body = server.requests[0].body
    assert estimate_tokens(body["query"]) == 250
    assert {estimate_tokens(document) for document in body["documents"]} == {700}


def test_proxy_of_the_environment_is_not_used(
    server: RerankServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    found = retrieved(3)
    server.reply(jina(SCORES))
    assert order(run(endpoint_rerank(server), found), found) == [2, 0, 1]


def test_one_reranker_works_in_several_event_loops(server: RerankServer) -> None:
    rerank, found = endpoint_rerank(server), retrieved(3)
    server.default = to_json(jina(SCORES))

    async def several() -> list[list[RetrievedChunk]]:
        return await asyncio.gather(*(rerank.rerank(QUESTION, found, {}) for _ in range(8)))

    for reranked in [*asyncio.run(several()), *asyncio.run(several())]:
        assert order(reranked, found) == [2, 0, 1]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(body=b""), "not JSON"),
        (Reply(body=b"<html>502</html>", headers={"content-type": "text/html"}), "not JSON"),
        (Reply(body=b"\xff\xfe\xfa"), "not JSON"),
        (Reply(body=b"[" * 100_000), "not JSON"),
        (Reply(body=b"[]"), "scores no document"),
        (Reply(body=b"null"), "scores no document"),
        (Reply(body=b'"ok"'), "scores no document"),
        (Reply(body=b'{"results": {"index": 0}}'), "scores no document"),
        (Reply(to_json(jina({7: 1.0}))), "scores no document"),
        (Reply(to_json(jina({0: NAN}))), "scores no document"),
        (Reply(f"wrong key {KEY}", status=401), "APIDESK_RERANK_API_KEY"),
        (Reply(status=403), "APIDESK_RERANK_API_KEY"),
        (Reply(status=404), "APIDESK_RERANK_MODEL"),
        (Reply(QUESTION, status=422), "answers 422"),
        (Reply(status=429, headers={"retry-after": "0"}), "answers 429"),
        (Reply(status=500), "answers 500"),
        (Reply(body=b"", status=307, headers={"location": "/elsewhere"}), "answers 307"),
        (Reply(action="reset"), "the request failed"),
        (Reply(to_json(jina(SCORES)), action="close", reset_after=3), "the request failed"),
    ],
)
def test_failures_keep_the_order_of_retrieval(
    server: RerankServer, caplog: pytest.LogCaptureFixture, reply: Reply, reason: str
) -> None:
    server.reply(reply)

    assert reason in (skip_reason(endpoint_rerank(server), retrieved(3), caplog) or "")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [Reply(action="stall"), Reply(to_json(jina(SCORES)), chunk_size=1, chunk_delay=0.1)],
    ids=["silent", "trickles"],
)
def test_slow_server_times_out(
    server: RerankServer, caplog: pytest.LogCaptureFixture, reply: Reply
) -> None:
    server.reply(reply)
    started = time.monotonic()

    reason = skip_reason(endpoint_rerank(server, rerank_timeout=0.1), retrieved(3), caplog)

    assert "no answer in time" in (reason or "")
    assert time.monotonic() - started < 2


def test_earlier_deadline_of_the_run_applies(server: RerankServer) -> None:
    server.reply(Reply(action="stall"))
    found, started = retrieved(3), time.monotonic()

    assert run(endpoint_rerank(server), found, config=with_deadline({}, 0.1)) == found
    assert time.monotonic() - started < 2


def test_unreachable_server_is_reported(
    server: RerankServer, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    reason = skip_reason(endpoint_rerank(server, rerank_url=url), retrieved(3), caplog)
    assert "the request failed" in (reason or "")


def test_key_that_fits_no_header_is_not_logged(
    server: RerankServer, caplog: pytest.LogCaptureFixture
) -> None:
    rerank = endpoint_rerank(server, rerank_api_key=SecretStr(f"{KEY}\n钥"))
    assert "the request failed" in (skip_reason(rerank, retrieved(3), caplog) or "")


def test_trace_shows_the_new_order(server: RerankServer) -> None:
    found, trace = retrieved(3), Trace(RUN_NAME)
    server.reply(jina(SCORES))

    reranked = run(endpoint_rerank(server), found, config={"callbacks": [trace]})

    assert trace.names == [RUN_NAME]
    assert trace.outputs == [{"chunks": reranked, "skipped": None}]


@pytest.mark.parametrize("ranks", [{0: 1.0, 7: 0.5}, RuntimeError(f"{KEY} {QUESTION}")])
def test_unexpected_errors_of_a_reranker_keep_the_order(
    caplog: pytest.LogCaptureFixture, ranks: dict[int, float | None] | Exception
) -> None:
    class FailingReranker(Reranker):
        async def rank(self, *_: object) -> dict[int, float | None]:
            if isinstance(ranks, Exception):
                raise ranks
            return ranks

    reason = skip_reason(RerankStep(FailingReranker(), 3), retrieved(3), caplog)
    assert reason in ("IndexError", "RuntimeError")


def test_cancelling_the_question_cancels_reranking(server: RerankServer) -> None:
    server.reply(Reply(action="stall"))

    async def cancel() -> None:
        async with asyncio.timeout(0.1):
            await endpoint_rerank(server).rerank(QUESTION, retrieved(3), {})

    with pytest.raises(TimeoutError):
        asyncio.run(cancel())


def test_no_reranking_by_default() -> None:
    assert build_rerank(read_settings(), None, PLATFORM_INFO) is None


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"rerank": "endpoint"}, "APIDESK_RERANK=endpoint needs APIDESK_RERANK_URL"),
        (
            {"rerank": "endpoint", "rerank_url": f"h.example/{KEY}"},
            "APIDESK_RERANK_URL: must be a URL",
        ),
        (
            {"rerank": "endpoint", "rerank_url": "ftp://h.example"},
            "APIDESK_RERANK_URL: must be a URL",
        ),
        ({"rerank": "endpoint", "rerank_url": "http://"}, "APIDESK_RERANK_URL: must be a URL"),
        ({"rerank": "endpoint", "rerank_url": "http://h\n"}, "APIDESK_RERANK_URL: must be a URL"),
        ({"rerank": "model"}, "APIDESK_RERANK=model needs APIDESK_CHAT_MODEL"),
        ({"rerank": "both"}, "APIDESK_RERANK: "),
        ({"rerank_timeout": 0}, "APIDESK_RERANK_TIMEOUT: "),
    ],
)
def test_invalid_settings_are_reported_at_startup(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        build_rerank(read_settings(**overrides), None, PLATFORM_INFO)
    assert str(raised.value).startswith(message)
    assert KEY not in str(raised.value)


@pytest.mark.parametrize("text", ["", "abc", "abc取消 " * 50, "a" * 999, "取" * 999])
@pytest.mark.parametrize("tokens", [0, 1, 7, 10_000])
def test_truncate_to_tokens_returns_the_longest_prefix_that_fits(text: str, tokens: int) -> None:
    prefix = truncate_to_tokens(text, tokens)
    assert text.startswith(prefix)
    assert estimate_tokens(prefix) <= tokens
    if prefix != text:
        assert estimate_tokens(text[: len(prefix) + 1]) > tokens


def test_retrieve_and_ask_use_the_reranked_order(
    serve_samples: MakeClient, server: RerankServer
) -> None:
    """The last of thirty chunks comes first, in `/retrieve` and in the sources of an answer."""
    server.default = lambda request: to_json(
        jina({n: float(n) for n in range(len(request.body["documents"]))})
    )
    client = serve_samples(rerank="endpoint", rerank_url=server.base_url)
    question = {"question": "怎么发货", "k": 3}
    sources = client.post("/retrieve", json=question).json()["sources"]
    documents = server.requests[-1].body["documents"]
    assert len(documents) == RERANK_DEPTH
    assert [source["score"] for source in sources] == [29.0, 28.0, 27.0]
    assert sources[0]["title"] in documents[-1]
    plain = serve_samples().post("/retrieve", json=question).json()["sources"]
    assert plain[0]["title"] in documents[0]
