"""The terms of a question, for tests that need no collection."""

from runnables.retrieval.query_terms import QueryTerms

TERMS = QueryTerms(
    names_in_prose=(),
    weights={"refund": 3.0, "deadlin": 3.0},
    stems=["what", "is", "the", "deadlin", "of", "a", "refund"],
    equivalents={},
    ngrams=(),
    identifiers=frozenset(),
    values=frozenset(),
    error_number=None,
    has_pasted_call=False,
    lines=frozenset(),
    needs=frozenset(),
    quantities=frozenset({"time"}),
)
"""The terms of "What is the deadline of a refund?"."""
