"""A second look where the first found little: with terms in the documents' language."""

from collections.abc import Sequence

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.words import index_words, query_text
from runnables.question.pasted import search_query
from runnables.retrieval.retriever import ChunkSearch
from runnables.state import PipelineState
from runnables.steps import named_step
from schemas.document import RetrievedChunk

STRONG = 0.8
"""The share of a question's words in one chunk from which on the first retrieval was good enough."""


def build_expand_query(finder: ChunkSearch) -> Runnable[PipelineState, PipelineState]:
    """The step `widen`: retrieve once more with the structured question's search terms too, which are in
    the other language: not where no document is, nor where one chunk holds nearly all of the question's
    words and more of them than any holds of the terms.
    """

    async def widen(understood: PipelineState, config: RunnableConfig) -> PipelineState:
        asked, terms = understood["question"], understood["classification"].structured.search_terms
        if not terms or await finder.is_in_the_only_language(asked):
            return understood
        share = best_word_share(asked.text, understood["retrieved"])
        if share >= STRONG:
            in_terms = asked.model_copy(update={"text": " ".join(terms)})
            if share > best_word_share(
                in_terms.text, await finder.search_without_rerank(in_terms, config)
            ):
                return understood
        return {**understood, "retrieved": await finder.find(asked, config, terms)}

    return named_step("widen", widen)


def best_word_share(text: str, found: Sequence[RetrievedChunk]) -> float:
    """The share of the telling words of `text` that stand in one chunk of those found, 0 to 1."""
    asked = set(query_text(search_query(text)).split())
    if not asked:
        return 0.0
    shares = (len(asked & set(index_words(r.chunk.text))) / len(asked) for r in found)
    return max(shares, default=0.0)
