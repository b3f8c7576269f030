"""Recognises small talk and complaints: thanks, greetings, "still doesn't work", in Chinese and English."""

import re
from collections.abc import Iterable

from ingestion.text.words import read_word_lists

CLAUSE_END = re.compile(r"(?:[，,。!！；;、~～\n]|\.(?![a-z0-9]))+|\s{1,9}-{1,3}\s")
"""Matches the end of a clause, but not a full stop within a name such as `isv.invalid-sign`."""

MAX_SMALL_TALK_CHARS = 200
"""Maximum length of small talk, in characters."""


def _phrase_pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches the phrases; English ones match whole words only."""
    ordered = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    return re.compile(
        "|".join(
            rf"(?<![A-Za-z']){phrase}(?![A-Za-z'])" if phrase.isascii() else phrase
            for phrase in ordered
        ),
        re.IGNORECASE,
    )


_SMALL_TALK_WORDS = read_word_lists(__file__, "small_talk")
_SMALL_TALK_PATTERN = _phrase_pattern(_SMALL_TALK_WORDS["small_talk"])
_FILLER_PATTERN = _phrase_pattern(_SMALL_TALK_WORDS["filler"])
_COMPLAINT_PATTERN = _phrase_pattern(_SMALL_TALK_WORDS["complaint"])

_COMPLAINT_FILLER_PATTERN = _phrase_pattern(
    _SMALL_TALK_WORDS["complaint_filler"] | _SMALL_TALK_WORDS["filler"]
)


def is_small_talk(text: str) -> bool:
    """Return whether `text` consists of thanks, a greeting, praise, a confirmation or emoji."""
    if len(text) > MAX_SMALL_TALK_CHARS:
        return False
    text = text.replace("’", "'")
    if not re.search(r"\w", text):
        return _is_emoji(text)
    rest, matches = _SMALL_TALK_PATTERN.subn(" ", text)
    if not re.search(r"[?？]", text):  # in a question, filler may be the content
        rest = _FILLER_PATTERN.sub(" ", rest)
    return matches > 0 and not re.search(r"\w", rest)


def is_complaint(text: str) -> bool:
    """Return whether `text` says only that a problem is not solved, such as "still doesn't work"."""
    if len(text) > MAX_SMALL_TALK_CHARS:
        return False
    rest, matches = _COMPLAINT_PATTERN.subn(" ", text.replace("’", "'"))
    return matches > 0 and not re.search(r"\w", _COMPLAINT_FILLER_PATTERN.sub(" ", rest))


def strip_small_talk(text: str) -> str:
    """Return `text` without the small talk at its beginning, unless nothing else would be left."""
    rest = text.strip()
    while (clause := CLAUSE_END.search(rest)) and is_small_talk(rest[: clause.start()]):
        rest = rest[clause.end() :].lstrip()
    return rest or text.strip()


def _is_emoji(text: str) -> bool:
    """Return whether `text` contains a symbol such as an emoji and no question mark."""
    return not re.search(r"[?？]", text) and any(
        ord(character) > 0x2190 and character.isprintable() for character in text
    )
