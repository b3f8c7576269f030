"""A follow-up and its history -> a question that stands by itself: what is classified and retrieved."""

import asyncio
import json
import logging
import re
from collections.abc import Sequence

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.text.language import estimate_tokens
from prompts import load_prompt
from runnables.models.chat_models import ChatModels
from runnables.models.structured_output import PromptVariables, StructuredOutputCall
from runnables.question.extract_details import error_codes, extract_details
from runnables.question.follow_up import (
    history_text,
    is_small_talk,
    make_standalone,
    new_words,
    strip_small_talk,
)
from runnables.run_context import named_step, remaining_seconds, with_deadline
from schemas.errors import ModelError
from schemas.model_output import CondensedQuestion
from schemas.platform import PlatformInfo
from schemas.question import Question, Turn

NAME = "condense"

TIME_SHARE = 0.25
"""What condensing may take of the time that is left: all other steps come after it."""

MAX_TURNS = 8
"""Turns that the model is shown; what lies further back is no longer referred to."""

MAX_ANSWER_CHARS = 800
"""Characters of each answer that the model is shown."""

MAX_FOLLOW_UP_CHARS = 2_000
"""Characters beside pasted JSON above which no model is asked."""

MAX_QUESTION_CHARS = 500
"""Characters of a condensed question, or three times the follow-up's own where that is more."""

OUTPUT_TOKENS = 500
"""Tokens of the window that are kept for the reply."""

log = logging.getLogger(__name__)

_BODY = "{…}"
_URL = re.compile(r"https?://[^\s\"'<>，。；、）)】\]]+", re.I)
_NAME = re.compile(
    r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*_[A-Za-z0-9_]+|\b[a-z]+[A-Z]\w*", re.ASCII
)
_NUMBER = re.compile(r"(?<![A-Za-z0-9_])\d{4,}(?![A-Za-z0-9_])")
_ASKS = re.compile(
    r"[?？呢吗]|怎么|如何|什么|哪|多少|为何"
    r"|\b(?:how|what|which|where|when|why|who|can|could|do|does|is|are|should|may)\b",
    re.I,
)


def build_condense(
    models: ChatModels | None, platform_info: PlatformInfo, on_failure: str
) -> Runnable[Question, Question]:
    """The step `condense`: the question as it stands by itself, with the caller's words in `said`.

    A question without history passes as it is, and so does one that stands by itself. Thanks and small
    talk are marked as such. Without a model, or where none gives a question that can be used, rules
    decide; with `on_failure` "error" the step raises ModelError when every model failed.
    """
    model = _Condenser(models, platform_info) if models else None

    async def condense(question: Question, config: RunnableConfig) -> Question:
        if not question.history:
            return question
        if is_small_talk(question.text):
            return question.model_copy(update={"small_talk": True})
        try:
            condensed = await model.ask(question, config) if model else None
        except ModelError:
            if on_failure == "error":
                raise
            log.warning("%s: no model could be asked, rules decide", NAME)
            condensed = None
        if condensed is not None and condensed.small_talk:
            return question.model_copy(update={"small_talk": True})
        if condensed is not None:
            return _with_text(question, condensed.question)
        text = await asyncio.to_thread(make_standalone, question.text, question.history)
        return _with_text(question, text)

    return named_step(NAME, condense)


def _with_text(question: Question, text: str) -> Question:
    if text == question.text:
        return question
    return question.model_copy(update={"text": text, "original_text": question.text})


