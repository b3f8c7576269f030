"""Answers questions without a model, with quotes of the passages that most likely answer them.

A question such as "how do I sign a request and how do I refund an order?" has two parts. Passages are
ranked and chosen for each part separately.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import get_args

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.sources.api_pages.calls import Method
from ingestion.sources.api_pages.labels import is_fact_label
from ingestion.store.collection import Collection
from ingestion.text.words import split_words
from runnables.answer.candidate import Candidate
from runnables.answer.choose_passages import choose_passages, limits_of, without_repeats
from runnables.answer.code_segments import without_other_tabs, without_pasted_commands
from runnables.answer.confidence import (
    NOT_COVERED,
    Quotes,
    quotes_probability,
)
from runnables.answer.fixed_answers import not_covered_sentence
from runnables.answer.missing_fields import asks_for_missing, sent_fields, with_missing_fields
from runnables.answer.passages import (
    MAX_CHARS,
    RankedPassage,
    rank_passages,
)
from runnables.answer.pasted_code import text_after_pasted_code
from runnables.answer.quoted_steps import QuotedStep, cite, quoted_steps
from runnables.answer.segments import Segment, split_chunk
from runnables.answer.write_answer import STEP_NAME
from runnables.coefficients import PASSAGE_WEIGHTS
from runnables.models.chat_models import EXTRACTIVE
from runnables.question.error_codes import error_codes
from runnables.question.extract_details import code_in_response, details_of, extract_details
from runnables.question.query_analysis import Glossary, specific_identifiers, split_question
from runnables.retrieval.exact_search import DEFINED, definition_strength
from runnables.retrieval.named_operations import asks_for_methods, is_at_path
from runnables.retrieval.number_ranges import ranges_in
from runnables.retrieval.query_terms import QueryTerms
from runnables.retrieval.relevance import MAX_COMPARED_CHUNKS, relative_scores
from runnables.run_context import NamedStep
from runnables.state import Draft, PipelineState, with_draft
from schemas.answer import AnswerDraft
from schemas.document import Chunk, RetrievedChunk
from schemas.platform import PlatformInfo
from schemas.question import ExtractedDetails, StructuredQuestion

MAX_RELATED_PAGES = 3
"""Maximum number of pages that an answer suggests in addition to the page of its first chunk."""

MIN_NAME_CHARS = 4
"""Minimum length of an API's name that is searched for in prose, in characters."""

_LABEL = re.compile(r"^(?!https?:)([^:：`/]{1,20})[:：]\W*(?=/|https?:|[A-Z]+\b)")
"""A label at the start of a segment, before a URL or an HTTP method: "接口地址：" or "Method:"."""


def build_extractive_answer(
    collection: Collection, platform_info: PlatformInfo, glossary: Glossary
) -> Runnable[PipelineState, PipelineState]:
    """Return the step `answer`, which drafts an answer from quotes."""

    async def answer(state: PipelineState, config: RunnableConfig) -> PipelineState:
        return await asyncio.to_thread(
            extractive_answer, state, collection, platform_info, glossary
        )

    return NamedStep(answer, STEP_NAME)


def extractive_answer(
    state: PipelineState, collection: Collection, platform_info: PlatformInfo, glossary: Glossary
) -> PipelineState:
    """Return `state` with a draft, and with the quoted chunks before all others.

    This function blocks: call it in a worker thread.
    """
    question = state["question"]
    quotes = find_quotes(state, collection, glossary)
    probability = quotes_probability(quotes, state["missing_identifiers"])
    is_covered = probability >= NOT_COVERED
    steps = quoted_steps(state, quotes, collection) if is_covered else []
    chunks = _quoted_first(state, steps)
    numbers = {retrieved.chunk.id: number for number, retrieved in enumerate(chunks, 1)}
    answer = [cite(text, numbers[chunk.id]) for text, chunk in steps]
    pages = dict.fromkeys(retrieved.chunk.page_url for retrieved in chunks)
    draft = AnswerDraft(
        answer=answer or [not_covered_sentence(platform_info, question)],
        related_url=[page for page in pages if page][: MAX_RELATED_PAGES + 1],
    )
    return with_draft(state, chunks, Draft(draft, EXTRACTIVE, probability=probability))


