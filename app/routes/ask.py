"""POST /ask"""

from litestar import post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from app.desk import Desk
from app.routes.fields import ChunkCount, QuestionText
from schemas.answer import Answer
from schemas.language import Language
from schemas.question import Filters
from schemas.wire import WireModel


class AskRequest(WireModel):
    """What is asked, and how the answer should be."""

    question: QuestionText
    k: ChunkCount | None = None
    filters: Filters | None = None
    language: Language | None = None


@post("/ask", status_code=200, operation_id="ask", summary="Answer a question")
async def ask(data: JSONBody[AskRequest], desk: NamedDependency[Desk]) -> Answer:
    """Answer a question from the platform's documentation, with sources and related pages."""
    return await desk.ask(data.question, data.k, data.language, data.filters)
