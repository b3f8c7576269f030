"""OPTIONS of every path"""

from litestar.plugins import ReceiveRoutePlugin
from litestar.routes import BaseRoute, HTTPRoute


class AllowHeaderPlugin(ReceiveRoutePlugin):
    """Makes `Allow` name every method of a path: Litestar stops at those of its first handler."""

    def __init__(self) -> None:
        self._first: dict[str, HTTPRoute] = {}

    def receive_route(self, route: BaseRoute) -> None:
        """Take notice of a route, be it new or one more handler's for a known path."""
        if isinstance(route, HTTPRoute):
            self._first.setdefault(route.path, route).methods = route.methods
