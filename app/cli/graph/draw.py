"""Draws the configured pipeline, without connecting to the store."""

from typing import Any, cast

from app.cli.graph.diagram import BEGIN, END, DiagramPart, draw_mermaid, read_parts
from app.cli.graph.layout import draw_svg, lay_out
from app.cli.graph.png import draw_png
from ingestion.embeddings import open_embeddings
from ingestion.platform_config import read_platform
from ingestion.store.collection import Collection
from ingestion.store.manifest import expected_manifest
from ingestion.store.milvus_collection import MilvusCollection
from runnables.factory import PipelineFactory
from runnables.models.chat_models import open_chat_models
from runnables.models.concurrency import ConcurrencyLimiter
from schemas.errors import ConfigurationError
from schemas.question import AnswerMode
from schemas.settings import Settings


def read_pipeline(settings: Settings, mode: AnswerMode) -> DiagramPart:
    """Return the parts of the pipeline that `settings` configure.

    Raises ConfigurationError for invalid settings, or for mode `tools` without a chat model.
    """
    limiter = ConcurrencyLimiter(settings.max_concurrency)
    models = open_chat_models(settings, limiter)
    if mode == "tools" and models is None:
        raise ConfigurationError(
            "mode tools needs a chat model, but APIDESK_CHAT_MODEL does not name one"
        )
    factory = PipelineFactory(
        settings,
        read_platform(settings.platform),
        _unconnected_collection(settings),
        open_embeddings(settings),
        models,
        limiter,
    )
    return read_parts(factory.pipeline(factory.classify(), factory.retrieve(), mode))


def _unconnected_collection(settings: Settings) -> Collection:
    """Return a collection without a client. The steps need a collection, but drawing does not use it."""
    no_client = cast(Any, None)
    expected = expected_manifest(settings, "whitespace")
    return MilvusCollection(no_client, settings.collection, expected, in_place=True)


def draw(part: DiagramPart, output_format: str) -> bytes:
    """Draw `part` as `mermaid`, `svg` or `png`. Raises ConfigurationError."""
    if output_format == "mermaid":
        return draw_mermaid(part).encode()
    drawing = lay_out(part, BEGIN, END)
    if output_format == "png":
        return draw_png(drawing)
    return draw_svg(drawing, "The pipeline: how a question becomes an answer").encode()
