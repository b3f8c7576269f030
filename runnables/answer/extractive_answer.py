"""The step `answer` without a model, which quotes the passage that most likely answers the question."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.store.collection import Collection
from ingestion.text.markdown_blocks import parse_list_items, plain_text
from ingestion.text.words import split_words
from prompts.chat_prompts import load_quote_texts
from prompts.user_text import user_text
from runnables.answer.coefficients import PASSAGE_WEIGHTS
from runnables.answer.confidence import (
    NOT_COVERED,
    Quotes,
    answer_features,
    answer_probability,
    defines_code,
)
from runnables.answer.fixed_answers import not_covered_sentence
from runnables.answer.passages import (
    MAX_CHARS,
    RARELY_ASKED,
    Candidate,
    QuotedPassage,
    rank_passages,
)
from runnables.answer.segments import Segment, list_item, split_chunk
from runnables.answer.write_answer import NAME
from runnables.models.chat_models import EXTRACTIVE
from runnables.question.extract_details import details_of
from runnables.question.query_terms import QueryTerms
from runnables.question.question_needs import CALL_NEEDS, Need, fits, needs_of
from runnables.retrieval.query_analysis import Glossary, split_question
from runnables.run_context import named_step
from runnables.state import Draft, PipelineState, with_draft
from schemas.answer import AnswerDraft
from schemas.choices import Language
from schemas.document import Chunk, RetrievedChunk, SectionKind
from schemas.platform import PlatformInfo

MAX_CANDIDATES = 12
"""Maximum number of chunks in which passages are looked for."""

MAX_RELATED_PAGES = 3
"""Maximum number of pages that an answer names besides those it quotes."""

MIN_ADDED_SHARE = 0.2
"""Share of the question's words and identifiers that a second passage must add in a comparison."""

MAX_DISTANCE = 0.5
"""Relevance that a second passage may have less than the best one, in nats.

A passage at this distance is right 0.6 times as often, because the weights of the relevance are log-odds.
"""

MAX_DISTANCE_IN_DOCUMENT = 2.0
"""The same for a passage of the same document, which continues the best one rather than replaces it."""

QuotableSection = tuple[Chunk, Sequence[Segment]]
"""A chunk and those of its segments that may be quoted, of which there is at least one."""

QuotedStep = tuple[str, Chunk]
"""The text of a step and the chunk that it quotes."""


def build_extractive_answer(
    collection: Collection, platform_info: PlatformInfo, glossary: Glossary
) -> Runnable[PipelineState, PipelineState]:
    """Return the step `answer`, which drafts an answer from quotes."""

    async def answer(state: PipelineState, config: RunnableConfig) -> PipelineState:
        return await asyncio.to_thread(
            extractive_answer, state, collection, platform_info, glossary
        )

    return named_step(NAME, answer)


def extractive_answer(
    state: PipelineState, collection: Collection, platform_info: PlatformInfo, glossary: Glossary
) -> PipelineState:
    """Return `state` with a draft, and with the quoted chunks before all others. Blocks the event loop."""
    question, details = state["question"], details_of(state["question"])
    quotes = find_quotes(state, collection, glossary)
    probability = 0.0
    if quotes.passages and not state["missing_identifiers"]:
        probability = answer_probability(answer_features(details, quotes))
    is_covered = probability >= NOT_COVERED
    steps = quoted_steps(state, quotes.passages, collection) if is_covered else []
    chunks = _quoted_first(state["chunks"], steps)
    numbers = {retrieved.chunk.id: number for number, retrieved in enumerate(chunks, 1)}
    answer = [_cite(text, numbers[chunk.id]) for text, chunk in steps]
    pages = dict.fromkeys(retrieved.chunk.page_url for retrieved in chunks)
    draft = AnswerDraft(
        question=details.prose or question.text,
        introduction=platform_info.greeting.in_language(question.language),
        answer=answer or [not_covered_sentence(platform_info, question.language)],
        related_url=[page for page in pages if page][: MAX_RELATED_PAGES + 1],
    )
    return with_draft(state, chunks, Draft(draft, EXTRACTIVE, probability=probability))


