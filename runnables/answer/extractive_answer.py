"""The step `answer` without a model, which quotes the best rows, list items and sentences."""

import asyncio
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.store.collection import Collection
from ingestion.text.markdown_blocks import plain_text
from ingestion.text.words import index_words, vocabulary_words
from prompts import load_prompt
from runnables.answer import excerpts
from runnables.answer.fixed_answers import not_covered_sentence
from runnables.answer.write_answer import NAME
from runnables.models.chat_models import EXTRACTIVE
from runnables.question.extract_details import details_of, error_codes
from runnables.question.topic_scorer import TopicScorer
from runnables.run_context import named_step
from runnables.state import Draft, PipelineState, with_draft
from schemas.answer import AnswerDraft
from schemas.document import Chunk, RetrievedChunk, SectionKind
from schemas.platform import PlatformInfo

MAX_STEPS = 6
"""Maximum number of quotes in an answer."""

MAX_STEP_CHARS = 480
"""Maximum length of a quote, in characters."""

MAX_PARAMETERS = 5
"""Maximum number of parameters to quote from one table."""

MAX_ERRORS = 4
"""Maximum number of errors to quote from one table."""

QUOTES_BY_RANK = (3, 2, 1)
"""Maximum number of sentences and rows to quote from the best, the second and the third chunk."""

PARAMETER_KINDS: tuple[SectionKind, ...] = (
    "request_parameters",
    "response_parameters",
    "public_parameters",
    "request_headers",
)

ERRORS = re.compile(r"错误|报错|异常|失败|提示|\b(?:errors?|fail(?:s|ed|ure)?|exceptions?)\b", re.I)
RESPONSE = re.compile(r"返回|出参|响应|\b(?:response|returns?|output)\b", re.I)
PARAMETERS = re.compile(
    r"参数|字段|入参|必填|请求体|传什么|传哪些|\b(?:param(?:eter)?s?|fields?|arguments?|required|body)\b",
    re.I,
)
PERMISSION = re.compile(r"权限|授权包|\b(?:permissions?|scopes?)\b", re.I)
HOW_TO = re.compile(
    r"怎么|怎样|如何|咋|步骤|流程|\bhow\s+(?:do|to|can|should|would)\b|\bsteps\b", re.I
)
NUMBERED = re.compile(r"第\s*[一二三四五六七八九十\d]+\s*步|(?:step\s*)?\d+\s*[.、:：)]", re.I)

QuotedStep = tuple[str, Chunk]
"""The text of a step and the chunk that it quotes."""


def build_extractive_answer(
    collection: Collection, platform_info: PlatformInfo
) -> Runnable[PipelineState, PipelineState]:
    """Return the step `answer`, which drafts an answer from quotes."""

    async def answer(state: PipelineState, config: RunnableConfig) -> PipelineState:
        return await asyncio.to_thread(extractive_answer, state, collection, platform_info)

    return named_step(NAME, answer)


def extractive_answer(
    state: PipelineState, collection: Collection, platform_info: PlatformInfo
) -> PipelineState:
    """Return `state` with a draft, and with the quoted chunks before all others. Blocks."""
    question = state["question"]
    steps = list(islice(_Excerpter(state, collection).steps(), MAX_STEPS))
    chunks = _quoted_first(state["chunks"], steps)
    numbers = {retrieved.chunk.id: number for number, retrieved in enumerate(chunks, 1)}
    answer = [
        f"{excerpts.shorten(text, MAX_STEP_CHARS)} [{numbers[chunk.id]}]" for text, chunk in steps
    ]
    draft = AnswerDraft(
        question=details_of(question).prose or question.text,
        introduction=platform_info.greeting.in_language(question.language),
        answer=answer or [not_covered_sentence(platform_info, question.language)],
    )
    return with_draft(state, chunks, Draft(draft, EXTRACTIVE))


def _quoted_first(chunks: list[RetrievedChunk], steps: list[QuotedStep]) -> list[RetrievedChunk]:
    """Return the quoted chunks in order of their quotes, so that citations start at 1, then the others."""
    scores = {retrieved.chunk.id: retrieved.score for retrieved in chunks}
    quoted = {chunk.id: chunk for _, chunk in steps}
    front = [RetrievedChunk(chunk=c, score=scores.get(i, 0.0)) for i, c in quoted.items()]
    return front + [retrieved for retrieved in chunks if retrieved.chunk.id not in quoted]


