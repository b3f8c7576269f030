"""How many tokens the models took for one question, read off LangChain's callbacks."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, LLMResult

from ingestion.text.language import estimate_tokens


@dataclass
class _Call:
    """A call that has not ended: what was asked, and what came of it so far."""

    prompt: int
    pieces: int = 0


class TokenMeter(AsyncCallbackHandler):
    """Adds up the tokens of every call; where a provider tells none, they are estimated."""

    run_inline = True  # else LangChain makes a task of each token

    def __init__(self) -> None:
        self._prompt = 0
        self._completion = 0
        self._calls: dict[UUID, _Call] = {}

    @property
    def tokens(self) -> int:
        """So far, with those of calls that were given up before their end."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def prompt_tokens(self) -> int:
        """Those that models read."""
        return self._prompt + sum(call.prompt for call in self._calls.values())

    @property
    def completion_tokens(self) -> int:
        """Those that models wrote."""
        return self._completion + sum(call.pieces for call in self._calls.values())

    async def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Estimate the prompt."""
        texts = (message.text for batch in messages for message in batch)
        self._calls[run_id] = _Call(sum(map(estimate_tokens, texts)))

    async def on_llm_new_token(
        self, token: str | list[str | dict[str, Any]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Estimate a piece that came."""
        if call := self._calls.get(run_id):
            call.pieces += estimate_tokens(token if isinstance(token, str) else str(token))

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Take what the provider counted, where it did."""
        call = self._calls.pop(run_id, _Call(0))
        generations = [generation for batch in response.generations for generation in batch]
        told = [usage for generation in generations if (usage := _told(generation))]
        if told:
            read = sum(usage["input_tokens"] for usage in told)
            self._add(read, sum(usage["total_tokens"] for usage in told) - read)
        else:
            self._add(call.prompt, sum(estimate_tokens(g.text) for g in generations))

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A call that a provider refused, or that never reached one, took nothing."""
        call = self._calls.pop(run_id, _Call(0))
        refused = hasattr(error, "status_code") or "Connect" in type(error).__name__
        if call.pieces or not refused:
            self._add(call.prompt, call.pieces)

    def _add(self, prompt: int, completion: int) -> None:
        self._prompt += prompt
        self._completion += completion


def _told(generation: Any) -> UsageMetadata | None:
    message = generation.message if isinstance(generation, ChatGeneration) else None
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    return usage if usage and usage["total_tokens"] else None
