"""Finds the subject of a conversation: its API, or what an earlier question asks about.

The subject of "how do reminders work" is "reminders". The words of questions are compared by their stems.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ingestion.text.language import COMMON_ZIPF, detect_language, zipf_frequency
from ingestion.text.words import (
    is_noun,
    may_be_noun,
    read_word_lists,
    split_words,
    stem,
    vocabulary_words,
)
from runnables.conversation.small_talk import CLAUSE_END
from runnables.question.error_codes import error_codes
from runnables.question.extract_details import extract_details
from schemas.question import Turn

MAX_SUBJECT_SOURCE_CHARS = 4_000
"""Number of characters of a question in which its subject is looked for.

A question that is longer, including its pasted details, counts as complete: it does not omit its subject.
"""

MAX_CLAUSE_CHARS = 200
"""Maximum length of the clause that contains the subject of an earlier question, in characters.

Longer clauses are truncated.
"""

MAX_SUBJECT_WORDS = 12
"""Maximum number of words in a subject taken from an earlier question."""

_OPENER = re.compile(
    r"(?:那么|那|然后|还有|另外|再问(?:下|一下)|顺便问(?:下|一下)|请问|对了)(?!个|些|样|里|边|种)"
    r"[\s，,、：:]*"
    r"|(?:谢谢|多谢|好的)(?:你|您|啦|了)*[\s，,]*"
    r"|(?:ok|okay|thanks|thx)(?![A-Za-z])[\s,]*"
    r"|(?:and|but|then|also|so|or|well|now|what about|how about|(?:the )?same(?= (?:for|in|on|with)\b))\b"
    r"[\s,]*",
    re.I,
)
"""Matches words before the question itself, such as "and" or 那."""

_ARTICLE = re.compile(r"\b(?:an?|the)\s+", re.I)

_APPENDED = re.compile(r"：|: |的")
"""The separator before the text that `follow_up.make_standalone` has appended to an earlier question.

For example, the colon in "create a shipment: iOS?".
"""

_STATE = re.compile(r"了\s*$")
"""The end of a clause that describes what has happened, such as 过期了 ("has expired")."""

_QUESTION_FRAME = re.compile(
    r"^(?:请问|我?想(?:要|把|知道)?|我们|怎么样?|如何|怎样|能不能|可以|有没有|什么是|(?=把))+"
    r"|(?:接口)?(?:应该|需要|到底|都|是|要|该|可以|能)*"
    r"(?:怎么样?|如何|怎样|(?<!为)什么|哪些|哪个|哪里|哪|有哪些|多少|多久|多长|几[个次天]|干[嘛啥])[^，,。]{0,4}$|[吗呢吧啊？?\s]+$|为什么|为啥|为何"
    r"|^(?:(?:how (?:many times|long|soon|fast|big|large|old|far)|it possible to|what happens (?:if|when)"
    r"|please|can|could|how|what|which|when|where|why|who|many|much|often|do|does|did|is|are|was|were"
    r"|may|should|will|would|have|i|we|you|there|any|need|want|the|a|an|to|of)(?:n?['’]\w{1,2})?\b[\s,]*)+"
    r"|(?:\s+means?)?[?\s]*$",
    re.I,
)
"""The words around the subject of a question, such as "how do I" at the start and 怎么用 at the end."""

_AUXILIARY = r"(?:is|are|was|were|do|does|did|can|could|may|might|must|should|will|would)"

_ASKED_NOUN = re.compile(
    rf"(?:which|what|how (?:many|much))\s+(?!(?:{_AUXILIARY}|happens|times)\b)(?P<noun>.+?)"
    rf"\s+{_AUXILIARY}\b(?P<rest>.*)",
    re.I,
)
"""Matches a question such as "which currencies are supported"; `rest` follows the auxiliary."""

_ABOUT_NOUN = re.compile(
    rf"(?:(?:what|which|how|when|where)\b.*?\s)?{_AUXILIARY}\s(?!(?:i|we|you|it possible)\b)"
    rf"|which\s|what\s(?!happens|{_AUXILIARY}\b)|how (?:many|much)\s",
    re.I,
)
"""Matches the start of a question whose verb follows a noun, such as "how do reminders work"."""

_ASKED_CHINESE_NOUN = re.compile(
    r"^(?:(?:支持|提供|需要|可用|能用|有)*(?:哪些|哪几[个种]|什么|多少|几[个种])是?|谁(?:能|可以|有权)*)(?=\S{2})"
)
"""The words before the noun of a Chinese question, such as 支持哪些 in 支持哪些货币."""

_CHINESE_INTERROGATIVE = re.compile("多[久少长大]|怎|什么|哪|几")
_SUBJECT_PRONOUN = re.compile(r"它|这个|\b(?:it|they|them|this|these|those)\b", re.I)
_WORDS = read_word_lists(__file__, "subject")
PREDICATES = _WORDS["predicate"]
LANGUAGE = re.compile(rf"(?<![\w.-])(?:{'|'.join(_WORDS['language'])})(?![\w.-]*\w)", re.I | re.A)
"""The name of a programming language."""

_NOUNS = _WORDS["noun"]
_STEMS = {name: frozenset(map(stem, words)) for name, words in _WORDS.items()}

API_STEMS = _STEMS["api"]
"""Stems of words for the parts of an API and for actions on it, such as "parameter" and "cancel"."""

FRAME_STEMS = _STEMS["frame"]
"""Stems of words that only frame a question, such as "please" and "explain"."""

REMEDY_STEMS = _STEMS["remedy"]
"""Stems of words that ask for the cause or the remedy, such as "why" and "fix"."""

ERROR_STEMS = _STEMS["error"]
"""Stems of words for something that went wrong, such as "error" and "failure"."""

IGNORED_STEMS = API_STEMS | FRAME_STEMS
"""Stems of words that name no subject."""

LEADING_PRONOUN = re.compile(
    r"它们?(?!山)|[这那]个(?=接口|[的有需支能怎会要是最可]|[呢吗]?[？?。！! ]*$)|[该此这](?=接口)"
)
"""A Chinese pronoun that the subject can replace, such as 它, or 这个 in 这个接口 ("this API").

