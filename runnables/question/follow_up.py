"""Rewrites a follow-up as a standalone question, without a model.

A follow-up such as "which parameters are required" omits its subject, which is then taken from the
conversation. A text with new content words has a subject of its own, and stays unchanged, so that an
off-topic question does not inherit the topic of the conversation. If the text contains a pronoun, as in
"can I schedule it for midnight", a few new words are allowed (see `MAX_NEW_WORDS`).

A follow-up such as "and for create shipment?" only names something. It becomes the latest question, asked
about the named thing. A complaint such as "still doesn't work" is about the problem of the conversation.
"""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from ingestion.text.words import may_be_noun, split_words, stem
from runnables.question.extract_details import error_codes, extract_details, single_letter_terms
from runnables.question.small_talk import is_complaint, is_small_talk, strip_small_talk
from runnables.question.subject import (
    API_STEMS,
    ERROR_STEMS,
    IGNORED_STEMS,
    MAX_CLAUSE_CHARS,
    MAX_FOLLOW_UP_CHARS,
    MAX_SUBJECT_WORDS,
    PROBLEM_STEMS,
    Word,
    all_stems,
    content_stems,
    conversation_problem,
    conversation_subject,
    is_chinese,
    uncommon_stems,
    without_openers,
    words_with_positions,
)
from runnables.question.topic_gate import private_words
from runnables.question.topic_scorer import is_uncommon_word
from schemas.question import ExtractedDetails, Turn

MAX_NEW_WORDS = 2
"""Maximum number of new content words in a follow-up such as "can I cancel it".

A word is new if it is in no earlier question. "Can I schedule it for midnight" has two new words.
"""

_LEADING_PRONOUN = re.compile(
    r"它们?(?!山)|[这那]个(?=接口|[的有需支能怎会要是最可]|[呢吗]?[？?。！! ]*$)|[该此这](?=接口)"
)
"""A Chinese pronoun that the subject can replace, unlike 这个 before a noun."""

_PRONOUN = re.compile(
    rf"{_LEADING_PRONOUN.pattern}|这样|上面|前面|刚才|\bit\b(?! possible)"
    r"|\b(?:its|this|these|those|they|them|their|(?:is|does|was|did) that)\b"
    r"|\bthat(?= (?:for|in|on|at|to|with)\b|[?!. ]*$)",
    re.I,
)
"""A pronoun that refers back, unlike the "that" of a clause and "it" in "is it possible"."""

_REFERENCE = re.compile(
    r"(?:[这那][个些种]|该|此|上述)(?:接口|错误码?|报错|异常|失败|问题|参数|字段)"
    r"|第[一二三四五六七八九十\d]+[个种步条]|最后一[个种步条]|[前后]者|[上另]一[个种步条]"
    r"|\b(?:the )?(?:former|latter|(?:first|second|third|last|next|other|previous)(?: ones?)?)\b"
    r"|\b(?:this|that|these|those) [a-z]+|\b[a-z]+n['’]t\b",
    re.I,
)
"""A pronoun with its noun, such as "that endpoint", "the second one", or a negation such as "isn't"."""

_BARE_VERB = re.compile(
    r"(?:should|must|can|may|do|shall) (?:i|we) (?:(?:need|have) to )?(?:also )?(\w+)[?!. ]*", re.I
)
"""A question that may lack the object of its verb, such as "should I reconnect?"."""

_ELLIPSIS_END = re.compile(r"\s?(?:呢|也[^，,。]{0,6}吗|,? (?:too|as well|instead))$", re.I)
_BEFORE_ACTION = re.compile(r"\b(?:i|we|you|to)\s+(?:an?\s+|the\s+)?$", re.I)

_PREPOSITION = re.compile(
    r"^(?:对于?|关于|换成|(?:如果|要是)是)\s*"
    r"|^(?:(?:for|with|about|the|an?|(?:in|on)(?= (?:the )?\S*(?-i:[A-Z0-9])))\b\s*)+",
    re.I,
)
_PLACE = re.compile(r"^(?:in|on) |(?:[端版]|环境|平台)$", re.I)
_INDEFINITE_ARTICLE = re.compile(r"\ban?\s+$", re.I)

