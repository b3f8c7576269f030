"""The step that retrieves once more with search terms in the documents' language."""

from collections.abc import Sequence

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.text.words import index_words, query_text
from runnables.question.extract_details import search_query
from runnables.retrieval.chunk_search import ChunkSearch
from runnables.run_context import named_step
from runnables.state import PipelineState
from schemas.document import RetrievedChunk

SUFFICIENT_WORD_SHARE = 0.8
"""Share of a question's words in one chunk from which on the first retrieval may suffice."""


def build_expand_query(search: ChunkSearch) -> Runnable[PipelineState, PipelineState]:
    """Return the step that adds the classification's search terms, which are in the other language.

    It leaves the state unchanged if all documents are in the language of the question, or if one chunk
    holds nearly all words of the question and a larger share of them than any chunk holds of the terms.
    """

    async def expand_query(state: PipelineState, config: RunnableConfig) -> PipelineState:
        question, terms = state["question"], state["classification"].structured.search_terms
        if not terms or await search.is_only_language(question):
            return state
        share = best_word_share(question.text, state["retrieved"])
        if share >= SUFFICIENT_WORD_SHARE:
            by_terms = question.model_copy(update={"text": " ".join(terms)})
            retrieved = await search.retrieve(by_terms, config, rerank=False)
            if share > best_word_share(by_terms.text, retrieved):
                return state
        return {**state, "retrieved": await search.retrieve(question, config, terms)}

    return named_step("expand-query", expand_query)


def best_word_share(text: str, chunks: Sequence[RetrievedChunk]) -> float:
    """Return the largest share of the content words of `text` that one of `chunks` holds, 0 to 1."""
    words = set(query_text(search_query(text)).split())
    if not words:
        return 0.0
    shares = (len(words & set(index_words(r.chunk.text))) / len(words) for r in chunks)
    return max(shares, default=0.0)
