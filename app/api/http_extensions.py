"""Extensions of Litestar's HTTP handling: request bodies and the `Allow` header."""

import json
from typing import Any

from litestar import Request
from litestar.exceptions import ClientException, SerializationException
from litestar.plugins import ReceiveRoutePlugin
from litestar.routes import BaseRoute, HTTPRoute
from litestar.serialization import decode_json

from ingestion.text.language import replace_surrogates


class JsonRequest(Request[Any, Any, Any]):
    r"""A request whose JSON body may contain unpaired surrogates (`"\ud83d"`)."""

    async def json(self) -> Any:
        """Return the JSON value of the body. Raises ClientException if it is invalid or too deep."""
        try:
            return _decode(await self.body())
        except (ValueError, RecursionError, SerializationException) as error:
            raise ClientException from error


def _decode(body: bytes) -> Any:
    text = json.dumps(json.loads(body.decode()), ensure_ascii=False)
    return decode_json(replace_surrogates(text))


class AllowHeaderPlugin(ReceiveRoutePlugin):
    """Makes `Allow` list every method of a path; Litestar lists those of the first handler only."""

    def __init__(self) -> None:
        self._first_routes: dict[str, HTTPRoute] = {}

    def receive_route(self, route: BaseRoute) -> None:
        """Copy the methods of a route, which grow with each handler, to the first route of its path."""
        if isinstance(route, HTTPRoute):
            self._first_routes.setdefault(route.path, route).methods = route.methods
