"""The pipeline step `answer`: a model writes the answer, and a second model may convert it to JSON.

While a model writes, each complete step of the answer is checked and streamed.
"""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from functools import partial

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from prompts.chat_prompts import load_prompt
from prompts.user_text import user_text
from runnables.answer.fixed_answers import gap_opening, not_covered_sentence
from runnables.grounding.grounded_step import GroundedStep, Grounder, GroundingRules
from runnables.models.chat_model import ChatModel, OnText
from runnables.models.chat_models import ChatModels
from runnables.models.context_window import (
    count_prompt_tokens,
    fit_chunks,
    is_cut_reply,
    split_chunks,
)
from runnables.models.json_text import (
    UnreadableReply,
    is_unfinished,
    parse_object,
    partial_object,
    strip_thinking,
)
from runnables.models.structured_output import PromptVariables, StructuredOutputCall, reply_text
from runnables.run_context import (
    NamedStep,
    child_config,
    emit,
    remaining_seconds,
    run_context,
    with_deadline,
    with_fallback,
)
from runnables.state import Draft, PipelineState, mark_degraded, with_draft
from schemas.answer import AnswerDraft, DegradedReason, Event, EventSink, Source, Sources, Step
from schemas.document import RetrievedChunk
from schemas.errors import ContextExceeded, ModelError, ModelOutputInvalid, ModelRefused
from schemas.platform import PlatformInfo
from schemas.question import Question

STEP_NAME = "answer"

FALLBACK_RESERVE_SHARE = 0.05
"""Share of the remaining time that is reserved for quoting, in case all models fail."""

FALLBACK_RESERVE_S = (1.0, 5.0)
"""Minimum and maximum of the reserved seconds; at most half of the remaining time is reserved."""

MAX_TEXT_ANSWER_CHARS = 4_000
"""Maximum number of characters of a plain-text reply that become the answer; the rest is dropped."""

MAX_SMALLER_PROMPTS = 2
"""Maximum number of shorter prompts to try after one that exceeded the model's context window."""

log = logging.getLogger(__name__)

_JSON_START = re.compile(r"(?:```[\w-]*\s*)?\{")
"""The start of a reply that is a JSON object, possibly in a code fence."""

_LIST_MARKER = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)、])\s+")


def build_write_answer(
    models: ChatModels, platform_info: PlatformInfo, rules: GroundingRules, refine: bool = False
) -> Runnable[PipelineState, PipelineState]:
    """Return the step `answer`, in which the first model that does not fail writes the answer.

    If `refine` is true, further model calls refine the answer with the chunks that did not fit the context
    window. The step raises ModelError if all models fail.
    """
    writer = _AnswerWriter(models, platform_info, rules, refine)

    async def answer(state: PipelineState, config: RunnableConfig) -> PipelineState:
        seconds = remaining_seconds(config)
        least, most = FALLBACK_RESERVE_S
        reserve = min(max(least, FALLBACK_RESERVE_SHARE * seconds), most, seconds / 2)
        config = with_deadline(config, seconds - reserve)
        errors: list[ModelError] = []
        for model in models.answer_models:
            run = with_fallback(config, model is not models.answer_models[-1])
            try:
                result = await writer.write_within_window(model, state, run)
            except ModelError as error:
                log.warning("%s: %s", STEP_NAME, error)
                errors.append(error)
                continue
            if errors:
                return mark_degraded(result, DegradedReason.from_error(errors[0]))
            return result
        raise errors[0]

    return NamedStep(answer, STEP_NAME)


