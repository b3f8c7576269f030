"""The output modes of a provider: the client bound to each, and the errors that refuse one."""

import warnings
from typing import Any

from langchain_core.runnables import Runnable, RunnableBinding, RunnableSequence
from pydantic import BaseModel

from runnables.models.chat_model import ChatModel, OutputMode
from schemas.errors import ModelRefused

MODES: tuple[OutputMode, ...] = ("json_schema", "json_mode", "plain")
"""All modes, best first."""


def bound_client(model: ChatModel, mode: OutputMode, schema: type[BaseModel]) -> Runnable[Any, Any]:
    """Return the client of `bind_output_mode`, cached because binding takes a millisecond."""
    if (mode, schema) not in model.clients_by_mode:
        model.clients_by_mode[mode, schema] = bind_output_mode(model, mode, schema)
    return model.clients_by_mode[mode, schema]


def bind_output_mode(
    model: ChatModel, mode: OutputMode, schema: type[BaseModel]
) -> Runnable[Any, Any]:
    """Return the model's client bound to an output mode.

    Raises NotImplementedError if LangChain knows that the provider does not support the mode.
    """
    if mode == "plain":
        return model.client
    try:
        with warnings.catch_warnings():  # Anthropic's client warns about an unknown method
            warnings.filterwarnings("error", message="Unrecognized structured output method")
            structured = model.client.with_structured_output(
                schema.model_json_schema(), method=mode
            )
    except (ValueError, UserWarning) as error:
        raise NotImplementedError from error
    # The sequence ends with LangChain's parser, which takes minutes for long text.
    bound = structured.first if isinstance(structured, RunnableSequence) else structured
    return _with_raw_response_format(bound)


def may_be_about_mode(error: Exception) -> bool:
    """Whether another mode may help: it does not against a wrong key, model or address."""
    return not isinstance(error, ModelRefused) or error.status not in (401, 403, 404)


def _with_raw_response_format(bound: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """`bound` with its response format in the request body, where OpenAI's client does not see it.

    The client would parse every streamed chunk by the format, which takes a third longer.
    """
    if not isinstance(bound, RunnableBinding) or not hasattr(bound.bound, "extra_body"):
        return bound
    options = dict(bound.kwargs)
    if (response_format := options.pop("response_format", None)) is not None:
        options["extra_body"] = {"response_format": response_format}
    return bound.bound.bind(**options)
