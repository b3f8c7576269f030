"""Tests of the words by which the topic of a question is scored."""

from collections.abc import Iterable

from runnables.question.topic_scorer import TopicScorer

DOCUMENTED = {"发票": 50, "开票": 20, "订单": 100}


def count_words(words: Iterable[str]) -> dict[str, int]:
    return {word: DOCUMENTED[word] for word in words if word in DOCUMENTED}


def test_unknown_chinese_word_is_scored_by_the_documented_words_within_it() -> None:
    scorer = TopicScorer(count_words, total=10_000)
    assert scorer.word_scores("开发票").keys() == {"发票"}
    assert scorer.score("如何开发票") > 1


def test_word_without_documented_parts_lowers_the_score() -> None:
    scorer = TopicScorer(count_words, total=10_000)
    assert scorer.word_scores("天气预报")["天气预报"] < 0
