"""A scripted Tavily server on localhost: `ModelServer` with `POST /search` and Tavily's replies."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.openai_objects import content, encoded

Json = dict[str, Any]

KEY = "tvly-never-to-be-seen"
DEPTHS = ("basic", "advanced", "fast", "ultra-fast")
FIELDS = {
    "query", "search_depth", "chunks_per_source", "max_results", "topic", "time_range", "start_date",
    "end_date", "include_answer", "include_raw_content", "include_images", "include_domains",
    "include_image_descriptions", "include_favicon", "exclude_domains", "country", "auto_parameters",
    "exact_match", "include_usage",
}  # fmt: skip
"""Fields of a request that Tavily accepts."""

ERROR_MESSAGES = {
    401: "Unauthorized: missing or invalid API key.",
    429: "Your request has been blocked due to excessive requests. Please reduce rate of requests.",
    432: "This request exceeds your plan's set usage limit. Please upgrade your plan or contact support@tavily.com",
    433: "This request exceeds the pay-as-you-go limit. You can increase your limit on the Tavily dashboard.",
    500: "Internal Server Error",
}
"""Tavily's error messages by status."""


class WebServer(ModelServer):
    """Checks the key and the body like Tavily. A scripted text becomes the whole body of a response."""

    path = "/search"

    def __init__(self) -> None:
        super().__init__()
        self._endpoints = {self.path: ("POST", self._search)}

    @property
    def base_url(self) -> str:
        """The base URL, without a path."""
        return super().base_url.removesuffix("/v1")

    async def _search(self, request: Recorded) -> Reply:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return error_reply(401)
        if problem := _problem(request.body):
            return error_reply(400, problem)
        reply = await self._chat(request)
        if reply.body is not None or reply.status >= 400:
            return reply
        return replace(reply, body=(content(reply) or "").encode())


def _problem(body: Json) -> str | None:
    """Return Tavily's error message for `body`; None if the body is valid."""
    query, domains = body.get("query"), body.get("include_domains", [])
    if unknown := set(body) - FIELDS:
        return f"Unknown: {unknown}"
    if not isinstance(query, str) or not query.strip():
        return "Query is missing."
    if len(query) > 400:
        return "Query is too long. Max query length is 400 characters."
    if body.get("max_results", 5) not in range(21) or body.get("search_depth") not in DEPTHS:
        return "Invalid max_results or search_depth."
    if not isinstance(domains, list) or len(domains) > 300:
        return "Invalid include_domains."
    return None


def error_reply(status: int, message: str = "", headers: Mapping[str, str] | None = None) -> Reply:
    """Return an error reply in the format of Tavily."""
    detail = {"detail": {"error": message or ERROR_MESSAGES.get(status, "Error")}}
    return Reply(status=status, body=encoded(detail), headers=headers or {})


def result(url: object, text: object, title: object = "A page", score: object = 0.5) -> Json:
    """Return one result in the format of Tavily."""
    return {"url": url, "title": title, "content": text, "score": score, "raw_content": None}


def search_reply(*results: object) -> str:
    """Return the reply with `results`, which may contain NaN."""
    reply: Json = {
        "query": "as asked",
        "follow_up_questions": None,
        "answer": None,
        "images": [],
        "results": results,
        "response_time": 1.09,
        "request_id": "123e4567-e89b-12d3-a456-426614174111",
    }
    return json.dumps(reply)
