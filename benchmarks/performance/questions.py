"""Questions to ask: about the platform or not, each once, so that no cache knows it."""

from collections.abc import Iterator
from itertools import cycle

from app.analytics.evaluation.dataset import read_questions
from benchmarks.performance.scripted_model import OFF_TOPIC
from benchmarks.retrieval_sets import ROOT

FILES = ("retrieval_samples", "on_topic", "on_topic_held_out")
"""Files in tests/data: the pages that are indexed are of the samples' sentences."""


def distinct_questions() -> list[str]:
    """Questions of the tests, each once."""
    paths = (ROOT / "tests" / "data" / f"{name}.jsonl" for name in FILES)
    texts = (question.question for path in paths for question in read_questions(path))
    return list(dict.fromkeys(texts))


def on_topic() -> Iterator[str]:
    """Questions about the platform without end; from the second time on with a reference behind."""
    return _endless(distinct_questions())


def off_topic() -> Iterator[str]:
    """Questions about anything else, without end."""
    return _endless(list(OFF_TOPIC))


def _endless(texts: list[str]) -> Iterator[str]:
    for number, text in enumerate(cycle(texts)):
        again = number // len(texts)
        yield f"{text} ({_reference(again)})" if again else text


def _reference(number: int) -> str:
    """A word that stands nowhere else: letters, since a number may be an error code."""
    letters = [chr(ord("a") + int(digit)) for digit in f"{number:05}"]
    return "ref" + "".join(letters)
