"""Analysis of a question before retrieval: its parts, its identifiers, and equivalents of its terms.

`extract_identifiers` explains what an identifier is.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from ingestion.store.collection import Collection
from ingestion.text.typography import has_chinese
from ingestion.text.words import normalise, split_words, stem
from runnables.question.error_codes import error_codes, without_timestamps
from runnables.question.extract_details import command_flags, extract_details
from runnables.question.topic_scorer import DEVELOPER_WORDS, is_content_word
from schemas.choices import LANGUAGES, Language

MIN_LANGUAGE_SHARE = 0.1
"""A main language of the documents is the language of at least this share of their sections."""

MAX_COUNTED_DOCUMENTS = 1_000
"""Maximum number of documents from which the share of a language is estimated."""

MAX_QUESTION_PARTS = 3
"""Maximum number of parts of a question; more parts are an enumeration rather than questions."""

MIN_PART_BYTES = 4
"""Minimum length of a part in UTF-8 bytes; two Chinese characters have more, "it" has fewer."""

# The lookbehinds keep a search linear: a run of spaces is tried from its first space only.
_ENGLISH_SEPARATOR = re.compile(
    r"(?<!\s)\s*+(?:(?:[,;]\s*)?\b(?:and then|and after that|and afterwards|then also|and also|"
    r"as well as how|and (?=how|what|which|where|when|do|can|is|are))\b\s*|[?;]\s+(?=\w))",
    re.IGNORECASE,
)
_CHINESE_SEPARATOR = re.compile(
    r"(?:[，,、；;]|(?<!\s))\s*+(?:然后再|然后|之后再|接着再|接着|以及怎么|以及如何|并且怎么|还有怎么|，?同时怎么|另外)\s*|[？?；;]\s*(?=\S)"
)
_FIRST_THEN = re.compile(
    r"(?<![首预优])先(?P<first>[^，,。？?]{2,30}?)[，,]?再(?P<then>[^。？?]{2,40})"
)
"""Matches "first ..., then ..." in Chinese, as in 先登录再下单."""

_PRONOUN = re.compile(
    r"\b(?:it|its|that|this|them|those|these|one|instead)\b|它|这个|那个|该", re.IGNORECASE
)
"""A word in a part of a question that stands for something in an earlier part."""
_INTERROGATIVE = re.compile(
    r"怎么|如何|怎样|什么|哪|吗|多少|几|能不能|能否|可以|是否|为何|为什么|"
    r"\b(?:how|what|which|where|when|why|who)\b"
    r"|(?:^|[,:，：]\s*|\b(?:and|or|but|so|also|then)\s+)(?:can|could|do|does|is|are|should|may)\b",
    re.IGNORECASE,
)

# The lookbehind keeps a search linear: a long word is tried from its first character only.
_URL_OR_EMAIL = re.compile(r"https?://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+", re.ASCII)
_NAME = re.compile(
    r"(?<![A-Za-z0-9_./:-])(?:[A-Za-z][A-Za-z0-9]*(?:(?:\[\])?[_.-][A-Za-z0-9]+)+(?:\[\])?"
    r"|[a-z]+[0-9]*[A-Z][A-Za-z0-9]*)(?![A-Za-z0-9_/-])"
)
"""A name with `_`, `.`, `-` or an inner capital, such as `order_id`, `items[].id` and `skuId`."""

HTTP_MESSAGE = re.compile(
    r"^[ \t<>]*(?:HTTP/\d(?:\.\d)?[ \t]+\d{3}\b.*|[A-Z]+[ \t]\S+[ \t]HTTP/\d(?:\.\d)?[ \t\r]*)"
    r"(?:\n[ \t<>]*[A-Za-z][A-Za-z0-9-]*:.*)+",
    re.MULTILINE | re.ASCII,
)
"""The first line and the headers of an HTTP message, which may be the output of `curl -v`."""

_JOINED_MESSAGE = re.compile(
    r"\bHTTP/\d(?:\.\d)?\s(?:\d{3}\b|[A-Z][A-Za-z0-9-]*:\s)(?:[^\n.?!。？！]|[.?!](?=\S))*+",
    re.ASCII,
)
"""The first line and the headers of an HTTP message on one line, up to the end of a sentence."""

_HEADER_LINE = re.compile(r"(?<=\s)([A-Z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*):(?=\s)", re.ASCII)
"""A header in an HTTP message."""

_HEADER_IN_PROSE = re.compile(
    r"(?<=\w )[\"'`]?([A-Z][a-z]+)[\"'`]?\s(?:(?:request|response)\s)?headers?\b"
    r"(?!\s(?:row|block|column|line))"
)
"""A capitalised word before "header", not at the start of a sentence or in a name with `-`."""

_CAMEL_CASE = re.compile(r"(?<![\w./])[a-z]+[0-9]*[A-Z][A-Za-z0-9]*(?![\w./])", re.ASCII)
_TELEPHONE_NUMBER = re.compile(
    r"(?<![\w.-])(?:(?:\d{1,3}-)?\d{3,4}-\d{3,4}-\d{4}|0\d{2,3}-\d{7,8})(?![\w-]|\.\w)", re.ASCII
)
_ABBREVIATION = re.compile(r"[A-Za-z](?:\.[A-Za-z])+")
"""Letters with dots between them, such as `e.g` and `p.m`."""
_SHORT_CODE = re.compile(r"(?<![A-Za-z0-9_.-])(?:-\d{1,3}|\d{3})(?![A-Za-z0-9_%-]|\.\w)")
"""A number of three digits, or a negative number of one to three digits, such as `404` and `-1`."""

_HEX_CODE = re.compile(r"(?<![\w.-])-?0x[0-9a-f]{1,8}(?!\w)", re.IGNORECASE | re.ASCII)
_STATED_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_])(?:(?i:rc|rv|ret|retval|errno|code)\s?[=:：]{1,2}|(?i:reason|return|result|error|err|status|close|exit|response|sub)_?[Cc]ode\s?[=:：]{0,2}|errno)"
    r"\s?(-?\d{1,3})(?![\w%-]|\.\w)",
    re.ASCII,
)
"""A number after the name of a code, as in `rc=5` and `reasonCode 142`."""

_NEGATIVE_NUMBER = re.compile(
    r"(?<=[A-Za-z\u4e00-\u9fff] )(-\d{1,3})(?![A-Za-z0-9_%-]|\.\w|\s?[个条次天秒分时小日月年度元°])"
)
"""A negative number after a word, as in "step -3"."""

_ERROR_WORD = re.compile(
    r"错误|报错|异常|失败|返回码|状态码"
    r"|(?<![a-z])(?:err|errors?|err_?code|ret_?code|http|status|code)(?![a-z])",
    re.IGNORECASE,
)
_ASKED_CODE = re.compile(
    r"\bwhat(?:'s|\s+is|\s+does)?\s+(?:an?\s+)?-?\d{3,9}\b(?!\s+\w{3,}s\b)|\b\d{3,9}\s+means?\b"
    r"|\b(?:gets?\s+an?|(?:got|getting|gives?|returns?|returned|throws)(?:\s+an?)?)\s+[45]\d\d\b"
    r"|\b(?:gets?|got|getting|gives?|returns?|returned|throws)(?:\s+an?)?\s+-?\d{4,9}\b(?!\s+[a-z]{3,})"
    r"|\b(?:GET|POST|PUT|PATCH|DELETE|HEAD)\s+[\"'`]?(?:https?:/)?/\S+(?:\s+HTTP/[\d.]+[\"']?)?\s+[45]\d\d\b"
    r"|\b(?:retry(?:ing)?|returns?|returned|status)\s+(?:an?\s+)?[2-5]\d\d\b"
    r"(?=\W*\Z|[,;:?!.]\s|\s+(?:or|and|from|if|when|on|in|with|after|while|then|but|is|does|do)\b)"
    r"|\A\W*[45]\d\d\s+(?:when|while|after|if)\b"
    r"|\b(?:fail(?:s|ed)?|responds?|answers?)\s+with\s+(?:an?\s+)?[45]\d\d\W*\Z"
    r"|\ban?\s+[45]\d\d\b(?=\W*\Z|[,;:?!.]\s|\s+(?:from|if|when|on|after|while|then|but|does|do)\b)"
    r"|\bwhy\b.{1,30}?\b[45]\d\d\b|\A\W*(?:(?:and|what about|那)\s*)?\d{3,9}\s*呢?\W*\Z"
    r"|\A\W*(?:(?:那|请问)\s*)?\d{3,9}\s*(?:应该|该|要)?(?:怎么样?|怎样|如何|咋)(?:解决|处理|修复|排查|办|弄)\W*\Z"
    r"|\A\W*(?:怎么样?|怎样|如何|咋)(?:解决|处理|修复|排查)\s*-?\d{3,9}\W*\Z"
    r"|\A\W*(?:how\s+(?:do\s+(?:i|we)|to|can\s+(?:i|we)|should\s+(?:i|we))\s+)?(?:fix|solve|resolve|handle)"
    r"\s+(?:an?\s+|the\s+)?-?\d{3,9}\W*\Z"
    r"|(?<!\d)\d{3,9}\s*(?:是什么|是啥|什么意思|啥意思|代表|表示)"
    r"|(?:返回|报|出现|提示|遇到|重试)了?\s*(?:[45]\d\d(?!\d|\s*(?:[个条次秒分]|毫秒))"
    r"|(?:-\d{1,3}|-?\d{4,9})(?!\d|\s*[个条次人元天秒分小]))",
    re.IGNORECASE,
)
"""A question for the meaning or remedy of a code, or about a code that an API returns.

