"""Counts the tokens that the models use for one question, with LangChain callbacks."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, LLMResult

from ingestion.text.language import estimate_tokens


@dataclass
class _ModelCall:
    """Estimated tokens of a call in progress."""

    prompt_tokens: int
    completion_tokens: int = 0


class TokenMeter(AsyncCallbackHandler):
    """Counts the tokens of all calls. Counts that the provider does not report are estimated."""

    run_inline = True  # otherwise LangChain creates a task for each token

    def __init__(self) -> None:
        self._prompt = 0
        self._completion = 0
        self._calls: dict[UUID, _ModelCall] = {}

    @property
    def tokens(self) -> int:
        """All tokens so far, including those of calls that were cancelled."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def prompt_tokens(self) -> int:
        """The input tokens so far."""
        return self._prompt + sum(call.prompt_tokens for call in self._calls.values())

    @property
    def completion_tokens(self) -> int:
        """The output tokens so far."""
        return self._completion + sum(call.completion_tokens for call in self._calls.values())

    async def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Estimate the tokens of the prompt."""
        texts = (message.text for batch in messages for message in batch)
        self._calls[run_id] = _ModelCall(sum(map(estimate_tokens, texts)))

    async def on_llm_new_token(
        self, token: str | list[str | dict[str, Any]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Estimate the tokens of an output chunk."""
        if call := self._calls.get(run_id):
            call.completion_tokens += estimate_tokens(
                token if isinstance(token, str) else str(token)
            )

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Use the counts of the provider if it reports them."""
        call = self._calls.pop(run_id, _ModelCall(0))
        generations = [generation for batch in response.generations for generation in batch]
        usages = [usage for generation in generations if (usage := _reported_usage(generation))]
        if usages:
            prompt = sum(usage["input_tokens"] for usage in usages)
            self._add(prompt, sum(usage["total_tokens"] for usage in usages) - prompt)
        else:
            completion = sum(estimate_tokens(generation.text) for generation in generations)
            self._add(call.prompt_tokens, completion)

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the estimate, unless the provider rejected the call or could not be reached."""
        call = self._calls.pop(run_id, _ModelCall(0))
        was_rejected = hasattr(error, "status_code") or "Connect" in type(error).__name__
        if call.completion_tokens or not was_rejected:
            self._add(call.prompt_tokens, call.completion_tokens)

    def _add(self, prompt: int, completion: int) -> None:
        self._prompt += prompt
        self._completion += completion


def _reported_usage(generation: Any) -> UsageMetadata | None:
    message = generation.message if isinstance(generation, ChatGeneration) else None
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    return usage if usage and usage["total_tokens"] else None
