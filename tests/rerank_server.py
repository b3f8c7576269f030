"""A scripted `/rerank` server on localhost: `ModelServer` with another endpoint and other replies."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.openai_objects import content

Json = dict[str, Any]


class RerankServer(ModelServer):
    """Serves `POST /v1/rerank`. A scripted JSON text becomes the whole body of a response."""

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
    """Return results in the format of the servers, with scores under `name`."""
    return [{"index": index, name: score} for index, score in scores.items()]


def to_json(reply: object) -> str:
    """Return `reply` as a server writes it, including NaN."""
    return json.dumps(reply)


def jina(scores: Mapping[int, float], documents: Sequence[str] = ()) -> Json:
    """Return a reply in the format of Jina."""
    usage = {"total_tokens": 42}
    return {"model": "scripted", "usage": usage, "results": results(scores), "documents": documents}


def cohere(scores: Mapping[int, float]) -> Json:
    """Return a reply in the format of Cohere, v1 and v2."""
    return {"id": "1", "results": results(scores), "meta": {"api_version": {"version": "2"}}}


def vllm(scores: Mapping[int, float]) -> Json:
    """Return a reply in the format of vLLM, which always repeats the documents."""
    with_documents = [result | {"document": {"text": "…"}} for result in results(scores)]
    return {
        "id": "rerank-1",
        "model": "scripted",
        "usage": {"total_tokens": 4},
        "results": with_documents,
    }


def voyage(scores: Mapping[int, float]) -> Json:
    """Return a reply in the format of Voyage."""
    return {"object": "list", "data": results(scores), "model": "scripted"}


def tei(scores: Mapping[int, float]) -> list[Json]:
    """Return a reply in the format of Text Embeddings Inference: a bare list."""
    return results(scores, "score")