def find_quotes(
    state: PipelineState,
    collection: Collection,
    glossary: Glossary,
    weights: Mapping[str, float] = PASSAGE_WEIGHTS,
) -> Quotes:
    """Return the passages to quote: one or two for each part of the question. Blocks the event loop."""
    details, structured = details_of(state["question"]), state["classification"].structured
    terms = QueryTerms.of(details, structured, collection, glossary)
    sections = list(_sections(state, terms, collection))
    parts = split_question(details.search_query)
    ranked = []
    for part in parts:
        part_terms = terms
        if len(parts) > 1:
            part_terms = QueryTerms.of(details, structured, collection, glossary, part)
        candidates = _candidates(sections, part_terms, state["chunks"])
        ranked.append((rank_passages(candidates, part_terms, weights), part_terms))
    chosen = [
        passage
        for passages, part_terms in ranked
        for passage in (*passages[:1], *_second(passages, part_terms))
    ]
    passages = list({passage.chunk.id: passage for passage in chosen}.values())
    return Quotes(terms, passages, [passages for passages, _ in ranked])


def quoted_steps(
    state: PipelineState, passages: Sequence[QuotedPassage], collection: Collection
) -> list[QuotedStep]:
    """Return the steps that quote `passages`. Blocks the event loop."""
    question = state["question"]
    needs = needs_of(question.text, state["classification"].structured)
    quoter = _Quoter(collection, question.language, needs)
    fit = sum(len(passage.text) for passage in passages) <= MAX_CHARS
    max_chars = MAX_CHARS if fit else MAX_CHARS // len(passages)
    by_document: defaultdict[tuple[str, str], list[QuotedPassage]] = defaultdict(list)
    for passage in passages:
        by_document[_document(passage.chunk)].append(passage)
    return [
        step for quoted in by_document.values() for step in quoter.quote_document(quoted, max_chars)
    ]


def _sections(
    state: PipelineState, terms: QueryTerms, collection: Collection
) -> Iterator[QuotableSection]:
    """Yield the segments of the best chunks, then of the other sections of the best chunk's page.

    The other sections are read if the page describes an API, or if the question asks how to do what the
    page's title says. If the question contains the name of one API, only its sections are read.
    """
    chunks = [retrieved.chunk for retrieved in state["chunks"][:MAX_CANDIDATES]]
    if chunks and "comparison" not in terms.needs and _is_named(chunks[0], state["question"].text):
        chunks = [chunk for chunk in chunks if _document(chunk) == _document(chunks[0])]
    found = {chunk.id: chunk for chunk in chunks}
    if chunks:
        first = chunks[0]
        is_guide = "steps" in terms.needs and terms.share(terms.found_in(first.title)) == 1
        if first.api_url or is_guide:
            page = collection.chunks_of_document(first.document_id, first.source)
            found |= {chunk.id: chunk for chunk in page}
    for chunk in found.values():
        if segments := _quotable(chunk, split_chunk(chunk, state["question"].language)):
            yield chunk, segments


def _is_named(chunk: Chunk, question: str) -> bool:
    """Return whether `question` contains all words of the API's name."""
    words = split_words(chunk.api_name)
    return len(words) > 1 and set(words) <= set(split_words(question))


def _candidates(
    sections: Sequence[QuotableSection], terms: QueryTerms, chunks: Sequence[RetrievedChunk]
) -> Iterator[Candidate]:
    """Yield the sections with their ranks and their scores relative to the best.

    A section without a score belongs to the best chunk's page, whose score it gets.
    """
    scores = {retrieved.chunk.id: retrieved.score for retrieved in chunks}
    best = max(scores.values(), default=0.0) or 1.0
    for rank, (chunk, segments) in enumerate(sections):
        score = (scores.get(chunk.id) or best) / best
        yield Candidate.of(chunk, segments, terms, rank, score)


def _document(chunk: Chunk) -> tuple[str, str]:
    return chunk.source, chunk.document_id


