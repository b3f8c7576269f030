"""Identifiers that a question names, and the chunks that define them.
A question that asks for two things, as two questions.
What the platform's glossary adds to a question: its terms in the other language.
The vectors of questions: each is asked for once, however often a question is searched for.
"""

import asyncio
import re
from array import array
from collections.abc import Mapping, Sequence

from cachetools import LRUCache
from langchain_core.embeddings import Embeddings

from ingestion.providers import ModelRole, model_errors
from ingestion.store.schema import Vector
from ingestion.text.markdown_blocks import parse_table, plain
from ingestion.text.words import normalise, split_words, stem
from runnables.question.extract_details import error_codes, extract_details
from schemas.document import Chunk, RetrievedChunk

_IDENTIFIER = re.compile(
    r"(?<![A-Za-z0-9_./:-])(?:[A-Za-z][A-Za-z0-9]*(?:(?:\[\])?[_.-][A-Za-z0-9]+)+(?:\[\])?"
    r"|[a-z]+[0-9]*[A-Z][A-Za-z0-9]*)(?![A-Za-z0-9_/-])"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MEANING = re.compile(
    r"\bwhat(?:'s|\s+is|\s+are|\s+does)\b|\bmeaning\b|\bmeans?\b|是什么|什么意思|啥意思|含义|指什么|干什么用",
    re.IGNORECASE,
)
_ASKING = {"what", "is", "are", "does", "do", "the", "a", "an", "of", "s", "mean", "means",
           "meaning", "field", "parameter", "param", "header"}  # fmt: skip
_URL = re.compile(r"https?://\S+")
_LAST_PART = re.compile(r"[^.\[\]]+(?=(?:\[\])?$)")


def identifiers(question: str) -> list[str]:
    """What in `question` is written as an identifier, in lower case: error codes, paths, and names with
    `_`, `.`, `-` or a capital inside. One plain word is one where it is all there is, or where the
    question is what it means.
    """
    text = _URL.sub(" ", question)
    found = [
        *error_codes(text),
        *extract_details(question).paths,
        *_IDENTIFIER.findall(text),
        *_asked_word(question),
    ]
    return list(dict.fromkeys(name.lower() for name in found))


def _asked_word(question: str) -> list[str]:
    """The one word that is asked for, if it is one."""
    alone = question.strip().strip("`\"'?？")
    if _WORD.fullmatch(alone):
        return [alone]
    words = [word for word in _WORD.findall(question) if word.lower() not in _ASKING]
    return words if len(words) == 1 and _MEANING.search(question) else []


def defining_first(found: list[RetrievedChunk], names: list[str]) -> list[RetrievedChunk]:
    """`found`, with the chunks in front that define the most of `names`; else in their order."""
    if not names:
        return found
    return sorted(found, key=lambda r: -sum(defines(r.chunk, name) for name in names))


def defines(chunk: Chunk, name: str) -> bool:
    """Whether `chunk` is the place of `name`: a row of one of its tables begins with it, or it is its
    API's url or name.
    """
    if name in (chunk.api_url.lower(), chunk.api_name.lower()):
        return True
    if name not in chunk.body.lower():
        return False
    rows = parse_table(chunk.body)
    return any(name in _names(row[0]) for row in rows[1:] if row)


def _names(cell: str) -> tuple[str, str]:
    """What the first cell of a row calls its field, in full and without its parents."""
    whole = plain(cell).lower()
    last = _LAST_PART.search(whole)
    return whole, last[0] if last else whole


MOST = 3
"""Parts that a question is split into; more is a list, and no list of questions."""

_ENGLISH = re.compile(
    r"\s*(?:[,;]\s*)?\b(?:and then|and after that|and afterwards|then also|and also|as well as how|"
    r"and (?=how|what|which|where|when|do|can|is|are))\b\s*|\s*[?;]\s+(?=\w)",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"[，,、；;]?\s*(?:然后再|然后|之后再|接着再|接着|以及怎么|以及如何|并且怎么|还有怎么|，?同时怎么|另外)\s*|[？?；;]\s*(?=\S)"
)
_FIRST_THEN = re.compile(r"先(?P<first>[^，,。？?]{2,30}?)[，,]?再(?P<then>[^。？?]{2,40})")
_ASKS = re.compile(
    r"怎么|如何|怎样|什么|哪|吗|多少|几|能不能|能否|可以|是否|为何|为什么|"
    r"\b(?:how|what|which|where|when|why|who|can|could|do|does|is|are|should|may)\b",
    re.IGNORECASE,
)
_SHORTEST = 4
"""Bytes below which a part says nothing by itself: two Chinese characters are more, "it" is less."""


def split_question(question: str) -> list[str]:
    """The questions that `question` consists of; itself alone, where it is one.

    Only what is asked in sequence is split ("and then", 先…再…, one question mark after another): an
    "and" between two nouns is one question.
    """
    if match := _FIRST_THEN.search(question):
        tail = question[match.end() :].strip(" ，,？?。")
        head = question[: match.start()]
        found = [f"{head}{match['first']}".strip(), f"{match['then']} {tail}".strip()]
    else:
        pattern = _CHINESE if re.search(r"[\u4e00-\u9fff]", question) else _ENGLISH
        found = [part.strip(" ，,。.?？") for part in pattern.split(question)]
    found = [part for part in found if len(part.encode()) >= _SHORTEST]
    return found if 1 < len(found) <= MOST and _are_questions(question, found) else [question]


def _are_questions(question: str, found: list[str]) -> bool:
    """Whether what stands on both sides of a question mark asks something; "please explain" does not."""
    inner = question.strip().rstrip("?？;； ")
    return not re.search(r"[?？;；]", inner) or all(_ASKS.search(part) for part in found)


class Glossary:
    """`[glossary]` of platform.toml, read in both directions."""

    def __init__(self, entries: Mapping[str, Sequence[str]]) -> None:
        groups = [(term, *others) for term, others in entries.items()]
        self._terms = [(_shape(term), tuple(group)) for group in groups for term in group]

    def widen(self, question: str) -> list[str]:
        """The terms that mean the same as one in `question`, without those that stand there."""
        lowered = question.lower()
        words = _stems(question)
        found = [
            term
            for (text, stems), group in self._terms
            if (stems in words if stems else text in lowered)
            for term in group
            if term.lower() not in lowered
        ]
        return list(dict.fromkeys(found))


def _shape(term: str) -> tuple[str, str]:
    """A term as it is looked for: a Latin one by the stems of its words, a Chinese one as it stands."""
    latin = re.fullmatch(r"[\x00-\x7f]+", term)
    return term.lower(), _stems(term) if latin else ""


def _stems(text: str) -> str:
    return f" {' '.join(map(stem, split_words(normalise(text))))} "


SECONDS = 10
"""How long a question's vector is waited for; then full text alone answers."""

REMEMBERED = 256
"""Questions whose vectors are kept: a megabyte where they have 1,024 numbers."""


class QueryEmbeddings:
    """What an embedding model gives for questions."""

    def __init__(self, embeddings: Embeddings, role: ModelRole) -> None:
        self._embeddings = embeddings
        self._role = role
        self._known: LRUCache[str, array[float]] = LRUCache(REMEMBERED)

    async def of(self, query: str) -> Vector:
        """The vector of `query`. Raises ModelError."""
        if query not in self._known:
            with model_errors(self._role):
                async with asyncio.timeout(SECONDS):
                    found = await self._embeddings.aembed_query(query)
            self._known[query] = array("f", found)
        return self._known[query].tolist()

    def blocking(self, query: str) -> Vector:
        """As `of`, for LangChain's own way of calling a retriever; it waits as long as it takes."""
        return self._embeddings.embed_query(query)
