"""The body of a request, read so that whatever cannot be read is the caller's error."""

import json
from typing import Any

from litestar import Request
from litestar.exceptions import ClientException, SerializationException
from litestar.serialization import decode_json

from app.characters import whole_characters


class JsonRequest(Request[Any, Any, Any]):
    r"""A request whose JSON may hold half of a surrogate pair (`"\ud83d"`)."""

    async def json(self) -> Any:
        """The body's JSON value. Raises ClientException when it has none, or nests too deeply."""
        try:
            return _decode(await self.body())
        except (ValueError, RecursionError, SerializationException) as error:
            raise ClientException from error


def _decode(body: bytes) -> Any:
    text = json.dumps(json.loads(body.decode()), ensure_ascii=False)
    return decode_json(whole_characters(text))