class _AnswerWriter:
    """Drafts an answer from the chunks of a state with one model."""

    def __init__(
        self, models: ChatModels, platform_info: PlatformInfo, rules: GroundingRules, refine: bool
    ) -> None:
        self._platform_info = platform_info
        self._rules = rules
        self._split = split_chunks if refine else _fit_one_part
        # Models that convert plain text to JSON; empty if the answer models write JSON themselves.
        self._structure_models: tuple[ChatModel, ...] = ()
        if models.extraction_models != models.answer_models:
            self._structure_models = models.extraction_models
        language = platform_info.language
        self._plain_prompt = load_prompt("answer", language)
        self._answer = StructuredOutputCall(
            STEP_NAME, "answer", language, AnswerDraft, _answer_from_text
        )
        self._structure = StructuredOutputCall(STEP_NAME, "structure", language, AnswerDraft)

    async def write_within_window(
        self, model: ChatModel, state: PipelineState, config: RunnableConfig
    ) -> PipelineState:
        """Call `write`. Repeat it with fewer chunks if the prompt exceeds the context window.

        Raises ModelError, for example ContextExceeded after `MAX_SMALLER_PROMPTS` repetitions.
        """
        for _ in range(MAX_SMALLER_PROMPTS):
            try:
                return await self.write(model, state, config)
            except ContextExceeded as error:
                # `model` has corrected its window or its token estimate from the error.
                log.info("%s: trying again with fewer chunks: %s", STEP_NAME, error)
        return await self.write(model, state, config)

    async def write(
        self, model: ChatModel, state: PipelineState, config: RunnableConfig
    ) -> PipelineState:
        """Return the state with the model's draft and only the chunks that the model was shown.

        If a refining call fails, the result contains the draft so far, marked as degraded. Raises
        ModelError if the first call fails, or if the model's context window has no room for a chunk.
        """
        prompt_tokens = count_prompt_tokens(self._messages(self._variables(state, {}, [])))
        window = int(model.window / model.token_correction)
        parts = self._split(state["chunks"], window, prompt_tokens)
        shown_ids = {retrieved.chunk.id for part in parts for retrieved in part}
        if state["chunks"] and not shown_ids:
            problem = f"no document fits the context window of {model.window} tokens"
            raise ModelRefused(
                f"{model.role.setting}: {problem}; check {model.role.window_setting}", 400
            )
        shown = [retrieved for retrieved in state["chunks"] if retrieved.chunk.id in shown_ids]
        numbers = {r.chunk.id: number for number, r in enumerate(shown, 1)}
        draft: Draft | None = None
        for part in parts:
            variables = self._variables(state, numbers, part, draft)
            on_text = await self._begin_streaming(state, shown, config)
            try:
                draft = await self._write_part(model, variables, config, on_text)
            except ModelError as error:
                if draft is None:
                    raise
                log.warning("%s: refining stopped: %s", STEP_NAME, error)
                incomplete = with_draft(state, shown, draft)
                return mark_degraded(incomplete, DegradedReason.ANSWER_INCOMPLETE)
        assert draft is not None, "there is at least one part"
        return with_draft(state, shown, draft)

    async def _write_part(
        self,
        model: ChatModel,
        variables: PromptVariables,
        config: RunnableConfig,
        on_text: OnText | None,
    ) -> Draft:
        if self._structure_models:
            return await self._write_then_structure(model, variables, config, on_text)
        reply = await self._answer.ask(model, variables, config, on_text)
        return _draft(
            reply.value, model, is_cut=reply.method == "cut", is_text=reply.method == "text"
        )

    async def _write_then_structure(
        self,
        model: ChatModel,
        variables: PromptVariables,
        config: RunnableConfig,
        on_text: OnText | None,
    ) -> Draft:
        """Let `model` write plain text, and structure it with the first structure model that succeeds.

        If all structure models fail, `_draft_from_text` converts the text. Raises ModelError if `model` or
        this conversion fails.
        """
        run = child_config(config, f"{STEP_NAME}/model", prompt=self._plain_prompt.get_name())
        written = await model.ask(self._messages(variables), run)
        text, is_cut = reply_text(written), is_cut_reply(written)
        if is_cut:
            text = text.rpartition("\n")[0] or text
        structure_variables = {"question": variables["question"], "written": text}
        try:
            reply = await self._structure.ask_first(
                self._structure_models, structure_variables, config, on_text
            )
        except ModelError:
            return await asyncio.to_thread(_draft_from_text, text, model, is_cut)
        return _draft(reply.value, model, is_cut=is_cut or reply.method == "cut")

    async def _begin_streaming(
        self, state: PipelineState, chunks: list[RetrievedChunk], config: RunnableConfig
    ) -> OnText | None:
        """Send the sources; return the callback that streams the steps, or None without streaming."""
        if run_context(config).streamed is None:
            return None
        on_event = partial(emit, config)
        parser = PartialAnswerParser(on_event, state["question"], chunks, self._rules)
        await parser.begin()
        return parser.on_text

    def _messages(self, variables: PromptVariables) -> list[BaseMessage]:
        """Return the prompt for the answer, without a schema if a second model structures the answer."""
        if not self._structure_models:
            return self._answer.messages(variables)
        return self._plain_prompt.format_messages(schema=None, **variables)

    def _variables(
        self,
        state: PipelineState,
        numbers: Mapping[str, int],
        chunks: list[RetrievedChunk],
        draft: Draft | None = None,
    ) -> PromptVariables:
        question = state["question"]
        names = user_text(self._platform_info.language).languages
        return {
            "platform_info": self._platform_info,
            "greeting": self._platform_info.greeting.in_language(question.language),
            "gap": gap_opening(question),
            "not_covered": not_covered_sentence(self._platform_info, question),
            "answer_language": names[question.language],
            "chunks": [(numbers[retrieved.chunk.id], retrieved) for retrieved in chunks],
            "structured": state["classification"].structured.model_dump_json(
                by_alias=True, exclude={"search_terms"}
            ),
            "question": question.text,
            "draft": draft.answer.model_dump_json(by_alias=True) if draft else "",
        }


def _fit_one_part(
    chunks: list[RetrievedChunk], window: int, prompt_tokens: int
) -> list[list[RetrievedChunk]]:
    return [fit_chunks(chunks, window, prompt_tokens)]


