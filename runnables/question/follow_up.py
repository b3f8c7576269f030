"""Rewrites a follow-up as a standalone question, without a model.

A follow-up such as "which parameters are required" omits its subject, which is then taken from the
conversation. A text with new content words has a subject of its own, and stays unchanged, so that an
off-topic question does not inherit the topic of the conversation. A few new words are allowed in a text
such as "can I schedule it for midnight" (see `MAX_NEW_WORDS`).

A follow-up such as "and for create shipment?" names only a subject: it repeats the latest question about
another API. "Still doesn't work" is about the problem of the conversation.
"""

import re
from collections.abc import Iterable, Sequence

from ingestion.text.words import may_be_noun, split_words, stem
from runnables.question.extract_details import error_codes, extract_details, single_letter_terms
from runnables.question.small_talk import is_complaint, is_small_talk, strip_small_talk
from runnables.question.subject import (
    API_STEMS,
    ARTICLE,
    ERROR_STEMS,
    IGNORED_STEMS,
    MAX_CHINESE_SUBJECT_WORDS,
    MAX_SUBJECT_WORDS,
    MAX_TEXT_CHARS,
    OPENER,
    PROBLEM_STEMS,
    all_stems,
    content_stems,
    conversation_problem,
    conversation_subject,
    in_chinese,
    uncommon_stems,
    without_openers,
)
from runnables.question.topic_gate import private_words
from runnables.question.topic_scorer import DEVELOPER_WORDS
from schemas.question import ExtractedDetails, Turn

MAX_ELLIPTICAL_WORDS = 7
"""Maximum number of words in a follow-up that contains no word such as "it", "and" or "too"."""

MAX_CHINESE_ELLIPTICAL_WORDS = 14
"""`MAX_ELLIPTICAL_WORDS` for Chinese, which has more and shorter words."""

MAX_NEW_WORDS = 2
"""Maximum number of new content words in a follow-up such as "can I cancel it".

A word is new if it has not occurred in the conversation. "Can I schedule it for midnight" has two new
words. Follow-ups of another form must have none.
"""

_PRONOUN = re.compile(
    r"它们?|这个|那个|该接口|此接口|这接口|这样|上面|前面|刚才"
    r"|(?<!\bis )(?<!\bare )\bthere\b(?! (?:is|are)\b)"
    r"|\b(?:it|its|this|that|these|those|they|them|their|one|ones|same|above)\b",
    re.I,
)

_BACK_REFERENCE = re.compile(
    r"它们?|这个|该接口|此接口|这接口|\b(?:it|its|this|these|those|they|them|their)\b", re.I
)
"""A pronoun that cannot also introduce a clause or count something, unlike "that" and "one"."""

_REFERENCE = re.compile(
    r"(?:[这那][个些种]|该|此|上述)(?:接口|错误码?|报错|异常|失败|问题|参数|字段)"
    r"|第[一二三四五六七八九十\d]+[个种步条]|最后一[个种步条]|[前后]者|[上另]一[个种步条]"
    r"|\b(?:the )?(?:former|latter|(?:first|second|third|last|next|other|previous)(?: ones?)?)\b"
    r"|\b(?:this|that|these|those) [a-z]+|\b[a-z]+n['’]t\b",
    re.I,
)
"""A pronoun with its noun, such as "that endpoint", "the second one", or a negation such as "isn't"."""

_ACTION_ON_PRONOUN = re.compile(
    r"(?:怎么|如何|怎样|能|可以|要|会)[^，,。]{0,6}(?:它|这个|那个)"
    r"|\b(?:how|can|could|should|may|must) (?:do |can |should |to )?(?:i|we) \w+"
    r" (?:it|this|that|them|these|those)\b",
    re.I,
)
"""Asks whether or how to do something with the subject: "can I cancel it", 怎么取消它."""

_ELLIPSIS = re.compile(
    r"呢\s*[？?。!！]*$|^(?:也|还能|还可以|只)|\b(?:too|as well|instead|else)\b", re.I
)

_LEADING_PRONOUN = re.compile(
    r"(?:它|(?:这个|那个|该|此|这)(?=接口)|这个(?=的|有|需|支|能|怎|会|要))"
)

_LEADING_PREPOSITION = re.compile(
    r"^(?:对于?|关于|换成|(?:如果|要是)是)\s*|^(?:(?:for|with|about|the|an?)\b\s*)+", re.I
)

