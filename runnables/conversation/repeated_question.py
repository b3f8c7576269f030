"""Asks the latest question of a conversation again, about another thing, which a follow-up names.

After "how does Google Pay work", the follow-up "and Apple Pay?" becomes "how does Apple Pay work".
"""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import groupby

from ingestion.text.words import may_be_noun, split_words, stem
from runnables.classification.topic_gate import private_words
from runnables.conversation.subject import (
    API_STEMS,
    IGNORED_STEMS,
    LANGUAGE,
    MAX_CLAUSE_CHARS,
    MAX_SUBJECT_WORDS,
    PREDICATES,
    Word,
    insert_subject,
    split_aspect,
    without_openers,
    words_with_positions,
)
from runnables.question.topic_scorer import is_uncommon_word
from runnables.retrieval.named_operations import ACTION_VERBS
from schemas.question import Turn

REFERENCE = re.compile(
    r"(?:[这那][个些种]|该|此|上述)(?:接口|错误码?|报错|异常|失败|问题|参数|字段)"
    r"|第[一二三四五六七八九十\d]+[个种步条]|最后一[个种步条]|[前后]者|[上另]一[个种步条]"
    r"|\b(?:the )?(?:former|latter|(?:first|second|third|last|next|other|previous)(?: ones?)?)\b"
    r"|\b(?:this|that|these|those) [a-z]+|\b[a-z]+n['’]t\b",
    re.I,
)
"""Words that name no new subject: "that endpoint", "the second one", or a negation such as "isn't"."""

END_MARKS = "？?。.!！ "

_ELLIPSIS_END = re.compile(r"\s?(?:的?呢|也[^，,。]{0,6}吗|,? (?:too|as well|instead))$", re.I)
"""Words such as 呢 and "too" at the end of a follow-up that only names something."""

_BEFORE_ACTION = re.compile(r"\b(?:i|we|you|to)\s+(?:an?\s+|the\s+)?$", re.I)
"""The end of the text before an action, such as "I" in "how do I create a booking"."""

_ASKED_ACTION = re.compile(
    r"\bhow\s+(?:(?:do|can|could|should|would)\s+(?:i|we|you)|to)\s+(?P<verb>[a-z]+)(?=\s+[^\s?])",
    re.I,
)
"""The verb in a question such as "how do I clone a key"."""

_PREPOSITION = re.compile(
    r"^(?:对于?|关于|换成|(?:如果|要是)是)\s*"
    r"|^(?:(?:for|with|about|the|an?|(?:in|on)(?= (?:the )?\S*(?-i:[A-Z0-9])))\b\s*)+",
    re.I,
)
"""Prepositions and articles before the name in a follow-up.

"In" and "on" match only before a word with a capital letter or a digit, as in "on iOS".
"""

_MEANS = frozenset(["用", "使用", "通过"])
"""Chinese words for "with" and "by means of".

A phrase that begins with one of them, such as 用模板 ("with a template"), replaces no words of a question.
"""

_PHRASE_START = re.compile(r"^(in|on|at|for|with|from|via|using|by)\s+", re.I)

_ARTICLE_START = re.compile(r"^(?:an?|the)\s+", re.I)

_AUXILIARY_END = re.compile(
    r"\b(?:is|are|was|do|does|did|can|could|should|may|must|will)\s+$", re.I
)

_DEFINITION = re.compile(
    r"what(?:['’]?s| is| are)\s+(?:an?\s+)?(?!the\b)(.+?)[?\s]*$"
    r"|what does\s+(?:(?:.*\s)?(?:status|state|code|error|event|type)\s+(?=\S+\s+mean))?(.+?)\s+mean[?\s]*$"
    r"|(.+?)是(?:什么|啥)(?:意思|含义)?[?？\s]*$",
    re.I,
)
"""A question that asks only what something is or means."""

_CONDITION = re.compile(r"(?:^|[：，,])(?:(?:如果|要是|若)?是?)([^\s：，,]{1,10})的话")
"""A condition, such as 退货 ("to return goods") in 退货的话要传什么."""

_POSSESSIVE_END = re.compile(r"的呢$")

