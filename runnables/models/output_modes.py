"""Binding of a model's client to an output mode, and recognition of refused modes."""

import warnings
from typing import Any

from langchain_core.runnables import Runnable, RunnableBinding, RunnableSequence
from pydantic import BaseModel

from runnables.models.chat_model import ChatModel, OutputMode
from schemas.errors import ModelRefused

MODES: tuple[OutputMode, ...] = ("json_schema", "json_mode", "plain")
"""All modes, best first."""


def bound_client(model: ChatModel, mode: OutputMode, schema: type[BaseModel]) -> Runnable[Any, Any]:
    """Return the model's client bound to an output mode.

    It is cached, because binding takes a millisecond. Raises NotImplementedError as `bind_output_mode`.
    """
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
    # Without the parser at the end of the sequence, which takes minutes for long text.
    bound = structured.first if isinstance(structured, RunnableSequence) else structured
    return _with_raw_response_format(bound)


def may_be_about_mode(error: Exception) -> bool:
    """Return whether another mode may avoid `error`; it cannot if the key, model or address is wrong."""
    return not isinstance(error, ModelRefused) or error.status not in (401, 403, 404)


def _with_raw_response_format(bound: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Return `bound` with its response format moved into the request body, hidden from OpenAI's client.

    The client would otherwise parse every streamed chunk by the format, which takes a third longer.
    """
    if not isinstance(bound, RunnableBinding) or not hasattr(bound.bound, "extra_body"):
        return bound
    options = dict(bound.kwargs)
    if (response_format := options.pop("response_format", None)) is not None:
        options["extra_body"] = {"response_format": response_format}
    return bound.bound.bind(**options)
