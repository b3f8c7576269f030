"""Finds the questions that are asked often and answered well, to suggest them to others."""

import re
import time
from collections import defaultdict
from collections.abc import Iterable

from app.service.records import RecordStore
from schemas.choices import Language
from schemas.errors import StoreUnavailable
from schemas.insights import QuestionRecord

MIN_SESSIONS = 3
"""Minimum number of sessions in which a question was asked, so that it identifies no one."""

MAX_CHARS = 80
"""Maximum length of a question, in characters."""

MAX_RECORDS = 2_000
"""Maximum number of records that are read, latest first."""

LIFETIME_SECONDS = 600
"""Seconds after which the log is read again."""

_NOT_WORDS = re.compile(r"[\W_]+")


class LoggedQuestions:
    """The frequent questions of each owner and language. An owner does not see the questions of others."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._cache: dict[tuple[str, Language], tuple[float, tuple[str, ...]]] = {}

    def get(self, owner: str, language: Language) -> tuple[str, ...]:
        """Return the questions, most frequent first, or none if the database does not answer. Blocks."""
        read_at, questions = self._cache.get((owner, language), (-LIFETIME_SECONDS, ()))
        if time.monotonic() - read_at < LIFETIME_SECONDS:
            return questions
        try:
            questions = frequent_questions(self._records.latest(owner, MAX_RECORDS), language)
        except StoreUnavailable:
            return ()
        self._cache[owner, language] = (time.monotonic(), questions)
        return questions


def frequent_questions(records: Iterable[QuestionRecord], language: Language) -> tuple[str, ...]:
    """Return the questions that were asked in several sessions, most frequent first.

    Each has its latest wording.

    Arguments:
        records: latest first
        language: the language of the returned questions
    """
    sessions: defaultdict[str, set[str]] = defaultdict(set)
    wordings: dict[str, str] = {}
    for record in records:
        question = record.understood or record.question
        if _is_suitable(record, question, language):
            key = _NOT_WORDS.sub(" ", question.casefold()).strip()
            sessions[key].add(record.session or record.id)
            wordings.setdefault(key, question)
    frequent = [key for key, asked_in in sessions.items() if len(asked_in) >= MIN_SESSIONS]
    frequent.sort(key=lambda key: -len(sessions[key]))
    return tuple(wordings[key] for key in frequent)


def _is_suitable(record: QuestionRecord, question: str, language: Language) -> bool:
    """Return whether a question is short, was answered from the documents and is not rated badly."""
    is_liked = record.feedback is None or record.feedback.score > 0
    is_answered = record.confidence in ("high", "medium") and bool(record.pages)
    is_short = len(question) <= MAX_CHARS and "\n" not in question
    return is_answered and is_liked and is_short and record.language == language