_ENVIRONMENT = re.compile(r"^(?:in|on) |(?:[端版]|环境|平台)$", re.I)
"""Matches a phrase that names an environment, such as "on iOS" or 测试环境 ("test environment")."""

_INDEFINITE_ARTICLE = re.compile(r"\ban?\s+$", re.I)

NOT_ONLY_A_NAME = re.compile(
    r"怎|什么|[吗啥咋哪几谁我你的了是]|如何|为何|多少|多久|是否|[，,;；]"
    r"|\b(?:how|what|which|when|where|why|who|is|are|was|do|does|did|can|could|should|may|must|will|if"
    r"|i|we|you|me|my|of|for|in|on|at|to|from|with|about|without|one|ones|that|there)\b",
    re.I,
)
"""A word or punctuation mark which shows that a text does more than name something."""

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

_PROPER_NAME = re.compile(r"\b[A-Z][a-z]+\b(?: [A-Z]\w*)*")
"""One or more capitalised words. Such a name can replace another one with as many words."""

NAME = re.compile("|".join(form.pattern for form in _NAME_FORMS[: len(_IDENTIFIER_FORMS)]))
"""A name that is not only a number or an acronym."""


def repeat_about(text: str, history: Sequence[Turn], names_subject: bool) -> str:
    """Return the latest question, asked about what `text` names.

    The result is empty if `text` does more than name something, or if nothing shows that it is a follow-up.
    An opener such as "and" shows this, and so does an ending such as "too". Neither is necessary for a
    phrase with a preposition that the question also contains ("in Python?"), or for a verb ("delete?").

    The named thing replaces a similar name, similar words or the API's name in the question. If the
    question contains none of these, the named thing is appended, as in "how do I create an order: iOS?". If
    `text` is only a verb in `ACTION_VERBS`, as in "and delete?", it replaces the verb after "how do I".
    With a possessive, as in 优惠券的呢 ("and that of coupons?"), it replaces the subject that
    `make_standalone` has inserted into the question.

    If `text` is clear without the conversation (`names_subject`), or names a part of an API, such as "the
    parameters", it can only replace a similar name or similar words. Without these, the result is empty.
    """
    base, aspect = split_aspect(history)
    # The latest question may itself be a repetition, such as "create an order: iOS?".
    is_repeated = is_name(_without_preposition(strip_ending(aspect)))
    question = base if is_repeated else history[-1].question
    rest = without_openers(text)
    if max(len(question), len(rest)) > MAX_CLAUSE_CHARS:
        return ""
    about, words = strip_ending(rest), words_with_positions(question)
    if span := _similar_phrase(question, words, about):
        return _replace(question, span, about.split(maxsplit=1)[1])
    action = _ASKED_ACTION.search(question) if about.lower() in ACTION_VERBS else None
    if action:
        return _replace(question, action.span("verb"), about)
    is_elliptical = rest != text or about != rest.rstrip(END_MARKS)
    if not is_elliptical or not is_name(new_name := _PREPOSITION.sub("", about)):
        return ""
    last = split_words(new_name)[-1]
    span = _similar_name(question, new_name) or _similar_words(question, words, new_name)
    if not span and (names_subject or (stem(last) in API_STEMS and may_be_noun(last))):
        return ""
    if span := span or _span_of_subject(history[-1], question, about, new_name):
        return _replace(question, span, new_name)
    if aspect and not is_repeated and _POSSESSIVE_END.search(rest.rstrip(END_MARKS)):
        return insert_subject(new_name, aspect)
    return insert_subject(without_openers(base).rstrip(END_MARKS), rest)


def _span_of_subject(
    latest: Turn, question: str, about: str, new_name: str
) -> tuple[int, int] | None:
    """Return the span of what `question` is about, if `new_name` can replace it.

    `about` is `new_name` with its preposition or article. The result is None if `about` is an environment
    such as "on iOS", or a means such as 用模板 ("with a template").
    """
    if _ENVIRONMENT.search(about) or split_words(about)[0] in _MEANS:
        return None
    words = words_with_positions(question)
    if not _PHRASE_START.match(about):
        span = (
            _similar_noun(question, words, about)
            or _defined_term(question)
            or _similar_condition(question, new_name)
        )
        if span:
            return span
    return _api_span(latest.api_name or "", question, words, new_name)


