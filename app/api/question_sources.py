"""Finds questions to suggest: frequent logged questions of an API key, and headings rewritten as questions.

Logged questions are suggested only to users of the same key. These users may not know each other. A logged
question is therefore suggested only if it is frequent, and if its text is unlikely to reveal anything about
the person who asked it.

The grammatical form of a heading determines how it is rewritten. For example, "Refresh a token" becomes
"How do I refresh a token?", and "Signing requests" becomes "How does signing requests work?".
"""

import re
import time
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from typing import Literal

from app.service.records import RecordStore
from prompts.user_text import user_text
from schemas.choices import Language
from schemas.errors import StoreUnavailable
from schemas.insights import QuestionRecord

MIN_SESSIONS = 3
"""Minimum number of sessions in which a suggested question was asked.

Rarer questions are not suggested, because they may identify a person.
"""

MAX_QUESTION_CHARS = 80
"""Maximum length of a question, in characters."""

MIN_SUGGESTED_COVERAGE = 0.8
"""Minimum `coverage` of a suggested question: the share of its words that the cited texts contain.

The cited texts rarely contain names of persons, insults or advertisements, so questions with such words are
excluded.
"""

MAX_RECORDS = 2_000
"""Maximum number of records that are read, latest first."""

CACHE_LIFETIME_S = 600
"""Seconds after which the records are read again."""

_NOT_WORDS = re.compile(r"[\W_]+")

