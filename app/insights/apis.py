"""Questions about APIs, counted."""

from collections import Counter, defaultdict
from datetime import date

from schemas.insights import ApiCount

ApiKeyPair = tuple[str, str]
"""A name and a path, one of which may be empty."""


class ApiQuestionCounts:
    """Questions about each API on each day.

    A path is one API, be it named in one language or another; a name without a path is the API that
    others who use the name mean.
    """

    def __init__(self) -> None:
        self._asked: Counter[tuple[ApiKeyPair, date]] = Counter()
        self._unanswered: Counter[tuple[ApiKeyPair, date]] = Counter()

    def add(self, name: str, url: str, day: date, unanswered: bool) -> None:
        """Count a question."""
        self._asked[(name, url), day] += 1
        self._unanswered[(name, url), day] += unanswered

    @property
    def by_day(self) -> tuple[ApiCount, ...]:
        """The APIs that are asked for most come first, then it is by day."""
        known = self._known()
        asked, unanswered = _merged(self._asked, known), _merged(self._unanswered, known)
        totals: Counter[ApiKeyPair] = Counter()
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
            for api, day in sorted(asked, key=lambda place: (-totals[place[0]], place))
        )

    def _known(self) -> dict[ApiKeyPair, ApiKeyPair]:
        """Each that was asked for, with the commonest name and path that mean the same."""
        names: defaultdict[str, Counter[str]] = defaultdict(Counter)
        urls: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for ((name, url), _), count in self._asked.items():
            if name and url:
                names[url][name] += count
                urls[name][url] += count
        apis = {api for api, _ in self._asked}
        found = {(name, url): (name, url or _commonest(urls[name])) for name, url in apis}
        return {api: (_commonest(names[url]) or name, url) for api, (name, url) in found.items()}


def _merged(
    counts: Counter[tuple[ApiKeyPair, date]], known: dict[ApiKeyPair, ApiKeyPair]
) -> Counter[tuple[ApiKeyPair, date]]:
    merged: Counter[tuple[ApiKeyPair, date]] = Counter()
    for (api, day), count in counts.items():
        merged[known[api], day] += count
    return merged


def _commonest(counts: Counter[str]) -> str:
    """The most frequent; of several the first in order."""
    return min(counts, key=lambda text: (-counts[text], text), default="")
