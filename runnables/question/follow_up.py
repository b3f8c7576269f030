"""Recognises small talk, and rewrites a follow-up as a standalone question, without a model.

Small talk is thanks, greetings and the like, in Chinese and English.

A follow-up such as "which parameters are required" omits its subject, which is then taken from the
conversation. A text with new content words has a subject of its own, and stays unchanged, so that an
off-topic question does not inherit the topic of the conversation. A few new words are allowed in a text
such as "can I schedule it for midnight" (see `MAX_NEW_WORDS`).

A follow-up such as "and for create shipment?" names only a subject: it repeats the latest question about
another API. "Still doesn't work" is about the problem of the conversation.
"""

import re
from collections.abc import Iterable, Sequence

from ingestion.text.language import COMMON_ZIPF, detect_language, zipf_frequency
from ingestion.text.words import (
    may_be_noun,
    read_word_lists,
    split_words,
    stem,
    vocabulary_words,
)
from runnables.question.extract_details import error_codes, extract_details, single_letter_terms
from runnables.question.topic_gate import private_words
from runnables.question.topic_scorer import DEVELOPER_WORDS
from schemas.question import ExtractedDetails, Turn

MAX_ELLIPTICAL_WORDS = 7
"""Maximum number of words in a follow-up that contains no word such as "it", "and" or "too"."""

MAX_CHINESE_ELLIPTICAL_WORDS = 14
"""`MAX_ELLIPTICAL_WORDS` for Chinese, which has more and shorter words."""

MAX_TEXT_CHARS = 4_000
"""Maximum length of a follow-up that omits its subject, in characters, including pasted details."""

MAX_NEW_WORDS = 2
"""Maximum number of new content words in a follow-up such as "can I cancel it".

A word is new if it has not occurred in the conversation. "Can I schedule it for midnight" has two new
words. Follow-ups of another form must have none.
"""

MAX_CLAUSE_CHARS = 200
"""Maximum length of the clause that contains the subject of an earlier question, in characters.

Longer clauses are truncated.
"""

MAX_SUBJECT_WORDS = 10
"""Maximum number of words in a subject taken from an earlier question."""

MAX_CHINESE_SUBJECT_WORDS = 12
"""`MAX_SUBJECT_WORDS` for Chinese."""

_OPENER = re.compile(
    r"(?:那么|那|然后|还有|另外|再问(?:下|一下)|顺便问(?:下|一下)|请问|对了)(?!个|些|样|里|边|种)"
    r"[\s，,、：:]*"
    r"|(?:谢谢|多谢|好的)(?:你|您|啦|了)*[\s，,]*"
    r"|(?:ok|okay|thanks|thx)(?![A-Za-z])[\s,]*"
    r"|(?:and|but|then|also|so|or|well|now|what about|how about)\b[\s,]*",
    re.I,
)
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
_STATE = re.compile(r"了\s*$")
"""The end of a clause that describes what has happened, such as 过期了 ("has expired")."""

_NAME = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]+|\b[a-z]+[A-Z][A-Za-z0-9]*")
_QUESTION_FRAME = re.compile(
    r"^(?:请问|我?想(?:要|把|知道)?|我们|怎么样?|如何|怎样|能不能|可以|有没有|什么是|(?=把))+"
    r"|(?:接口)?(?:应该|需要|到底|都|是|要|该|可以|能)*"
    r"(?:怎么样?|如何|怎样|什么|哪些|哪个|哪里|哪|有哪些|多少|多久|多长|几个)[^，,。]{0,4}$|[吗呢吧啊？?\s]+$"
    r"|^(?:(?:how (?:many times|long|soon|fast|big|large|old|far)|it possible to|what happens (?:if|when)"
    r"|please|can|could|how|what|which|when|where|why|who|many|much|often|do|does|did|is|are|was|were"
    r"|may|should|will|would|i|we|you|there|any|need|want|the|a|an|to|of)\b[\s,]*)+|(?:\s+means?)?[?\s]*$",
    re.I,
)
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
_SUBJECT_PRONOUN = re.compile(r"它|这个|\b(?:it|they|them|this|these|those)\b", re.I)

_WORDS = read_word_lists(__file__, "follow_up")
_PREDICATES = _WORDS["predicate"]
_STEMS = {name: frozenset(map(stem, words)) for name, words in _WORDS.items()}
_API_STEMS, _FRAME_STEMS = _STEMS["api"], _STEMS["frame"]
_PROBLEM_STEMS, _ERROR_STEMS = _STEMS["problem"], _STEMS["error"]
_IGNORED_STEMS = _API_STEMS | _FRAME_STEMS
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
    has_opener = _OPENER.match(question) is not None
    subject, problem = conversation_subject(history), _conversation_problem(history)
    if problem and is_complaint(rest):
        return _insert_subject(problem, rest)
    if (has_opener or _ELLIPSIS.search(rest)) and (repeated := _repeat_about(question, history)):
        return repeated
    if not _omits_subject(rest, has_opener, subject or problem, history):
        return text
    inserted = problem if _asks_about_problem(rest) else subject
    return _insert_subject(inserted, rest) if inserted else text