_PRIVATE_TEXT = re.compile(
    r"""
    ://|@                                        # a URL or an e-mail address
    |/[^\s/一-鿿]*/|(?<![一-鿿])/\S*/             # a path, but not 上传/下载/删除
    |\bwww[.。]|\w[.。](?:com|net|org|edu|gov|cn|cc|ru|xyz|example)(?![\w.。-])  # the name of a host
    |\w[.。][a-z]+/                              # the name of a host before a path
    |\d{7}                                       # a number that may identify an order or a person
    |[<>‹›«»"“”„`「」『』《》]                     # a mask such as ‹phone›, or a quoted value
    |(?<!\w)['‘’]                                # a quotation mark that is not an apostrophe
    |[\ufffc\ufffd]                              # a replacement character
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Matches text that may be private. Questions with such text are not suggested to other users.

The pattern is applied to questions in the Unicode normal form NFKC.
"""

_QUOTED_WORD = re.compile("[\"'“”‘’「『《]([一-鿿]{1,6})[\"'“”‘’」』》]")
"""Matches a short Chinese word in quotation marks.

Such a word usually names a status or a button, so it is not treated as a private value.
"""

_LONG_TOKEN = re.compile(r"(?<![A-Za-z\d])(?=[A-Za-z]*\d)[A-Za-z\d]{8,}")
"""Matches a token of at least eight letters and digits, at least one of which is a digit.

It is either a value, such as an id or a key, or a term, such as HMACSHA256 (see `_is_value`).
"""

_ALGORITHM = re.compile(r"(?:SHA|AES|RSA)(?:128|192|224|256|384|512|1024|2048|4096)(?!\d)", re.I)
"""Matches the name and size of an algorithm, as in SHA256withRSA."""

_RUN = re.compile(r"\d+|[A-Za-z]+")
"""Matches a run of digits or of letters: `a1b2` has four runs."""

_VOWEL = re.compile("[aeiou]", re.IGNORECASE)

_MIN_VALUE_DIGITS = 3
"""Minimum number of digits in a value."""

_MIN_VALUE_RUNS = 3
"""A token with a vowel is a value only if it has at least this many runs.

ERR40014, with two runs, is a term. In a token without a vowel, the number of runs does not matter.
"""

_INVISIBLE_CATEGORIES = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
"""Unicode categories of invisible characters.

They are control, format, unassigned, private-use and surrogate characters, and line and paragraph
separators.
"""


class LoggedQuestions:
    """The frequent questions of each owner and language.

    An owner is an API key, or all callers if no key is required. The questions of one owner are never
    suggested to another.
    """

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._cache: dict[tuple[str, Language], tuple[float, tuple[str, ...]]] = {}

    def get(self, owner: str, language: Language) -> tuple[str, ...]:
        """Return `frequent_questions` of the owner; an empty tuple if the database does not answer.

        This method blocks: call it in a worker thread.
        """
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
    """Return the suitable questions that were asked in at least MIN_SESSIONS sessions, most sessions first.

    Wordings that differ only in case, spaces and punctuation are one question, which is returned in its
    latest wording. All records without a session count as one session, because they may come from one
    caller.

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
            sessions[key].add(record.session or "")
            wordings.setdefault(key, question)
    frequent = [key for key, session_ids in sessions.items() if len(session_ids) >= MIN_SESSIONS]
    frequent.sort(key=lambda key: -len(sessions[key]))
    return tuple(wordings[key] for key in frequent)


def _is_suitable(record: QuestionRecord, question: str, language: Language) -> bool:
    """Return whether `question` can be suggested to users who read `language`."""
    is_liked = record.feedback is None or record.feedback.score > 0
    is_answered = record.confidence in ("high", "medium") and bool(record.pages)
    is_covered = record.coverage is not None and record.coverage >= MIN_SUGGESTED_COVERAGE
    is_wanted = is_answered and is_liked and is_covered and record.language == language
    return is_wanted and len(question) <= MAX_QUESTION_CHARS and _is_public(question)


def _is_public(text: str) -> bool:
    """Return whether `text` contains no address, value, mask or invisible character."""
    text = unicodedata.normalize("NFKC", text)
    if any(unicodedata.category(char) in _INVISIBLE_CATEGORIES for char in text):
        return False
    text = _QUOTED_WORD.sub(r"\1", text)
    return not _PRIVATE_TEXT.search(text) and not any(map(_is_value, _LONG_TOKEN.findall(text)))


def _is_value(token: str) -> bool:
    """Return whether `token`, a match of `_LONG_TOKEN`, is a value and not a term.

    SHA256withRSA is a term: the digits in the name of an algorithm do not count.
    """
    digits = sum(map(str.isdigit, _ALGORITHM.sub("", token)))
    is_mixed = len(_RUN.findall(token)) >= _MIN_VALUE_RUNS
    return digits >= _MIN_VALUE_DIGITS and (is_mixed or not _VOWEL.search(token))


# --- headings -------------------------------------------------------------------------------------

_Form = Literal["question", "how", "works"]
"""The form of a heading.

- `question`: the heading is already a question
- `how`: the heading names an action, and becomes "How do I ...?"
- `works`: the heading names a process, and becomes "How does ... work?"
"""

_STEP = re.compile(
    r"(?:第[一二三四五六七八九十\d]+[步章节]|step \d+|\d+(?:\.\d+)*\.?)[：:、\s]+", re.I
)
"""Matches the number of a step or section at the start of a heading, such as `Step 2: `."""

_VERBS = (
    "add|authenticate|authorize|build|call|choose|configure|connect|convert|create|delete|deploy|disable|"
    "download|enable|encrypt|generate|get|handle|implement|install|integrate|invoke|manage|migrate|"
    "publish|receive|refresh|register|remove|retrieve|revoke|rotate|run|send|sign|start|subscribe|"
    "switch|upload|use|validate|verify"
)
"""First words of headings that name an action."""

_NOT_VERBS = (
    "about|after|all|and|as|at|before|by|for|from|how|if|in|is|not|of|on|or|see|the|to|what|when|why|"
    "with|without"
)
"""First words of headings that do not name an action although an article follows, as in "About the API"."""

_NOT_GERUNDS = "existing|following|missing|pending|remaining|string|thing|warning"
"""Words that end in `ing` but do not name a process."""

_CHINESE_VERBS = (
    "获取|取得|拉取|申请|创建|新建|注册|配置|设置|调用|接入|使用|处理|查询|刷新|计算|检查|校验|验证|"
    "排查|订阅|"
    "发送|接收|上传|下载|删除|更新|修改|添加|安装|启用|开通|绑定|对接|生成|导出|导入|升级|迁移|编写|选择|实现|部署|提交|切换"
)
"""First words of Chinese headings that name an action."""

_CHINESE_NOUNS = (
    "准备|时限|限制|说明|指南|清单|要求|列表|记录|状态|接口|参数|示例|日志|前|后|时|工具|权限|页面"
)
"""Last words of Chinese headings that begin with a verb but do not name an action, such as 配置说明."""

_PROCESSES = "流程|步骤|顺序|方式|方法|规则|算法|机制|过程"
"""Last words of Chinese headings that name a process."""

_FORMS: dict[Language, tuple[tuple[_Form, re.Pattern[str]], ...]] = {
    "en": (
        (
            "question",
            re.compile(
                r"((?:(?:what|why|when|where|which|who|how) )?(?:can|do|does|is|are|should|will) .+?)\??",
                re.I,
            ),
        ),
        ("how", re.compile(r"how to (.+)", re.I)),
        ("works", re.compile(rf"((?!(?:{_NOT_GERUNDS})\b)\w{{3,}}ing\b.*)", re.I)),
        (
            "how",
            re.compile(
                rf"((?:{_VERBS}) .+|(?!(?:{_NOT_VERBS})\b)[a-z]+ (?:up |out )?(?:an?|the|your) .+)",
                re.I,
            ),
        ),
    ),
    "zh": (
        (
            "question",
            re.compile(r"(.*(?:如何|怎么|怎样|为什么|是否|能否|什么是).+?|.+[吗呢])[？?]?"),
        ),
        ("works", re.compile(rf"(.+(?:{_PROCESSES}))")),
        ("how", re.compile(rf"((?:{_CHINESE_VERBS})(?!.*的)(?!.*(?:{_CHINESE_NOUNS})$).+)")),
    ),
}
"""The forms and their patterns, by language. The first pattern that matches a heading determines its form.

In a language without an entry, headings are not rewritten.
"""

_LINKS = re.compile(
    r"see also|related|next steps?|further|references?\b|相关|下一步|参考|另见", re.I
)
"""Matches the start of a heading above a list of links."""

_CAPITALISED = re.compile(r"\b[A-Z][a-z]*\b(?![A-Z])")
"""Matches a capitalised word such as `Token`, but not `API` or `OAuth`."""

_LOWER_CASE = re.compile(rf"\b(?!(?:{_NOT_VERBS}|an?|into|out|up|via|your)\b)[a-z]+\b")
"""Matches a lower-case word that would be capitalised in a heading in title case."""


_ABOUT = re.compile(
    r"\A(?:about(?:[\s:：/]+|\Z)(?:us\Z)?|关于[\s:：/]*(?:我们\Z)?|see\s+(?=(?:an?|the|your)\b))",
    re.I,
)
"""Matches the first word of a title such as "About the API" or "See the changelog", and "About us"."""


def as_question(heading: str, language: Language) -> str | None:
    """Return a question in `language` that the section below `heading` answers.

    Returns None if the heading cannot be rewritten, for example because it is a plain noun or in another
    language.
    """
    heading = _STEP.sub("", heading.strip(" .。:："), count=1)
    for form, pattern in _FORMS.get(language, ()):
        if match := pattern.fullmatch(heading):
            name = match[1] if form == "question" else _as_words(match[1], language)
            return user_text(language).suggestions[form].format(name=name)
    return None


def is_subject(heading: str) -> bool:
    """Return whether `heading` names a subject: it is not empty and does not introduce a list of links."""
    return bool(heading) and not _LINKS.match(heading)


def about(title: str, language: Language) -> str | None:
    """Return a question about the page or section called `title`; None for "About" and "About us"."""
    if question := as_question(title, language):
        return question
    name = _ABOUT.sub("", _as_words(title, language))
    return user_text(language).suggestions["about"].format(name=name) if name else None


def _as_words(heading: str, language: Language) -> str:
    """Return `heading` as part of a sentence, without the capitals of an English heading.

    If the heading is not in title case, only its first word loses its capital, because other capitalised
    words are names: "Install the Python client" becomes "install the Python client".
    """
    # Other languages may capitalise nouns within a sentence, so their headings are not changed.
    if not heading.isascii() or language not in _FORMS:
        return heading
    if _LOWER_CASE.search(heading):
        return _CAPITALISED.sub(lambda word: word[0] if word.start() else word[0].lower(), heading)
    return _CAPITALISED.sub(lambda word: word[0].lower(), heading)
