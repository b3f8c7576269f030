"""The pipeline that the settings make, without the store that they name."""

import tempfile
from pathlib import Path

from app.cli.graph.layout import draw_svg, lay_out
from app.cli.graph.mermaid import BEGIN, END, draw_mermaid
from app.cli.graph.parts import DiagramPart, read_parts
from app.cli.graph.png import draw_png
from app.service.answer_service import NO_TOOLS, connect_answer_service
from schemas.errors import ConfigurationError
from schemas.question import AnswerMode
from schemas.settings import Settings


def read_pipeline(settings: Settings, mode: AnswerMode) -> DiagramPart:
    """What a desk over `settings` runs for a question. It blocks.

    Its store is an empty one, so that nothing is waited for and no server is in the way. Raises
    ConfigurationError.
    """
    with tempfile.TemporaryDirectory() as folder:
        empty = {
            "milvus_uri": str(Path(folder) / "milvus.db"),
            "database_url": f"sqlite:///{folder}/apidesk.db",
        }
        answer_service = connect_answer_service(settings.model_copy(update=empty))
        try:
            if mode == "tools" and answer_service.models is None:
                raise ConfigurationError(NO_TOOLS)
            return read_parts(answer_service.pipeline(mode))
        finally:
            answer_service.job.close()


def draw(part: DiagramPart, form: str) -> bytes:
    """`part` as `mermaid`, `svg` or `png`. Raises ConfigurationError."""
    if form == "mermaid":
        return draw_mermaid(part).encode()
    drawing = lay_out(part, BEGIN, END)
    if form == "png":
        return draw_png(drawing)
    return draw_svg(drawing, "The pipeline: how a question becomes an answer").encode()
