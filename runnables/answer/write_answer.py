"""Chunks -> those that fit a model's context window, best first, whole; or parts that each fit.
Evidence -> a written answer: by one model call, or by two where a second model structures it.
"""

import json
import logging
import re
from collections.abc import Mapping

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.text.language import estimate_tokens
from prompts import load_prompt
from runnables.answer.partial_answer import PartialAnswerParser
from runnables.grounding.grounded_step import GroundingRules
from runnables.models.chat_model import ChatModel, OnText
from runnables.models.chat_models import ChatModels
from runnables.models.json_text import strip_thinking
from runnables.models.structured_output import PromptVariables, StructuredOutputCall, reply_text
from runnables.run_context import (
    child_config,
    event_sink,
    named_step,
    remaining_seconds,
    with_deadline,
)
from runnables.state import Draft, PipelineState, mark_degraded, with_draft
from schemas.answer import AnswerDraft
from schemas.degraded import DegradedReason
from schemas.document import RetrievedChunk
from schemas.errors import ModelError, ModelOutputInvalid
from schemas.platform import PlatformInfo

MAX_OUTPUT_SHARE = 0.25
OUTPUT_TOKENS = 1_500
"""Tokens kept for the reply, but at most `MAX_OUTPUT_SHARE` of the window."""

TAG_TOKENS = 12
"""Tokens of the tags around a chunk."""

MAX_PARTS = 4
"""Calls that one answer may take: what stands behind so much text is no answer to the question."""

log = logging.getLogger(__name__)


def fit_chunks(chunks: list[RetrievedChunk], window: int, prompt: str) -> list[RetrievedChunk]:
    """The chunks, in order, that fit a window of `window` tokens beside `prompt` and the reply.

    `prompt` is what is never cut: question, schema and instructions. A chunk that does not fit is
    left out whole, and a smaller one after it may still come in; what is left out is logged.
    """
    reply = min(OUTPUT_TOKENS, window * MAX_OUTPUT_SHARE)
    room = window - reply - estimate_tokens(prompt)
    kept: list[RetrievedChunk] = []
    for retrieved in chunks:
        tokens = estimate_tokens(retrieved.chunk.text) + TAG_TOKENS
        if tokens <= room:
            kept.append(retrieved)
            room -= tokens
    if len(kept) < len(chunks):
        left_out = [r.chunk.id for r in chunks if r not in kept]
        log.info("left out of a window of %d tokens: %s", window, ", ".join(left_out))
    return kept


def split_chunks(
    chunks: list[RetrievedChunk], window: int, prompt: str
) -> list[list[RetrievedChunk]]:
    """`chunks` in parts of which each fits as `fit_chunks` says, at most `MAX_PARTS`.

    From the second on, a part leaves room for an answer beside it.
    """
    parts = [fit_chunks(chunks, window, prompt)]
    left = [retrieved for retrieved in chunks if retrieved not in parts[0]]
    while left and len(parts) < MAX_PARTS:
        reply = int(min(OUTPUT_TOKENS, window * MAX_OUTPUT_SHARE))
        if not (part := fit_chunks(left, window - reply, prompt)):
            break
        parts.append(part)
        left = [retrieved for retrieved in left if retrieved not in part]
    return parts


NAME = "answer"

FALLBACK_RESERVE_S = 1.0
"""What is left for an answer without a model, should the models fail; never more than half."""

MAX_TEXT_ANSWER_CHARS = 4_000
"""Characters of a reply without JSON that become an answer."""

_SCHEMA = json.dumps(AnswerDraft.model_json_schema(), ensure_ascii=False)
_STEP_NUMBER = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)、])\s+")


def build_write_answer(
    models: ChatModels, platform_info: PlatformInfo, rules: GroundingRules, refine: bool = False
) -> Runnable[PipelineState, PipelineState]:
    """The step `answer`; with `refine` what does not fit the window is worked in by further calls.

    Raises ModelError when every model failed.
    """
    writer = _AnswerWriter(models, platform_info, rules, refine)

    async def answer(evidence: PipelineState, config: RunnableConfig) -> PipelineState:
        left = remaining_seconds(config)
        config = with_deadline(config, left - min(FALLBACK_RESERVE_S, left / 2))
        errors: list[ModelError] = []
        for model in models.answer_models:
            try:
                drafted = await writer.write(model, evidence, config)
            except ModelError as error:
                log.warning("%s: %s", NAME, error)
                errors.append(error)
                continue
            if errors:
                return mark_degraded(drafted, DegradedReason.from_error(errors[0]))
            return drafted
        raise errors[0]

    return named_step(NAME, answer)


