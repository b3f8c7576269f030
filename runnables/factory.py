"""The steps of the pipeline, made from Settings and platform.toml."""

from typing import TYPE_CHECKING

from langchain_core.runnables import Runnable, RunnableSequence

from ingestion.job import IngestionJob
from runnables.answer.extractive_answer import build_extractive_answer
from runnables.answer.fallback import build_answer_or_quote
from runnables.answer.fixed_answers import build_acknowledge, build_refuse
from runnables.answer.write_answer import build_answer
from runnables.grounding.grounded_step import GroundingRules
from runnables.grounding.grounding import build_ground
from runnables.grounding.judge import Judge, build_judge
from runnables.models.chat_models import ChatModels
from runnables.models.concurrency import ConcurrencyLimiter
from runnables.pipeline import build_pipeline
from runnables.question.classify import build_extractive_question, build_structured_question
from runnables.question.condense import build_condense
from runnables.retrieval.evidence import (
    build_add_neighbours,
    build_boost_named_api,
    build_expand_query,
)
from runnables.retrieval.query_analysis import Glossary, QueryEmbeddings
from runnables.retrieval.rerank import build_rerank
from runnables.retrieval.retriever import (
    ChunkSearch,
    RetrievalMode,
    build_retriever,
    open_retriever,
)
from runnables.retrieval.web import build_web, open_web
from runnables.state import Classification, PipelineState
from schemas.answer import Answer
from schemas.document import RetrievedChunk
from schemas.platform import PlatformConfig
from schemas.question import AnswerMode, Question
from schemas.settings import Settings

if TYPE_CHECKING:
    from runnables.tools.tool_context import DocumentLibrary


class PipelineFactory:
    """Makes each step once it is asked for; `models` is None where the documents are quoted."""

    def __init__(
        self,
        settings: Settings,
        platform: PlatformConfig,
        job: IngestionJob,
        models: ChatModels | None,
        slots: ConcurrencyLimiter,
    ) -> None:
        self._settings = settings
        self._platform_info = platform.platform
        self._job = job
        self._models = models
        self._slots = slots
        self._glossary = Glossary(platform.glossary)
        self._rerank = build_rerank(settings, models, platform.platform)
        self._web = open_web(settings) if models else None
        self._vectors = self._open_vectors()
        self._rules = GroundingRules(
            hosts=platform.platform.hosts,
            remove_unverified=settings.unverified == "remove",
        )

    def classify(self) -> Runnable[Question, Classification]:
        """The step `structured-question`: by a model, where there is one."""
        if self._models is None:
            return self._classify_by_rules()
        on_failure = self._settings.on_model_failure
        return build_structured_question(self._models, self._platform_info, on_failure)

    def retrieve(
        self, mode: RetrievalMode | None = None
    ) -> Runnable[Question, list[RetrievedChunk]]:
        """The step `retrieve`, in the mode of Settings or another. Raises ConfigurationError."""
        return build_retriever(self._finder(mode))

    def retrieve_unaided(self) -> Runnable[Question, list[RetrievedChunk]]:
        """The step `retrieve` by full text alone: it asks no model."""
        settings = self._settings.model_copy(update={"retrieval": "full_text"})
        retriever = open_retriever(settings, self._job.collection, None)
        return build_retriever(ChunkSearch(retriever, self._glossary, None))

    def library(self) -> "DocumentLibrary":
        """What tools look things up in. What it takes is imported only now, which takes a moment."""
        from runnables.tools.tool_context import DocumentLibrary

        return DocumentLibrary(self._job.collection, self._finder(), self._glossary)

    def pipeline(
        self,
        classify: Runnable[Question, Classification],
        retrieve: Runnable[Question, list[RetrievedChunk]],
        mode: AnswerMode = "pipeline",
    ) -> Runnable[Question, Answer]:
        """All steps together; with tools only where there is a model to call them."""
        focus = build_boost_named_api(self._job.collection)
        widen = build_expand_query(self._finder())
        gather: Runnable[PipelineState, PipelineState] = RunnableSequence(
            widen, focus, name="gather"
        )
        if mode == "tools" and self._models is not None:
            gather = self._research(self._models, gather)
        return build_pipeline(
            condense=build_condense(
                self._models, self._platform_info, self._settings.on_model_failure
            ),
            acknowledge=build_acknowledge(self._platform_info, self._settings.chat_model),
            structured_question=classify,
            retrieve=retrieve,
            refuse=build_refuse(self._platform_info, self._settings.chat_model),
            gather=gather,
            answer=self._answer(focus),
            ground=build_ground(self._platform_info, self._rules, self._judge()),
        )

    def _finder(self, mode: RetrievalMode | None = None) -> ChunkSearch:
        """In a mode that is compared with others, it knows no question from before."""
        settings = self._settings.model_copy(update={"retrieval": mode} if mode else {})
        vectors = self._open_vectors() if mode else self._vectors
        retriever = open_retriever(settings, self._job.collection, vectors)
        return ChunkSearch(retriever, self._glossary, self._rerank)

    def _open_vectors(self) -> QueryEmbeddings | None:
        role, embeddings = self._job.collection.embedding_role, self._job.embeddings
        return QueryEmbeddings(embeddings, role) if embeddings else None

    def _answer(
        self, focus: Runnable[PipelineState, PipelineState]
    ) -> Runnable[PipelineState, PipelineState]:
        quote = build_extractive_answer(self._job.collection, self._platform_info)
        if self._models is None:
            return quote
        answer = self._written(self._models)
        if self._settings.on_model_failure != "extractive":
            return answer
        return build_answer_or_quote(
            answer=answer,
            classify=self._classify_by_rules(),
            focus=focus,
            quote=quote,
            platform_info=self._platform_info,
        )

    def _judge(self) -> Judge | None:
        return build_judge(self._settings, self._platform_info, self._slots)

    def _written(self, models: ChatModels) -> Runnable[PipelineState, PipelineState]:
        """An answer that a model writes, from what stands beside the best chunk and on the web too."""
        refine = self._settings.synthesis == "refine"
        writer = build_answer(models, self._platform_info, self._rules, refine)
        if self._web is not None:
            writer = build_web(self._web) | writer
        written = build_add_neighbours(self._job.collection) | writer
        return written.with_config(run_name="write")

    def _research(
        self, models: ChatModels, gather: Runnable[PipelineState, PipelineState]
    ) -> Runnable[PipelineState, PipelineState]:
        # Imported here: LangChain's agent takes as long to load as all the rest.
        from runnables.tools.research import build_research

        return build_research(
            models,
            self._platform_info,
            self.library(),
            gather,
            rounds=self._settings.tool_rounds,
            seconds=self._settings.tool_timeout,
        )

    def _classify_by_rules(self) -> Runnable[Question, Classification]:
        return build_extractive_question(self._job.collection, self._glossary)
