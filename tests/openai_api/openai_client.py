"""Calls of the OpenAI-compatible API with OpenAI's client."""

from typing import Any

import openai
from openai import OpenAI
from openai.types.chat import ChatCompletion

QUESTION = "发货接口是哪个"


def open_client(url: str, key: str = "none") -> OpenAI:
    """OpenAI's client without automatic retries."""
    return OpenAI(
        base_url=f"{url}/v1",
        api_key=key,
        max_retries=0,
        timeout=20,
        http_client=openai.DefaultHttpxClient(trust_env=False),
    )


def user(text: object) -> Any:
    return {"role": "user", "content": text}


def complete(client: OpenAI, *messages: Any, model: str = "apidesk", **more: Any) -> ChatCompletion:
    completion = client.chat.completions.create(model=model, messages=messages, **more)
    assert isinstance(completion, ChatCompletion)
    return completion
