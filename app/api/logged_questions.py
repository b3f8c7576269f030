"""Finds the frequent, well-answered questions of an API key, to suggest them to that key's users."""

import re
import time
from collections import defaultdict
from collections.abc import Iterable

from app.service.records import RecordStore
from schemas.choices import Language
from schemas.errors import StoreUnavailable
from schemas.insights import QuestionRecord

MIN_SESSIONS = 3
"""Minimum number of sessions in which a question was asked, so that it does not identify a person."""

MAX_CHARS = 80
"""Maximum length of a question, in characters."""

MAX_RECORDS = 2_000
"""Maximum number of records that are read, latest first."""

CACHE_LIFETIME_S = 600
"""Seconds after which the records are read again."""

_NOT_WORDS = re.compile(r"[\W_]+")


class LoggedQuestions:
    """The frequent questions of each owner and language.

    An owner is an API key, or all callers if no key is required. The questions of one owner are never
    suggested to another.
    """

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._cache: dict[tuple[str, Language], tuple[float, tuple[str, ...]]] = {}

    def get(self, owner: str, language: Language) -> tuple[str, ...]:
        """Return the questions, most frequent first; empty if the database does not answer. Blocks."""
        read_at, questions = self._cache.get((owner, language), (-CACHE_LIFETIME_S, ()))
        if time.monotonic() - read_at < CACHE_LIFETIME_S:
            return questions
        try:
            questions = frequent_questions(self._records.latest(owner, MAX_RECORDS), language)
        except StoreUnavailable:
            return ()
        self._cache[owner, language] = (time.monotonic(), questions)
        return questions


def frequent_questions(records: Iterable[QuestionRecord], language: Language) -> tuple[str, ...]:
    """Return the suitable questions that were asked in at least MIN_SESSIONS sessions, most frequent first.

    Each question has its latest wording. A record without a session counts as a session of its own.

    Arguments:
        records: the records of one owner, latest first
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
    """Return whether the question is short and in `language`, was answered from the documents with
    sufficient confidence, and has no rating or a good one.
    """
    is_liked = record.feedback is None or record.feedback.score > 0
    is_answered = record.confidence in ("high", "medium") and bool(record.pages)
    is_short = len(question) <= MAX_CHARS and "\n" not in question
    return is_answered and is_liked and is_short and record.language == language
