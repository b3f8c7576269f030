"""Counts recorded questions by type, by API and by the error that they name. Collects rated answers."""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from datetime import UTC, date
from typing import NamedTuple

from runnables.question.error_codes import error_codes
from schemas.insights import (
    ApiCount,
    ErrorCount,
    Feedback,
    Insights,
    QuestionRecord,
    RatedAnswer,
    TypeCount,
)
from schemas.question import QuestionType

MAX_LISTED = 1_000
"""Maximum number of errors in a report, and maximum number of rated answers.

If there are more, the report contains the most frequent errors and the latest rated answers.
"""

MAX_MESSAGES = 3
"""Maximum number of messages that are reported per error code."""

_LOWER_CASE_CODE = re.compile(
    r"(?:\d{3}[\s:]+)?([a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?=[\s:：,，]+[^\Wa-z_]|\W*\Z)"
)
"""An error that starts with a code of lower-case words, as in `idempotency_mismatch The key ...`.

The words are joined by `_`. If a lower-case word follows, as in `payment_method is required`, the pattern
does not match, because the joined words are then usually the name of a parameter.
"""

_UNSPECIFIC_START = re.compile(r"\W*(?:(?:fail(?:ed|ure)?|error|false)\b\W*)*", re.IGNORECASE)
"""Words such as FAIL at the start of an error message."""

_SYNTAX = re.compile(r"[{}\"“”]|(?<![\w\\])'|'(?!\w)|\\(?=[\"'])")
"""Braces, quotes and the backslashes before quotes in an error message, but not apostrophes."""

_LABEL = re.compile(
    r"(^\W*|[,，;；:：.。(（\[]\s*|\s(?=\w+=))"
    r"(?:(?:(?:err(?:or)?|sub|ret|status)[ _-]?)?(?:code|msg|message)|err|错误码|错误信息)"
    r"\s*(?:[:：=]|\Z)",
    re.IGNORECASE,
)
"""A label in an error message, such as `code:` or `msg=`.

The colon or equals sign is optional at the end of the text, because the text may be only what precedes a
code, as in `code 40014`.
"""

ApiIdentity = tuple[str, str]
"""Name and path of an API; one of them may be empty."""


class DocumentedOperation(NamedTuple):
    """A documented operation of an API."""

    name: str
    path: str
    method: str


OperationKey = tuple[str, str, str]
"""Path, methods (separated by commas) and name, such as `("/orders", "POST", "")`.

Questions with equal keys are about the same operation. The key of a question is determined by the name and
the path of the API that were recorded with it.

The recorded path may lack a prefix, such as the path of the server. If the recorded path is not documented,
but exactly one documented path consists of a prefix without placeholders and the recorded path, then this
documented path is used instead. The key contains:

- If the documents use the name for operations at the path: the path and the methods of these operations.
- Otherwise, if all documented operations at the path have the same method: the path and this method.
- Otherwise, if the path is documented: the path and the recorded name.
- Otherwise: the path alone.

The other fields of the key are empty.
"""