_NOT_ONLY_A_SUBJECT = re.compile(
    r"怎|什么|[吗啥咋哪几谁我你的了是]|如何|为何|多少|多久|是否|[，,;；]"
    r"|\b(?:how|what|which|when|where|why|who|is|are|was|do|does|did|can|could|should|may|must|will|if"
    r"|i|we|you|me|my|of|for|in|on|at|to|from|with|about|without)\b",
    re.I,
)
_NAME = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]+|\b[a-z]+[A-Z][A-Za-z0-9]*")
_DEVELOPER_STEMS = frozenset(map(stem, DEVELOPER_WORDS))


def make_standalone(
    text: str, history: Sequence[Turn], details: ExtractedDetails | None = None
) -> str:
    """Return `text` with the subject of the conversation inserted if `text` has no subject of its own.

    `details` are the details of `text`, if they have been extracted already.
    """
    if len(text) > MAX_TEXT_CHARS or _names_subject(details or extract_details(text)):
        return text
    history = [turn for turn in history if not is_small_talk(turn.question)]
    question = strip_small_talk(text)
    rest = _strip_opener(question)
    has_opener = OPENER.match(question) is not None
    subject, problem = conversation_subject(history), conversation_problem(history)
    if problem and is_complaint(rest):
        return _insert_subject(problem, rest)
    if (has_opener or _ELLIPSIS.search(rest)) and (repeated := _repeat_about(question, history)):
        return repeated
    if not _omits_subject(rest, has_opener, subject or problem, history):
        return text
    inserted = problem if _asks_about_problem(rest) else subject
    return _insert_subject(inserted, rest) if inserted else text


def _repeat_about(text: str, history: Sequence[Turn]) -> str:
    """Return the latest question with its API replaced by the subject that `text` names.

    A subject that cannot replace the API, such as "iOS" after 怎么创建订单, follows the API instead. The
    result is empty if `text` has more than a subject, or if the latest question does not name its API.
    """
    latest = history[-1] if history else None
    named = _named_part(latest.question, latest.api_name or "") if latest else ""
    other = _LEADING_PREPOSITION.sub("", without_openers(text), count=1).rstrip("呢？?。.!！ ")
    if not latest or not named or not _is_subject(other) or _is_detail(other, named, history):
        return ""
    if not _may_replace(named, other):
        return _insert_subject(latest.api_name or named, without_openers(text))
    return latest.question.replace(named, other, 1)


def _may_replace(named: str, other: str) -> bool:
    """Return whether `other` may replace the Chinese operation `named`; true if `named` is none.

    An operation contains a word that is no noun. In `other`, it has two or more words, because some single
    words that are no nouns are places and times, such as 海外.
    """
    named_words, words = split_words(named), split_words(other)
    if not in_chinese(named) or all(map(may_be_noun, named_words)):
        return True
    return len(words) > 1 and not all(map(may_be_noun, words))


def _named_part(question: str, api_name: str) -> str:
    """Return the longest part of `api_name` in `question`, as written there; empty if it is too short.

    A part of a Chinese name needs two characters, a part of another name two words. Articles do not count:
    "create a shipment" is a part of "Create shipment".
    """
    units, joint, before, after = list(api_name), "", "", ""
    if not in_chinese(api_name):
        units, joint = ARTICLE.sub("", api_name).split(), rf"\s+(?:{ARTICLE.pattern})?"
        before, after = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
    lowered = question.lower()
    for size in range(len(units), 1, -1):
        for start in range(len(units) - size + 1):
            part = units[start : start + size]
            if not all(unit.lower() in lowered for unit in part):
                continue
            pattern = f"{before}{joint.join(map(re.escape, part))}{after}"
            if match := re.search(pattern, question, re.I):
                return match[0]
    return ""


def _is_subject(text: str) -> bool:
    """Return whether `text` can only be the name of something, and not what is asked about it.

    Words about private life and general knowledge name nothing on a platform.
    """
    words = [] if private_words(text) else split_words(text)
    limit = MAX_CHINESE_SUBJECT_WORDS if in_chinese(text) else MAX_SUBJECT_WORDS
    patterns = (_NOT_ONLY_A_SUBJECT, _PRONOUN, _REFERENCE)
    if not words or len(words) > limit or any(pattern.search(text) for pattern in patterns):
        return False
    own = [word for word in uncommon_stems(text) if word not in IGNORED_STEMS | _DEVELOPER_STEMS]
    return bool(own) and not (stem(words[-1]) in API_STEMS and may_be_noun(words[-1]))


def _is_detail(name: str, api: str, history: Sequence[Turn]) -> bool:
    """Return whether an answer of `history` mentions `name`, but not as something like `api`.

    A link, the API of a turn and a row of a table that also has a row for `api` are like an API.
    """
    if any(turn.api_name and turn.api_name.lower() == name.lower() for turn in history):
        return False
    mentions = [turn.answer for turn in history if name.lower() in turn.answer.lower()]
    return bool(mentions) and not any(
        f"[{name}](" in answer or (f"| {name} |" in answer and f"| {api} |" in answer)
        for answer in mentions
    )