def _quotable(chunk: Chunk, segments: Sequence[Segment]) -> list[Segment]:
    """Return the segments, for an API's section without examples and without the list with its URL."""
    if chunk.kind == "prose":
        return list(segments)
    following = [*(segment.kind for segment in segments[1:]), ""]
    return [
        segment
        for segment, next_kind in zip(segments, following, strict=True)
        if segment.kind == "row" or (segment.kind == "paragraph" and next_kind != "code")
    ]


def _second(ranked: Sequence[QuotedPassage], terms: QueryTerms) -> list[QuotedPassage]:
    """Return the passage of another section that is quoted as well, if there is one.

    In a comparison it is the passage that adds most words and identifiers of the question. The row of an
    error code needs no other. Otherwise it is the next best one, if it is likely enough to be right and
    both together are no longer than one passage.
    """
    if not ranked:
        return []
    best = ranked[0]
    others = [
        passage
        for passage in ranked
        if passage.chunk.body != best.chunk.body and _may_be_asked(passage.chunk.kind, terms)
    ]
    if "comparison" in terms.needs:
        added = [
            terms.share(passage.words - best.words)
            + terms.identifier_share(passage.identifiers - best.identifiers)
            for passage in others
        ]
        most = max(added, default=0.0)
        return [others[added.index(most)]] if most >= MIN_ADDED_SHARE else []
    if defines_code(best, terms):
        return []
    limit = MAX_CHARS - len(best.text)
    near = (p for p in others if best.relevance - p.relevance <= _max_distance(best.chunk, p.chunk))
    return [passage for passage in near if len(passage.text) <= limit][:1]


def _may_be_asked(kind: SectionKind, terms: QueryTerms) -> bool:
    """Return whether a section may be asked for; of an API, errors and the like are asked for expressly."""
    return kind not in (*RARELY_ASKED, "error_codes") or fits(kind, terms.needs)


def _max_distance(best: Chunk, other: Chunk) -> float:
    return MAX_DISTANCE_IN_DOCUMENT if _document(best) == _document(other) else MAX_DISTANCE