class ApiQuestionCounts:
    """Counts questions per API and day.

    Questions about the same operation (see `OperationKey`) are counted together, even if they use different
    names for it. A question that names an API without its path counts for the path that occurs most often
    with this name in other questions. If no question has this name with a path, it counts for the only
    documented path of this name.
    """

    def __init__(self) -> None:
        self._asked: Counter[tuple[ApiIdentity, date]] = Counter()
        self._unanswered: Counter[tuple[ApiIdentity, date]] = Counter()

    def add(self, name: str, url: str, day: date, unanswered: bool) -> None:
        """Count a question."""
        self._asked[(name, url), day] += 1
        self._unanswered[(name, url), day] += unanswered

    @property
    def apis(self) -> set[ApiIdentity]:
        """The names and paths of the APIs, as recorded."""
        return {api for api, _ in self._asked}

    def by_day(self, operations: Iterable[DocumentedOperation] = ()) -> tuple[ApiCount, ...]:
        """Return the counts per API and day.

        APIs with more questions come first; the days of each API are in order. `operations` are the
        documented operations whose path is, or ends with, the path of an API in `apis`, and those that have
        the name of an API without a path. If no operations are given, each path counts as one operation.
        """
        resolved = self._resolve_apis(operations)
        asked, unanswered = _merge(self._asked, resolved), _merge(self._unanswered, resolved)
        totals: Counter[ApiIdentity] = Counter()
        for (api, _), count in asked.items():
            totals[api] += count
        return tuple(
            ApiCount(
                day=day,
                api_name=api[0],
                api_url=api[1],
                questions=asked[api, day],
                unanswered=unanswered[api, day],
            )
            for api, day in sorted(asked, key=lambda key: (-totals[key[0]], key))
        )

    def _resolve_apis(
        self, operations: Iterable[DocumentedOperation]
    ) -> dict[ApiIdentity, ApiIdentity]:
        """Map each API to the name and path under which it is counted."""
        keys = _OperationKeys(operations)
        names: defaultdict[OperationKey, Counter[str]] = defaultdict(Counter)
        urls: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for ((name, recorded_url), _), count in self._asked.items():
            url = keys.documented_path(recorded_url)
            if name and url:
                names[keys.key_of(name, url)][name] += count
                urls[name][url] += count
        with_url = {
            (name, url): (
                name,
                keys.documented_path(url) or _most_common(urls[name]) or keys.path_of(name),
            )
            for name, url in self.apis
        }
        return {
            api: (_most_common(names[keys.key_of(name, url)]) or name, url)
            for api, (name, url) in with_url.items()
        }


class _OperationKeys:
    """Maps names and paths to operations."""

    def __init__(self, operations: Iterable[DocumentedOperation]) -> None:
        self._methods: defaultdict[ApiIdentity, set[str]] = defaultdict(set)
        self._methods_of_path: defaultdict[str, set[str]] = defaultdict(set)
        self._paths: defaultdict[str, set[str]] = defaultdict(set)
        self._full_paths: defaultdict[str, set[str]] = defaultdict(set)
        for name, path, method in operations:
            self._methods[name, path].add(method)
            self._methods_of_path[path].add(method)
            self._paths[name].add(path)
            for start in _ends_of_prefixes(path):
                self._full_paths[path[start:]].add(path)

    def documented_path(self, path: str) -> str:
        """Return the only documented path that `path` can be short for (see `OperationKey`), or `path`."""
        full_paths = self._full_paths.get(path, set())
        is_short = path not in self._methods_of_path and len(full_paths) == 1
        return next(iter(full_paths)) if is_short else path

    def key_of(self, name: str, path: str) -> OperationKey:
        """Return the key of the operation at `path`.

        If several operations have this path, only a documented `name` tells which one is meant.
        """
        at_path = self._methods_of_path.get(path, set())
        methods = self._methods.get((name, path), at_path if len(at_path) == 1 else set())
        return (path, ",".join(sorted(methods)), name if at_path and not methods else "")

    def path_of(self, name: str) -> str:
        """Return the path of the documented operation `name`; empty if there is not exactly one."""
        paths = self._paths.get(name, set())
        return next(iter(paths)) if len(paths) == 1 else ""


def _ends_of_prefixes(path: str) -> Iterator[int]:
    """Yield each position at which `path` can be split into a prefix and a path that begins with a slash.

    The prefix contains no placeholder, and the first segment of the path does not begin with one.
    """
    prefix = re.split(r"[{:<*]", path, maxsplit=1)[0]
    return (match.start() for match in re.finditer(r"(?<=[^/])/(?=.)", prefix))


def _merge(
    counts: Counter[tuple[ApiIdentity, date]], resolved: dict[ApiIdentity, ApiIdentity]
) -> Counter[tuple[ApiIdentity, date]]:
    merged: Counter[tuple[ApiIdentity, date]] = Counter()
    for (api, day), count in counts.items():
        merged[resolved[api], day] += count
    return merged


def _most_common(counts: Counter[str]) -> str:
    """Return the most frequent text, or an empty text if there is none.

    Of equally frequent texts, return the alphabetically first.
    """
    return min(counts, key=lambda text: (-counts[text], text), default="")


