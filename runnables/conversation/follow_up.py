"""Rewrites a follow-up as a standalone question, without a model.

A follow-up may omit its subject. The subject is then taken from the conversation: after "how do I create a
shipment", "which parameters are required" becomes "create a shipment: which parameters are required". A
text omits its subject if its only content words are words for parts of an API, such as "parameters", or for
actions on it, such as "cancel". With a pronoun, as in "can I schedule it for midnight", a few other content
words are allowed (see `MAX_NEW_WORDS`). Any other text has a subject of its own and stays unchanged, so
that an off-topic question does not inherit the topic of the conversation.

A follow-up such as "and Apple Pay?" only names something. The latest question is then repeated about the
named thing: "how does Google Pay work" becomes "how does Apple Pay work".

A complaint such as "still doesn't work" is preceded by the problem of the conversation, as in "rotate a
secret: still doesn't work".
"""

import re
from collections.abc import Iterable, Sequence

from ingestion.text.words import COMPARISON_WORDS, may_be_noun, split_words, stem
from runnables.classification.topic_gate import private_words
from runnables.conversation.repeated_question import (
    END_MARKS,
    NAME,
    NOT_ONLY_A_NAME,
    REFERENCE,
    is_name,
    repeat_about,
    strip_ending,
)
from runnables.conversation.small_talk import is_complaint, is_small_talk, strip_small_talk
from runnables.conversation.subject import (
    API_STEMS,
    ERROR_STEMS,
    IGNORED_STEMS,
    LEADING_PRONOUN,
    MAX_SUBJECT_SOURCE_CHARS,
    REMEDY_STEMS,
    add_compared,
    all_stems,
    content_stems,
    conversation_subject,
    insert_subject,
    is_chinese,
    split_aspect,
    subject_with_codes,
    uncommon_stems,
    without_openers,
)
from runnables.question.error_codes import error_codes
from runnables.question.extract_details import extract_details, single_letter_terms
from schemas.question import ExtractedDetails, Turn

MAX_NEW_WORDS = 2
"""Maximum number of new content words in a follow-up with a pronoun, such as "can I cancel it".

A word is new if neither an earlier question nor its API's name contains it. "Can I schedule it for
midnight" has two new words.
"""

_BOTH = re.compile(r"[两二]者|[这那]两个|\bboth\b(?!.*\band\b)", re.I)
"""Matches words that refer to two earlier things, unlike "both" in "both email and SMS"."""

_PRONOUN = re.compile(
    rf"{LEADING_PRONOUN.pattern}|{_BOTH.pattern}|这样|上面|前面|刚才|\bit\b(?! possible)"
    r"|\b(?:its|this|these|those|they|them|their|(?:is|does|was|did) that)\b"
    r"|\bthat(?= (?:for|in|on|at|to|with)\b|[?!. ]*$)",
    re.I,
)
"""A pronoun that refers back, unlike "that" before a clause and "it" in "is it possible"."""

_BARE_VERB = re.compile(
    r"(?:should|must|can|may|do|shall) (?:i|we) (?:(?:need|have) to )?(?:also )?(\w+)[?!. ]*", re.I
)
"""A question that may lack the object of its verb, such as "should I reconnect?"."""

_ASKED_NOUN = re.compile(
    r"(?:which|what) \S+ (?=(?:(?:can|could|may|should|must|will) )?\S+ $)", re.I
)
"""An interrogative and its noun, such as "which role" in "which role can do that".

The pattern is applied to the text before a pronoun, which cannot refer to this noun.
"""

_CREATES = re.compile(r"^(?:创建|新建|新增|添加|(?:create|add)\b)\s*", re.I)
"""The verb at the start of the name of an API that creates something."""

_ACTS_ON_IT = re.compile(
    r"(?:怎么|如何)(?!调用|使?用)\S{1,4}它们?$|\bhow (?:do|can) (?:i|we) (?!call|use)\w+ (?:it|them)\b",
    re.I,
)
"""Matches a text such as "how do I cancel it", whose pronoun stands for something that was created."""

_TWO_THINGS = re.compile(r"\S\s*[和与跟、]|\b(?:and|or|vs)\b", re.I)
"""Matches a text that itself names the things that it compares."""

_QUOTED_CODE = re.compile(r"`([^`\s]{1,100})`")

_LATIN_NAME = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z_]\w*", re.ASCII)