def strip_ending(text: str) -> str:
    """Return `text` without punctuation and words such as 呢 and "too" at its end."""
    return _ELLIPSIS_END.sub("", text.rstrip(END_MARKS))


def _without_preposition(phrase: str) -> str:
    return _ARTICLE_START.sub("", _PHRASE_START.sub("", phrase))


def _replace(question: str, span: tuple[int, int], new_name: str) -> str:
    start, end = span
    return _INDEFINITE_ARTICLE.sub("the ", question[:start]) + new_name + question[end:]


def _similar_phrase(question: str, words: Sequence[Word], about: str) -> tuple[int, int] | None:
    """Return the span of the phrase in `question` that follows the same preposition as in `about`.

    The phrase must be of the same kind (see `_kind`): "in go" is similar to "in node", but not to "in the
    sandbox" or "in v2". The span does not include the preposition.
    """
    phrase = _PHRASE_START.match(about)
    if not phrase or not is_name(_without_preposition(about)):
        return None
    for found in reversed(list(re.finditer(rf"\b{phrase[1]}\s+", question, re.I))):
        span = found.end(), _phrase_end(question, words, found.end())
        if span[0] < span[1] and _kind(question[slice(*span)]) == _kind(about):
            return span
    return None


def _kind(text: str) -> tuple[bool, bool]:
    """Return whether `text` names a programming language, and whether it contains a digit."""
    return bool(LANGUAGE.search(text)), any(map(str.isdigit, text))


def _phrase_end(question: str, words: Iterable[Word], start: int) -> int:
    """Return the end of the noun phrase at `start`: the next punctuation, preposition or verb ends it."""
    end = start
    for word in words:
        if word.start < start:
            continue
        follows_punctuation = re.search(r"[^\s\w/-]", question[end : word.start])
        is_verb = word.text in PREDICATES or word.text in ACTION_VERBS
        if follows_punctuation or is_verb or NOT_ONLY_A_NAME.fullmatch(word.text):
            break
        end = word.end
    return end


def _similar_noun(question: str, words: Sequence[Word], about: str) -> tuple[int, int] | None:
    """Return the span of the first noun after "a" or "an" in `question`.

    The span does not include the article. `about` must begin with "a" or "an", too; otherwise, the result
    is None. For example, "an admin" is similar to "a sender", but not to "the sender".
    """
    if not re.match(r"an?\s", about, re.I):
        return None
    for found in re.finditer(r"\ban?\s+", question, re.I):
        end = _phrase_end(question, words, found.end())
        # In "can a sender unpublish?", the phrase includes the verb, because it is not a known verb.
        follows_auxiliary = _AUXILIARY_END.search(question[: found.start()])
        includes_verb = follows_auxiliary and not question[end:].strip("? ")
        if found.end() < end and not includes_verb:
            return found.end(), end
    return None


def _defined_term(question: str) -> tuple[int, int] | None:
    """Return the span of the term if `question` only asks what a term means.

    Words for parts of an API, such as "limit", are not terms.
    """
    if not (asked := _DEFINITION.match(question)):
        return None
    group = asked.lastindex or 0
    words = split_words(asked[group])
    is_part = not words or stem(words[-1]) in API_STEMS
    return None if is_part or NOT_ONLY_A_NAME.search(asked[group]) else asked.span(group)


def _similar_condition(question: str, new_name: str) -> tuple[int, int] | None:
    """Return the span of the Chinese condition in `question`, if `new_name` is an action like it.

    A noun such as 沙箱 ("sandbox") is not an action, unlike 退货 ("to return goods").
    """
    if not (condition := _CONDITION.search(question)):
        return None
    last_words = [split_words(name)[-1] for name in (condition[1], new_name)]
    return None if any(map(may_be_noun, last_words)) else condition.span(1)