def find_quotes(
    state: PipelineState,
    collection: Collection,
    glossary: Glossary,
    weights: Mapping[str, float] = PASSAGE_WEIGHTS,
) -> Quotes:
    """Return the passages to quote, and all ranked passages for each part of the question.

    This function blocks: call it in a worker thread.
    """
    details, structured = details_of(state["question"]), state["classification"].structured
    # If the question is only a pasted response, only its error codes count, not the words of its message.
    codes = (
        "" if details.prose else " ".join(error_codes(details.text)) or code_in_response(details)
    )
    terms = QueryTerms.of(details, structured, collection, glossary, codes)
    parts = [(details, terms)]
    if len(texts := split_question(details.search_query)) > 1:
        parts = [
            (extract_details(text), QueryTerms.of(details, structured, collection, glossary, text))
            for text in texts
        ]
    best = _best_chunks(state, details)
    compared = {chunk.document_key for chunk in state["compared"]}
    if compared and asks_for_methods(details):
        # `compared` has only addresses and prose. Tables of fields do not answer a question about methods.
        best = [chunk for chunk in best if chunk in state["compared"]] or best
    ranked: list[Sequence[RankedPassage]] = []
    chosen: list[RankedPassage] = []
    for part, part_terms in parts:
        about: Sequence[Chunk] = best
        if not compared and "comparison" not in terms.needs:
            whole = structured if len(parts) == 1 else None
            about = _about_named_api(best, part, part_terms, whole)
        candidates = list(_candidates(about, part_terms, state))
        passages = _ranked(candidates, weights, part_terms, state)
        ranked.append(passages)
        limits = limits_of(passages)
        if limits.passage_chars != MAX_CHARS:
            passages = _ranked(candidates, weights, part_terms, state, limits.passage_chars)
        chosen += choose_passages(passages, terms, compared, limits, len(parts))
    return Quotes(
        terms, _complete(chosen, terms, state, collection), ranked, bool(sent_fields(details))
    )


def _ranked(
    candidates: Sequence[Candidate],
    weights: Mapping[str, float],
    terms: QueryTerms,
    state: PipelineState,
    max_chars: int = MAX_CHARS,
) -> list[RankedPassage]:
    """Return the passages of the candidates, best first."""
    passages = rank_passages(candidates, weights, max_chars)
    if state["versions"].asked and not terms.identifiers:
        # `rank_passages` may put a row first that begins with the version in the question, as if the
        # question asked for a definition of this version. Only the relevance counts here.
        passages.sort(key=lambda passage: -passage.relevance)
    return passages


def _complete(
    chosen: Iterable[RankedPassage],
    terms: QueryTerms,
    state: PipelineState,
    collection: Collection,
) -> list[RankedPassage]:
    """Return the chosen passages as they are quoted.

    - Code that the question contains is followed by the text that explains it.
    - If the question asks what a pasted request lacks, or what is wrong with it, missing fields are quoted
      (see `with_missing_fields`).
    - Repeated segments are left out, and so are passages that consist of bare announcements, unless all do.
    """
    language = state["question"].language
    quoted = [
        each
        for passage in chosen
        for each in (passage, *text_after_pasted_code(passage, collection, language))
    ]
    details = details_of(state["question"])
    if sent := sent_fields(details):
        asks_what_is_wrong = not asks_for_missing(details)
        quoted = [
            with_missing_fields(passage, terms, sent, language, only_required=asks_what_is_wrong)
            for passage in quoted
        ]
    passages = list(without_repeats(quoted))
    complete = [
        passage
        for passage in passages
        if not all(segment.is_bare_announcement for segment in passage.segments)
    ]
    return complete or passages


def _candidate_chunks(state: PipelineState) -> list[RetrievedChunk]:
    """Return the chunks of `state`, followed by the next best ones."""
    ids = {retrieved.chunk.id for retrieved in state["chunks"]}
    return [*state["chunks"], *(r for r in state["further"] if r.chunk.id not in ids)]


def _best_chunks(state: PipelineState, details: ExtractedDetails) -> Sequence[Chunk]:
    """Return the best chunks, followed by the next chunk that defines an error code of the question.

    This chunk is added only if none of the best chunks defines a code. The many chunks of a named API come
    first, and may displace the table of the platform's error codes.
    """
    chunks = [retrieved.chunk for retrieved in _candidate_chunks(state)]
    best, others = chunks[:MAX_COMPARED_CHUNKS], chunks[MAX_COMPARED_CHUNKS:]
    codes = list(map(str.lower, error_codes(details.text)))
    if not codes or any(definition_strength(chunk, codes) >= DEFINED for chunk in best):
        return best
    defining = (chunk for chunk in others if definition_strength(chunk, codes) >= DEFINED)
    return [*best, *islice(defining, 1)]