class _AnswerWriter:
    """Asks one model for the answer to one piece of evidence."""

    def __init__(
        self, models: ChatModels, platform_info: PlatformInfo, rules: GroundingRules, refine: bool
    ) -> None:
        self._platform_info = platform_info
        self._rules = rules
        self._split = split_chunks if refine else _fit_one_part
        self._structurers = (
            models.extraction_models if models.extraction_models != models.answer_models else ()
        )
        language = platform_info.language
        self._answer = StructuredOutputCall(
            NAME, "answer", language, AnswerDraft, _answer_from_text
        )
        self._structure = StructuredOutputCall(NAME, "structure", language, AnswerDraft)

    async def write(
        self, model: ChatModel, evidence: PipelineState, config: RunnableConfig
    ) -> PipelineState:
        """The evidence with the model's answer; its chunks are those that it was shown.

        Raises ModelError when there is no answer at all; a part that could not be worked in leaves the
        answer as it was, marked `degraded`.
        """
        schema = None if self._structurers else _SCHEMA
        bare = self._render(self._variables(evidence, {}, []), schema)
        parts = self._split(evidence["chunks"], int(model.window / model.token_correction), bare)
        shown = [r for r in evidence["chunks"] if any(r in part for part in parts)]
        numbers = {r.chunk.id: number for number, r in enumerate(shown, 1)}
        written: Draft | None = None
        for part in parts:
            variables = self._variables(evidence, numbers, part, written)
            follow = await self._follower(evidence, shown, config)
            try:
                written = await self._write(model, variables, config, follow)
            except ModelError as error:
                if written is None:
                    raise
                log.warning("%s: refining stopped: %s", NAME, error)
                incomplete = with_draft(evidence, shown, written)
                return mark_degraded(incomplete, DegradedReason.ANSWER_INCOMPLETE)
        assert written is not None, "there is always a part"
        return with_draft(evidence, shown, written)

    async def _write(
        self,
        model: ChatModel,
        variables: PromptVariables,
        config: RunnableConfig,
        follow: OnText | None,
    ) -> Draft:
        if self._structurers:
            return await self._write_freely(model, variables, config, follow)
        answered = await self._answer.ask(model, variables, config, follow)
        return Draft(answered.value, model.name, as_text=answered.method == "text")

    async def _follower(
        self, evidence: PipelineState, chunks: list[RetrievedChunk], config: RunnableConfig
    ) -> OnText | None:
        """What tells of each step as it is written, where somebody listens."""
        if (listener := event_sink(config)) is None:
            return None
        partial = PartialAnswerParser(listener, evidence["question"], chunks, self._rules)
        await partial.begin()
        return partial.follow

    async def _write_freely(
        self,
        model: ChatModel,
        variables: PromptVariables,
        config: RunnableConfig,
        follow: OnText | None,
    ) -> Draft:
        """The model's own text, put into the schema by the structure model, or else by its lines."""
        run = child_config(config, f"{NAME}/model")
        prompt = HumanMessage(self._render(variables, schema=None))
        text = reply_text(await model.ask([prompt], run))
        given = {"question": variables["question"], "written": text}
        try:
            structured = await self._structure.ask_first(self._structurers, given, config, follow)
        except ModelError:
            return Draft(_answer_from_lines(text, model), model.name, as_text=True)
        return Draft(structured.value, model.name)

    def _render(self, variables: PromptVariables, schema: str | None = _SCHEMA) -> str:
        return load_prompt("answer", self._platform_info.language).render(
            schema=schema, **variables
        )

    def _variables(
        self,
        evidence: PipelineState,
        numbers: Mapping[str, int],
        chunks: list[RetrievedChunk],
        written: Draft | None = None,
    ) -> PromptVariables:
        asked = evidence["question"]
        return {
            "platform_info": self._platform_info,
            "greeting": self._platform_info.say(self._platform_info.greeting, asked.language),
            "language": asked.language,
            "chunks": [(numbers[r.chunk.id], r) for r in chunks],
            "structured": evidence["classification"].structured.model_dump_json(by_alias=True),
            "question": asked.text,
            "draft": written.draft.model_dump_json(by_alias=True) if written else "",
        }


def _fit_one_part(
    chunks: list[RetrievedChunk], window: int, prompt: str
) -> list[list[RetrievedChunk]]:
    return [fit_chunks(chunks, window, prompt)]


def _answer_from_text(text: str) -> AnswerDraft | None:
    """A reply without JSON as an answer of one step; none of what was meant to be JSON."""
    text = strip_thinking(text)[:MAX_TEXT_ANSWER_CHARS].strip()
    return None if not text or text.startswith(("{", "[", "```")) else AnswerDraft(answer=[text])


def _answer_from_lines(text: str, model: ChatModel) -> AnswerDraft:
    """A freely written answer: a step a line."""
    lines = strip_thinking(text)[:MAX_TEXT_ANSWER_CHARS].splitlines()
    steps = [step for line in lines if (step := _STEP_NUMBER.sub("", line).strip())]
    if not steps:
        raise ModelOutputInvalid(f"{model.role.setting}: the reply is empty")
    return AnswerDraft(answer=steps)
