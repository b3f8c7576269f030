"""A baseline server that uses apidesk's libraries, but only makes the two model calls of an answer.

    python -m benchmarks.performance.floor --platform FILE --model-url URL

It uses Litestar and uvicorn with apidesk's options, and LangChain's client for OpenAI with apidesk's
prompts and schemas. Nothing is retrieved, stored or checked: the passages are always the same.
"""

import asyncio
import json
import socket
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import click
import uvicorn
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from litestar import Litestar, post
from litestar.params import JSONBody
from pydantic import BaseModel, SecretStr

from app.serving.gc_tuning import freeze_objects
from app.serving.server import uvicorn_options
from benchmarks.peers.command import AnnouncingServer
from benchmarks.peers.task import API_KEY, CHAT_MODEL, K
from benchmarks.performance.passages import chunks_of
from ingestion.platform_config import read_platform
from prompts.chat_prompts import PromptName, load_prompt
from prompts.user_text import user_text
from schemas.answer import AnswerDraft
from schemas.document import RetrievedChunk
from schemas.question import StructuredQuestion
from schemas.settings import read_settings

QUESTION = "QUESTION"
"""Placeholder for the question in a prompt."""

SOURCE = {"number": 1, "title": "A page", "url": "https://example.com/page"}


@dataclass
class FloorQuestion:
    """The body of a request."""

    question: str


@dataclass
class Reply:
    """The body of a response."""

    type: str
    answer: list[str]
    sources: list[dict[str, Any]]


class Call:
    """A model call with a pre-rendered prompt and a reply schema."""

    def __init__(
        self, client: ChatOpenAI, prompt: list[BaseMessage], schema: type[BaseModel]
    ) -> None:
        named = {"name": schema.__name__, "schema": schema.model_json_schema()}
        wanted = {"type": "json_schema", "json_schema": named}
        self._model: Runnable[Any, Any] = client.bind(extra_body={"response_format": wanted})
        self._system, human = prompt
        self._before, _, self._after = human.text.rpartition(QUESTION)

    async def about(self, question: str) -> dict[str, Any]:
        """Call the model about `question`, and return the object in its reply."""
        messages = [self._system, HumanMessage(self._before + question + self._after)]
        reply: dict[str, Any] = json.loads((await self._model.ainvoke(messages)).text)
        return reply


def app(platform: Path, model_url: str) -> Litestar:
    """Return the ASGI app, which answers at `/ask`."""
    client = ChatOpenAI(
        model=CHAT_MODEL,
        base_url=model_url,
        api_key=SecretStr(API_KEY),
        temperature=0,
        max_retries=0,
    )
    classification = Call(client, classification_prompt(platform), StructuredQuestion)
    answer = Call(client, answer_prompt(platform), AnswerDraft)

    @post("/ask", status_code=200)
    async def ask(data: JSONBody[FloorQuestion]) -> Reply:
        kind = (await classification.about(data.question))["type"]
        if kind == "unknown":
            return Reply(kind, [], [])
        return Reply(kind, (await answer.about(data.question))["answer"], [SOURCE])

    return Litestar([ask], openapi_config=None, logging_config=None)


def classification_prompt(platform: Path) -> list[BaseMessage]:
    """Return apidesk's classification prompt."""
    return _rendered(
        "structured_question", StructuredQuestion, platform, document_languages=["English"]
    )


def answer_prompt(platform: Path) -> list[BaseMessage]:
    """Return apidesk's answer prompt with the first passages of the corpus."""
    platform_info = read_platform(platform).platform
    passages = islice(chunks_of(platform), K)
    return _rendered(
        "answer",
        AnswerDraft,
        platform,
        greeting=platform_info.greeting.in_language("en"),
        gap="The documentation does not say:",
        not_covered=f"The documentation of {platform_info.name} does not seem to cover this question.",
        answer_language=user_text(platform_info.language).languages["en"],
        chunks=[(number, RetrievedChunk(chunk=c, score=1)) for number, c in enumerate(passages, 1)],
        structured=StructuredQuestion(type="general").model_dump_json(by_alias=True),
        draft="",
    )


def _rendered(
    name: PromptName, schema: type[BaseModel], platform: Path, **variables: Any
) -> list[BaseMessage]:
    platform_info = read_platform(platform).platform
    wanted = json.dumps(schema.model_json_schema(), ensure_ascii=False)
    template = load_prompt(name, platform_info.language)
    return template.format_messages(
        schema=wanted, platform_info=platform_info, question=QUESTION, **variables
    )


@click.command()
@click.option("--platform", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--model-url", required=True)
def main(platform: Path, model_url: str) -> None:
    """Serve on a free port of 127.0.0.1 and print the address."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/ask"
    config = uvicorn.Config(app(platform, model_url), **uvicorn_options(read_settings()))
    freeze_objects()
    asyncio.run(AnnouncingServer(config, url).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