For example, "what does 40014 mean", "how do I fix 40014" and "why do I get a 409". A question for a remedy
must name nothing but the number: "how do I handle 5000 messages" does not match.
"""

_UNROUND_STATUS = r"(?:4(?:0[1-9]|1[0-7]|2[1-9]|31|51)|50[1-8])"
"""An HTTP error status, except 400 and 500, which may be quantities."""

_STATUS = r"[45]\d\d(?![A-Za-z0-9_%-]|\.\d)"
_BETWEEN = (
    r"(?:\s?[/、，和与跟及或]\s?|\s?还是\s?|,\s|(?:,\s|\s)(?:or|and|vs\.?|versus)\s)"
    r"(?:when\s|什么时候是?)?(?:an?\s)?"
)
_STATUSES = re.compile(
    rf"(?:\b([a-z]+(?<!s)s)\s(?:between\s)?)?(?<![A-Za-z0-9_.,/-])({_STATUS}(?:{_BETWEEN}{_STATUS}){{1,9}}+)"
    r"(?!\s?(?:[个条次元块天秒年页号房室米字人度]|分钟|小时|毫秒))(?:\s([a-z]+))?",
    re.IGNORECASE,
)
"""Two HTTP error statuses or more, with a word that ends with `s` before them and a word after them."""

_CLAUSE_END = r"\s*[了啊呢吗呀吧]?\s*(?:\Z|[,，。;；!！?？]|\.(?!\d))"
_LONE_STATUS = re.compile(
    rf"(?<!\d)[,，;；。]\s?{_UNROUND_STATUS}(?={_CLAUSE_END})"
    r"|(?:(?<!\d)(?<!\d\s)(?:一直|老是?|总是?|偶尔|经常|突然|直接|怎么|为什么|就|又|还是|全是|都是)"
    r"|\b(?:(?:always|just|still|suddenly)(?: (?:gives?|gets?|got))?|keeps? (?:giving|getting"
    r"|returning)|sometimes|occasionally|randomly|yields?|conflict|fail(?:s|ed|ure)?|denied|reject(?:s|ed)?|refused|unauthori[sz]ed|forbidden"
    rf"|invalid)|冲突|失败|拒绝|无效|被拒)\s?{_UNROUND_STATUS}(?={_CLAUSE_END}|\s(?:啥|怎么|为什么|原因|why))",
    re.IGNORECASE,
)
"""An HTTP error status that is a clause, or ends one after a word for a failure or how often it happens."""

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_ASKED_FIELD = re.compile(
    r"(?<![A-Za-z0-9_./-])([A-Za-z]{3,})[ `\"'”]*(?:这?个?(?:字段|参数)|是什么|是啥|什么意思|啥意思"
    r"|有哪些值|有什么值|取值|可选值|必填|必传|要不要[填传]|怎么[填传]|[填传](?![输送递感真统播])|默认"
    r"|最[多大长小短少高低]|多[少长大]|的?(?:格式|类型|长度|上限|下限|范围|单位|精度)|用什么)"
)
"""A word before a Chinese question about a field, such as `attach` in "attach 必填吗"."""

_CODE_WORD = re.compile(
    r"(?:错误码|返回码|状态码|err_?code|error[ _-]?code|\berror)[\s:：=\"'`]{1,3}"
    r"([A-Za-z][A-Za-z0-9_]{2,})",
    re.IGNORECASE,
)
"""A word after a term for an error code, such as `QuotaExceeded` in "error code: QuotaExceeded"."""

_ASKS_FOR_MEANING = re.compile(
    r"\bwhat(?:'s|\s+is|\s+are|\s+does)\b|\bmeaning\b|\bmeans?\b|是什么|什么意思|啥意思|含义|指什么|干什么用",
    re.IGNORECASE,
)
_QUESTION_WORDS = {"what", "is", "are", "does", "do", "the", "a", "an", "of", "s", "mean", "means",
                   "meaning", "field", "parameter", "param", "header", "error", "code", "errcode",
                   "enum", "value"}  # fmt: skip


_COMMON_HEADERS = frozenset(
    ["accept", "cache-control", "connection", "content-encoding", "content-length", "content-type",
     "date", "host", "keep-alive", "server", "transfer-encoding", "user-agent", "vary"]
)  # fmt: skip
"""Headers of most HTTP messages."""


class Glossary:
    """Groups of equivalent terms, such as those in the section `[glossary]` of platform.toml."""

    def __init__(self, entries: Mapping[str, Sequence[str]]) -> None:
        groups = [(term, *others) for term, others in entries.items()]
        self._terms = [(_search_forms(term), group) for group in groups for term in group]
        self._by_start: dict[str, list[int]] = {}
        """Indices of the terms by their first stem or, if they have no stems, their first character."""
        for index, ((literal, stems), _) in enumerate(self._terms):
            start = stems.split()[0] if stems else literal[:1]
            self._by_start.setdefault(start, []).append(index)

    def equivalents(self, text: str) -> list[str]:
        """Return the terms that do not occur in `text`, but are equivalent to a term that does."""
        lowered = text.lower()
        terms = [
            term for _, group in self.groups(text) for term in group if term.lower() not in lowered
        ]
        return list(dict.fromkeys(terms))

    def groups(self, text: str) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield each term in `text`, in lower case, with its group, which includes the term itself."""
        lowered, stems_of_text = text.lower(), _stems(text)
        starts = {*lowered, *stems_of_text.split()}
        possible = {i for start in starts for i in self._by_start.get(start, ())}
        for (literal, stems), group in (self._terms[i] for i in sorted(possible)):
            is_in_text = stems in stems_of_text if stems else literal in lowered
            if is_in_text:
                yield literal, group


