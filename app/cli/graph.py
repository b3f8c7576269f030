"""Draws the configured pipeline as a Mermaid flowchart, without connecting to the store.

LangChain's `get_graph()` would show the pipeline as a single box, because a function calls the steps.
"""

from collections.abc import Iterator
from typing import Any, cast

from langchain_core.runnables.graph import Graph, Node

from ingestion.embeddings import open_embeddings
from ingestion.platform_config import read_platform
from ingestion.store.manifest import expected_manifest
from ingestion.store.milvus_collection import MilvusCollection
from runnables.factory import PipelineFactory
from runnables.models.chat_model import ConcurrencyLimiter
from runnables.models.chat_models import open_chat_models
from runnables.pipeline import PipelineSteps
from schemas.errors import ConfigurationError
from schemas.question import AnswerMode
from schemas.settings import Settings


def read_steps(settings: Settings, mode: AnswerMode) -> PipelineSteps:
    """Return the steps that `settings` configure. They cannot run, because the collection has no client.

    Raises ConfigurationError for invalid settings, or for mode `tools` without a chat model.
    """
    limiter = ConcurrencyLimiter(settings.max_concurrency)
    models = open_chat_models(settings, limiter)
    if mode == "tools" and models is None:
        raise ConfigurationError(
            "mode tools needs a chat model, but APIDESK_CHAT_MODEL does not name one"
        )
    no_client = cast(Any, None)
    manifest = expected_manifest(settings, "whitespace")  # any tokenizer: nothing is indexed
    factory = PipelineFactory(
        settings,
        read_platform(settings.platform),
        MilvusCollection(no_client, settings.collection, manifest, in_place=True),
        open_embeddings(settings),
        models,
        limiter,
    )
    return factory.steps(mode)


def draw_mermaid(steps: PipelineSteps) -> str:
    """Return a Mermaid flowchart of the pipeline with `steps`.

    `tests/test_graph.py` compares the flowchart with the steps that run when questions are asked.
    """
    graph = Graph()

    def add(name: str, *sources: Node, condition: str | None = None) -> Node:
        """Add a step after `sources`. A conditional step runs only if its source returns `condition`.

        The part of `name` before a colon is the title of the box around the step.
        """
        node = graph.add_node(None, name)
        for source in sources:
            graph.add_edge(source, node, condition, conditional=condition is not None)
        return node

    question = add("Question")
    condense = add(steps.condense.get_name(), question)
    is_small_talk = add("route-small-talk:is_small_talk", condense)
    acknowledge = add("route-small-talk:acknowledge", is_small_talk, condition="yes")
    concurrent = [
        add(f"classify-and-retrieve:{step.get_name()}", is_small_talk, condition="no")
        for step in (steps.classify, steps.retrieve)
    ]
    is_off_topic = add("route-off-topic:is_off_topic", *concurrent)
    refuse = add("route-off-topic:refuse", is_off_topic, condition="yes")
    last = add("route-off-topic:expand-query", is_off_topic, condition="no")
    for name in _on_topic_steps(steps):
        last = add(f"route-off-topic:{name}", last)
    # A question that is probably off-topic skips to the last step; the reply names the nearest pages.
    graph.add_edge(is_off_topic, last, "probably", conditional=True)
    add("Answer", acknowledge, refuse, last)
    return graph.draw_mermaid()


def _on_topic_steps(steps: PipelineSteps) -> Iterator[str]:
    """Yield the names of the steps after `expand-query`, in order."""
    yield steps.boost_named_api.get_name()
    if steps.research is not None:
        yield steps.research.get_name()
    if steps.write is None:
        yield steps.quote.get_name()
    else:
        if steps.search_web is not None:
            yield "web"
        yield "add-evidence"
        yield steps.write.get_name()
    yield steps.ground.get_name()
