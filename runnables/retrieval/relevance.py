"""Estimates how relevant the text of a retrieved chunk is to a question.

The relevance is a weighted sum of features. `benchmarks/fit_answers` fits the weights; they are in
`runnables/coefficients.py`. The steps that quote documents compare passages of chunks; retrieval
compares whole chunks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ingestion.sources.api_pages.permissions import scopes_of_sentences
from runnables.coefficients import PASSAGE_WEIGHTS
from runnables.page_versions import is_deprecated
from runnables.question.needs import Need, fits, states_quantity
from runnables.retrieval.query_terms import QueryTerms
from schemas.document import Chunk, RetrievedChunk, SectionKind

MAX_COMPARED_CHUNKS = 20
"""Number of best chunks whose relevance is compared; with more, answers did not improve."""

MIN_K = 4
"""Minimum number of results, `k`, at which the last result is chosen by its relevance.

See `with_relevant_chunk`. The first three results stay in the order of the search, because they may be
there on purpose: as the definitions of identifiers, as the request parameters of an API, or as results for
different parts of a question.
"""

ASKED_SECTIONS: Mapping[SectionKind, Need] = {
    "request_parameters": "parameter",
    "request_url": "endpoint",
    "response_parameters": "returned",
}
"""The need that shows that a question asks for a section of this kind (see `runnables.question.needs`)."""

DEPRECATED_PENALTY = 1.5
"""Reduction of the relevance of a passage, in log-odds, if its document describes something deprecated.

Of two documents that fit about equally, the one that is not deprecated then comes first. If a question
names the deprecated API, its document still comes first, because the difference in relevance is larger. The
value is chosen, not measured.
"""

CODE_WORDS = frozenset(["code", "exampl", "sampl", "snippet", "代码", "例子", "样例", "示例"])
"""The stems of words that ask for program code."""

RARELY_ASKED: frozenset[SectionKind] = frozenset(
    {
        "response_parameters",
        "request_headers",
        "public_parameters",
        "permission_package",
        "error_codes",
    }
)
"""Sections of an API that rarely answer a question, unless the question asks for them."""


@dataclass(frozen=True)
class RankedChunk:
    """A retrieved chunk that may answer a question."""

    chunk: Chunk
    terms: QueryTerms
    """The terms of the question, or of a part of it."""
    rank: int
    """Position among the chunks that are compared, from 0."""
    score: float
    """Retrieval score relative to the best chunk's, 0 to 1."""
    version: str = field(default="", kw_only=True)
    """The words with which the question names the version of the chunk's page; empty if it does not."""

    @cached_property
    def heading(self) -> str:
        """The text above the body: headings, the API's name, address and operationId, and the version."""
        chunk = self.chunk
        is_operation = bool(chunk.api_url) and chunk.document_id.isidentifier()
        operation_id = chunk.document_id if is_operation else ""
        return " ".join(
            (
                chunk.title,
                chunk.section,
                chunk.api_name,
                chunk.api_url,
                operation_id,
                self.version,
            )
        ).rstrip()

    @cached_property
    def heading_words(self) -> frozenset[str]:
        """The words of the question in the heading."""
        return self.terms.found_in(self.heading)

    def features(
        self,
        text: str,
        words: frozenset[str],
        *,
        is_code: bool = False,
        is_named: bool = False,
    ) -> dict[str, float]:
        """Return the features of `text`, a part of the chunk's body.

        `words` are the words of the question that are in `text` or in the heading. `is_code` says whether
        `text` consists of code blocks. `is_named` says whether `text` contains a table row or list item
        whose name is an identifier or value of the question.
        """
        terms = self.terms
        whole = f"{self.heading}\n{text}".lower()
        return {
            "words": len(words) / max(len(terms.weights), 1),
            "identifiers": terms.identifier_share(whole),
            "headings": terms.share(self.heading_words),
            "quantity": float(states_quantity(text, terms.quantities)),
            "asked": float(self._is_asked(text)),
            "unasked": float(
                self._is_unasked(is_named=is_named) or (is_code and self._is_code_unasked(whole))
            ),
            "rank": 1 / (1 + self.rank),
            "score": self.score,
        }

    def _is_asked(self, text: str) -> bool:
        """Return whether the section, or prose that states a permission, is what the question asks for."""
        needs = self.terms.needs
        if self.chunk.kind == "prose":
            return "permission" in needs and bool(scopes_of_sentences(text))
        return ASKED_SECTIONS.get(self.chunk.kind) in needs

    def _is_unasked(self, *, is_named: bool) -> bool:
        """Return whether the section rarely answers a question, and this question does not ask for it.

        A question that names a row of the section (`is_named`), such as an error code or a header, asks for
        the section. This does not apply to the name of a request or response field, because other sections
        contain this name too. A question about what an API returns does not ask for the parameters of the
        request.
        """
        kind, needs = self.chunk.kind, self.terms.needs
        if is_named and kind not in ("request_parameters", "response_parameters"):
            return False
        is_request = kind == "request_parameters" and "returned" in needs
        return (is_request or kind in RARELY_ASKED) and not fits(kind, needs)

    def _is_code_unasked(self, text: str) -> bool:
        """Return whether code blocks do not answer the question, although they may contain its words.

        This is so if the question contains a pasted call. It is also so if the question contains a name
        that `text` contains too, but does not ask for program code or steps. `text` is the code blocks with
        their heading.
        """
        terms = self.terms
        has_name = any(value in text and not value.isdecimal() for value in terms.values)
        asks_for_code = "steps" in terms.needs or not CODE_WORDS.isdisjoint(terms.stems)
        return terms.has_pasted_call or (has_name and not asks_for_code)

    @property
    def relevance(self) -> float:
        """The relevance of the whole chunk.

        Passages have a further feature, `ngrams`, which is missing here. In a text as long as a chunk, it
        shows only whether the text is in the language of the question, not whether it is relevant.
        """
        words = self.heading_words | self.terms.found_in(self.chunk.body)
        features = self.features(self.chunk.body, words)
        return relevance_of(features, PASSAGE_WEIGHTS) - self.penalty

    @property
    def penalty(self) -> float:
        """`DEPRECATED_PENALTY` if the document describes something deprecated, else 0."""
        return DEPRECATED_PENALTY * is_deprecated(self.chunk)


