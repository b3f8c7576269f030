"""question -> what it is about, by one model call.
question -> StructuredQuestion without a model: by its shape, its words and what the index finds.
"""

import asyncio
import re

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.store.collection import Collection
from ingestion.text.markdown_blocks import parse_table, plain
from ingestion.text.words import split_words
from runnables.models.chat_models import ChatModels
from runnables.models.structured_output import StructuredOutputCall
from runnables.question.extract_details import (
    ExtractedDetails,
    error_codes,
    extract_details,
    search_query,
)
from runnables.question.topic_scorer import TOPIC_THRESHOLD, TopicScorer
from runnables.retrieval.evidence import api_url_candidates
from runnables.retrieval.glossary import Glossary
from runnables.run_context import emit, named_step, remaining_seconds, with_deadline
from runnables.state import Classification
from schemas.answer import Event
from schemas.degraded import DegradedReason
from schemas.document import Chunk
from schemas.errors import ModelError
from schemas.platform import PlatformInfo
from schemas.question import Question, QuestionType, StructuredQuestion

NAME = "structured-question"

TIME_SHARE = 0.4
"""What classification may take of the time that is left: the answer needs the rest."""


def build_model_classifier(
    models: ChatModels, platform_info: PlatformInfo, on_failure: str
) -> Runnable[Question, Classification]:
    """The step `structured-question`.

    A question that no model could classify is taken for `general`, so that what was found decides;
    with `on_failure` "error" the step raises ModelError instead. docs/decisions/0003-model-failure.md
    """
    output = StructuredOutputCall(
        NAME, "structured_question", platform_info.language, StructuredQuestion
    )

    async def structure(question: Question, config: RunnableConfig) -> Classification:
        timed = with_deadline(config, TIME_SHARE * remaining_seconds(config))
        variables = {"platform_info": platform_info, "question": question.text}
        try:
            found = (await output.ask_first(models.extraction_models, variables, timed)).value
        except ModelError:
            if on_failure == "error":
                raise
            return Classification(
                StructuredQuestion(type="general"), DegradedReason.QUESTION_NOT_CLASSIFIED
            )
        await emit(config, Event("structured", found))
        return Classification(found)

    return named_step(NAME, structure)


CANDIDATE_CHUNKS = 10
"""Chunks among which a question's API and error codes are looked for."""

MIN_NAME_SHARE = 0.5
"""Share of an API name's words that a question must contain to name it."""

ERROR_WORDS = re.compile(r"错误|报错|异常|失败|\b(?:errors?|exceptions?|fail(?:s|ed|ure)?)\b", re.I)
"""What one says of a call that failed."""

INTERFACE_WORDS = re.compile(
    r"接口|参数|字段|入参|出参|报文|返回|请求[头体]|权限包"
    r"|\b(?:apis?|endpoints?|param(?:eter)?s?|fields?|headers?|payload|status codes?"
    r"|permission packages?|responses?)\b",
    re.I,
)
"""What one says of an interface: the words of an API document's own sections, and their synonyms."""

HOW_WORDS = re.compile(
    r"怎么|怎样|如何|咋|为什么|为何|为啥|什么|哪些|区别|流程|步骤|能不能|是否|吗|多久|多少"
    r"|\b(?:how|what|why|when|where|which|who|can|could|should|does|do|is|are|difference|steps)\b",
    re.I,
)
"""What makes a question of a noun: it asks how things are done or what they are."""


def build_rule_classifier(
    collection: Collection, glossary: Glossary
) -> Runnable[Question, Classification]:
    """The step `structured-question`, without a model."""

    async def structure(question: Question, config: RunnableConfig) -> Classification:
        found = await asyncio.to_thread(classify_by_rules, question.text, collection, glossary)
        await emit(config, Event("structured", found))
        return Classification(found)

    return named_step(NAME, structure)