def new_stems(text: str, known_text: str) -> list[str]:
    """Return the stems of the content words of `text` that are not in `known_text`.

    Words for parts of an API, and words such as "please" and "explain", are left out.
    """
    known = {*all_stems(known_text), *IGNORED_STEMS}
    return [word for word in dict.fromkeys(uncommon_stems(text)) if word not in known]


def share_kept(follow_up: str, rewritten: str) -> float:
    """Return the share of the content words of `follow_up` that `rewritten` contains, 0 to 1.

    References such as "that endpoint" are left out. Without content words, the share is 1.
    """
    known = {*all_stems(rewritten), *all_stems(" ".join(_PRONOUN.findall(follow_up)))}
    words = content_stems(_REFERENCE.sub(" ", follow_up))
    kept = [word in known or (not word.isascii() and word in rewritten) for word in words]
    return sum(kept) / len(kept) if kept else 1.0


def history_text(history: Iterable[Turn]) -> str:
    """Return the questions, answers, API names and API URLs of `history` as one text."""
    return "\n".join(
        part
        for turn in history
        for part in (turn.question, turn.answer, turn.api_name, turn.api_url)
        if part
    )


def _asked_text(history: Iterable[Turn]) -> str:
    """Return the questions and API names of `history` as one text."""
    return "\n".join(f"{turn.question}\n{turn.api_name or ''}" for turn in history)


def _omits_subject(rest: str, has_opener: bool, subject: str, history: Sequence[Turn]) -> bool:
    """Return whether `rest` (opener removed) cannot be understood without `subject`.

    Words of earlier answers are known only if `rest` refers back or is no question. A long answer may
    contain all words of a complete question.
    """
    words = set(all_stems(rest))
    if not words or set(all_stems(subject)) <= words:
        return False
    has_pronoun = _PRONOUN.search(rest) is not None
    is_marked = has_opener or has_pronoun or _ELLIPSIS.search(rest) is not None
    refers_back = _BACK_REFERENCE.search(rest) or not _NOT_ONLY_A_SUBJECT.search(rest)
    prose = _NAME.sub(" ", rest)
    known = history_text(history) if is_marked and refers_back else _asked_text(history)
    new = new_stems(prose, known)
    if has_pronoun:
        new = [word for word in new if word not in _DEVELOPER_STEMS]
    if is_marked:
        is_action = has_pronoun and _ACTION_ON_PRONOUN.search(prose)
        return len(new) <= (MAX_NEW_WORDS if is_action else 0)
    mentioned = {word for turn in history for word in uncommon_stems(turn.question)}
    limit = MAX_CHINESE_ELLIPTICAL_WORDS if in_chinese(rest) else MAX_ELLIPTICAL_WORDS
    is_short = len(words) <= limit
    repeats = (mentioned - IGNORED_STEMS) & words
    return is_short and prose == rest and not new and not repeats


def _names_subject(details: ExtractedDetails) -> bool:
    """Return whether a text identifies its subject by a path, trace id, error, code or term such as T+1."""
    failed = details.response is not None and details.error
    terms = error_codes(details.prose) or single_letter_terms(details.prose)
    return bool(details.paths or details.trace_id or failed or terms)


def _insert_subject(subject: str, rest: str) -> str:
    """Return `rest` preceded by `subject`. In Chinese, `subject` replaces a leading pronoun."""
    if not in_chinese(rest):
        return f"{subject}: {rest}"
    if pronoun := _LEADING_PRONOUN.match(rest):
        return f"{subject}{rest[pronoun.end() :]}"
    aspect = rest.rstrip("呢？?。 ")
    if aspect and all(stem(word) in API_STEMS for word in split_words(aspect)):
        return f"{subject}的{aspect}"
    return f"{subject}：{rest}"


def _strip_opener(text: str) -> str:
    """Return `text` without openers such as "and"; unchanged if at most one English word would remain."""
    rest = without_openers(text)
    return rest if len(split_words(rest)) > 1 or in_chinese(rest) else text


def _asks_about_problem(rest: str) -> bool:
    """Return whether `rest` asks about an unnamed problem, as in 那怎么解决 ("how to fix it")."""
    words = set(all_stems(rest))
    is_stated = bool(words & (API_STEMS - PROBLEM_STEMS - ERROR_STEMS))
    return bool(words & PROBLEM_STEMS) and not is_stated