class _Quoter:
    """Turns passages into steps."""

    def __init__(self, collection: Collection, language: Language, needs: frozenset[Need]) -> None:
        self._collection = collection
        self._language = language
        self._needs = needs
        self._templates: Any = load_quote_texts(language)

    def quote_document(self, passages: Sequence[QuotedPassage], max_chars: int) -> list[QuotedStep]:
        """Return the steps that quote `passages` of one document, each of about `max_chars` characters.

        Above a quote from the document of an API is a line with its method and address. If the address is
        what is quoted, the parameters and permissions that a call needs follow.
        """
        passages = sorted(passages, key=lambda passage: passage.chunk.kind != "request_url")
        steps = [
            (text, passage.chunk)
            for passage in passages
            for text in _block_texts(passage.segments, max_chars)
        ]
        first = passages[0].chunk
        if not first.api_url:
            return steps
        document = self._collection.chunks_of_document(first.document_id, first.source)
        sections = {chunk.kind: chunk for chunk in reversed(document)}
        if first.kind == "request_url":
            quoted = {passage.chunk.kind for passage in passages}
            needed = self._needed({k: c for k, c in sections.items() if k not in quoted})
            return [(self._interface(first), first), *steps, *needed]
        line = self._interface(sections.get("request_url", first))
        return [(f"{line}\n\n{steps[0][0]}", first), *steps[1:]]

    def _interface(self, chunk: Chunk) -> str:
        """Return the line with an API's name, method and URL."""
        prefix = f"{user_text(chunk.language).api_document.method}: "
        items = (plain_text(item) for item in parse_list_items(chunk.body))
        method = next((i.removeprefix(prefix) for i in items if i.startswith(prefix)), "")
        return str(self._templates.interface(chunk.api_name or chunk.title, method, chunk.api_url))

    def _needed(self, sections: dict[SectionKind, Chunk]) -> Iterator[QuotedStep]:
        """Yield the parameters and the permissions that a call of an API needs."""
        needs_call = not self._needs or self._needs & CALL_NEEDS
        if needs_call and (chunk := sections.get("request_parameters")):
            rows = [s for s in split_chunk(chunk, self._language) if s.is_required]
            if texts := _block_texts(rows, MAX_CHARS // 2):
                yield texts[0], chunk
        needs_permission = needs_call or "permission" in self._needs
        if needs_permission and (chunk := sections.get("permission_package")):
            names = [s.name for s in split_chunk(chunk, self._language) if s.name]
            if names:
                yield str(self._templates.permission(names)), chunk


def _block_texts(segments: Sequence[Segment], max_chars: int) -> list[str]:
    """Return the text of each block, with a block's introduction before it.

    Each item of a numbered list is a text of its own, with its number: other steps have no number. The
    borders of tables do not count towards `max_chars`.
    """
    texts: list[str] = []
    introduction = ""
    for (_, kind), parts in groupby(segments, key=lambda s: (s.block, s.kind)):
        group = list(parts)
        if kind == "item":
            blocks = [list_item(f"{s.number}.", s.text) for s in group]
        elif kind == "row":
            blocks = [_table(group)]
        else:
            separator = "\n" if kind == "bullet" else " "
            blocks = [separator.join(s.text for s in group)]
        blocks[0] = f"{introduction}\n\n{blocks[0]}".strip()
        introduction = ""
        if group[-1].is_introduction:
            introduction = blocks.pop()
        texts += blocks
    if introduction and not texts:
        texts.append(introduction)
    markup = sum(map(len, texts)) - sum(len(segment.text) for segment in segments)
    return _within(texts, max_chars + max(0, markup))


def _table(rows: Sequence[Segment]) -> str:
    """Return the rows as a Markdown table, without the columns that are empty in each of them."""
    cells = [dict(row.cells) for row in rows]
    columns = [column for column in cells[0] if any(row.get(column) for row in cells)]
    lines = [columns, ["---"] * len(columns)]
    lines += [[row.get(column, "").replace("|", "\\|") for column in columns] for row in cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _within(texts: Sequence[str], max_chars: int) -> list[str]:
    """Return the texts that fit into `max_chars` characters; the first is cut if it does not."""
    kept: list[str] = []
    for text in texts:
        if kept and sum(map(len, kept)) + len(text) > max_chars:
            break
        kept.append(_cut(text, max_chars))
    return kept


def _cut(text: str, max_chars: int) -> str:
    """Return `text` cut after its last line or word within `max_chars` characters, and its code closed.

    In a table the mark of the cut is part of the last cell.
    """
    if len(text) <= max_chars:
        return text
    end = max(text.rfind(mark, 0, max_chars) for mark in ("\n", " ", "。"))
    cut = text[: end if end > max_chars // 2 else max_chars].rstrip()
    if cut.count("```") % 2:
        return f"{cut}\n```"
    return f"{cut.rstrip(' |')} … |" if _ends_in_table(cut) else f"{cut} …"


def _cite(text: str, number: int) -> str:
    """Return `text` with a citation: in the last cell of a table, on a line of its own after code."""
    if _ends_in_table(text):
        return f"{text.removesuffix(' |')} [{number}] |"
    return f"{text}\n\n[{number}]" if text.endswith("```") else f"{text} [{number}]"


def _ends_in_table(text: str) -> bool:
    return text.rpartition("\n")[2].startswith("|")


def _quoted_first(
    chunks: Sequence[RetrievedChunk], steps: Sequence[QuotedStep]
) -> list[RetrievedChunk]:
    """Return the quoted chunks in order of their quotes, so that citations start at 1, then the others."""
    scores = {retrieved.chunk.id: retrieved.score for retrieved in chunks}
    quoted = {chunk.id: chunk for _, chunk in steps}
    front = [RetrievedChunk(chunk=c, score=scores.get(i, 0.0)) for i, c in quoted.items()]
    return front + [retrieved for retrieved in chunks if retrieved.chunk.id not in quoted]
