"""The step `structured-question`, which classifies a question with a model or by rules."""

import math
import re
from dataclasses import replace
from functools import partial

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.store.collection import NO_FILTERS, Collection
from ingestion.text.markdown_blocks import parse_table, plain_text
from ingestion.text.typography import has_chinese
from ingestion.text.words import split_words
from prompts.user_text import user_text
from runnables.classification.topic_gate import CERTAINLY_ON_TOPIC, ON_TOPIC, estimate_on_topic
from runnables.models.chat_models import ChatModels
from runnables.models.structured_output import StructuredOutputCall
from runnables.page_versions import is_deprecated
from runnables.question.error_codes import error_codes, named_error_code
from runnables.question.extract_details import command_flags, details_of, single_letter_terms
from runnables.question.query_analysis import (
    Glossary,
    asks_about_code,
    general_lexicon,
    main_languages,
)
from runnables.question.topic_scorer import TopicScorer, is_content_word
from runnables.retrieval.exact_search import has_flag
from runnables.retrieval.heading_numbers import chunks_by_heading_number
from runnables.retrieval.named_operations import (
    ACTION_VERBS,
    chunks_by_name,
    chunks_by_path,
    names_action,
)
from runnables.run_context import NamedStep, emit, remaining_seconds, with_deadline
from runnables.state import Classification
from schemas.answer import DegradedReason, Event
from schemas.choices import LANGUAGES
from schemas.document import Chunk
from schemas.errors import ModelError
from schemas.platform import PlatformInfo
from schemas.question import ExtractedDetails, Question, QuestionType, StructuredQuestion

STEP_NAME = "structured-question"

TIME_SHARE = 0.4
"""Share of the remaining time that classification may take; the answer needs the rest."""

CANDIDATE_CHUNKS = 10
"""Number of chunks in which the rules look for the question's API and error codes."""

MIN_NAME_SHARE = 0.5
"""Minimum share of an API's name that a question must contain to name the API (see `_api_by_name`)."""

ERROR_WORDS = re.compile(r"错误|报错|异常|失败|\b(?:errors?|exceptions?|fail(?:s|ed|ure)?)\b", re.I)
"""Words about a failed call."""

API_WORDS = re.compile(
    r"接口|参数|字段|入参|出参|报文|返回|请求[头体]|权限包"
    r"|\b(?:apis?|endpoints?|param(?:eter)?s?|fields?|headers?|payload|status codes?"
    r"|permission packages?|responses?)\b",
    re.I,
)
"""Words for the parts of an API: the section titles of its document, and their synonyms."""

HOW_WORDS = re.compile(
    r"怎么|怎样|如何|咋|为什么|为何|为啥|什么|哪些|区别|流程|步骤|能不能|是否|吗|多久|多少"
    r"|\b(?:how|what|why|when|where|which|who|can|could|should|does|do|is|are|difference|steps)\b",
    re.I,
)
"""Interrogatives and words such as "steps".

They show that a question asks how something is done or what it is.
"""


def build_model_classifier(
    models: ChatModels,
    platform_info: PlatformInfo,
    on_failure: str,
    collection: Collection,
    glossary: Glossary,
) -> Runnable[Question, Classification]:
    """Return the step that classifies with a model.

    If the model classifies a question as off-topic, rules check it. The rules overrule the model if the
    evidence is strong: for example, if the question contains an error code of the documents.

    If all models fail, the type is `general`, so that the question is answered from the retrieved chunks.
    If `on_failure` is "error", the step raises ModelError instead. The reasons are in
    docs/decisions/0003-model-failure.md.
    """
    output = StructuredOutputCall(
        STEP_NAME, "structured_question", platform_info.language, StructuredQuestion
    )
    names = user_text(platform_info.language).languages

    async def classify(question: Question, config: RunnableConfig) -> Classification:
        timed = with_deadline(config, TIME_SHARE * remaining_seconds(config))
        languages = await collection.run(partial(main_languages, collection))
        variables = {
            "platform_info": platform_info,
            "document_languages": [names[each] for each in LANGUAGES if each in languages],
            "question": question.text,
        }
        try:
            reply = await output.ask_first(models.extraction_models, variables, timed)
            classification = Classification(reply.value)
        except ModelError:
            if on_failure == "error":
                raise
            classification = Classification(
                StructuredQuestion(type="general"), DegradedReason.QUESTION_NOT_CLASSIFIED
            )
        if classification.structured.type == "unknown":
            by_rules = await collection.run(
                partial(classify_by_rules, details_of(question), collection, glossary)
            )
            if by_rules.is_exact or (by_rules.on_topic or 0) >= CERTAINLY_ON_TOPIC:
                classification = by_rules
            else:
                classification = replace(classification, on_topic=by_rules.on_topic)
        await emit(config, Event("structured", classification.structured))
        return classification

    return NamedStep(classify, STEP_NAME)


