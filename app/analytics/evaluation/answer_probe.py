"""Retrieves and asks as the service does, and scores the result."""

from app.analytics.evaluation.answer_result import AnswerResult, K
from app.analytics.evaluation.answer_scoring import score_answer, score_retrieval
from app.analytics.evaluation.dataset import EvaluationQuestion
from app.analytics.evaluation.documents import DocumentIndex
from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand
from schemas.answer import Answer


class AnswerProbe:
    """Asks questions of `answer_service`. The answers bypass the cache, sessions and records."""

    def __init__(self, answer_service: AnswerService, documents: DocumentIndex) -> None:
        self._answer_service = answer_service
        self._documents = documents

    async def retrieve(self, question: EvaluationQuestion) -> AnswerResult:
        """Return the result of retrieval alone. Raises ModelError or StoreError."""
        sources = await self._answer_service.retrieve(AskCommand(question.question, k=K))
        return score_retrieval(question, self._documents.gold_documents(question), sources)

    async def ask(self, question: EvaluationQuestion) -> tuple[AnswerResult, Answer]:
        """Return the scored result and the answer. Raises ModelError or StoreError."""
        retrieved = await self.retrieve(question)
        answer = await self._answer_service.ask(AskCommand(question.question))
        return score_answer(retrieved, answer), answer
