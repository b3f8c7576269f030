"""How routes fail, as the OpenAPI document has it.

A route names what it may raise beyond what everybody meets: `errors=(IngestionRunning,)`.
"""

from collections.abc import Mapping
from http import HTTPStatus
from inspect import getdoc

from litestar.handlers import HTTPRouteHandler
from litestar.openapi import ResponseSpec
from litestar.params import BodyKwarg, HeaderParameter, PathParameter, QueryParameter
from litestar.plugins import ReceiveRoutePlugin
from litestar.routes import BaseRoute, HTTPRoute

from app.problems import PROBLEM_JSON, Problem, status_of
from schemas.errors import ApideskError

BAD = "The request is not as it is described; `detail` names what is wrong"
UNKNOWN = "There is none of this name, or it is another caller's"
TOO_LARGE = "The body, or what it says, is larger than this server takes"
UNFORESEEN = "Something went wrong here"

_INPUTS = (BodyKwarg, PathParameter, QueryParameter, HeaderParameter)


class OpenApiProblemsPlugin(ReceiveRoutePlugin):
    """Says in the OpenAPI document how each route fails, its guard aside."""

    def receive_route(self, route: BaseRoute) -> None:
        """Describe the handlers of a route that is being registered."""
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else []:
            if handler.include_in_schema:
                describe(handler, _problems(handler, bool(route.path_parameters)))


def describe(handler: HTTPRouteHandler, problems: Mapping[int, str]) -> None:
    """Add problems, by status, to what the document says of `handler`; what it says itself stays."""
    added = {
        status: ResponseSpec(Problem, False, problem, PROBLEM_JSON)
        for status, problem in problems.items()
    }
    handler.responses = dict(sorted({**added, **(handler.responses or {})}.items()))


def _problems(handler: HTTPRouteHandler, named: bool) -> dict[int, str]:
    """What may come of a request, by status; `named`: whether its path names something."""
    parameters = handler.parsed_fn_signature.parameters
    problems: dict[int, str] = {}
    if any(isinstance(field.kwarg_definition, _INPUTS) for field in parameters.values()):
        problems[HTTPStatus.BAD_REQUEST] = BAD
    if named:
        problems[HTTPStatus.NOT_FOUND] = UNKNOWN
    if "data" in parameters:
        problems[HTTPStatus.REQUEST_ENTITY_TOO_LARGE] = TOO_LARGE
    problems[HTTPStatus.INTERNAL_SERVER_ERROR] = UNFORESEEN
    for status, said in _sentences(handler.opt.get("errors", ())).items():
        problems[status] = " ".join(said).rstrip(".")
    return problems


def _sentences(errors: tuple[type[ApideskError], ...]) -> dict[int, list[str]]:
    """What errors say of themselves, by their status."""
    said: dict[int, list[str]] = {}
    for error in errors:
        said.setdefault(status_of(error), []).append((getdoc(error) or "").splitlines()[0])
    return said