def build_rule_classifier(
    collection: Collection, glossary: Glossary
) -> Runnable[Question, Classification]:
    """Return the step that classifies by rules, without a model."""

    async def classify(question: Question, config: RunnableConfig) -> Classification:
        classification = await collection.run(
            partial(classify_by_rules, details_of(question), collection, glossary)
        )
        await emit(config, Event("structured", classification.structured))
        return classification

    return NamedStep(classify, STEP_NAME)


def classify_by_rules(
    details: ExtractedDetails, collection: Collection, glossary: Glossary
) -> Classification:
    """Classify a question by its pasted details, its words and the chunks that a search finds.

    This function blocks: call it in a worker thread.
    """
    text = details.text
    chunks = search_candidates(details, collection, glossary)
    code, api_of_code = _indexed_error_code(text, chunks)
    api = _api_by_path(details, collection)
    probability = 1.0
    named_exactly = code or api or _has_indexed_term(text, chunks)
    if not (details.trace_id or named_exactly or asks_about_code(details.asked)):
        probability = estimate_on_topic(details, collection, glossary, chunks)
    if probability < ON_TOPIC:
        return Classification(StructuredQuestion(type="unknown"), on_topic=probability)
    by_name = next(iter(chunks_by_name(collection, text)), None)
    named = api or by_name or _api_by_name(text, chunks, collection) or api_of_code
    topic = TopicScorer(collection.word_counts, collection.manifest.words)
    touches_api = _shares_word_with_api_name(text, chunks, topic)
    error = details.error or code or named_error_code(details.prose)
    structured = StructuredQuestion(
        type=_question_type(details, error, named is not None, touches_api),
        api_name=named.api_name if named else None,
        api_url=api.api_url if api else next(iter(details.paths), None),
        request_param=details.request_param,
        response=details.response,
        error=error,
        trace_id=details.trace_id,
    )
    return Classification(structured, on_topic=probability, is_exact=bool(code or api or by_name))


def _has_indexed_term(text: str, chunks: list[Chunk]) -> bool:
    """Return whether `chunks` contain a flag in `text`, such as `--draft`, or a term such as `T+1`.

    The topic score ignores such terms, because it ignores single letters, numbers and dashes.
    """
    terms, flags = {term.lower() for term in single_letter_terms(text)}, command_flags(text)
    return any(has_flag(chunk.body, flag) for chunk in chunks for flag in flags) or (
        bool(terms)
        and any(
            term.lower() in terms for chunk in chunks for term in single_letter_terms(chunk.body)
        )
    )


def search_candidates(
    details: ExtractedDetails, collection: Collection, glossary: Glossary
) -> list[Chunk]:
    """Return the chunks that a search for the question finds.

    If the question names a version or a chapter, such as 3.2, the chunks under its heading come first.

    Equivalent terms from the glossary of platform.toml are searched for as well. apidesk's own lexicon (see
    `general_lexicon`) is less exact: its synonyms are searched for only if nothing else finds a chunk. Its
    translations are not searched for, because more off-topic questions would then find chunks.

    This function blocks: call it in a worker thread.
    """
    query = details.search_query
    numbered = chunks_by_heading_number(collection, details.prose, NO_FILTERS)
    expanded = " ".join([query, *glossary.equivalents(details.text)])
    found = collection.search(expanded, CANDIDATE_CHUNKS)
    if not (found or numbered):
        lexicon = general_lexicon(main_languages(collection))
        is_chinese = has_chinese(query)
        synonyms = [each for each in lexicon.equivalents(query) if has_chinese(each) == is_chinese]
        found = collection.search(" ".join(synonyms), CANDIDATE_CHUNKS) if synonyms else []
    return [*numbered, *(retrieved.chunk for retrieved in found)][:CANDIDATE_CHUNKS]


