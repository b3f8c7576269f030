"""The retrieval of the pipeline as a LangChain retriever."""

from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict, Field

from apidesk.event_loop import EventLoopRunner
from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand
from runnables.retrieval.retriever import to_document
from schemas.question import Filters


class DocumentRetriever(BaseRetriever):
    """Retrieves chunks as the pipeline does: with query expansion, and reranked if a reranker is set.

    `k` and `filters` can also be passed to `invoke` and `ainvoke`, and bound with `bind`. The metadata of a
    document include its `page_url`, `title`, `section` and `score`. The methods raise ApideskError,
    pydantic.ValidationError for invalid filters, and RuntimeError outside the block of the `Apidesk`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    answer_service: AnswerService = Field(exclude=True, repr=False)
    runner: EventLoopRunner = Field(exclude=True, repr=False)
    k: int | None = None
    """Maximum number of chunks; None means APIDESK_TOP_K."""
    filters: Filters = Filters()
    """Conditions that a chunk must meet; by default none."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return self.runner.run(self._retrieve(query, run_manager, **options))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return await self.runner.arun(self._retrieve(query, run_manager, **options))

    async def _retrieve(
        self,
        query: str,
        run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filters: Filters | dict[str, Any] | None = None,
    ) -> list[Document]:
        allowed = self.filters if filters is None else Filters.model_validate(filters)
        command = AskCommand(query, k=k or self.k, filters=allowed)
        question = self.answer_service.build_question(command)
        config: RunnableConfig = {"callbacks": run_manager.get_child()}
        chunks = await self.answer_service.retrieve_chunks(question, config)
        return [to_document(chunk) for chunk in chunks]