def _similar_name(question: str, new_name: str) -> tuple[int, int] | None:
    """Return the span of the most similar name in `question` that has the same form as `new_name`."""
    form = next((form for form in _NAME_FORMS if form.fullmatch(new_name)), None)
    if form:
        names = list(form.finditer(question))
    elif _PROPER_NAME.fullmatch(new_name):
        first = re.match(r"\w+\s", question)  # may be capitalised without being a name
        proper = _PROPER_NAME.finditer(question, first.end() if first else 0)
        names = [name for name in proper if name[0].count(" ") == new_name.count(" ")]
    else:
        names = [name for name in LANGUAGE.finditer(question) if LANGUAGE.fullmatch(new_name)]
    ratios = [
        (
            len(name[0]) == len(new_name),
            SequenceMatcher(None, name[0], new_name).ratio(),
            name.span(),
        )
        for name in names
    ]
    return max(ratios)[-1] if ratios else None


def _similar_words(question: str, words: Sequence[Word], new_name: str) -> tuple[int, int] | None:
    """Return the span of a phrase in `question` that shares its first or last word with `new_name`.

    The phrase has as many words as `new_name`: "Apple Pay" is similar to "Google Pay". A Chinese phrase of
    two characters is similar to a `new_name` of two characters with the same second character, as in 群聊
    and 单聊. A part of a hyphenated word such as "Wi-Fi" is never similar.
    """
    new_words = split_words(new_name)
    is_pair = len(new_name) == 2 and not new_name.isascii()
    for size in range(len(new_words), 0, -1):
        for part in zip(*(words[start:] for start in range(size)), strict=False):
            found = question[part[0].start : part[-1].end]
            same = part[0].text == new_words[0] or part[-1].text == new_words[-1]
            is_similar = same and size == len(new_words) > 1
            if is_pair:
                is_similar = len(found) == 2 and found[1] == new_name[1]
            around = question[part[0].start - 1 : part[0].start] + question[part[-1].end :][:1]
            if is_similar and "-" not in around and not NOT_ONLY_A_NAME.search(found):
                return part[0].start, part[-1].end
    return None


def _api_span(
    api_name: str, question: str, words: Sequence[Word], new_name: str
) -> tuple[int, int] | None:
    """Return the span of the name of an API in `question`, if `new_name` can replace it.

    The words of the name can be in any order, and need not all be there. At least two English words or two
    Chinese characters of the name are necessary. A single word of a longer Chinese name must be a noun.

    An action can only be replaced by another action. An English name after a word such as "I" or "to" is
    an action, as in "how do I cancel a booking". It can be replaced by words that begin with one of
    `ACTION_VERBS`, such as "create shipment". A Chinese name is an action if one of its words is not a
    noun. It can be replaced by at least two words, not all of them nouns, because a single word that is
    not a noun may be a place or a time, such as 海外.
    """
    name = {word.text for word in words_with_positions(api_name)}
    runs = [list(run) for known, run in groupby(words, lambda word: word.text in name) if known]
    if not runs:
        return None
    run = max(runs, key=len)
    start, end = run[0].start, run[-1].end
    named = split_words(question[start:end])
    if named[0].isascii():
        is_action = _BEFORE_ACTION.search(question[:start])
        may_replace = not is_action or split_words(new_name)[0] in ACTION_VERBS
        return (start, end) if may_replace and len(named) > 1 else None
    new_words = split_words(new_name)
    # A name that the dictionary lacks may be split into single characters. They are not an action.
    is_new_action = 1 < len(new_words) < len(new_name) and not all(map(may_be_noun, new_words))
    is_whole = len(named) > 1 or len(name) == 1
    may_replace = all(map(may_be_noun, named)) or (is_new_action and is_whole)
    return (start, end) if may_replace and end - start > 1 else None


def is_name(text: str) -> bool:
    """Return whether `text` only names something that the platform may have, and asks nothing about it.

    The result is false if `text` contains words about private life or general knowledge.
    """
    if any(form.fullmatch(text) for form in (*_NAME_FORMS, LANGUAGE)):
        return True
    words = split_words(text)
    own = {stem(word) for word in words if is_uncommon_word(word)} - IGNORED_STEMS
    if not own or len(words) > MAX_SUBJECT_WORDS or private_words(text):
        return False
    return not NOT_ONLY_A_NAME.search(text) and not REFERENCE.search(text)
