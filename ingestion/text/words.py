"""Splits text into words for full-text search, in the same way for documents and questions.

Identifiers are split at `_`, `/`, `.`, `:` and `-`. An identifier such as `cancel_pick_up` is also indexed
in joined form (`cancelpickup`), so that it can be found as a whole. The parts of camelCase words are
indexed as well. English words are indexed by their stems, Chinese text by single characters and pairs of
adjacent characters. Traditional characters are indexed as simplified ones.

Milvus receives text that is already split, because its own jieba tokenizer may split the same word
differently next to other words.

`read_word_lists` reads word lists from TOML files.
"""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import Stemmer

from ingestion.text.language import COMMON_ZIPF, simplify, zipf_frequency

_IDENTIFIER = re.compile(r"[A-Za-z0-9]++(?:[_./:\-]++[A-Za-z0-9]++)+")
_CAMEL = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]*[a-z][A-Z][A-Za-z0-9]*")
_CAMEL_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONG_RUN = re.compile(r"(\w{400})(?=\w)")
_SCHEME_AND_HOST = re.compile(r"^[a-z]+:/+[^/]+/")
_VERSIONED_NAME = re.compile(
    r"(?<![A-Za-z0-9_./:-])([A-Za-z]{2,20})( ?)(\d{1,2}(?:\.\d{1,3}){0,3})(?![A-Za-z0-9_/-]|\.\w)",
    re.ASCII,
)
"""A name and a version, such as `TLS1.2` and `Node 14`."""

_KEY_SEPARATORS = re.compile(r"[\s_-]")
_LATIN_WORD = re.compile(r"[a-z]{3,}")
_PIECE = re.compile(r"[a-z0-9]+|[^\x00-\x7f]+")
_WORD = re.compile(r"[^\W_]")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
"""Runs of Chinese, Japanese and Korean characters.

They are indexed as single characters and as pairs of adjacent characters. In this module, "Chinese" means
all of these characters.
"""

_LATIN_NAME = re.compile(
    r"(?<![A-Za-z0-9_./-])(?<![A-Za-z][ ])[A-Za-z]{2,}(?![A-Za-z0-9_./-]|[ ][A-Za-z])", re.ASCII
)
"""A Latin word without another Latin word before or after it."""

_LANGUAGE_GO = re.compile(
    r"\bgo (?:sdks?|clients?|code|examples?|samples?|snippets?|librar(?:y|ies)|packages?|modules?|versions?"
    r"|apps?|services?|drivers?|bindings?|developers?)\b|\b(?:in|for|using|with) go(?=\W*\Z|[,;:?!.])",
    re.IGNORECASE,
)
"""The programming language Go, as in "the Go SDK" and "sign a token in Go"."""

WordCounts = Callable[[Iterable[str]], dict[str, int]]
"""Returns how often each given word occurs in the documents. Words that do not occur are omitted."""

COMPARISON_WORDS = frozenset(
    ["区别", "差别", "差异", "differ", "differs", "difference", "differences", "diff", "between",
     "versus"]
)  # fmt: skip
"""Words that only say that a question compares two things.

They are rare in documents, so a page with such a word in a heading would seem to answer every comparison.
"""

CONTRACTIONS = frozenset(
    ["whats", "whos", "whens", "wheres", "whys", "hows", "thats", "theres", "dont", "doesnt", "didnt",
     "cant", "couldnt", "isnt", "arent", "wasnt", "wont", "wouldnt", "shouldnt", "havent", "hasnt"]
)  # fmt: skip
"""Function words without their apostrophe, such as "whats" for "what's"."""

_INFLECTIONS = ("s", "es", "d", "ed", "ing")
"""Endings of English nouns and verbs."""

_NOUN_TAGS = ("n", "vn", "an", "l", "i", "j")
"""Prefixes of jieba's part-of-speech tags for nouns, names, idioms, abbreviations and the like."""


def normalise(text: str) -> str:
    """Return `text` in NFKC (full width becomes half width) and in simplified Chinese.

    Words are split every 400 characters.
    """
    return _LONG_RUN.sub(r"\1 ", simplify(unicodedata.normalize("NFKC", text)))


def query_words(question: str) -> list[str]:
    """Return the stemmed words of `question` without common words.

    If all words are common, all are returned. A question without words, such as an emoji, is split at
    spaces.
    """
    words, names = vocabulary_words(question), named_words(question)
    informative = [word for word in words if word in names or _is_informative(word)]
    return [stem(word) for word in informative or words] or normalise(question).split()


def named_words(question: str) -> frozenset[str]:
    """Return the words of `question`, in lower case, that are names even if they are very common words.

    These are single Latin words in a Chinese question, such as `work` in "work群", and the programming
    language Go.
    """
    names = _LATIN_NAME.findall(question) if _CJK.search(question) else []
    is_language = _LANGUAGE_GO.search(question) is not None
    return frozenset([*map(str.lower, names), *(["go"] if is_language else [])])


