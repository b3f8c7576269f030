"""Questions made from the documents themselves, the same ones for the same documents.

They flatter: they share more words with their documents than what people ask does. Titles flatter
most; the text of a link is how another page's author calls what it links to.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest
from typing import NamedTuple, get_args

from app.analytics.evaluation.dataset import EvaluationQuestion, MadeBy
from app.analytics.evaluation.documents import DocumentIndex, document_key, order
from ingestion.text.markdown_blocks import parse_blocks, parse_table, plain
from ingestion.text.words import split_words
from runnables.question.extract_details import error_codes
from schemas.document import Chunk

MADE: tuple[MadeBy, ...] = get_args(MadeBy)

MOST = 200
"""Questions that are made at most."""

LONGEST = 160
"""Characters of a question; a longer sentence is cut there."""

FEWEST_WORDS = 4
"""Words of a sentence that are left without the title's, below which it says too little."""

_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{2,80})\]\(<?([^()\s>]+)")
_SENTENCE_END = re.compile(r"(?<=[。！？])|(?<=[.!?])(?=\s)")
_CODE_HEADER = re.compile(r"code|error|错误|码", re.IGNORECASE)
_SAYS_NOTHING = re.compile(
    r"here|this|link|read more|more|see|click here|这里|此处|链接|详情|点击这里"
)
_EDGES = " ,.:;-|，。：；、！？（）()*#"


class QuestionCandidate(NamedTuple):
    """A text that may become a question about one document."""

    made: MadeBy
    text: str
    document: str
    """Its key."""
    source: str


def make_questions(documents: DocumentIndex, most: int = MOST) -> list[EvaluationQuestion]:
    """At most `most` questions, spread evenly over what they are made of, and over sources.

    A text that stands for several documents becomes none.
    """
    named = {document_key(chunks[0]): documents.name_of(chunks) for chunks in documents.sample}
    kinds: dict[MadeBy, dict[str, list[QuestionCandidate]]] = defaultdict(lambda: defaultdict(list))
    for candidate in _of_one_document(documents):
        if named.get(candidate.document):
            kinds[candidate.made][candidate.source].append(candidate)
    chosen = (_in_turn(kinds[made].values())[: most // len(MADE)] for made in MADE)
    return [
        EvaluationQuestion(question=c.text, gold=(named[c.document] or "",), made=c.made)
        for c in chain.from_iterable(chosen)
    ]


def _of_one_document(documents: DocumentIndex) -> Iterator[QuestionCandidate]:
    """Each text that stands for one document alone, once: as what it tells most about first."""
    meant: dict[str, list[QuestionCandidate]] = defaultdict(list)
    for chunks in documents.sample:
        for candidate in _candidates(chunks, documents):
            meant[candidate.text.casefold()].append(candidate)
    for same in meant.values():
        if len({candidate.document for candidate in same}) == 1:
            yield min(same, key=lambda candidate: MADE.index(candidate.made))


def _in_turn(by_source: Iterable[list[QuestionCandidate]]) -> list[QuestionCandidate]:
    """One of each source in turn, each source's as if shuffled."""
    shuffled = [sorted(candidates, key=lambda c: order(c.text)) for candidates in by_source]
    return [c for c in chain.from_iterable(zip_longest(*shuffled)) if c is not None]


def _candidates(chunks: list[Chunk], documents: DocumentIndex) -> Iterator[QuestionCandidate]:
    """Everything that one document offers; a link is about the document that it leads to."""
    key, source = document_key(chunks[0]), chunks[0].source
    title = plain(chunks[0].title)
    if title:
        yield QuestionCandidate("title", title[:LONGEST], key, source)
    if sentence := _first_sentence(chunks, title):
        yield QuestionCandidate("sentence", sentence, key, source)
    for chunk in chunks:
        for text in error_code_rows(chunk):
            yield QuestionCandidate("error_code", text, key, source)
        for text, target in _links(chunk, documents):
            if target != key:
                yield QuestionCandidate("link", text, target, source)


def _first_sentence(chunks: list[Chunk], title: str) -> str | None:
    """The first sentence of the document's text, without the words of its title."""
    blocks = (block for chunk in chunks for block in parse_blocks(chunk.body))
    paragraph = next((plain(b.text) for b in blocks if b.kind == "paragraph"), "")
    sentence = _SENTENCE_END.split(" ".join(paragraph.split()))[0]
    for word in split_words(title):
        whole = rf"\b{word}\b" if word.isascii() else re.escape(word)
        if len(word) > 1:
            sentence = re.sub(whole, " ", sentence, flags=re.IGNORECASE)
    if len(split_words(sentence)) < FEWEST_WORDS:
        return None
    return " ".join(sentence.split())[:LONGEST].strip(_EDGES)


def error_code_rows(chunk: Chunk) -> Iterator[str]:
    """Each error code that begins a row of a table, with what the row says it means."""
    for block in parse_blocks(chunk.body):
        rows = parse_table(block.text) if block.kind == "table" else []
        if not rows or not rows[0] or not _CODE_HEADER.search(rows[0][0]):
            continue
        for code, *cells in ([plain(cell) for cell in row] for row in rows[1:] if row):
            meaning = next((cell for cell in cells if not cell.isdigit() and cell), "")
            if meaning and error_codes(code) == [code]:
                yield f"{code} {meaning}"[:LONGEST]


def _links(chunk: Chunk, documents: DocumentIndex) -> Iterator[tuple[str, str]]:
    """The text of each link to an indexed page that is not simply its title, and that page."""
    for text, url in _LINK.findall(chunk.body):
        text = plain(text).strip(_EDGES)
        targets = documents.called(url) or documents.called(_beside(chunk.document_id, url))
        if len(targets) == 1 and len(text) > 1 and not _SAYS_NOTHING.fullmatch(text.casefold()):
            yield text, next(iter(targets))


def _beside(document_id: str, url: str) -> str:
    """The document id that a relative link means: a path without its suffix."""
    path = posixpath.splitext(url.partition("#")[0])[0]
    if not path or "://" in path:
        return ""
    return posixpath.normpath(posixpath.join(posixpath.dirname(document_id), path)).lstrip("/")
