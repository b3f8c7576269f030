"""Detects languages, estimates tokens, looks up word frequencies and replaces characters.

The word frequencies are those of wordfreq, whose dictionaries for Chinese and English take 85 MB of memory.
Here, each word list is one sorted string that is searched by bisection, and contains only the words that
are more frequent than `RAREST_ZIPF`. Both lists together take about 10 MB.
"""

import gzip
import math
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import distribution
from itertools import accumulate, takewhile

from schemas.choices import Language

COMMON_ZIPF = 5.8
"""Zipf frequency (about 1 in 1,600 words) at or above which a word does not show a question's topic."""

RAREST_ZIPF = 2.0
"""Minimum Zipf frequency, also used for unlisted words: once in ten million words."""

_HAN_RUN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+")
_LATIN_WORD = re.compile(r"[A-Za-z]+")
_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_PASTED = re.compile(
    r"""
    # A log line, with its time and often its level
    ^[ \t]*+\[?(?:\d{4}[-/]\d\d[-/]\d\d[T\x20]\d\d:\d\d|(?:ERROR|FATAL|WARN(?:ING)?|INFO|DEBUG)\b)
      [\x20-\x7e]*+$
    # The frames of a stack trace
    | ^[ \t]*+(?:at[ ]\S+\(|\.\.\.[ ]\d+[ ]more)[\x20-\x7e]*+$
    | ^[ \t]*+File[ ]"[\x20-\x7e]*+(?:\n[ \t]++(?!File[ ]")[\x20-\x7e]*+)*+$
    | Traceback[ ]\(most[ ]recent[ ]call[ ]last\):
    # The name of an error with its message, up to the end of the sentence
    | (?:Caused[ ]by:[ ]*+)?[\w.$]{0,200}(?:Error|Exception|Failure|Fault)[ ]?:
      (?:(?![.?!](?:\s|\Z))[\x20-\x7e])*+
    # The first line of an HTTP response, a line of code, and a member of a JSON object
    | ^HTTP/\d[\d.]*+[ ]\d{3}\b[\x20-\x7e]*+$
    | ^[\x20-\x7e\t]{0,500}[;{][ \t]*+$
    | "[\w.$-]{1,100}"\s{0,9}:\s{0,9}(?:"[^"\n]{0,500}"|[\w.+-]*+)
    """,
    re.MULTILINE | re.VERBOSE | re.ASCII,
)
"""Matches pasted text in a question. The comments in the pattern name its kinds.

A line of a log, stack trace, HTTP response or code does not match if it contains Chinese characters.
"""

_ENGLISH_INTERROGATIVE = re.compile(r"\b(?:how|why|what|which)\b|\?\s*\Z", re.IGNORECASE)
_ENGLISH_START = re.compile(
    r"\W*(?:how|why|what|which|when|where|who)\s"
    r"(?:is|are|was|were|do|does|did|can|could|should|would|will|has|have)\s.*[A-Za-z]",
    re.IGNORECASE | re.DOTALL,
)
"""The first words of an English question, such as "what does", and a further English word.

"How to" does not match, because Chinese words may follow it.
"""

_CODE = re.compile(
    r"`[^`\n]{1,200}`|(?<!\S)--?[A-Za-z][\w-]*"
    r"|\b[\w.-]+=\S*|\b(?:curl|wget)\b|\b(?:GET|PUT|POST|PATCH|DELETE|HEAD|OPTIONS)\b",
    re.ASCII,
)
"""Matches code spans, assignments, options and names of shell commands, and HTTP methods."""

_LATIN_TOKEN = re.compile(r"[A-Za-z0-9_$./:@#+-]+")
_PLAIN_WORD = re.compile(r"(?=.*[aeiouyAEIOUY])(?:[A-Za-z][a-z]*(?:-[a-z]+)*|[A-Z]+)")
"""Matches a word, but not an abbreviation without a vowel, such as `http` or `sms`."""

_CHINESE_INTERROGATIVE = re.compile(r"怎|什么|[吗呢啥咋哪]|如何|为何|多少|求助|求解")
_SURROGATE = re.compile("[\ud800-\udfff]")


def detect_language(text: str) -> Language:
    """Return `zh` for a text that is mainly Chinese, else `en`.

    Two Chinese characters count as one word. A Chinese word weighs as much as three Latin words, because
    technical Chinese contains many English identifiers.
    """
    han_words = _count_han(text) / 2
    latin_words = len(_LATIN_WORD.findall(text))
    return "zh" if han_words and han_words * 3 >= latin_words else "en"


def remove_pasted_text(question: str) -> str:
    """Return `question` without fenced code blocks and other text that its author pasted.

    Such text is a line of a log, stack trace, HTTP response or program, an error message after the name of
    an exception, or a member of a JSON object. In a question with "how", "why", "what", "which" or a final
    `?`, only fenced code blocks are removed.
    """
    text = _CODE_BLOCK.sub(" ", question)
    return text if _ENGLISH_INTERROGATIVE.search(text) else _PASTED.sub(" ", text)


def detect_question_language(question: str) -> Language | None:
    """Return the language of the words of `question` outside of code; None if there are no such words.

    Code spans, HTTP methods, names and options of shell commands, identifiers and abbreviations such as
    `http` count as code. A question with a Chinese interrogative is Chinese, and any other question that
    begins with words such as "what does", with a further English word, is English, whatever it quotes.
    """
    prose = _LATIN_TOKEN.sub(_without_identifier, _CODE.sub(" ", question))
    if _CHINESE_INTERROGATIVE.search(prose):
        return "zh"
    if _ENGLISH_START.match(prose):
        return "en"
    return detect_language(prose) if any(map(str.isalpha, prose)) else None