class QuestionCounts:
    """Counts recorded questions, and keeps the latest rated answers."""

    def __init__(self) -> None:
        self._questions = 0
        self._unanswered = 0
        self._cached = 0
        self._types: Counter[tuple[date, QuestionType | None]] = Counter()
        self._apis = ApiQuestionCounts()
        self._errors: Counter[str] = Counter()
        self._messages: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """The messages that questions contain in addition to an error code, by code."""
        self._rated: deque[RatedAnswer] = deque(maxlen=MAX_LISTED)

    def add(self, record: QuestionRecord) -> None:
        """Count `record`."""
        day, unanswered = day_of(record), is_unanswered(record)
        self._questions += 1
        self._unanswered += unanswered and record.type != "unknown"
        self._cached += record.cached
        self._types[day, record.type] += 1
        if record.api_name or record.api_url:
            self._apis.add(record.api_name or "", record.api_url or "", day, unanswered)
        if record.error:
            code, message = _code_and_message(record.error)
            self._errors[code] += 1
            self._messages[code].update([message] if message else [])
        if record.feedback and record.feedback.score:
            self._rated.append(_rated_answer(record, record.feedback))

    @property
    def apis(self) -> set[ApiIdentity]:
        """The names and paths of the APIs, as recorded."""
        return self._apis.apis

    def report(self, days: int, operations: Iterable[DocumentedOperation] = ()) -> Insights:
        """Return the report, with `gaps` empty.

        `days` is the number of days that the records cover. `ApiQuestionCounts.by_day` explains
        `operations`.
        """
        types = sorted(self._types.items(), key=lambda item: (item[0][0], str(item[0][1])))
        with_answer = sum(count for (_, type_), count in types if type_ is not None)
        off_topic = sum(count for (_, type_), count in types if type_ == "unknown")
        return Insights(
            days=days,
            questions=self._questions,
            unanswered=self._unanswered,
            off_topic_share=round(off_topic / with_answer, 4) if with_answer else 0.0,
            cached_share=round(self._cached / with_answer, 4) if with_answer else 0.0,
            by_type=tuple(
                TypeCount(day=day, type=type_, questions=count) for (day, type_), count in types
            ),
            by_api=self._apis.by_day(operations),
            errors=tuple(
                ErrorCount(error=error, questions=count, messages=self._messages_of(error))
                for error, count in self._errors.most_common(MAX_LISTED)
            ),
            feedback=tuple(
                sorted(self._rated, key=lambda rated: (rated.score, -rated.asked_at.timestamp()))
            ),
        )

    def _messages_of(self, error: str) -> tuple[str, ...]:
        counts = self._messages[error]
        messages = sorted(counts, key=lambda message: (-counts[message], message))
        return tuple(messages[:MAX_MESSAGES])


def _code_and_message(error: str) -> tuple[str, str]:
    """Return the first error code in `error`, and the rest of `error` as its message.

    Labels, braces, quotes and words such as FAIL are removed from the message. A message without letters is
    dropped. If there is no code, return `error` and an empty message.
    """
    lower_case = _LOWER_CASE_CODE.match(error)
    codes = error_codes(error) or ([lower_case[1]] if lower_case else [])
    if not codes:
        return error, ""
    before, code, after = error.partition(codes[0])
    message = " ".join(filter(None, map(_without_syntax, (before, after))))
    return code, message if any(map(str.isalpha, message)) else ""


def _without_syntax(text: str) -> str:
    """Remove labels, braces, quotes and leading words such as FAIL from `text`, a part of an error."""
    text = _UNSPECIFIC_START.sub("", _SYNTAX.sub("", text), count=1)
    return _LABEL.sub(r"\1", text).strip(" ,，;；:：=()（）[]\"'")


def day_of(record: QuestionRecord) -> date:
    """Return the day on which the question was asked, in UTC."""
    return record.asked_at.astimezone(UTC).date()


def is_unanswered(record: QuestionRecord) -> bool:
    """Return whether the question got an answer that does not help.

    If answering failed (`type` is None), the result is False, because the failure says nothing about the
    documentation. If the caller rated the answer, the rating decides. Without a rating, an answer with low
    confidence or without citations does not help.
    """
    if record.type is None:
        return False
    if record.feedback and record.feedback.score:
        return record.feedback.score < 0
    return record.confidence == "low" or not record.pages


def _rated_answer(record: QuestionRecord, feedback: Feedback) -> RatedAnswer:
    return RatedAnswer(
        id=record.id,
        asked_at=record.asked_at,
        question=record.question,
        confidence=record.confidence,
        score=feedback.score,
        comment=feedback.comment,
    )