def conversation_subject(history: Iterable[Turn]) -> str:
    """Return the subject of the latest turn that has a subject; empty if no turn has one."""
    subject = ""
    for turn in history:
        subject = _subject_after(turn, subject)
    return subject


def _subject_after(turn: Turn, subject: str) -> str:
    """Return the subject of `turn`; `subject` is that of the turns before it.

    The subject of a turn is its API or, if it has none, the subject of its question. If a question begins
    with the previous subject, that subject is kept.
    """
    if turn.api_name:
        return turn.api_name
    if subject and turn.question.startswith(subject):
        return subject
    own = _subject(turn.question)
    return subject if _is_state(own) else own or subject


def _is_state(clause: str) -> bool:
    """Return whether `clause` only describes what has happened to a subject, such as 过期了."""
    words = split_words(_STATE.sub("", clause))
    return _STATE.search(clause) is not None and not any(map(may_be_noun, words))


def _repeat_about(text: str, history: Sequence[Turn]) -> str:
    """Return the latest question with its API replaced by the subject that `text` names.

    The result is empty if `text` has more than a subject, or if the latest question does not name its API.
    """
    latest = history[-1] if history else None
    named = _named_part(latest.question, latest.api_name or "") if latest else ""
    other = _LEADING_PREPOSITION.sub("", _without_openers(text), count=1).rstrip("呢？?。.!！ ")
    if not latest or not named or not _is_subject(other) or _is_detail(other, named, history):
        return ""
    return latest.question.replace(named, other, 1)


def _named_part(question: str, api_name: str) -> str:
    """Return the longest part of `api_name` in `question`, as written there; empty if it is too short.

    A part of a Chinese name needs two characters, a part of another name two words.
    """
    is_chinese = _is_chinese(api_name)
    units = list(api_name) if is_chinese else api_name.split()
    joiner, lowered = ("" if is_chinese else " "), question.lower()
    for size in range(len(units), 1, -1):
        for start in range(len(units) - size + 1):
            part = joiner.join(units[start : start + size]).lower()
            if (at := lowered.find(part)) >= 0:
                return question[at : at + len(part)]
    return ""


def _is_subject(text: str) -> bool:
    """Return whether `text` can only be the name of something, and not what is asked about it.

    Words about private life and general knowledge name nothing on a platform.
    """
    words = [] if private_words(text) else split_words(text)
    limit = MAX_CHINESE_SUBJECT_WORDS if _is_chinese(text) else MAX_SUBJECT_WORDS
    patterns = (_NOT_ONLY_A_SUBJECT, _PRONOUN, _REFERENCE)
    if not words or len(words) > limit or any(pattern.search(text) for pattern in patterns):
        return False
    own = [word for word in _content_stems(text) if word not in _IGNORED_STEMS | _DEVELOPER_STEMS]
    return bool(own) and not (stem(words[-1]) in _API_STEMS and may_be_noun(words[-1]))


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
    known = {*_stems(known_text), *_IGNORED_STEMS}
    return [word for word in dict.fromkeys(_content_stems(text)) if word not in known]


def share_kept(follow_up: str, rewritten: str) -> float:
    """Return the share of the content words of `follow_up` that `rewritten` contains, 0 to 1.

    References such as "that endpoint" are left out. Without content words, the share is 1.
    """
    known = {*_stems(rewritten), *_stems(" ".join(_PRONOUN.findall(follow_up)))}
    words = content_stems(_REFERENCE.sub(" ", follow_up))
    kept = [word in known or (not word.isascii() and word in rewritten) for word in words]
    return sum(kept) / len(kept) if kept else 1.0


def content_stems(text: str) -> list[str]:
    """Return the stems of the content words of `text`, without words such as "please" and "explain"."""
    return [word for word in dict.fromkeys(_content_stems(text)) if word not in _FRAME_STEMS]


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
    words = set(_stems(rest))
    if not words or set(_stems(subject)) <= words:
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
    mentioned = {word for turn in history for word in _content_stems(turn.question)}
    limit = MAX_CHINESE_ELLIPTICAL_WORDS if _is_chinese(rest) else MAX_ELLIPTICAL_WORDS
    is_short = len(words) <= limit
    repeats = (mentioned - _IGNORED_STEMS) & words
    return is_short and prose == rest and not new and not repeats


def _names_subject(details: ExtractedDetails) -> bool:
    """Return whether a text identifies its subject by a path, trace id, error, code or term such as T+1."""
    failed = details.response is not None and details.error
    terms = error_codes(details.prose) or single_letter_terms(details.prose)
    return bool(details.paths or details.trace_id or failed or terms)


