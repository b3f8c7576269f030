"""Questions about the platform and off-topic questions, each unique, so that no cache has its answer."""

from collections.abc import Iterator
from itertools import cycle

from app.analytics.evaluation.dataset import read_questions
from benchmarks.performance.scripted_model import OFF_TOPIC
from benchmarks.retrieval_sets import ROOT

FILES = ("retrieval_samples", "on_topic", "on_topic_held_out")
"""Files in tests/data with questions about the samples.

The indexed pages consist of sentences of the samples.
"""


def distinct_questions() -> list[str]:
    """Return the distinct questions of the tests."""
    paths = (ROOT / "tests" / "data" / f"{name}.jsonl" for name in FILES)
    texts = (question.question for path in paths for question in read_questions(path))
    return list(dict.fromkeys(texts))


def on_topic() -> Iterator[str]:
    """Yield questions about the platform endlessly; repeated ones get a unique suffix."""
    return _endless(distinct_questions())


def off_topic() -> Iterator[str]:
    """Yield off-topic questions endlessly."""
    return _endless(list(OFF_TOPIC))


def _endless(texts: list[str]) -> Iterator[str]:
    for number, text in enumerate(cycle(texts)):
        again = number // len(texts)
        yield f"{text} ({_reference(again)})" if again else text


def _reference(number: int) -> str:
    """Return a unique word of letters, because a number might be taken for an error code."""
    letters = [chr(ord("a") + int(digit)) for digit in f"{number:05}"]
    return "ref" + "".join(letters)