class _Excerpter:
    """Chooses the passages to quote according to the kind of question."""

    def __init__(self, state: PipelineState, collection: Collection) -> None:
        self._structured = state["classification"].structured
        self._collection = collection
        self._text = state["question"].text
        self._chunks = [retrieved.chunk for retrieved in state["chunks"]]
        self._templates: Any = load_prompt("extractive", state["question"].language).module
        topic = TopicScorer(collection.word_counts, collection.manifest.words)
        scores = topic.word_scores(self._text)
        self._weights = {
            stem: score for word, score in scores.items() if score > 0 for stem in index_words(word)
        }

    def steps(self) -> Iterator[QuotedStep]:
        """Return the quotes of the first strategy that finds any."""
        for strategy in self._strategies():
            steps = list(islice(strategy(), MAX_STEPS))
            if steps:
                return iter(steps)
        return iter(())

    def _strategies(self) -> Iterator[Callable[[], Iterator[QuotedStep]]]:
        structured = self._structured
        if structured.error or ERRORS.search(self._text):
            yield self._error_by_code
        if self._api_chunks:
            yield self._named_fields
            yield from self._api_strategies(bool(structured.error))
        yield self._named_fields
        if structured.type == "general" and HOW_TO.search(self._text):
            yield self._guide
        yield self._sentences
        yield self._opening

    def _api_strategies(self, has_error: bool) -> Iterator[Callable[[], Iterator[QuotedStep]]]:
        """Yield the strategies for the sections of an API, chosen by the words in the question."""
        if has_error or ERRORS.search(self._text):
            yield self._errors
        if RESPONSE.search(self._text):
            yield self._response
        if PARAMETERS.search(self._text):
            yield self._required_parameters
        if PERMISSION.search(self._text):
            yield self._permission
        yield self._interface

    @cached_property
    def _api_chunks(self) -> dict[SectionKind, Chunk]:
        """The sections of the best chunk's API, by kind; empty if the question is not about an API."""
        first = self._chunks[0] if self._chunks else None
        if first is None or not first.api_url or self._structured.type != "api_call":
            return {}
        document = self._collection.chunks_of_document(first.document_id, first.source)
        return {chunk.kind: chunk for chunk in reversed(document)}

    def _section(self, kind: SectionKind) -> Iterator[Chunk]:
        if kind in self._api_chunks:
            yield self._api_chunks[kind]

    def _error_by_code(self) -> Iterator[QuotedStep]:
        """Yield the row of each error code in the question, from the API's own table or another one."""
        for code in dict.fromkeys(error_codes(f"{self._structured.error or ''} {self._text}")):
            for chunk in [*self._section("error_codes"), *self._chunks]:
                if row := _row_of(code, chunk):
                    yield self._row(chunk, *row), chunk
                    break

    def _errors(self) -> Iterator[QuotedStep]:
        """Yield the rows of the API's error table that are most relevant to the question."""
        for chunk in self._section("error_codes"):
            name_words = set(index_words(chunk.api_name))
            weights = {
                word: weight for word, weight in self._weights.items() if word not in name_words
            }
            rows = excerpts.error_rows(chunk)
            scored = [excerpts.relevance(f"{r.code} {r.message} {r.cause}", weights) for r in rows]
            best = max(scored, default=0.0)
            chosen = [row for row, score in zip(rows, scored, strict=True) if score >= best / 2]
            for row in chosen[:MAX_ERRORS]:
                yield (
                    self._templates.error(
                        chunk.api_name, row.code, row.message, row.cause, row.remedy
                    ),
                    chunk,
                )

    def _named_fields(self) -> Iterator[QuotedStep]:
        """Yield the rows of fields whose names are in the question."""
        words = set(vocabulary_words(self._text))
        for chunk in [*self._api_chunks.values(), *self._chunks]:
            if chunk.kind not in PARAMETER_KINDS:
                continue
            for row in excerpts.parameter_rows(chunk):
                name = row.name.rpartition(".")[2]
                if "_" in name and name.replace("_", "").lower() in words:
                    yield self._templates.field(row.name, row.type, row.description), chunk

    def _required_parameters(self) -> Iterator[QuotedStep]:
        for chunk in self._section("request_parameters"):
            rows = excerpts.parameter_rows(chunk)
            required = excerpts.required_rows(rows)
            if not required:
                yield self._templates.no_required(chunk.api_name), chunk
                for row in rows[:MAX_PARAMETERS]:
                    yield (
                        self._templates.optional_parameter(row.name, row.type, row.description),
                        chunk,
                    )
            for row in required[:MAX_PARAMETERS]:
                yield self._templates.parameter(row.name, row.type, row.description), chunk
            if more := required[MAX_PARAMETERS:]:
                yield (
                    self._templates.more_parameters([row.name for row in more[:8]], len(more)),
                    chunk,
                )

    def _response(self) -> Iterator[QuotedStep]:
        """Yield the response fields, those that are most relevant to the question first."""
        for chunk in self._section("response_parameters"):
            rows = excerpts.parameter_rows(chunk)
            rows.sort(key=lambda r: -excerpts.relevance(f"{r.name} {r.description}", self._weights))
            for row in rows[:MAX_PARAMETERS]:
                yield self._templates.field(row.name, row.type, row.description), chunk

    def _permission(self) -> Iterator[QuotedStep]:
        for chunk in self._section("permission_package"):
            for name, description in excerpts.permission_rows(chunk):
                yield self._templates.permission(name, description), chunk

    def _interface(self) -> Iterator[QuotedStep]:
        """Yield the API's name, method and URL, its description, permission and required parameters."""
        for chunk in self._section("request_url"):
            yield (
                self._templates.interface(chunk.api_name, excerpts.method_of(chunk), chunk.api_url),
                chunk,
            )
            yield from ((sentence, chunk) for sentence in excerpts.sentences(chunk)[:1])
        yield from islice(self._permission(), 1)
        for chunk in self._section("request_parameters"):
            names = [r.name for r in excerpts.required_rows(excerpts.parameter_rows(chunk))]
            if names:
                yield self._templates.required(names[:8], len(names)), chunk

    def _guide(self) -> Iterator[QuotedStep]:
        """Yield the steps of a guide, from its numbered headings or from its first numbered list."""
        prose = [chunk for chunk in self._chunks if chunk.kind == "prose"]
        if not prose:
            return
        best = max(
            prose,
            key=lambda chunk: excerpts.relevance(f"{chunk.title} {chunk.section}", self._weights),
        )
        title_words = set(index_words(best.title))
        beyond_title = {
            word: weight for word, weight in self._weights.items() if word not in title_words
        }
        page = self._collection.chunks_of_document(best.document_id, best.source)
        numbered = _numbered_sections(page)
        if len(numbered) > 1 and not excerpts.relevance(best.section, beyond_title):
            for chunk in numbered:
                heading = chunk.section.rpartition(" > ")[2]
                text = next(iter(excerpts.sentences(chunk)), "")
                yield self._templates.heading(heading, text), chunk
            return
        # Lists outside the best chunk are relevant only if the question is about the page as a whole.
        for chunk in [best, *([] if beyond_title else page)]:
            if len(items := excerpts.ordered_items(chunk)) > 1:
                yield from ((item, chunk) for item in items)
                return

    def _sentences(self) -> Iterator[QuotedStep]:
        """Yield the sentences and rows that are most relevant to the question, best chunks first."""
        for count, chunk in zip(QUOTES_BY_RANK, self._chunks, strict=False):
            quotes = [
                *excerpts.sentences(chunk),
                *(
                    self._row(chunk, *header_and_row)
                    for header_and_row in excerpts.table_rows(chunk)
                ),
            ]
            scored = [(excerpts.relevance(quote, self._weights), quote) for quote in quotes]
            best_scores = sorted((score for score, _ in scored if score > 0), reverse=True)[:count]
            best = (quote for score, quote in scored if score in best_scores)
            yield from ((quote, chunk) for quote in islice(best, count))

    def _opening(self) -> Iterator[QuotedStep]:
        """Yield the first sentences of the best chunks, for questions whose words occur only in titles."""
        for chunk in self._chunks[:2]:
            yield from ((sentence, chunk) for sentence in excerpts.sentences(chunk)[:2])

    def _row(self, chunk: Chunk, header: list[str], row: list[str]) -> str:
        """Return a table row as a sentence, with the header before each cell except the first."""
        if chunk.kind == "error_codes" and len(row) >= 4:
            return str(
                self._templates.error(chunk.api_name, *(cell.strip("`") for cell in row[:4]))
            )
        pairs = zip(header[1:], row[1:], strict=False)
        rest = [self._templates.pair(title, cell.rstrip("。.")) for title, cell in pairs if cell]
        return (
            str(self._templates.pair(row[0], self._templates.joint().join(rest)))
            if rest
            else row[0]
        )


def _row_of(code: str, chunk: Chunk) -> tuple[list[str], list[str]] | None:
    """Return the header and the row of the chunk's first table whose first cell contains `code`."""
    for header, row in excerpts.table_rows(chunk):
        if code in plain_text(row[0]).split():
            return header, row
    return None


def _numbered_sections(page: list[Chunk]) -> list[Chunk]:
    """Return the first chunk of each section whose heading begins with the number of a step."""
    sections: dict[str, Chunk] = {}
    for chunk in page:
        if NUMBERED.match(chunk.section.rpartition(" > ")[2]):
            sections.setdefault(chunk.section, chunk)
    return list(sections.values())
