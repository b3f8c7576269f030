"""The step `condense`, which rewrites a follow-up as a standalone question with a model or by rules."""

import asyncio
import logging
import re
from collections.abc import Iterable, Sequence

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.text.language import estimate_tokens
from ingestion.text.words import contains_name
from prompts.chat_prompts import unescape_data
from runnables.conversation.follow_up import history_text, make_standalone, new_stems, share_kept
from runnables.conversation.small_talk import is_small_talk, strip_small_talk
from runnables.conversation.subject import content_stems
from runnables.models.chat_models import ChatModels
from runnables.models.context_window import count_prompt_tokens
from runnables.models.structured_output import PromptVariables, StructuredOutputCall
from runnables.question.error_codes import error_codes
from runnables.question.extract_details import URL, details_of, extract_details, take_json
from runnables.run_context import NamedStep, remaining_seconds, with_deadline
from schemas.errors import ModelError
from schemas.model_output import CondensedQuestion
from schemas.platform import PlatformInfo
from schemas.question import ExtractedDetails, Question, Turn

STEP_NAME = "condense"

TIME_SHARE = 0.25
"""Share of the remaining time that condensing may take; all other steps need the rest."""

MAX_TURNS = 8
"""Maximum number of turns in the prompt; older turns are left out."""

MAX_ANSWER_CHARS = 800
"""Maximum length of each answer in the prompt, in characters."""

MAX_MODEL_INPUT_CHARS = 2_000
"""Maximum length of a follow-up that a model rewrites, in characters, without the pasted JSON.

Rules rewrite longer follow-ups.
"""

MAX_QUESTION_CHARS = 500
"""Maximum length of a condensed question, in characters.

The limit is three times the length of the follow-up if that is more.
"""

CONDENSED_QUESTION_TOKENS = 500
"""Number of tokens of the context window that are reserved for the reply."""

TURN_TAG_TOKENS = 20
"""Estimated number of tokens in the tags inside a turn."""

log = logging.getLogger(__name__)

MIN_SHARE_KEPT = 0.5
"""A rewritten question must keep more than this share of the content words of the follow-up.

A model may correct a word or replace it by a synonym, but not ask about something else.
"""

_JSON_PLACEHOLDER = "{…}"
"""Replaces each pasted JSON object in the text that the model rewrites."""

_NAME = re.compile(
    r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*_[A-Za-z0-9_]+|\b[a-z]+[A-Z]\w*", re.ASCII
)
"""A name in snake_case or camelCase, such as the name of a parameter."""

_NUMBER = re.compile(r"(?<![A-Za-z0-9_])\d{4,}(?![A-Za-z0-9_])")
_INTERROGATIVE = re.compile(
    r"[?？呢吗]|怎|如何|什么|哪|多少|为何|为啥|咋|是否|能否|可否"
    r"|\b(?:how|what|which|where|when|why|who|can|could|do|does|is|are|should|may)\b",
    re.I,
)


def build_condense(
    models: ChatModels | None, platform_info: PlatformInfo, on_failure: str
) -> Runnable[Question, Question]:
    """Return the step that makes a follow-up standalone; the original text moves to `original_text`.

    If a follow-up is only small talk, the step sets `small_talk=True` and keeps the text. If no model
    writes a usable question, rules are used. If all models fail and `on_failure` is "error", the step
    raises ModelError instead.
    """
    condenser = _Condenser(models, platform_info) if models else None

    async def condense(question: Question, config: RunnableConfig) -> Question:
        if not question.history:
            return question
        if is_small_talk(question.text):
            return question.model_copy(update={"small_talk": True})
        try:
            condensed = await condenser.condense(question, config) if condenser else None
        except ModelError:
            if on_failure == "error":
                raise
            log.warning("%s: every model failed, using rules", STEP_NAME)
            condensed = None
        if condensed is not None:
            if condensed.small_talk:
                return question.model_copy(update={"small_talk": True})
            return _with_text(question, condensed.question)
        details = details_of(question)
        text = await asyncio.to_thread(make_standalone, question.text, question.history, details)
        return _with_text(question, text)

    return NamedStep(condense, STEP_NAME)


def may_be_small_talk(details: ExtractedDetails) -> bool:
    """Return whether a text contains no question and no details, so that it may be small talk."""
    text = details.text
    pasted = details.paths or details.trace_id or details.response or details.request_param
    return not (pasted or error_codes(text) or _INTERROGATIVE.search(text))