_NOT_ONLY_A_NAME = re.compile(
    r"怎|什么|[吗啥咋哪几谁我你的了是]|如何|为何|多少|多久|是否|[，,;；]"
    r"|\b(?:how|what|which|when|where|why|who|is|are|was|do|does|did|can|could|should|may|must|will|if"
    r"|i|we|you|me|my|of|for|in|on|at|to|from|with|about|without|one|ones|that|there)\b",
    re.I,
)
_IDENTIFIER_FORMS = (
    r"[a-z0-9]+(?:_[a-z0-9]+)+",  # create_charge
    r"[A-Z0-9]+(?:_[A-Z0-9]+)+",  # SIGN_ERROR
    r"(?:[a-z]{2,}[A-Z]|[A-Z][a-z]+[A-Z])[A-Za-z0-9]*(?<!OS)",  # sendMessage, not macOS
    r"-?0x[0-9A-Fa-f]+|[A-Za-z]{1,8}[-+]?\d{1,9}",  # 0x8E, E2011, T+1
    r"v?\d+(?:[.-]\d+){1,5}",  # 3.5.2
)
_NAME_FORMS = tuple(
    re.compile(rf"(?<![A-Za-z0-9_])(?<!\d[.-])(?:{form})(?![A-Za-z0-9_]|[.-]\d)")
    for form in (*_IDENTIFIER_FORMS, r"-?\d+", r"[A-Z]{2,}")
)
"""The forms of names, numbers and acronyms. A name can replace another one of the same form."""

_NAME = re.compile("|".join(form.pattern for form in _NAME_FORMS[: len(_IDENTIFIER_FORMS)]))
"""A name that is not only a number or an acronym."""


def make_standalone(
    text: str, history: Sequence[Turn], details: ExtractedDetails | None = None
) -> str:
    """Return `text` with the subject of the conversation inserted if `text` has no subject of its own.

    `details` are the details of `text`, if they have been extracted already.
    """
    if len(text) > MAX_FOLLOW_UP_CHARS:
        return text
    history = [turn for turn in history if not is_small_talk(turn.question)]
    question = strip_small_talk(text)
    names_subject = _names_subject(details or extract_details(text))
    if history and (repeated := _repeat_about(question, history, names_subject)):
        return repeated
    if names_subject:
        return text
    rest = without_openers(question)
    subject, problem = conversation_subject(history), conversation_problem(history)
    if problem and is_complaint(rest):
        return _insert_subject(problem, rest)
    if not _omits_subject(rest, subject or problem, history):
        return text
    inserted = problem if _asks_about_problem(rest) else subject
    return _insert_subject(inserted, rest) if inserted else text


def _repeat_about(text: str, history: Sequence[Turn], is_complete: bool) -> str:
    """Return the latest question, asked about what `text` names.

    The named thing replaces a similar name, similar words or the API's name in the question. If there is
    nothing to replace, it follows the question, as "iOS" follows 怎么创建订单.

    The result is empty if `text` does more than name something. If the question contains nothing similar,
    the result is also empty if `text` identifies its subject (`is_complete`), or names a part of an API,
    such as "the parameters".
    """
    question, rest = history[-1].question, without_openers(text)
    if max(len(question), len(rest)) > MAX_CLAUSE_CHARS:
        return ""
    named = rest.rstrip("？?。.!！ ")
    about = _ELLIPSIS_END.sub("", named)
    if (rest == text and about == named) or not _is_name(other := _PREPOSITION.sub("", about)):
        return ""
    words, last = words_with_positions(question), split_words(other)[-1]
    place = _similar_name(question, other) or _similar_words(question, words, other)
    if not place and (is_complete or (stem(last) in API_STEMS and may_be_noun(last))):
        return ""
    if not (place or _PLACE.search(about)):
        place = _api_place(history[-1], words, other)
    if place:
        return _INDEFINITE_ARTICLE.sub("the ", question[: place[0]]) + other + question[place[1] :]
    return _insert_subject(_without_additions(history), rest)


def _without_additions(history: Iterable[Turn]) -> str:
    """Return the latest question without what `_repeat_about` has added to it."""
    first = ""
    for turn in history:
        if not first or not turn.question.startswith(first):
            first = without_openers(turn.question).rstrip("？?。.!！ ")
    return first


def _similar_name(question: str, other: str) -> tuple[int, int] | None:
    """Return the place of the name in `question` that has the form of `other` and is most similar."""
    form = next((form for form in _NAME_FORMS if form.fullmatch(other)), None)
    names = form.finditer(question) if form else ()
    ratios = [
        (len(name[0]) == len(other), SequenceMatcher(None, name[0], other).ratio(), name.span())
        for name in names
    ]
    return max(ratios)[-1] if ratios else None


