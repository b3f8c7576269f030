"""Tests of the probability that quotes answer a question."""

from collections import defaultdict

from runnables.answer.candidate import Candidate
from runnables.answer.confidence import Quotes, answer_features
from runnables.answer.passages import rank_passages
from runnables.answer.segments import split_chunk
from tests.chunks import page
from tests.refund_terms import TERMS


def test_part_without_a_passage_makes_the_answer_improbable() -> None:
    (chunk,) = page("refunds", "A refund has a deadline of 9 days.")
    candidate = Candidate(chunk, TERMS, 0, 1.0, split_chunk(chunk, "en"))
    passages = rank_passages([candidate], defaultdict(float))
    assert answer_features(Quotes(TERMS, passages, [passages]))["first"] == 1.0
    assert answer_features(Quotes(TERMS, passages, [passages, []]))["first"] == 0.0