class _Condenser:
    """Lets a model condense a follow-up, and rejects the result if it does not fit the conversation."""

    def __init__(self, models: ChatModels, platform_info: PlatformInfo) -> None:
        self._models = models.extraction_models
        self._platform_info = platform_info
        self._output = StructuredOutputCall(
            STEP_NAME, "condense", platform_info.language, CondensedQuestion
        )

    async def condense(
        self, question: Question, config: RunnableConfig
    ) -> CondensedQuestion | None:
        """Return the standalone question with its pasted details; None if the rules have to be used.

        If the follow-up is small talk, `small_talk` of the result is true and its `question` is not used.
        Raises ModelError if all models fail.
        """
        bodies, text = take_json(question.text, _JSON_PLACEHOLDER)
        if len(text) > MAX_MODEL_INPUT_CHARS:
            return None
        timed = with_deadline(config, TIME_SHARE * remaining_seconds(config))
        variables = self._variables(question, text)
        reply = (await self._output.ask_first(self._models, variables, timed)).value
        if reply.small_talk and may_be_small_talk(details_of(question)):
            return reply
        condensed = _without_placeholders(unescape_data(reply.question))
        details = extract_details(text)
        reason = await asyncio.to_thread(
            _rejection_reason, condensed, text, details, question.history
        )
        if reason is not None:
            log.warning("%s: the model's question is %s; using rules", STEP_NAME, reason)
            return None
        if condensed == _without_placeholders(text):
            return CondensedQuestion(question=question.text)
        pasted = (body for body, _ in bodies)
        return CondensedQuestion(question=_with_details(condensed, text, details, pasted))

    def _variables(self, question: Question, text: str) -> PromptVariables:
        """Return the prompt's variables, with as many turns as fit the smallest context window."""
        variables: PromptVariables = {
            "platform_info": self._platform_info,
            "question": text,
            "history": [],
        }
        without_history = count_prompt_tokens(self._output.messages(variables))
        window = min(int(model.window / model.token_correction) for model in self._models)
        tokens = window - CONDENSED_QUESTION_TOKENS - without_history
        return variables | {"history": _fit_history(question.history, tokens)}


def _without_placeholders(text: str) -> str:
    """Return `text` on one line, without the placeholders of pasted JSON objects."""
    return " ".join(text.replace(_JSON_PLACEHOLDER, " ").split())


def _with_text(question: Question, text: str) -> Question:
    if text == question.text:
        return question
    return question.model_copy(update={"text": text, "original_text": question.text})


def _fit_history(history: Sequence[Turn], tokens: int) -> list[Turn]:
    """Return the newest turns that fit `tokens`, oldest first, with long answers truncated."""
    turns: list[Turn] = []
    for turn in reversed(history[-MAX_TURNS:]):
        short = turn.model_copy(update={"answer": turn.answer[:MAX_ANSWER_CHARS]})
        text = f"<turn>{short.question}{short.api_name}{short.answer}</turn>"
        tokens -= estimate_tokens(text) + TURN_TAG_TOKENS
        if tokens < 0:
            break
        turns.insert(0, short)
    return turns


def _rejection_reason(
    condensed: str, text: str, details: ExtractedDetails, history: Sequence[Turn]
) -> str | None:
    """Return why a model's question is rejected, such as "too long"; None if it can be used."""
    if not condensed:
        return "empty"
    if len(condensed) > max(MAX_QUESTION_CHARS, 3 * len(text)):
        return "too long"
    known = f"{text}\n{history_text(history)}"
    names = _names(condensed)
    if not names and not content_stems(condensed):
        return "without a subject"
    if not all(contains_name(known.lower(), name.lower()) for name in names):
        return "about a name that is not in the conversation"
    kept = share_kept(strip_small_talk(details.prose), condensed)
    if kept <= MIN_SHARE_KEPT or _is_off_subject(condensed, known):
        return "about something else"
    return None


def _is_off_subject(text: str, known: str) -> bool:
    """Return whether most content words of `text` are not in `known`."""
    return 2 * len(new_stems(text, known)) > len(new_stems(text, ""))


def _names(text: str) -> set[str]:
    """Return the paths, error codes with letters, long numbers and names of parameters in `text`."""
    codes = [code for code in error_codes(text) if not code.isdigit()]
    names = [*extract_details(text).paths, *codes, *_NAME.findall(text), *_NUMBER.findall(text)]
    return {name.strip("/.") for name in names}


def _with_details(
    condensed: str, text: str, details: ExtractedDetails, bodies: Iterable[str]
) -> str:
    """Return `condensed`, followed by the details that it lacks and by the pasted JSON objects `bodies`.

    Details are the URLs, paths, error codes, parameters and the trace id in `text`.
    """
    values = [*URL.findall(text), *details.paths, *error_codes(text), *_NAME.findall(text)]
    for value in values:
        if value not in condensed:
            condensed = f"{condensed} {value}"
    if details.trace_id and details.trace_id not in condensed:
        condensed = f"{condensed} trace_id: {details.trace_id}"
    return "\n".join([condensed, *bodies])