class _Condenser:
    """Asks the models, and lets nothing pass that they made up."""

    def __init__(self, models: ChatModels, platform_info: PlatformInfo) -> None:
        self._models = models.extraction_models
        self._platform_info = platform_info
        self._output = StructuredOutputCall(
            NAME, "condense", platform_info.language, CondensedQuestion
        )

    async def ask(self, question: Question, config: RunnableConfig) -> CondensedQuestion | None:
        """The follow-up, condensed, with what was pasted; None where rules must do it.

        Raises ModelError.
        """
        bodies, text = _cut_json(question.text)
        if len(text) > MAX_FOLLOW_UP_CHARS:
            return None
        timed = with_deadline(config, TIME_SHARE * remaining_seconds(config))
        found = (
            await self._output.ask_first(self._models, self._shown(question, text), timed)
        ).value
        if found.small_talk and may_be_small_talk(question.text):
            return found
        condensed = " ".join(found.question.replace(_BODY, " ").split())
        problem = await asyncio.to_thread(_problem, condensed, text, question.history)
        if problem is not None:
            log.warning("%s: the model's question is %s, rules decide", NAME, problem)
            return None
        if condensed == " ".join(text.replace(_BODY, " ").split()):
            return CondensedQuestion(question=question.text)
        return CondensedQuestion(question=_with_details(condensed, text, bodies))

    def _shown(self, question: Question, text: str) -> PromptVariables:
        """What the prompt is made from: as much of the history as every model's window holds."""
        variables: PromptVariables = {
            "platform_info": self._platform_info,
            "question": text,
            "history": [],
        }
        schema = json.dumps(CondensedQuestion.model_json_schema(), ensure_ascii=False)
        bare = load_prompt("condense", self._platform_info.language).render(
            schema=schema, **variables
        )
        window = min(int(model.window / model.token_correction) for model in self._models)
        room = window - OUTPUT_TOKENS - estimate_tokens(bare)
        return variables | {"history": _fit_history(question.history, room)}


def _fit_history(history: Sequence[Turn], room: int) -> list[Turn]:
    """The newest turns that fit `room` tokens, oldest first, each answer cut to its beginning."""
    kept: list[Turn] = []
    for turn in reversed(history[-MAX_TURNS:]):
        short = turn.model_copy(update={"answer": turn.answer[:MAX_ANSWER_CHARS]})
        room -= estimate_tokens(f"<turn>{short.question}{short.api_name}{short.answer}</turn>") + 20
        if room < 0:
            break
        kept.insert(0, short)
    return kept


def may_be_small_talk(text: str) -> bool:
    """Whether nothing in `text` asks or was pasted, so that a model may take it for small talk."""
    pasted = extract_details(text)
    details = pasted.paths or pasted.trace_id or pasted.response or pasted.request_param
    return not (details or error_codes(text) or _ASKS.search(text))


def _problem(condensed: str, text: str, history: Sequence[Turn]) -> str | None:
    """Why a model's question cannot be used; None where it can."""
    if not condensed:
        return "empty"
    if len(condensed) > max(MAX_QUESTION_CHARS, 3 * len(text)):
        return "too long"
    known = f"{text}\n{history_text(history)}"
    if not all(_contains_name(name, known) for name in _names(condensed)):
        return "about something that nobody named"
    asked = strip_small_talk(extract_details(text).prose)
    if _is_off_subject(condensed, known) or _is_off_subject(
        asked, f"{condensed}\n{history_text(history)}"
    ):
        return "another question"
    return None


def _is_off_subject(text: str, known: str) -> bool:
    """Whether most of what `text` tells of is not in `known`."""
    return 2 * len(new_words(text, known)) > len(new_words(text, ""))


def _contains_name(name: str, known: str) -> bool:
    """Whether `known` holds `name`, and not only as a part of another name."""
    whole = rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])"
    return re.search(whole, known, re.IGNORECASE) is not None


def _names(text: str) -> set[str]:
    """The paths, codes, numbers and parameters in `text`."""
    codes = [code for code in error_codes(text) if not code.isdigit()]
    found = [*extract_details(text).paths, *codes, *_NAME.findall(text), *_NUMBER.findall(text)]
    return {name.strip("/.") for name in found}


def _with_details(condensed: str, text: str, bodies: Sequence[str]) -> str:
    """`condensed` with the details of `text` that a model left out, and the JSON, verbatim."""
    pasted = extract_details(text)
    details = [*_URL.findall(text), *pasted.paths, *error_codes(text), *_NAME.findall(text)]
    if pasted.trace_id:
        details.append(f"trace_id: {pasted.trace_id}")
    for detail in details:
        if detail.removeprefix("trace_id: ") not in condensed:
            condensed = f"{condensed} {detail}"
    return "\n".join([condensed, *bodies])


def _cut_json(text: str) -> tuple[list[str], str]:
    """The JSON objects in `text`, verbatim, and the text with `_BODY` in their places."""
    decoder = json.JSONDecoder()
    bodies: list[str] = []
    position = 0
    while (start := text.find("{", position)) >= 0:
        position = start + 1
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        bodies.append(text[start:end])
        text = f"{text[:start]}{_BODY}{text[end:]}"
        position = start + len(_BODY)
    return bodies, text
