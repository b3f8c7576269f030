"""A scripted `/rerank` server on loopback, for tests: `ModelServer` with another endpoint and other replies."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.model_server import ModelServer, Recorded, Reply, content

Json = dict[str, Any]


class RerankServer(ModelServer):
    """`POST /v1/rerank`; what the script says as JSON goes out as the whole body."""

    path = "/v1/rerank"

    def __init__(self) -> None:
        super().__init__()
        self._endpoints = {self.path: ("POST", self._rerank)}

    async def _rerank(self, request: Recorded) -> Reply:
        reply = await self._chat(request)
        if reply.body is not None or reply.status >= 400:
            return reply
        return replace(reply, body=(content(reply) or "").encode())


def results(scores: Mapping[int, float], name: str = "relevance_score") -> list[Json]:
    """Results as servers list them, the scores under `name`."""
    return [{"index": index, name: score} for index, score in scores.items()]


def said(reply: object) -> str:
    """`reply` as a server writes it, NaN and all."""
    return json.dumps(reply)


def jina(scores: Mapping[int, float], documents: Sequence[str] = ()) -> Json:
    """Jina's reply."""
    usage = {"total_tokens": 42}
    return {"model": "scripted", "usage": usage, "results": results(scores), "documents": documents}


def cohere(scores: Mapping[int, float]) -> Json:
    """Cohere's reply, v1 and v2."""
    return {"id": "1", "results": results(scores), "meta": {"api_version": {"version": "2"}}}


def vllm(scores: Mapping[int, float]) -> Json:
    """vLLM's reply, which repeats the documents whatever it is told."""
    repeated = [each | {"document": {"text": "…"}} for each in results(scores)]
    return {
        "id": "rerank-1",
        "model": "scripted",
        "usage": {"total_tokens": 4},
        "results": repeated,
    }


def voyage(scores: Mapping[int, float]) -> Json:
    """Voyage's reply."""
    return {"object": "list", "data": results(scores), "model": "scripted"}


def tei(scores: Mapping[int, float]) -> list[Json]:
    """The reply of Text Embeddings Inference: a bare list."""
    return results(scores, "score")
