"""Builds the steps of the pipeline from the settings and platform.toml."""

from typing import TYPE_CHECKING

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable

from ingestion.store.collection import Collection
from runnables.answer.extractive_answer import build_extractive_answer
from runnables.answer.fixed_answers import build_acknowledge, build_decline, build_refuse
from runnables.answer.ground_answer import build_ground
from runnables.answer.write_answer import build_write_answer
from runnables.classification.classify import (
    build_model_classifier,
    build_rule_classifier,
)
from runnables.conversation.condense import build_condense
from runnables.grounding.grounded_step import GroundingRules
from runnables.grounding.judge import build_judge
from runnables.models.chat_model import ConcurrencyLimiter
from runnables.models.chat_models import ChatModels
from runnables.pipeline import PipelineSteps, build_pipeline
from runnables.question.query_analysis import Glossary
from runnables.retrieval.chunk_search import (
    EVIDENCE_DEPTH,
    ChunkSearch,
    RetrieveStep,
    build_add_evidence,
    build_boost_named_api,
    build_expand_query,
)
from runnables.retrieval.relevance import MAX_COMPARED_CHUNKS
from runnables.retrieval.rerank import build_rerank
from runnables.retrieval.retriever import QueryEmbeddings, RetrievalMode, open_search
from runnables.retrieval.web_search import build_web_search, open_web_search
from runnables.state import Classification, StateStep
from schemas.answer import Answer
from schemas.document import RetrievedChunk
from schemas.platform import PlatformConfig
from schemas.question import AnswerMode, Question
from schemas.settings import Settings

if TYPE_CHECKING:
    from runnables.tools.tool_context import DocumentLibrary


class PipelineFactory:
    """Builds pipelines and single steps over one collection."""

    def __init__(
        self,
        settings: Settings,
        platform: PlatformConfig,
        collection: Collection,
        embeddings: Embeddings | None,
        models: ChatModels | None,
        limiter: ConcurrencyLimiter,
        reranker: BaseDocumentCompressor | None = None,
    ) -> None:
        """Prepare what all pipelines share.

        `embeddings` is None if dense retrieval is off. `models` is None if no chat model is configured; the
        answers then quote the documents. `limiter` limits concurrent model calls. If `reranker` is None,
        the settings determine it. Raises ConfigurationError if the configured reranker or web search
        cannot be used.
        """
        self._settings = settings
        self._platform_info = platform.platform
        self._collection = collection
        self._embeddings = embeddings
        self._models = models
        self._limiter = limiter
        self._glossary = Glossary(platform.glossary)
        self._rerank = build_rerank(settings, models, platform.platform, reranker)
        self._web_search = open_web_search(settings) if models else None
        self.query_embeddings = self._with_cache(embeddings)
        """The embedding model with a cache for the vectors of questions; None without a model."""
        self._grounding_rules = GroundingRules(
            hosts=platform.platform.hosts,
            remove_unverified=settings.unverified == "remove",
        )

    def pipeline(self, mode: AnswerMode = "pipeline") -> Runnable[Question, Answer]:
        """Return the whole pipeline. Mode `tools` includes research if there is a chat model."""
        return build_pipeline(self.steps(mode))

    def steps(self, mode: AnswerMode = "pipeline") -> PipelineSteps:
        """Return the steps that `pipeline(mode)` runs."""
        info, settings, models = self._platform_info, self._settings, self._models
        quote = build_extractive_answer(self._collection, info, self._glossary)
        judge = build_judge(settings, info, self._limiter)
        falls_back = settings.on_model_failure == "extractive"
        rules, refine = self._grounding_rules, settings.synthesis == "refine"
        depth = EVIDENCE_DEPTH if models else MAX_COMPARED_CHUNKS
        return PipelineSteps(
            condense=build_condense(models, info, settings.on_model_failure),
            acknowledge=build_acknowledge(info, settings.chat_model),
            classify=self.classify(),
            retrieve=RetrieveStep(self._chunk_search(), depth),
            refuse=build_refuse(info, settings.chat_model),
            expand_query=build_expand_query(self._chunk_search()),
            boost_named_api=build_boost_named_api(self._collection),
            research=self._research(models) if models and mode == "tools" else None,
            search_web=build_web_search(self._web_search) if self._web_search else None,
            add_evidence=build_add_evidence(settings.evidence_tokens),
            write=build_write_answer(models, info, rules, refine) if models else None,
            classify_by_rules=self._classify_by_rules() if falls_back else None,
            quote=quote,
            decline=build_decline(info),
            ground=build_ground(info, rules, judge, quote),
        )

    def classify(self) -> Runnable[Question, Classification]:
        """Return the step that classifies the question with a model or, if there is none, by rules."""
        if self._models is None:
            return self._classify_by_rules()
        on_failure = self._settings.on_model_failure
        return build_model_classifier(
            self._models, self._platform_info, on_failure, self._collection, self._glossary
        )

    def retrieve(
        self, mode: RetrievalMode | None = None
    ) -> Runnable[Question, list[RetrievedChunk]]:
        """Return the step `retrieve`, in `mode` or, if it is None, in the mode of the settings.

        Raises ConfigurationError if the mode needs an embedding model and there is none.
        """
        return RetrieveStep(self._chunk_search(mode))

    def retrieve_without_models(self) -> Runnable[Question, list[RetrievedChunk]]:
        """Return a step `retrieve` that searches full text only, without embeddings and reranking."""
        search = open_search("full_text", self._collection, None)
        return RetrieveStep(ChunkSearch(search=search, glossary=self._glossary))

    def library(self) -> "DocumentLibrary":
        """Return the library in which tools look up documents."""
        # Imported here, because the module loads LangChain's tools and with them LangGraph, which is slow.
        from runnables.tools.tool_context import DocumentLibrary

        return DocumentLibrary(self._collection, self._chunk_search(), self._glossary)

    def _research(self, models: ChatModels) -> StateStep:
        # Imported here, because LangChain's agent takes as long to load as the rest of apidesk.
        from runnables.tools.research import build_research

        return build_research(
            models,
            self._platform_info,
            self.library(),
            rounds=self._settings.tool_rounds,
            round_timeout_s=self._settings.tool_timeout,
        )

    def _classify_by_rules(self) -> Runnable[Question, Classification]:
        return build_rule_classifier(self._collection, self._glossary)

    def _chunk_search(self, mode: RetrievalMode | None = None) -> ChunkSearch:
        """Return a search in `mode` or, if it is None, in the mode of the settings.

        A search with a given `mode` has its own cache of query embeddings, so that each mode in a
        comparison starts with an empty cache.
        """
        embeddings = self._with_cache(self._embeddings) if mode else self.query_embeddings
        search = open_search(mode or self._settings.retrieval, self._collection, embeddings)
        return ChunkSearch(search=search, glossary=self._glossary, reranker=self._rerank)

    def _with_cache(self, embeddings: Embeddings | None) -> QueryEmbeddings | None:
        if embeddings is None:
            return None
        return QueryEmbeddings(embeddings, self._collection.embedding_role)