def classify_by_rules(text: str, collection: Collection, glossary: Glossary) -> StructuredQuestion:
    """What `text` is about, as far as rules can tell."""
    pasted = extract_details(text)
    wide = " ".join([search_query(text), *glossary.equivalents(text)])
    found = [r.chunk for r in collection.search(wide, CANDIDATE_CHUNKS, "full_text")]
    code, api_of_code = _known_error_code(text, found)
    topic = TopicScorer(collection.word_counts, collection.manifest.words)
    if not (pasted.trace_id or code or max(topic.score(text), topic.score(wide)) > TOPIC_THRESHOLD):
        return StructuredQuestion(type="unknown")
    path, api = _api_by_path(pasted, collection)
    named = api or _api_by_name(text, found) or api_of_code
    return StructuredQuestion(
        type=_question_type(
            text, pasted, code, named is not None, _touches_api_name(text, found, topic)
        ),
        api_name=named.api_name if named else None,
        api_url=(api.api_url if api else path) if path else None,
        request_param=pasted.request_param,
        response=pasted.response,
        error=pasted.error or code,
        trace_id=pasted.trace_id,
    )


def _question_type(
    text: str, pasted: ExtractedDetails, code: str | None, names_api: bool, touches_api: bool
) -> QuestionType:
    """The type of an on-topic question.

    Details of a call and words for its failure make it one about an API, and so do the words for an
    interface's parts, unless it asks how things are done without naming an API. A bare term, which
    asks nothing, is taken for the API whose name it touches.
    """
    details = pasted.paths or pasted.trace_id or pasted.error or pasted.response or code
    if details or pasted.request_param or ERROR_WORDS.search(text):
        return "api_call"
    asks_how = HOW_WORDS.search(text) is not None
    if INTERFACE_WORDS.search(text) and (names_api or not asks_how):
        return "api_call"
    return "api_call" if touches_api and not asks_how else "general"


def _touches_api_name(text: str, found: list[Chunk], topic: TopicScorer) -> bool:
    """Whether an API that was found shares a word of its name with `text` that tells of the topic."""
    telling = {word for word, score in topic.word_scores(text).items() if score > 0}
    return any(telling & set(split_words(chunk.api_name)) for chunk in found)


def _api_by_path(
    pasted: ExtractedDetails, collection: Collection
) -> tuple[str | None, Chunk | None]:
    """The first pasted path that an indexed API has, with a chunk of it; else the first path."""
    for path in pasted.paths:
        if chunks := collection.chunks_by_api(api_url_candidates(path), []):
            return path, chunks[0]
    return (pasted.paths[0], None) if pasted.paths else (None, None)


def _api_by_name(text: str, found: list[Chunk]) -> Chunk | None:
    """The API whose name the question contains, wholly or for the most part.

    Best first: named in full; then what is not deprecated; then as retrieval ranks them.
    """
    words = set(split_words(text))
    candidates: list[tuple[bool, bool, int, Chunk]] = []
    for rank, chunk in enumerate(found):
        name_words = split_words(chunk.api_name)
        if not name_words:
            continue
        share = sum(word in words for word in name_words) / len(name_words)
        if share >= MIN_NAME_SHARE:
            deprecated = chunk.metadata.get("deprecated") == "true"
            candidates.append((share < 1, deprecated, rank, chunk))
    return min(candidates, key=lambda c: c[:3])[3] if candidates else None


def _known_error_code(text: str, found: list[Chunk]) -> tuple[str | None, Chunk | None]:
    """The first code in `text` that begins a row of a table in what was found.

    With it comes a chunk of the API that it belongs to, when it is an error of one API alone.
    """
    for code in error_codes(text):
        holders = [c for c in found if any(code == plain(r[0]) for r in parse_table(c.body) if r)]
        if holders:
            names = {chunk.api_name for chunk in holders}
            return code, holders[0] if len(names) == 1 and holders[0].api_name else None
    return None, None