def make_standalone(
    text: str, history: Sequence[Turn], details: ExtractedDetails | None = None
) -> str:
    """Return `text` as a standalone question (see the top of this module), or unchanged if it is one.

    `details` are the details of `text`, if they have been extracted already.
    """
    if len(text) > MAX_SUBJECT_SOURCE_CHARS:
        return text
    history = [turn for turn in history if not is_small_talk(turn.question)]
    question = strip_small_talk(text)
    names_subject = _names_subject(details or extract_details(text))
    if history and (repeated := repeat_about(question, history, names_subject)):
        return repeated
    if names_subject:
        return text
    rest = without_openers(question)
    subject, full_subject = conversation_subject(history), subject_with_codes(history)
    if full_subject and is_complaint(rest):
        return insert_subject(full_subject, rest)
    if not _omits_subject(rest, subject or full_subject, history):
        return text
    inserted = _fitting_subject(full_subject if _asks_for_remedy(rest) else subject, rest, history)
    return insert_subject(inserted, _latest_name(history, rest) + rest) if inserted else text


def _fitting_subject(subject: str, rest: str, history: Sequence[Turn]) -> str:
    """Return the `subject` of the conversation as the subject of `rest`.

    If `rest` compares two things, the result names both. If `rest` acts on a created thing, as in "how do I
    cancel it", the result names this thing instead of the action "create".
    """
    if len(history) > 1 and _compares(rest):
        return add_compared(subject, history)
    acts = _ACTS_ON_IT.search(rest.rstrip(END_MARKS))
    return (_CREATES.sub("", subject) if acts else "") or subject


def _latest_name(history: Sequence[Turn], rest: str) -> str:
    """Return the name that the latest follow-up has appended, if `rest` has no noun or pronoun.

    After 短信呢 ("and text messages?"), 最长多少 ("how long at most") is about 短信. The result is empty if
    there is no such name or `rest` is not Chinese.
    """
    if not is_chinese(rest) or _PRONOUN.search(rest):
        return ""
    name = strip_ending(split_aspect(history)[1])
    words = split_words(NOT_ONLY_A_NAME.sub(" ", rest))
    if not is_name(name) or any(map(may_be_noun, words)):
        return ""
    return f"{name} " if name[-1].isascii() else name


def _compares(rest: str) -> bool:
    """Return whether `rest` compares earlier things, such as "what's the difference?".

    The result is false for "what is the difference between 200 and 201", which names these things.
    """
    if _BOTH.search(rest):
        return True
    return not COMPARISON_WORDS.isdisjoint(split_words(rest)) and not _TWO_THINGS.search(rest)


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
    words = content_stems(REFERENCE.sub(" ", follow_up))
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
    """Return whether `rest`, a follow-up without openers such as "and", is unclear without `subject`."""
    words = set(all_stems(rest))
    contains_subject = set(all_stems(subject)) <= words
    is_private = private_words(rest) or "那个人" in rest
    if not words or contains_subject or is_private:
        return False
    pronoun = _PRONOUN.search(rest)
    if pronoun and not _has_antecedent(rest, pronoun.start()):
        asked = "\n".join(f"{turn.question}\n{turn.api_name or ''}" for turn in history)
        return len(new_stems(NAME.sub(" ", rest), asked)) <= MAX_NEW_WORDS
    if verb := _BARE_VERB.fullmatch(rest):
        answers = (all_stems(turn.answer) for turn in history)
        return stem(verb[1].lower()) in (REMEDY_STEMS | API_STEMS).union(*answers)
    unknown = _without_parts(rest, subject, history)
    return not (NAME.search(unknown) or new_stems(unknown, ""))


def _without_parts(rest: str, api_name: str, history: Iterable[Turn]) -> str:
    """Return `rest` without the names that the answers about the API `api_name` quote as code.

    In a conversation about this API, these names are its parts, as in "page_size 最大多少". A name without
    an underscore or capitals may be an English word, so it is only removed from a Chinese text.
    """
    codes = " ".join(
        code
        for turn in history
        if turn.api_name == api_name
        for code in _QUOTED_CODE.findall(turn.answer)
    )
    parts = set(_LATIN_NAME.findall(codes))
    form = _LATIN_NAME if is_chinese(rest) else NAME
    return form.sub(lambda name: " " if name[0] in parts else name[0], rest)


def _has_antecedent(rest: str, pronoun_start: int) -> bool:
    """Return whether `rest` contains something before its pronoun to which the pronoun may refer."""
    before = split_words(_ASKED_NOUN.sub("", rest[:pronoun_start]))[:-1]  # without the verb
    return bool(NAME.search(rest, 0, pronoun_start) or new_stems(" ".join(before), ""))


def _names_subject(details: ExtractedDetails) -> bool:
    """Return whether a text identifies its subject.

    It does if it contains a path, a trace id, a failed response, an error code or a term such as T+1.
    """
    failed = details.response is not None and details.error
    terms = error_codes(details.prose) or single_letter_terms(details.prose)
    return bool(details.paths or details.trace_id or failed or terms)


def _asks_for_remedy(rest: str) -> bool:
    """Return whether `rest` asks for the cause or the remedy, as in 那怎么解决 ("how to fix it")."""
    words = set(all_stems(rest))
    return bool(words & REMEDY_STEMS) and not words & (API_STEMS - REMEDY_STEMS - ERROR_STEMS)