class Lexicon:
    """Synonyms and translations of words that developers use on every platform."""

    def __init__(self, languages: frozenset[Language]) -> None:
        """Read lexicon.toml.

        `languages` are the main languages of the documents. Words in one of these languages are not
        translated.
        """
        text = Path(__file__).with_name("lexicon.toml").read_text(encoding="utf-8")
        lexicon = tomllib.loads(text)
        self._synonyms = Glossary({first: others for first, *others in lexicon["groups"]})
        is_complete = set(LANGUAGES) <= languages
        translations = () if is_complete else lexicon["translations"]
        pairs = [(_terms(chinese), _terms(english)) for chinese, english in translations]
        self._pairs = Glossary({first: (*rest, *english) for (first, *rest), english in pairs})
        self._languages = languages

    def equivalents(self, text: str) -> list[str]:
        """Return the synonyms and translations of the terms in `text`.

        Synonyms that occur in `text` are left out.
        """
        translations = (term for _, terms in self._translations(text) for term in terms)
        return list(dict.fromkeys([*self._synonyms.equivalents(text), *translations]))

    def groups(self, text: str) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield each term in `text`, in lower case, with its synonyms or translations."""
        yield from self._synonyms.groups(text)
        yield from self._translations(text)

    def _translations(self, text: str) -> Iterator[tuple[str, Sequence[str]]]:
        for term, pair in self._pairs.groups(text):
            language: Language = "en" if term.isascii() else "zh"
            if language not in self._languages:
                yield term, tuple(each for each in pair if each.isascii() != term.isascii())


def _terms(words: str) -> list[str]:
    return [word.replace("_", " ") for word in words.split()]


@cache
def general_lexicon(languages: frozenset[Language]) -> Lexicon:
    """Return the lexicon for documents whose main languages are `languages`."""
    return Lexicon(languages)


def main_languages(collection: Collection) -> frozenset[Language]:
    """Return the languages with at least `MIN_LANGUAGE_SHARE` of the sections of the documents.

    A few pages in another language, such as release notes, must not prevent translations of questions in
    that language. The share is estimated from a sample of the documents.

    This function blocks: call it in a worker thread.
    """
    languages = collection.languages()
    if len(languages) < 2:
        return languages
    catalogue = collection.catalogue()
    counts = Counter[Language]()
    for entry in catalogue[:: len(catalogue) // MAX_COUNTED_DOCUMENTS + 1]:
        counts[entry.language] += max(len(entry.outline), 1)
    least = MIN_LANGUAGE_SHARE * counts.total()
    return frozenset(language for language in languages if counts[language] >= least)


def _search_forms(term: str) -> tuple[str, str]:
    """Return `term` in lower case, and its stems. The stems are empty if the term is not in English."""
    has_words = term.isascii() and any(map(str.isalnum, term))
    return term.lower(), _stems(term) if has_words else ""


def _stems(text: str) -> str:
    return f" {' '.join(map(stem, split_words(normalise(text))))} "


def split_question(question: str) -> list[str]:
    """Return the parts of `question` that can be searched for separately, or `[question]`.

    "How do I sign a request and how do I refund an order?" has two parts. "How do I create an order and how
    do I delete it?" has one part, because "it" refers to the order.
    """
    if match := _FIRST_THEN.search(question):
        tail = question[match.end() :].strip(" ，,？?。")
        head = question[: match.start()]
        parts = [f"{head}{match['first']}".strip(), f"{match['then']} {tail}".strip()]
    else:
        separator = _CHINESE_SEPARATOR if has_chinese(question) else _ENGLISH_SEPARATOR
        parts = [part.strip(" ，,。.?？") for part in separator.split(question)]
    parts = [part for part in parts if len(part.encode()) >= MIN_PART_BYTES]
    is_split = 1 < len(parts) <= MAX_QUESTION_PARTS and _are_questions(question, parts)
    return parts if is_split and not any(map(_PRONOUN.search, parts[1:])) else [question]


def _are_questions(question: str, parts: list[str]) -> bool:
    """Return whether all parts ask something. This is assumed if no `?` or `;` is between the parts."""
    inner = question.strip().rstrip("?？;； ")
    return not re.search(r"[?？;；]", inner) or all(_INTERROGATIVE.search(part) for part in parts)


def extract_identifiers(question: str) -> list[str]:
    """Return the distinct identifiers in `question`, in lower case.

    Identifiers are error codes, paths, flags such as `--draft`, telephone numbers, names of HTTP headers,
    and names with `_`, `.`, `-` or an inner capital. Hexadecimal numbers, negative numbers after a word,
    and numbers after the name of a code are always codes. In a question about errors, other short numbers,
    such as 404 and -1, are codes as well. Numbers in dates and times are not codes. A plain word can be an
    identifier, such as `sign` in "what is sign?".
    """
    text = without_timestamps(_URL_OR_EMAIL.sub(" ", question))
    short = _SHORT_CODE.findall(text) if _is_about_errors(text) else []
    names = [
        *error_codes(text),
        *short,
        *_HEX_CODE.findall(text),
        *numeric_codes(text),
        *_TELEPHONE_NUMBER.findall(text),
        *extract_details(question).paths,
        *(name for name in _NAME.findall(text) if not _ABBREVIATION.fullmatch(name)),
        *command_flags(text),
        *header_names(question),
        *_plain_words(question),
    ]
    return list(dict.fromkeys(name.lower() for name in names))


def specific_identifiers(question: str) -> list[str]:
    """Return the identifiers in `question` that contain `_`, `.` or `/`, or start with `--` or `@`.

    Hexadecimal numbers and telephone numbers are also returned. If the question is about errors, all other
    numbers among the identifiers are returned as well.
    """
    about_errors = _is_about_errors(question)
    names = [name for name in extract_identifiers(question) if _is_specific(name, about_errors)]
    return list(dict.fromkeys([*names, *map(str.lower, _HEX_CODE.findall(question))]))


def camel_case_names(question: str) -> list[str]:
    """Return the names in `question` such as `orderId`, in lower case."""
    return [name.lower() for name in _CAMEL_CASE.findall(question)]


def header_names(question: str) -> list[str]:
    """Return the names of the HTTP headers in `question`, in lower case.

    These are the headers of a pasted message, except those of most messages such as `Content-Type`, and the
    capitalised words before "header". Words that developers use on every platform do not count.
    """
    pasted = " ".join(HTTP_MESSAGE.findall(question) or _JOINED_MESSAGE.findall(question))
    names = [name for name in _HEADER_LINE.findall(pasted) if name.lower() not in _COMMON_HEADERS]
    names += _HEADER_IN_PROSE.findall(question)
    return [name.lower() for name in names if name.lower() not in DEVELOPER_WORDS]


def names_of_fields(question: str) -> list[str]:
    """Return the plain Latin words, in lower case, that a Chinese `question` uses as names of fields.

    For example, `attach` in "attach 必填吗". Words that developers use on every platform do not count.
    """
    names = map(str.lower, _ASKED_FIELD.findall(question))
    return [name for name in names if name not in DEVELOPER_WORDS]


def asks_about_code(question: str) -> bool:
    """Return whether `question` asks about a number that is an error code or a status."""
    return any(name.lstrip("-").isdigit() for name in specific_identifiers(question))


def numeric_codes(question: str) -> list[str]:
    """Return the numbers in `question` that follow the name of a code, or are negative.

    A number after the name of a code is also returned in hexadecimal, which documents may use: `0x05` for
    `rc=5`.
    """
    stated = _STATED_NUMBER.findall(question)
    others = (hexadecimal(number) for number in stated if number.isdecimal())
    return [*stated, *others, *_NEGATIVE_NUMBER.findall(question)]


def hexadecimal(number: str) -> str:
    """Return the decimal `number` in hexadecimal, with at least two digits: `0x05` for `5`."""
    return f"0x{int(number):02x}"


def _is_about_errors(question: str) -> bool:
    patterns = (_ERROR_WORD, _ASKED_CODE, _STATED_NUMBER)
    return any(each.search(question) for each in patterns) or _has_status(question)


def _has_status(question: str) -> bool:
    """Return whether `question` has a lone HTTP error status, or several that count nothing.

    They may count what follows, as in "401 or 403 items", or number what precedes: "rooms 401 and 404".
    """
    return _LONE_STATUS.search(question) is not None or any(
        re.search(_UNROUND_STATUS, statuses)
        and not any(map(is_content_word, (plural.lower(), noun.lower())))
        for plural, statuses, noun in _STATUSES.findall(question)
    )


def _is_specific(name: str, about_errors: bool) -> bool:
    if name.lstrip("-").isdigit():
        return about_errors
    has_mark = name.startswith(("--", "@")) or any(mark in name for mark in "_./")
    return has_mark or _TELEPHONE_NUMBER.fullmatch(name) is not None


def _plain_words(question: str) -> list[str]:
    """Return the plain words that are identifiers, such as `sign` in "what is sign?".

    If the question is a single word, it may begin with `@`, as mentions and annotations do.
    """
    stripped = question.strip().strip("`\"'?？")
    if _WORD.fullmatch(stripped.removeprefix("@")):
        return [stripped]
    named = [word for word in _CODE_WORD.findall(question) if word.lower() not in _QUESTION_WORDS]
    if named or not _ASKS_FOR_MEANING.search(question):
        return named
    words = [word for word in _WORD.findall(question) if word.lower() not in _QUESTION_WORDS]
    return words if len(words) == 1 else []