def vocabulary_words(text: str) -> list[str]:
    """Return the unstemmed words of `text`, identifiers in joined form, and parts of camelCase words."""
    text = normalise(text)
    return split_words(" ".join([text, *dict.fromkeys(_identifier_forms(text))]))


def with_indexed_versions(text: str, word_counts: WordCounts) -> str:
    """Return `text` with names and versions written as in the documents: `TLS 1.2` for `TLS1.2`.

    A name and its version are separated if the documents contain the name but not the joined form. They are
    joined if the documents contain the joined form but not the name. Otherwise, they stay as they are.
    """
    names = [(match[1].lower(), match[3]) for match in _VERSIONED_NAME.finditer(text)]
    if not names:  # most questions
        return text
    counts = word_counts([*(name for name, _ in names), *(_join("".join(each)) for each in names)])

    def indexed(match: re.Match[str]) -> str:
        name, space, version = match.groups()
        is_joined, is_separate = _join((name + version).lower()) in counts, name.lower() in counts
        if is_joined == is_separate or bool(space) == is_separate:
            return match[0]
        return name + version if is_joined else f"{name} {version}"

    return _VERSIONED_NAME.sub(indexed, text)


@lru_cache(maxsize=64)
def index_words(text: str) -> frozenset[str]:
    """Return the stems of `vocabulary_words(text)`, to compare texts by words.

    The full-text index contains `index_terms` instead. Results are cached because the same text is often
    compared with several others.
    """
    return frozenset(map(stem, vocabulary_words(text)))


def split_words(text: str) -> list[str]:
    """Return the words of `text` in lower case, without punctuation.

    Chinese is split with jieba's dictionary only, because words from its hidden Markov model have no
    known frequency. Latin letters and digits are split by a regular expression, which is much faster.
    """
    words: list[str] = []
    for piece in _PIECE.findall(text.lower()):
        if piece.isascii():
            words.append(piece)
        else:
            words += filter(_WORD.search, dictionary_words(piece))
    return words


@lru_cache(maxsize=10_000)
def dictionary_words(piece: str) -> tuple[str, ...]:
    """Split Chinese text into words of jieba's dictionary. Punctuation marks are returned as words.

    Uses jieba-rs, which returns the same words as jieba in a tenth of the time and half the memory.
    Results are cached because the same chunks are split for each question that retrieves them.
    """
    import rjieba

    encodable = piece.encode("utf-8", "replace").decode()  # rjieba refuses unpaired surrogates
    return tuple(rjieba.cut(encodable, False))


def words_within(word: str) -> list[str]:
    """Return the shorter dictionary words in a Chinese `word`, such as 开发 and 发票 in 开发票."""
    import rjieba

    if not _CJK.fullmatch(word):
        return []
    return [part for part in rjieba.cut_for_search(word, False) if 1 < len(part) < len(word)]


@lru_cache(maxsize=100_000)
def may_be_noun(word: str) -> bool:
    """Return whether `word` may be a noun.

    The result is false for Chinese words that jieba's dictionary does not tag as nouns, such as verbs and
    adverbs. It is true for English words, and for words that are missing from the dictionary.
    """
    import rjieba

    if word.isascii() or not rjieba.has_word(word):
        return True
    _, tag = rjieba.tag(word, False)[-1]
    return tag.startswith(_NOUN_TAGS)