def _insert_subject(subject: str, rest: str) -> str:
    """Return `rest` preceded by `subject`. In Chinese, `subject` replaces a leading pronoun."""
    if not _is_chinese(rest):
        return f"{subject}: {rest}"
    if pronoun := _LEADING_PRONOUN.match(rest):
        return f"{subject}{rest[pronoun.end() :]}"
    aspect = rest.rstrip("呢？?。 ")
    if aspect and all(stem(word) in _API_STEMS for word in split_words(aspect)):
        return f"{subject}的{aspect}"
    return f"{subject}：{rest}"


def _strip_opener(text: str) -> str:
    """Return `text` without openers such as "and"; unchanged if at most one English word would remain."""
    rest = _without_openers(text)
    return rest if len(split_words(rest)) > 1 or _is_chinese(rest) else text


def _without_openers(text: str) -> str:
    while opener := _OPENER.match(text):
        text = text[opener.end() :]
    return text


def _subject(question: str) -> str:
    """Return the subject of `question`: its first clause with content words, without interrogatives."""
    prose = _without_openers(extract_details(question).prose[:MAX_TEXT_CHARS])
    for clause in CLAUSE_END.split(prose):
        if any(word not in _FRAME_STEMS for word in _content_stems(clause)):
            return _shorten_subject(clause.strip()[:MAX_CLAUSE_CHARS], _is_chinese(clause))
    return ""


def _asks_about_problem(rest: str) -> bool:
    """Return whether `rest` asks about an unnamed problem, as in 那怎么解决 ("how to fix it")."""
    words = set(_stems(rest))
    is_stated = bool(words & (_API_STEMS - _PROBLEM_STEMS - _ERROR_STEMS))
    return bool(words & _PROBLEM_STEMS) and not is_stated


def _conversation_problem(history: Iterable[Turn]) -> str:
    """Return what the latest question is about, with its API and error codes.

    A question that `make_standalone` has rewritten begins with the problem of an earlier turn. That problem
    is kept.
    """
    subject = problem = ""
    for turn in history:
        subject = _subject_after(turn, subject)
        if not (problem and turn.question.startswith(problem)):
            problem = _problem(turn.question, subject)
    return problem


def _problem(question: str, subject: str) -> str:
    """Return what `question` is about, with `subject` and the error codes of the question."""
    problem = _subject(question)
    if problem.lower() in subject.lower():
        problem = subject
    elif subject.lower() not in problem.lower():
        problem = f"{subject} {problem}"
    codes = [code for code in error_codes(question) if code not in problem]
    return " ".join(filter(None, [problem, *codes]))


def _shorten_subject(clause: str, is_chinese: bool) -> str:
    subject = _noun_phrase(clause)
    if _SUBJECT_PRONOUN.search(subject):
        return ""
    limit = MAX_CHINESE_SUBJECT_WORDS if is_chinese else MAX_SUBJECT_WORDS
    if len(split_words(subject)) <= limit:
        return subject
    stems = set(_content_stems(subject))
    words = [word for word in split_words(subject) if stem(word) in stems]
    return ("" if is_chinese else " ").join(words[:limit])


def _noun_phrase(clause: str) -> str:
    """Return what the question `clause` asks about, without interrogatives and without its verb.

    These are the currencies in "which currencies are supported" and the reminders in "how do reminders
    work", but "cancel a booking" in "how do I cancel a booking". A reason or a state keeps its verb.
    """
    if asked := _ASKED_NOUN.match(clause):
        rest = _cut_predicate(_strip_frame(asked["rest"].strip()))
        return next(filter(_has_own_words, (_strip_frame(asked["noun"]), rest)), asked["noun"])
    chinese = _ASKED_CHINESE_NOUN.sub("", clause, count=1)
    if chinese != clause and _has_own_words(_strip_frame(chinese)):
        clause = chinese
    subject = _strip_frame(clause)
    return _cut_predicate(subject) if _ABOUT_NOUN.match(clause) or _is_chinese(clause) else subject


def _strip_frame(clause: str) -> str:
    return _QUESTION_FRAME.sub("", _QUESTION_FRAME.sub("", clause)).strip(" ：:，,")


def _cut_predicate(clause: str) -> str:
    """Return `clause` up to its first verb; unchanged if no content word precedes a verb."""
    position = 0
    for word in split_words(clause):
        position = clause.lower().find(word, position)
        subject = clause[:position].rstrip()
        is_verb = word in _PREDICATES or (word.isascii() and word.endswith(("ed", "able", "ible")))
        if is_verb and _has_own_words(subject):
            return subject
        position += len(word)
    return clause


def _has_own_words(text: str) -> bool:
    return any(word not in _IGNORED_STEMS for word in _content_stems(text))


def _is_chinese(text: str) -> bool:
    return detect_language(text) == "zh"


def _content_stems(text: str) -> list[str]:
    """Return the stems of the words in `text` that have two or more letters and are not very common."""
    return [
        stem(word)
        for word in vocabulary_words(text)
        if len(word) > 1 and word.isalpha() and zipf_frequency(word) < COMMON_ZIPF
    ]


def _stems(text: str) -> list[str]:
    return [stem(word) for word in vocabulary_words(text)]


# --- small talk -----------------------------------------------------------------------------------

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