def relevance_of(features: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the sum of the features, each times its weight. Features without a weight do not count."""
    return sum(weights.get(name, 0.0) * value for name, value in features.items())


def relative_scores(ranking: Sequence[RetrievedChunk]) -> list[float]:
    """Return the scores of the chunks relative to the best score, 0 to 1.

    A chunk with score 0 gets the best score, because it was not found by the search but added on purpose,
    such as the chunks of an API that the question names.
    """
    best = max((retrieved.score for retrieved in ranking), default=0.0)
    if best <= 0:  # cosines of vectors can be negative
        return [1.0] * len(ranking)
    return [max((retrieved.score or best) / best, 0.0) for retrieved in ranking]


def with_relevant_chunk(
    ranking: Sequence[RetrievedChunk], k: int, terms: QueryTerms
) -> list[RetrievedChunk]:
    """Return the first `k - 1` chunks of `ranking`, followed by the most relevant of the next ones.

    `ranking` is sorted by search score, best first. Unlike search, the relevance considers where the words
    of the question are and what the question asks for. The relevance chooses only the last chunk, because
    search ranks some chunks high on purpose (see `MIN_K`); docs/explanation/retrieval.md has the
    measurements. The first `k` chunks are returned if `k` is less than `MIN_K`, or if no further chunk is
    compared (see `MAX_COMPARED_CHUNKS`).
    """
    end = min(len(ranking), MAX_COMPARED_CHUNKS)
    if not MIN_K <= k < end:
        return list(ranking[:k])
    scores = relative_scores(ranking)
    others = [
        RankedChunk(ranking[rank].chunk, terms, rank, scores[rank]) for rank in range(k - 1, end)
    ]
    best = max(others, key=lambda each: each.relevance)
    return [*ranking[: k - 1], ranking[best.rank]]