@lru_cache(maxsize=100_000)
def is_noun(word: str) -> bool:
    """Return whether jieba's dictionary tags `word` only as a noun, unlike 调用, which is also a verb."""
    import rjieba

    return rjieba.has_word(word) and rjieba.tag(word, False)[-1][1].startswith("n")


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the stem of an English word (Porter2, by Snowball); other words are returned unchanged."""
    if not _LATIN_WORD.fullmatch(word):
        return word
    # A stemmer stores the word as state, so threads must not share one. Its own cache is disabled (0),
    # because each stemmer is used only once.
    return str(Stemmer.Stemmer("english", 0).stemWord(word))


@lru_cache(maxsize=10_000)
def inflected_forms(word: str) -> frozenset[str]:
    """Return the other forms of an English noun or verb, such as `refunds` for `refund`.

    The forms differ from `word` only in an ending such as -s or -ing, unlike words with the same stem such
    as `import` and `important`. Some forms are not words. The result is empty for words in other languages.
    """
    if not _LATIN_WORD.fullmatch(word):
        return frozenset()
    cut = {word, *(word.removesuffix(ending) for ending in _INFLECTIONS)}
    undoubled = {base[:-1] for base in cut - {word} if base[-1:] == base[-2:-1]}
    bases = {*cut, *undoubled, *(f"{base}e" for base in cut), re.sub("ie[sd]$", "y", word)}
    bases = {base for base in bases if stem(base) == stem(word)}
    added = {base + ending for base in bases for ending in _INFLECTIONS}
    replaced = {re.sub("y$", ending, base) for base in bases for ending in ("ies", "ied")}
    return frozenset(
        form for form in bases | added | replaced if form != word and stem(form) == stem(word)
    )


def index_terms(text: str, words: Iterable[str]) -> list[str]:
    """Return the terms of `text` in the full-text index; `words` must be `vocabulary_words(text)`.

    These are the stems of words that are not Chinese, each Chinese character, and each pair of adjacent
    characters. Pairs find a word even if the dictionary splits it differently next to other words, and
    single characters find 泄露 for the question 泄漏.
    """
    return [*_non_chinese_stems(words), *_character_terms(normalise(text))]


def query_terms(question: str, synonyms: Iterable[str] = ()) -> Sequence[str]:
    """Return the terms to search for. Common words are left out unless `question` has only common words.

    The weight of a term is the number of times it is returned. A term that only `synonyms` contain weighs
    half as much as a term of `question`. If `question` is in English, a Chinese synonym weighs three
    quarters as much, because without it, the question shares hardly any terms with a Chinese document.
    Single characters of synonyms are left out, because they occur in too many words.
    """
    terms = _informative_terms(question)
    by_synonyms = (term for synonym in synonyms for term in _informative_terms(synonym))
    added = dict.fromkeys(term for term in by_synonyms if len(term) > 1 and term not in terms)
    is_chinese = bool(_CJK.search(question))
    translations = (term for term in added if not is_chinese and _CJK.search(term))
    return (*(4 * terms), *(2 * tuple(added)), *translations) if added else terms


@lru_cache(maxsize=2_000)
def _informative_terms(question: str) -> tuple[str, ...]:
    """Return the terms of a question or a synonym; cached because many questions have the same synonyms."""
    words, names = vocabulary_words(question), named_words(question)
    informative = [word for word in words if word in names or _is_informative(word)]
    if not informative:
        return tuple(index_terms(question, words))
    runs = "".join(word if _is_informative(word) else " " for word in _chinese_words(question))
    return (*_non_chinese_stems(informative), *_character_terms(runs))


def _is_informative(word: str) -> bool:
    is_excluded = word in COMPARISON_WORDS or word in CONTRACTIONS
    return zipf_frequency(word) < COMMON_ZIPF and not is_excluded


def _non_chinese_stems(words: Iterable[str]) -> Iterator[str]:
    return (stem(word) for word in words if not _CJK.search(word))


def _character_terms(text: str) -> Iterator[str]:
    """Yield each Chinese character of `text`, and each pair of adjacent characters."""
    for run in _CJK.findall(text):
        yield from run
        yield from (first + second for first, second in pairwise(run))


def _chinese_words(text: str) -> Iterator[str]:
    """Yield the Chinese words of `text`, and a space where other text separates them."""
    for piece in _PIECE.findall(normalise(text).lower()):
        yield " "
        if not piece.isascii():
            yield from dictionary_words(piece)


def joined_word(identifier: str) -> str:
    """Return the word under which `identifier` is indexed as a whole.

    Brackets and braces separate parts. Only the last part with an ASCII letter or digit counts: `name` for
    `filter[name]`, `id` for `items[0].id`. The result is empty if there is no such part.
    """
    parts = [part for part in re.split(r"[\[\]{}]+", normalise(identifier).lower()) if _join(part)]
    return _join(_SCHEME_AND_HOST.sub("", parts[-1])) if parts else ""


def contains_name(text: str, name: str) -> bool:
    """Return whether `text` contains `name`, in the same case, but not as a part of a longer Latin name."""
    before = r"(?<![A-Za-z0-9_])" if name[:1].isascii() else ""
    after = r"(?![A-Za-z0-9_])" if name[-1:].isascii() else ""
    return re.search(f"{before}{re.escape(name)}{after}", text) is not None


def plain_key(key: str) -> str:
    """Return a JSON key in lower case and without separators: `errorcode` for `error_code`."""
    return _KEY_SEPARATORS.sub("", key).lower()


def _identifier_forms(text: str) -> Iterator[str]:
    """Yield the joined forms of the identifiers in `text`, and the parts of its camelCase words."""
    for identifier in _IDENTIFIER.findall(text):
        path = _SCHEME_AND_HOST.sub("", identifier.lower())
        yield _join(path)
        parts = re.split(r"[/.]", path)
        yield from (_join(part) for part in parts if not part.isalnum())
    for identifier in _CAMEL.findall(text):
        yield from _CAMEL_BREAK.sub(" ", identifier).lower().split()


def _join(identifier: str) -> str:
    """Return a lower-case identifier without separators: `cancelpickup` for `cancel_pick_up`."""
    return re.sub(r"[^a-z0-9]", "", identifier)


def read_word_lists(module_file: str, name: str) -> Mapping[str, frozenset[str]]:
    """Return the word lists in the file `<name>.toml`, by their keys.

    The file is next to the module at `module_file`. A list is a string of words that are separated by
    spaces. In a phrase, `_` stands for a space.
    """
    text = Path(module_file).with_name(f"{name}.toml").read_text(encoding="utf-8")
    return {
        title: frozenset(word.replace("_", " ") for word in words.split())
        for title, words in tomllib.loads(text).items()
    }