def _question_type(
    details: ExtractedDetails, error: str | None, names_api: bool, touches_api: bool
) -> QuestionType:
    """Return the type of an on-topic question.

    `names_api` is true if the question names an API, `touches_api` if it contains a word of an API's name.
    """
    pasted = details.paths or details.trace_id or details.response or details.request_param
    if pasted or error or ERROR_WORDS.search(details.text):
        return "api_call"
    asks_how = HOW_WORDS.search(details.text) is not None
    if API_WORDS.search(details.text) and (names_api or not asks_how):
        return "api_call"
    return "api_call" if touches_api and not asks_how else "general"


def _shares_word_with_api_name(text: str, chunks: list[Chunk], topic: TopicScorer) -> bool:
    """Return whether an API's name among `chunks` contains a word of `text` that raises the topic score."""
    words = {word for word, score in topic.word_scores(text).items() if score > 0}
    return any(words & set(split_words(chunk.api_name)) for chunk in chunks)


def _api_by_path(details: ExtractedDetails, collection: Collection) -> Chunk | None:
    """Return a chunk of the API of the first pasted path that is indexed, or None if no path is indexed."""
    for path in details.paths:
        if chunks := chunks_by_path(collection, path, details.text):
            return chunks[0]
    return None


def _api_by_name(text: str, chunks: list[Chunk], collection: Collection) -> Chunk | None:
    """Return a chunk of the API that `text` names, or None if there is none.

    `text` names an API if it contains at least `MIN_NAME_SHARE` of the API's name. Each word of the name
    counts with its information content in the documents: "create" says less than "translation". Complete
    names are preferred, then APIs that are not deprecated, then the best rank in `chunks`.
    """
    names = [
        {word for word in split_words(chunk.api_name) if is_content_word(word)} for chunk in chunks
    ]
    all_words = set[str]().union(*names)
    counts, total = collection.word_counts(all_words), max(collection.manifest.words, 2)
    weights = {word: math.log(total / (1 + counts.get(word, 0))) for word in all_words}
    words = set(split_words(text))
    candidates: list[tuple[bool, bool, int, Chunk]] = []
    for rank, (chunk, name) in enumerate(zip(chunks, names, strict=True)):
        if _is_only_verb_or_noun(name & words, name, chunk.api_name, text):
            continue
        found = sum(weights[word] for word in name & words)
        if found and found >= MIN_NAME_SHARE * sum(weights[word] for word in name):
            candidates.append((not name <= words, is_deprecated(chunk), rank, chunk))
    return min(candidates, key=lambda candidate: candidate[:3])[3] if candidates else None


def _is_only_verb_or_noun(found: set[str], name: set[str], api_name: str, text: str) -> bool:
    """Return whether `text` contains only the verb, or only the noun, of a name such as "Get a booking".

    `name` has the content words of `api_name`, and `found` has those of them that `text` contains.
    """
    is_reduced = len(name) == 1 and not ACTION_VERBS.isdisjoint(split_words(api_name))
    return found <= ACTION_VERBS or (is_reduced and not names_action(text, api_name))


def _indexed_error_code(text: str, chunks: list[Chunk]) -> tuple[str | None, Chunk | None]:
    """Return the first code in `text` that is the first cell of a table row in `chunks`.

    The second value is a chunk of the API that defines the code; None if the API is unknown or not unique.
    """
    for code in error_codes(text):
        with_code = [
            chunk
            for chunk in chunks
            if any(code == plain_text(row[0]) for row in parse_table(chunk.body) if row)
        ]
        if with_code:
            names = {chunk.api_name for chunk in with_code}
            return code, with_code[0] if len(names) == 1 and with_code[0].api_name else None
    return None, None
