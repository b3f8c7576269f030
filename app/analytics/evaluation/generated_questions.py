"""Generates evaluation questions from the documents, deterministically.

Scores on generated questions are optimistic, because such questions share more words with the documents
than users' questions do. Scores on questions generated from titles are the most optimistic. Scores on
questions generated from the texts of links are less optimistic: a link text is written by the author of the
page with the link, not by the author of the document that answers the question.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest
from typing import NamedTuple, get_args

from app.analytics.evaluation.dataset import (
    DocumentIndex,
    EvaluationQuestion,
    GeneratedFrom,
    qualified_id,
    shuffle_key,
)
from ingestion.text.markdown_blocks import parse_blocks, parse_table, plain_text
from ingestion.text.sentences import first_sentence
from ingestion.text.words import split_words
from runnables.question.error_codes import error_codes
from schemas.document import Chunk

KINDS: tuple[GeneratedFrom, ...] = get_args(GeneratedFrom)

MAX_QUESTIONS = 200
"""Maximum number of generated questions."""

MAX_QUESTION_CHARS = 160
"""Maximum length of a generated question, in characters; longer texts are truncated."""

MIN_SENTENCE_WORDS = 4
"""Minimum number of words in a sentence after the words of the title have been removed."""

_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{2,80})\]\(<?([^()\s>]+)")
_CODE_HEADER = re.compile(r"code|error|错误|码", re.IGNORECASE)
_GENERIC_LINK_TEXT = re.compile(
    r"here|this|link|read more|more|see|click here|这里|此处|链接|详情|点击这里"
)
_PUNCTUATION = " ,.:;-|，。：；、！？（）()*#"


class QuestionCandidate(NamedTuple):
    """A text that can be used as a question about a document."""

    kind: GeneratedFrom
    text: str
    document: str
    """The key of the document that the question is about."""
    source: str
    """The source of the document that contains the text."""


def generate_questions(
    documents: DocumentIndex, limit: int = MAX_QUESTIONS
) -> list[EvaluationQuestion]:
    """Return at most `limit // len(KINDS)` questions of each kind, such as `title` (see `GeneratedFrom`).

    The questions of a kind are taken from all sources in turn. Texts that could be about several
    documents are not used.
    """
    names = {
        qualified_id(chunks[0]): name
        for chunks in documents.sample
        if (name := documents.name_of(chunks))
    }
    candidates_by_kind: dict[GeneratedFrom, dict[str, list[QuestionCandidate]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for candidate in _unambiguous_candidates(documents):
        if candidate.document in names:
            candidates_by_kind[candidate.kind][candidate.source].append(candidate)
    chosen = (
        _round_robin(candidates_by_kind[kind].values())[: limit // len(KINDS)] for kind in KINDS
    )
    return [
        EvaluationQuestion(
            question=candidate.text,
            gold=(names[candidate.document],),
            generated_from=candidate.kind,
        )
        for candidate in chain.from_iterable(chosen)
    ]


def _unambiguous_candidates(documents: DocumentIndex) -> Iterator[QuestionCandidate]:
    """Yield one candidate for each text that is about only one document.

    Texts that differ only in case count as the same text.
    """
    by_text: dict[str, list[QuestionCandidate]] = defaultdict(list)
    for chunks in documents.sample:
        for candidate in _candidates(chunks, documents):
            by_text[candidate.text.casefold()].append(candidate)
    for same_text in by_text.values():
        if len({candidate.document for candidate in same_text}) == 1:
            yield min(same_text, key=lambda candidate: KINDS.index(candidate.kind))


def _round_robin(by_source: Iterable[list[QuestionCandidate]]) -> list[QuestionCandidate]:
    """Return the candidates in pseudo-random order, taking one from each source in turn."""
    shuffled = [
        sorted(candidates, key=lambda candidate: shuffle_key(candidate.text))
        for candidates in by_source
    ]
    turns = chain.from_iterable(zip_longest(*shuffled))
    return [candidate for candidate in turns if candidate is not None]


def _candidates(chunks: list[Chunk], documents: DocumentIndex) -> Iterator[QuestionCandidate]:
    """Yield all candidates in one document. A link text is a candidate for the linked document."""
    key, source = qualified_id(chunks[0]), chunks[0].source
    title = plain_text(chunks[0].title)
    if title:
        yield QuestionCandidate("title", title[:MAX_QUESTION_CHARS], key, source)
    if sentence := _first_sentence(chunks, title):
        yield QuestionCandidate("sentence", sentence, key, source)
    for chunk in chunks:
        for text in error_code_texts(chunk):
            yield QuestionCandidate("error_code", text, key, source)
        for text, target in _links(chunk, documents):
            if target != key:
                yield QuestionCandidate("link", text, target, source)


def _first_sentence(chunks: list[Chunk], title: str) -> str | None:
    """Return the first sentence of the first paragraph, without the words of `title`.

    Words of one character are not removed. Returns None if fewer than `MIN_SENTENCE_WORDS` words remain.
    """
    blocks = (block for chunk in chunks for block in parse_blocks(chunk.body))
    paragraph = next((plain_text(block.text) for block in blocks if block.kind == "paragraph"), "")
    sentence = first_sentence(" ".join(paragraph.split()))
    for word in split_words(title):
        if len(word) > 1:
            pattern = rf"\b{word}\b" if word.isascii() else re.escape(word)
            sentence = re.sub(pattern, " ", sentence, flags=re.IGNORECASE)
    if len(split_words(sentence)) < MIN_SENTENCE_WORDS:
        return None
    return " ".join(sentence.split())[:MAX_QUESTION_CHARS].strip(_PUNCTUATION)


def error_code_texts(chunk: Chunk) -> Iterator[str]:
    """Yield each error code with its meaning, such as "44203 price too low".

    The codes are in the first column of a table. The meaning is the first of the remaining cells
    that is neither empty nor a number.
    """
    for block in parse_blocks(chunk.body):
        rows = parse_table(block.text) if block.kind == "table" else []
        if not rows or not rows[0] or not _CODE_HEADER.search(rows[0][0]):
            continue
        for code, *cells in ([plain_text(cell) for cell in row] for row in rows[1:] if row):
            meaning = next((cell for cell in cells if not cell.isdigit() and cell), "")
            if meaning and error_codes(code) == [code]:
                yield f"{code} {meaning}"[:MAX_QUESTION_CHARS]


def _links(chunk: Chunk, documents: DocumentIndex) -> Iterator[tuple[str, str]]:
    """Yield the text and the document key of each link that leads to exactly one indexed document.

    Links with a generic text, such as "here", or a text of one character are skipped.
    """
    for text, url in _LINK.findall(chunk.body):
        text = plain_text(text).strip(_PUNCTUATION)
        targets = documents.documents_named(url) or documents.documents_named(
            _resolve_relative_link(chunk.document_id, url)
        )
        if (
            len(targets) == 1
            and len(text) > 1
            and not _GENERIC_LINK_TEXT.fullmatch(text.casefold())
        ):
            yield text, next(iter(targets))


def _resolve_relative_link(document_id: str, url: str) -> str:
    """Return the id (a path without suffix) of the document that a relative link points to.

    Returns an empty string if the link leads to another website or stays within the same document.
    """
    path = posixpath.splitext(url.partition("#")[0])[0]
    if not path or "://" in path:
        return ""
    return posixpath.normpath(posixpath.join(posixpath.dirname(document_id), path)).lstrip("/")