这个 before any other noun does not match.
"""

_HOW = re.compile("怎么?|如何")


class Word(NamedTuple):
    """A word in lower case, with its position."""

    text: str
    start: int
    end: int


def conversation_subject(history: Sequence[Turn]) -> str:
    """Return the subject of the latest turn that has a subject; empty if no turn has one."""
    subject = ""
    for end in range(1, len(history) + 1):
        subject = _subject_after(history[:end], subject)
    return subject


def split_aspect(history: Sequence[Turn]) -> tuple[str, str]:
    """Split the latest question into its base and the aspect that `make_standalone` has appended.

    The base is an earlier question or its subject: "how do I create a shipment: iOS?" has the base "how do
    I create a shipment" if an earlier question contains it, and the aspect "iOS?". If nothing was appended,
    the base is the whole question, and the aspect is empty.

    的 is also part of ordinary phrases. Therefore, it separates an aspect only if all words after it are in
    `API_STEMS`, as in 退款的参数 ("the parameters of refunds").
    """
    question = history[-1].question
    known = "\n".join(f"{turn.question}\n{turn.api_name or ''}" for turn in history[:-1])
    # A base of one character would occur in the earlier questions by chance.
    for separator in _APPENDED.finditer(question[:MAX_CLAUSE_CHARS], 2):
        base, aspect = question[: separator.start()], question[separator.end() :]
        may_be_appended = separator[0] != "的" or API_STEMS.issuperset(split_words(aspect))
        if base in known and may_be_appended:
            return base, aspect
    return question, ""


def _subject_after(history: Sequence[Turn], previous: str) -> str:
    """Return the subject of the latest turn; `previous` is the subject of the turns before it.

    The subject of a turn is its API or, if it has none, the subject of its question. The previous subject
    is kept if the question begins with it, has no subject, or only describes a state (see `_is_state`).
    """
    turn = history[-1]
    if turn.api_name:
        return turn.api_name
    if previous and turn.question.startswith(previous):
        return previous
    own = _subject(split_aspect(history)[0])
    return previous if _is_state(own) else own or previous


def _is_state(clause: str) -> bool:
    """Return whether `clause` only describes what has happened to a subject, such as 过期了."""
    words = split_words(_STATE.sub("", clause))
    return _STATE.search(clause) is not None and not any(map(may_be_noun, words))


def add_compared(subject: str, history: Sequence[Turn]) -> str:
    """Return `subject` with the two things that "what is the difference?" compares.

    If the two latest questions have different APIs, these are the two things, and their names replace the
    subject. Otherwise, the two things are the phrases in which the questions differ. The subject is then
    unchanged unless exactly one phrase replaces another one, and the questions share other words.

    After "how do I create a booking" and "how do I cancel a booking", the subject "cancel a booking"
    becomes "create a booking, cancel a booking". After "... in node" and "... in go", the subject "create a
    booking", which contains neither "node" nor "go", becomes "create a booking: node, go".
    """
    question, latest = history[-2].question, history[-1].question
    separator, colon = ("、", "：") if is_chinese(question) else (", ", ": ")
    apis = [turn.api_name for turn in history[-2:] if turn.api_name]
    if len(set(apis)) == 2:
        return separator.join(apis)
    words, new_words = words_with_positions(question), words_with_positions(latest)
    texts = ([word.text for word in words], [word.text for word in new_words])
    opcodes = SequenceMatcher(None, *texts).get_opcodes()
    match [change for change in opcodes if change[0] != "equal"]:
        case [("replace", start, end, new_start, new_end)] if end - start < len(words):
            replaced = question[words[start].start : words[end - 1].end]
            new = latest[new_words[new_start].start : new_words[new_end - 1].end]
            for known, other in ((new, replaced), (replaced, new)):
                name = rf"(?<![A-Za-z0-9_]){re.escape(known)}(?![A-Za-z0-9_])"
                before, *after = re.split(name, subject, maxsplit=1, flags=re.I)
                if after:
                    return f"{before}{other}{after[0]}{separator}{subject}"
            return f"{subject}{colon if subject else ''}{replaced}{separator}{new}"
    return subject


def content_stems(text: str) -> list[str]:
    """Return the stems of the content words of `text`, without words such as "please" and "explain"."""
    return [word for word in dict.fromkeys(uncommon_stems(text)) if word not in FRAME_STEMS]


def without_openers(text: str) -> str:
    """Return `text` without openers such as "and"."""
    while opener := _OPENER.match(text):
        text = text[opener.end() :]
    return text


def _subject(question: str) -> str:
    """Return the subject in the first clause of `question` with content words; empty if there is none."""
    prose = without_openers(extract_details(question).prose[:MAX_SUBJECT_SOURCE_CHARS])
    for clause in CLAUSE_END.split(prose):
        if content_stems(clause):
            return _subject_of_clause(clause.strip()[:MAX_CLAUSE_CHARS])
    return ""


def subject_with_codes(history: Sequence[Turn]) -> str:
    """Return what the latest question is about, with its API and error codes: "cancel a booking 44203".

    A question that `make_standalone` has rewritten may begin with the text that this function returned for
    an earlier turn. That text is then returned again.
    """
    subject = combined = ""
    for end, turn in enumerate(history, start=1):
        subject = _subject_after(history[:end], subject)
        if not (combined and turn.question.startswith(combined)):
            combined = _join_subjects(split_aspect(history[:end])[0], subject)
    return combined


def _join_subjects(question: str, subject: str) -> str:
    """Return `subject`, then the subject of `question` and its error codes, without repetition.

    `subject` is the subject of the conversation. Articles and case do not matter: "create a shipment" is
    the same as "Create shipment".
    """
    asked = _subject(question)
    own, known = (_ARTICLE.sub("", text).lower() for text in (asked, subject))
    if own in known:
        combined = subject
    elif known in own:
        combined = asked
    else:
        combined = f"{subject} {asked}"
    codes = [code for code in error_codes(question) if code not in combined]
    return " ".join(filter(None, [combined, *codes]))


def _subject_of_clause(clause: str) -> str:
    """Return the subject in `clause`; empty if this subject contains a pronoun.

    A subject with more than `MAX_SUBJECT_WORDS` words is reduced to at most that many uncommon words.
    """
    subject = _noun_phrase(clause)
    if _SUBJECT_PRONOUN.search(subject):
        return ""
    if len(words := split_words(subject)) <= MAX_SUBJECT_WORDS:
        return subject
    uncommon = set(uncommon_stems(subject))
    words = [word for word in words if stem(word) in uncommon][:MAX_SUBJECT_WORDS]
    return ("" if is_chinese(subject) else " ").join(words)


def _noun_phrase(clause: str) -> str:
    """Return what the question `clause` asks about.

    Interrogatives are left out, and so is the verb that follows the noun: "currencies" in "which currencies
    are supported", "reminders" in "how do reminders work", and "cancel a booking" in "how do I cancel a
    booking". The verb is kept in a question about a reason ("why does the refund fail") and in a
    description of what has happened (过期了).
    """
    if asked := _ASKED_NOUN.match(clause):
        rest = _cut_predicate(_strip_frame(asked["rest"].strip()))
        return next(filter(_has_own_words, (_strip_frame(asked["noun"]), rest)), asked["noun"])
    chinese = _ASKED_CHINESE_NOUN.sub("", clause, count=1)
    if chinese != clause and _has_own_words(_strip_frame(chinese)):
        clause = chinese
    subject = _strip_frame(clause)
    if is_chinese(clause):
        return _strip_aspect(_cut_predicate(subject))
    return _cut_predicate(subject) if _ABOUT_NOUN.match(clause) else subject


def _strip_aspect(subject: str) -> str:
    """Return the Chinese `subject` without the word for an aspect of it, or function words, at its end.

    For example, 退款 ("refund") in 退款期限 ("refund period"), because 期限 is in `API_STEMS`, and 标准版
    ("standard edition") in 标准版每天 ("every day").
    """
    for word in reversed(split_words(subject)):
        rest = subject[: subject.lower().rfind(word)].rstrip()
        is_part = word in API_STEMS and is_noun(word)
        is_function_word = word in FRAME_STEMS | PREDICATES or word[0] in "在有的每"
        if len(rest) < 2 or not (is_function_word or (is_part and _has_own_words(rest))):
            break
        subject = rest
    return subject


def _strip_frame(clause: str) -> str:
    # The second call removes words that are at the start or the end only after the first call.
    return _QUESTION_FRAME.sub("", _QUESTION_FRAME.sub("", clause)).strip(" ：:，,")


def _cut_predicate(clause: str) -> str:
    """Return `clause` up to its first verb; unchanged if no content word precedes a verb."""
    for word, start, _ in words_with_positions(clause):
        may_be_verb = word.isascii() and word.endswith(("ed", "able", "ible"))
        is_verb = word in PREDICATES or (may_be_verb and word not in _NOUNS)
        subject = clause[:start].rstrip()
        if is_verb and _has_own_words(subject) and not _CHINESE_INTERROGATIVE.search(subject):
            return subject
    return clause


def words_with_positions(text: str) -> list[Word]:
    """Return the words of `text` except articles, with their positions."""
    words, end = list[Word](), 0
    text = text.replace("İ", "I").lower()  # lower() alone would make two characters of İ
    for word in split_words(text):
        if (start := text.find(word, end)) >= 0:
            end = start + len(word)
            words.append(Word(word, start, end))
    return [word for word in words if word.text not in ("a", "an", "the")]


def _has_own_words(text: str) -> bool:
    """Return whether `text` has uncommon words that may name a subject, unlike those in `IGNORED_STEMS`."""
    return any(word not in IGNORED_STEMS for word in uncommon_stems(text))


def is_chinese(text: str) -> bool:
    """Return whether `text` is Chinese."""
    return detect_language(text) == "zh"


def uncommon_stems(text: str) -> list[str]:
    """Return the stems of the words in `text` that have two or more letters and are not very common."""
    return [
        stem(word)
        for word in vocabulary_words(text)
        if len(word) > 1 and word.isalpha() and zipf_frequency(word) < COMMON_ZIPF
    ]


def all_stems(text: str) -> list[str]:
    """Return the stems of the words in `text`."""
    return [stem(word) for word in vocabulary_words(text)]


def insert_subject(subject: str, rest: str) -> str:
    """Return `rest` preceded by `subject`. In Chinese, `subject` replaces a leading pronoun."""
    if not is_chinese(rest):
        return f"{subject}: {rest}"
    if pronoun := LEADING_PRONOUN.match(rest):
        return f"{subject}{rest[pronoun.end() :]}"
    if _HOW.match(rest):
        return f"{subject}{' ' if subject[-1:].isascii() else ''}{rest}"
    aspect = rest.rstrip("呢？?。 ")
    if aspect and all(stem(word) in API_STEMS for word in split_words(aspect)):
        return f"{subject}的{aspect}"
    return f"{subject}：{rest}"
