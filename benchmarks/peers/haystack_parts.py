"""The common parts of both Haystack peers: the pipeline without retrieval, and Hayhooks.

One `Pipeline` makes both model calls; a router between them ends the run of an off-topic question. The
wrapper's `run_api_async` calls `run_async`, as Hayhooks recommends for throughput.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hayhooks import create_app
from hayhooks.server.utils.deploy_utils import deploy_pipeline_files
from haystack import Document, Pipeline, component
from haystack.components.builders import AnswerBuilder, ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

from benchmarks.peers.command import App, Site
from benchmarks.peers.passages import Passage
from benchmarks.peers.task import (
    ANSWER,
    API_KEY,
    CHAT_MODEL,
    CLASSIFY,
    Classification,
    Reply,
    Source,
    refusal,
)

DOCUMENTS = "PEER_DOCUMENTS"
MODEL_URL = "PEER_MODEL_URL"
"""Environment variables with the wrapper's arguments, because Hayhooks creates it without arguments."""

PASSAGES = """\
{% for document in documents %}[{{ loop.index }}] {{ document.content }}

{% endfor %}Question: {{ question }}"""


@component
class TopicRouter:
    """Forwards the question if it is about the platform."""

    @component.output_types(question=str, type=str)
    def run(self, question: str, replies: list[ChatMessage]) -> dict[str, str]:
        """Return the type and, unless the type is `unknown`, the question."""
        classification = Classification.model_validate_json(replies[0].text)
        if classification.type == "unknown":
            return {"type": classification.type}
        return {"type": classification.type, "question": question}


def client_settings(model_url: str) -> dict[str, Any]:
    """Return the options of Haystack's components to reach the model server."""
    return {
        "api_key": Secret.from_token(API_KEY),
        "api_base_url": model_url,
        "max_retries": 0,
    }


def documents(passages: list[Passage]) -> list[Document]:
    """Return the passages as Haystack documents."""
    return [
        Document(id=p.id, content=p.content, meta={"title": p.title, "url": p.url})
        for p in passages
    ]


def answering_pipeline(model_url: str) -> Pipeline:
    """Return the pipeline with both model calls.

    The caller adds retrieval between `topic.question` and `answer_prompt.documents`.
    """
    chat_model = {"model": CHAT_MODEL, **client_settings(model_url)}
    system, user = ChatMessage.from_system, ChatMessage.from_user
    pipeline = Pipeline()
    pipeline.add_component(
        "classify_prompt", ChatPromptBuilder([system(CLASSIFY), user("{{ question }}")])
    )
    pipeline.add_component(
        "classifier",
        OpenAIChatGenerator(**chat_model, generation_kwargs={"response_format": Classification}),
    )
    pipeline.add_component("topic", TopicRouter())
    pipeline.add_component("answer_prompt", ChatPromptBuilder([system(ANSWER), user(PASSAGES)]))
    pipeline.add_component("llm", OpenAIChatGenerator(**chat_model))
    pipeline.add_component("answer", AnswerBuilder(reference_pattern=r"\[(\d+)\]"))
    pipeline.connect("classify_prompt.prompt", "classifier.messages")
    pipeline.connect("classifier.replies", "topic.replies")
    pipeline.connect("topic.question", "answer_prompt.question")
    pipeline.connect("answer_prompt.prompt", "llm.messages")
    pipeline.connect("llm.replies", "answer.replies")
    pipeline.connect("topic.question", "answer.query")
    return pipeline


async def ask(pipeline: Pipeline, question: str) -> dict[str, Any]:
    """Run the pipeline for one question."""
    given = {"question": question}
    output = await pipeline.run_async({"classify_prompt": given, "topic": given})
    if "answer" not in output:
        return refusal().model_dump()
    answer = output["answer"]["answers"][0]
    sources = [
        Source(number=d.meta["source_index"], title=d.meta["title"], url=d.meta["url"])
        for d in answer.documents
    ]
    return Reply(type=output["topic"]["type"], answer=answer.data, sources=sources).model_dump()


def site_of_wrapper() -> Site:
    """Return the arguments of the peer that the wrapper belongs to."""
    return Site(Path(os.environ[DOCUMENTS]), os.environ[MODEL_URL])


def hayhooks_app(name: str, wrapper: Path) -> Callable[[Site], App]:
    """Return a function that creates a Hayhooks app, which answers at `/NAME/run`.

    The app serves the `PipelineWrapper` in the file `wrapper`.
    """

    def app(site: Site) -> App:
        os.environ.update({DOCUMENTS: str(site.documents), MODEL_URL: site.model_url})
        hayhooks = create_app()
        files = {"pipeline_wrapper.py": wrapper.read_text(encoding="utf-8")}
        deploy_pipeline_files(name, files, app=hayhooks, save_files=False)
        return hayhooks

    return app