def _answer_from_text(text: str) -> AnswerDraft | None:
    """Return plain text as an answer of one step; None if it is empty or looks like broken JSON."""
    text = strip_thinking(text)[:MAX_TEXT_ANSWER_CHARS].strip()
    return None if not text or text.startswith(("{", "[", "```")) else AnswerDraft(answer=[text])


def _draft_from_text(text: str, model: ChatModel, is_cut: bool) -> Draft:
    """Return a draft from JSON or, with one step per line, from plain text.

    Raises ModelOutputInvalid if `text` is empty, or is invalid JSON that contains an answer.
    """
    text = strip_thinking(text)
    if _JSON_START.match(text):
        try:
            value, _ = parse_object(text, AnswerDraft)
        except UnreadableReply:
            if "answer" in (partial_object(text) or {}):
                setting = model.role.setting
                raise ModelOutputInvalid(f"{setting}: the reply is invalid JSON") from None
        else:
            return _draft(value, model, is_cut=is_cut or is_unfinished(text))
    lines = text[:MAX_TEXT_ANSWER_CHARS].splitlines()
    steps = [step for line in lines if (step := _LIST_MARKER.sub("", line).strip())]
    if not steps:
        raise ModelOutputInvalid(f"{model.role.setting}: the reply is empty")
    return _draft(AnswerDraft(answer=steps), model, is_cut=is_cut, is_text=True)


def _draft(value: AnswerDraft, model: ChatModel, *, is_cut: bool, is_text: bool = False) -> Draft:
    """Return the draft of `model`, marked as degraded if the reply was cut off."""
    degraded = DegradedReason.ANSWER_INCOMPLETE if is_cut else None
    return Draft(value, model.name, is_plain_text=is_text, degraded=degraded)


# --- streaming ------------------------------------------------------------------------------------


MAX_STREAMED_CHARS = 50_000
"""Number of characters of a reply after which its steps are no longer streamed."""

MAX_PARSES = 300
"""Number of times that a reply is parsed before its steps are no longer streamed."""

_QUOTE = re.compile(r'(?<!\\)"')
"""A quotation mark that may end a step. A quotation mark inside a step is escaped, and does not match."""


class PartialAnswerParser:
    """Parses a reply while the model writes it, and sends the events `sources` and `step`.

    Steps are not sent until one of them is supported by the chunks that it cites, because an answer without
    supported steps may be replaced, and some clients cannot remove text that they have displayed.
    """

    def __init__(
        self,
        on_event: EventSink,
        question: Question,
        chunks: Sequence[RetrievedChunk],
        rules: GroundingRules,
    ) -> None:
        self._on_event = on_event
        self._question = question
        self._chunks = chunks
        self._rules = rules

    async def begin(self) -> None:
        """Send the sources, and forget all earlier steps.

        Call `begin` before `on_text`. If the model starts another attempt after complete steps, `on_text`
        calls `begin` again.
        """
        sources = [Source.from_chunk(number, r) for number, r in enumerate(self._chunks, 1)]
        await self._on_event(Event("sources", Sources(sources=sources)))
        self._grounder = Grounder(self._question, self._chunks, self._rules)
        self._text_length = 0
        """Length of the reply so far, in characters."""
        self._complete_steps = 0
        """Number of complete steps in the reply so far."""
        self._parses = 0
        """Number of times that the reply has been parsed."""
        self._steps: list[Step] = []
        """The steps so far, without steps that grounding removed completely."""

    async def on_text(self, text: str) -> None:
        """Send the steps that have become complete since the last call; `text` is the reply so far."""
        if len(text) < self._text_length:  # the text belongs to another attempt
            self._text_length = 0
            if self._complete_steps:
                await self.begin()
        new = text[self._text_length :]
        self._text_length = len(text)
        if not _QUOTE.search(new) or len(text) > MAX_STREAMED_CHARS or self._parses == MAX_PARSES:
            return
        self._parses += 1
        for step in complete_steps(text)[self._complete_steps :]:
            self._complete_steps += 1
            grounded = self._grounder.check_step(step)
            if grounded.text:
                await self._send(grounded)

    async def _send(self, grounded: GroundedStep) -> None:
        """Send the steps that are not yet sent, then `grounded`; send nothing if no step is supported."""
        is_held = not any(step.supported for step in self._steps)
        step = Step(
            number=len(self._steps) + 1,
            text=grounded.text,
            unverified=list(grounded.unverified),
            supported=grounded.supported,
        )
        self._steps.append(step)
        if step.supported or not is_held:
            for each in self._steps if is_held else [step]:
                await self._on_event(Event("step", each))


def complete_steps(text: str) -> list[str]:
    """Return the complete elements of the list `answer` in `text`, which may be unfinished JSON."""
    steps = (partial_object(text) or {}).get("answer")
    if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
        return []
    return [step for step in steps if step.strip()]