def _about_named_api(
    chunks: Sequence[Chunk],
    part: ExtractedDetails,
    terms: QueryTerms,
    whole: StructuredQuestion | None,
) -> Sequence[Chunk]:
    """Return the chunks about the API that a part of the question names, or all `chunks` if it names none.

    These are the chunks of that API, prose that mentions its name, and chunks with error codes or words of
    the question that the API's own chunks do not contain. If the part is the whole question, `whole` is its
    structured form, and an API counts as named only if the best chunk belongs to this API.
    """
    best, url = (chunks[:1], whole.api_url) if whole else (chunks, None)
    named = next((chunk for chunk in best if _is_named(chunk, part, url)), None)
    if named is None:
        return chunks
    by_name = not part.paths  # several APIs may have this name
    own = [
        chunk
        for chunk in chunks
        if chunk.document_key == named.document_key
        or (by_name and chunk.api_name == named.api_name)
    ]
    name = named.api_name.lower()
    own_text = "\n".join(chunk.text for chunk in own)
    words = terms.weights.keys() - terms.found_in(own_text)
    codes = {
        code
        for code in map(str.lower, error_codes(part.text))
        if not any(_has_code(chunk, code) for chunk in own)
    }

    def is_about(chunk: Chunk) -> bool:
        body = chunk.body.lower()
        is_mention = chunk.kind == "prose" and len(name) >= MIN_NAME_CHARS and name in body
        has_code = any(_has_code(chunk, code) for code in codes)
        return chunk in own or is_mention or has_code or bool(terms.found_in(chunk.text) & words)

    return [chunk for chunk in chunks if is_about(chunk)]


def _has_code(chunk: Chunk, code: str) -> bool:
    """Return whether `chunk` contains the lower-case `code`, or a row for a range that contains it."""
    return code in chunk.text.lower() or bool(ranges_in(chunk.body, code))


def _is_named(chunk: Chunk, details: ExtractedDetails, url: str | None) -> bool:
    """Return whether the question names the chunk's API.

    If the question contains exactly one path, this path must be that of the API. `url` is the URL of the
    API at this path, if it is known: a path may lack the base path of the server. Otherwise, the question
    must contain all words of the API's name, at least two. Words within an identifier that the name does
    not contain, such as the error code `user_not_found`, do not count.
    """
    if chunk.api_url and len(set(details.paths)) == 1:
        return chunk.api_url == url or is_at_path(chunk.api_url, details.paths[0])
    text, name = details.text.lower(), chunk.api_name.lower()
    for identifier in specific_identifiers(text):
        if identifier not in name:
            text = text.replace(identifier, " ")
    words = split_words(name)
    return len(words) > 1 and set(words) <= set(split_words(text))


def _candidates(
    chunks: Iterable[Chunk], terms: QueryTerms, state: PipelineState
) -> Iterator[Candidate]:
    """Yield the chunks that have quotable segments as candidates, in the same order."""
    retrieved, language = _candidate_chunks(state), state["question"].language
    question = details_of(state["question"]).question
    scores = dict(zip((r.chunk.id for r in retrieved), relative_scores(retrieved), strict=True))
    rank = 0
    for chunk in chunks:
        segments = _quotable(chunk, split_chunk(chunk, language))
        if segments := without_pasted_commands(segments, question):
            shown = without_other_tabs(segments, terms)
            version = state["versions"].asked_name_of(chunk)
            yield Candidate(chunk, terms, rank, scores[chunk.id], shown, version=version)
            rank += 1


def _quotable(chunk: Chunk, segments: Sequence[Segment]) -> list[Segment]:
    """Return those `segments` of `chunk` that may be quoted.

    In prose, these are all segments, except a segment that is only the method or the URL of the chunk's
    API: both are quoted above the passages. In other sections, these are the table rows, and the paragraphs
    that are not followed by code.
    """
    if chunk.kind == "prose":
        return [
            segment for segment in segments if not (chunk.api_url and _is_address(segment, chunk))
        ]
    following = [*(segment.kind for segment in segments[1:]), ""]
    return [
        segment
        for segment, next_kind in zip(segments, following, strict=True)
        if segment.kind == "row" or (segment.kind == "paragraph" and next_kind != "code")
    ]


def _is_address(segment: Segment, chunk: Chunk) -> bool:
    """Return whether the segment is only a method, or the URL of the chunk's API, perhaps with a label.

    The label must be one such as "接口地址：", which says only that a URL follows. With a label such as
    "沙箱环境：" ("sandbox"), the result is false, because the label says which server has this URL.
    """
    text = segment.text.strip("`*_ -")
    label = _LABEL.match(text)
    if label and is_fact_label(label[1].strip("*_ ")):
        text = text[label.end() :].strip("`*_ ")
    url = rf"(?:https?://[!-~]*)?{re.escape(chunk.api_url)}[!-~]*"
    return text in get_args(Method) or re.fullmatch(url, text) is not None


def _quoted_first(state: PipelineState, steps: Sequence[QuotedStep]) -> list[RetrievedChunk]:
    """Return the quoted chunks in the order of `steps`, so that citations start at 1, then the others."""
    scores = {retrieved.chunk.id: retrieved.score for retrieved in _candidate_chunks(state)}
    quoted = {chunk.id: chunk for _, chunk in steps}
    front = [RetrievedChunk(chunk=c, score=scores.get(i, 0.0)) for i, c in quoted.items()]
    return front + [retrieved for retrieved in state["chunks"] if retrieved.chunk.id not in quoted]