def _without_identifier(token: re.Match[str]) -> str:
    """Return a Latin token if it is a plain word; a space if it may be an identifier or an abbreviation.

    Words in capitals, such as `ID`, may be identifiers unless they are very common. Words without a vowel,
    such as `http`, and words that no word list contains, such as `openid`, may be identifiers as well.
    """
    word = token[0].rstrip(".:/-")
    frequency = zipf_frequency(word.lower())
    is_word = frequency > (COMMON_ZIPF if word.isupper() and len(word) > 1 else RAREST_ZIPF)
    return token[0] if _PLAIN_WORD.fullmatch(word) and is_word else " "


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of `text` without a tokenizer.

    A Chinese character counts as one token, other text as one token per four characters.
    """
    han = _count_han(text)
    return han + math.ceil((len(text) - han) / 4)


def truncate_to_tokens(text: str, tokens: int) -> str:
    """Return the longest prefix of `text` that has at most `tokens` estimated tokens."""
    text = text[: 4 * tokens]  # one token is at most four characters
    lengths = range(len(text) + 1)
    return text[
        : bisect_right(lengths, tokens, key=lambda length: estimate_tokens(text[:length])) - 1
    ]


def replace_surrogates(text: str) -> str:
    """Return `text` with U+FFFD for each unpaired surrogate, which UTF-8 cannot encode.

    Surrogates occur in truncated emoji in JSON and in invalid UTF-8 on the command line.
    """
    return _SURROGATE.sub("\ufffd", text)


def storable_text(text: str) -> str:
    """Return `text` with U+FFFD for NUL and unpaired surrogates, which PostgreSQL cannot store."""
    return replace_surrogates(text).replace("\0", "\ufffd")


def simplify(text: str) -> str:
    """Return `text` with simplified characters in place of traditional ones.

    Each character is converted by itself, with the table of wordfreq. A text is returned unchanged if all
    of its traditional characters are also used in simplified Chinese, such as 著 and 於.
    """
    if text.isascii():
        return text
    characters, traditional = _simplification()
    return text if traditional.isdisjoint(text) else text.translate(characters)


@lru_cache(maxsize=1)
def _simplification() -> tuple[Mapping[int, str], frozenset[str]]:
    """Return the simplified character of each traditional one, by code point, and a set of characters.

    The set contains the traditional characters that are not in GB 2312, the character set of simplified
    Chinese.
    """
    import msgpack

    path = distribution("wordfreq").locate_file("wordfreq/data/_chinese_mapping.msgpack.gz")
    with gzip.open(str(path)) as file:
        characters: dict[int, str] = msgpack.load(file, strict_map_key=False)
    traditional = frozenset(c for c in map(chr, characters) if not c.encode("gb2312", "ignore"))
    return characters, traditional


@lru_cache(maxsize=20_000)
def zipf_frequency(word: str) -> float:
    """Return the Zipf frequency of `word`: log10 of its uses per billion words, at least `RAREST_ZIPF`."""
    return _word_list("en" if word.isascii() else "zh").zipf_frequency(word)


def listed_words(language: Language) -> Iterator[tuple[str, float]]:
    """Yield the listed words of `language` with their Zipf frequencies, most frequent first.

    Reads wordfreq's file directly, because importing the package takes longer and loads the names of all
    languages. The file contains lists of words: list `n` has the words with a frequency of `-n` centibels,
    that is, 10 ** (-n / 100) of all words in a text.
    """
    import msgpack

    path = distribution("wordfreq").locate_file(f"wordfreq/data/large_{language}.msgpack.gz")
    with gzip.open(str(path)) as file:
        unpacker = msgpack.Unpacker(file)
        unpacker.read_array_header()
        next(unpacker)  # the name of the format
        for centibels, words in enumerate(unpacker):
            zipf = round(9 - centibels / 100, 2)
            yield from ((word, zipf) for word in words)


class _WordList(Sequence[bytes]):
    """A sorted list of words with their frequencies."""

    def __init__(self, words: Iterator[tuple[str, float]]) -> None:
        zipfs = {word.encode(): zipf for word, zipf in words}
        ordered = sorted(zipfs)
        self._text = b"".join(ordered)
        self._bounds = array("I", accumulate(map(len, ordered), initial=0))
        self._zipfs = array("d", map(zipfs.__getitem__, ordered))

    def zipf_frequency(self, word: str) -> float:
        key = word.encode(errors="surrogatepass")
        index = bisect_left(self, key)
        is_listed = index < len(self) and self[index] == key
        return self._zipfs[index] if is_listed else RAREST_ZIPF

    def __len__(self) -> int:
        return len(self._zipfs)

    def __getitem__(self, index: int) -> bytes:  # type: ignore[override]  # bisection takes no slices
        return self._text[self._bounds[index] : self._bounds[index + 1]]


@lru_cache
def _word_list(language: Language) -> _WordList:
    return _WordList(takewhile(lambda listed: listed[1] > RAREST_ZIPF, listed_words(language)))


def _count_han(text: str) -> int:
    return 0 if text.isascii() else sum(map(len, _HAN_RUN.findall(text)))