def _similar_words(question: str, words: Sequence[Word], other: str) -> tuple[int, int] | None:
    """Return the place of a phrase in `question` that is as long as `other` and begins or ends like it.

    "Apple Pay" is similar to "Google Pay". If `other` has two Chinese characters, the second one must be
    the same: 群聊 is similar to 单聊. A part of a hyphenated word such as "Wi-Fi" is not replaced.
    """
    others = split_words(other)
    is_pair = len(other) == 2 and not other.isascii()
    for size in range(len(others), 0, -1):
        for part in zip(*(words[start:] for start in range(size)), strict=False):
            found = question[part[0].start : part[-1].end]
            same = part[0].text == others[0] or part[-1].text == others[-1]
            is_similar = same and size == len(others) > 1
            if is_pair:
                is_similar = len(found) == 2 and found[1] == other[1]
            around = question[part[0].start - 1 : part[0].start] + question[part[-1].end :][:1]
            if is_similar and "-" not in around and not _NOT_ONLY_A_NAME.search(found):
                return part[0].start, part[-1].end
    return None


def _api_place(latest: Turn, words: Sequence[Word], other: str) -> tuple[int, int] | None:
    """Return where the question contains the API's name or a part of it; None if `other` cannot replace it.

    A part has at least two English words or two Chinese characters.

    An English name after a word such as "I" or "to" is an action, as in "how do I create a booking", which
    only `_similar_words` can replace. A Chinese name is an action if one of its words is not a noun. Only
    another action can replace it: at least two words, not all of them nouns. A single word that is not a
    noun may be a place or a time, such as 海外.
    """
    name = [word.text for word in words_with_positions(latest.api_name or "")]
    run = SequenceMatcher(None, [word.text for word in words], name).find_longest_match()
    if not run.size:
        return None
    start, end = words[run.a].start, words[run.a + run.size - 1].end
    named = split_words(latest.question[start:end])
    if named[0].isascii():
        is_action = _BEFORE_ACTION.search(latest.question[:start])
        return None if is_action or len(named) == 1 else (start, end)
    nouns = list(map(may_be_noun, split_words(other)))
    may_replace = all(map(may_be_noun, named)) or (len(nouns) > 1 and not all(nouns))
    return (start, end) if may_replace and end - start > 1 else None


def _is_name(text: str) -> bool:
    """Return whether `text` only names something, without asking anything about it.

    Text with words about private life or general knowledge names nothing on a platform.
    """
    if any(form.fullmatch(text) for form in _NAME_FORMS):
        return True
    words = split_words(text)
    own = {stem(word) for word in words if is_uncommon_word(word)} - IGNORED_STEMS
    if not own or len(words) > MAX_SUBJECT_WORDS or private_words(text):
        return False
    return not _NOT_ONLY_A_NAME.search(text) and not _REFERENCE.search(text)


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


def _omits_subject(rest: str, subject: str, history: Iterable[Turn]) -> bool:
    """Return whether `rest` (opener removed) cannot be understood without `subject`."""
    words = set(all_stems(rest))
    if not words or set(all_stems(subject)) <= words or private_words(rest) or "那个人" in rest:
        return False
    pronoun = _PRONOUN.search(rest)
    before = split_words(rest[: pronoun.start()])[:-1] if pronoun else []  # without its verb
    if pronoun and not (_NAME.search(rest, 0, pronoun.start()) or new_stems(" ".join(before), "")):
        asked = "\n".join(f"{turn.question}\n{turn.api_name or ''}" for turn in history)
        return len(new_stems(_NAME.sub(" ", rest), asked)) <= MAX_NEW_WORDS
    if verb := _BARE_VERB.fullmatch(rest):
        answers = (all_stems(turn.answer) for turn in history)
        return stem(verb[1].lower()) in (PROBLEM_STEMS | API_STEMS).union(*answers)
    return not (_NAME.search(rest) or new_stems(rest, ""))


def _names_subject(details: ExtractedDetails) -> bool:
    """Return whether a text identifies its subject by a path, trace id, error, code or term such as T+1."""
    failed = details.response is not None and details.error
    terms = error_codes(details.prose) or single_letter_terms(details.prose)
    return bool(details.paths or details.trace_id or failed or terms)


def _insert_subject(subject: str, rest: str) -> str:
    """Return `rest` preceded by `subject`. In Chinese, `subject` replaces a leading pronoun."""
    if not is_chinese(rest):
        return f"{subject}: {rest}"
    if pronoun := _LEADING_PRONOUN.match(rest):
        return f"{subject}{rest[pronoun.end() :]}"
    aspect = rest.rstrip("呢？?。 ")
    if aspect and all(stem(word) in API_STEMS for word in split_words(aspect)):
        return f"{subject}的{aspect}"
    return f"{subject}：{rest}"


def _asks_about_problem(rest: str) -> bool:
    """Return whether `rest` asks about an unnamed problem, as in 那怎么解决 ("how to fix it")."""
    words = set(all_stems(rest))
    return bool(words & PROBLEM_STEMS) and not words & (API_STEMS - PROBLEM_STEMS - ERROR_STEMS)
