"""Draws the configured pipeline as Mermaid, SVG or PNG, without connecting to the store.

PNG requires matplotlib (extra `evaluate`).
"""

from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

from app.cli.graph.diagram import BEGIN, END, DiagramPart, draw_mermaid, pipeline_diagram
from app.cli.graph.layout import MARGIN, Arrow, Box, Drawing, draw_svg, lay_out
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, MUTED = "#1c2430", "#55617a"

FILLS = {
    "step": ("#e3edfb", "#3f6fb5"),
    "condition": ("#fdf1d6", "#b07d14"),
    "end": ("#e4f3ea", "#37805a"),
}
"""Fill and line colours, from the light theme of the SVG."""

GROUPS = ("#f4f6fa", "#ffffff")

POINTS_PER_INCH = 72
"""One unit of the drawing is one point of the figure."""


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
    return pipeline_diagram(factory.steps(factory.classify(), factory.retrieve(), mode))


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


def draw_png(drawing: Drawing) -> bytes:
    """Return `drawing` as a PNG file with two pixels per unit.

    Raises ConfigurationError if matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise ConfigurationError("--png needs matplotlib: pip install 'apidesk[evaluate]'")
    from matplotlib.figure import Figure

    width, height = drawing.width + 2 * MARGIN, drawing.height + 2 * MARGIN
    figure = Figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    placed = drawing.moved(MARGIN, MARGIN)
    for box in placed.boxes:
        _draw_box(axes, box)
    for arrow in placed.arrows:
        _draw_arrow(axes, arrow)
    data = BytesIO()
    figure.savefig(data, format="png", dpi=2 * POINTS_PER_INCH)
    return data.getvalue()


def _draw_box(axes: "Axes", box: Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    is_group = box.kind == "group"
    fill, line = (GROUPS[box.depth % 2], "#c3ccda") if is_group else FILLS[box.kind]
    rounding = {"group": 8, "step": 6}.get(box.kind, 16)
    shape = FancyBboxPatch(
        (box.x, box.y),
        box.width,
        box.height,
        boxstyle=f"round,pad=0,rounding_size={rounding}",
        facecolor=fill,
        edgecolor=line,
        linewidth=1,
    )
    axes.add_patch(shape)
    if is_group:
        _draw_text(axes, box.x + 10, box.y + 14, box.label, MUTED, "left")
    else:
        _draw_text(axes, box.x + box.width / 2, box.y + box.height / 2, box.label, INK, "center")


def _draw_arrow(axes: "Axes", arrow: Arrow) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    straight, curved = [Path.LINETO], [Path.CURVE4] * 3
    curve = Path(arrow.points, [Path.MOVETO, *straight, *curved, *straight])
    head = "-|>,head_length=4,head_width=2.4"
    axes.add_patch(
        FancyArrowPatch(path=curve, arrowstyle=head, color=MUTED, linewidth=1.3, capstyle="butt")
    )
    if arrow.label:
        x, y = arrow.label_at
        _draw_text(axes, x, y, arrow.label, MUTED, "center", size=10)


def _draw_text(
    axes: "Axes", x: float, y: float, text: str, colour: str, align: str, size: float = 12.5
) -> None:
    axes.text(
        x, y, text, color=colour, ha=align, va="center", family="DejaVu Sans Mono", fontsize=size
    )  # fmt: skip
