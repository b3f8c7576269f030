"""Creates the Litestar application: routes, dependencies, guard, error handlers and OpenAPI document.

The MCP SDK is imported on the first POST request to /mcp, so that startup is fast.
"""

import asyncio
from importlib.metadata import metadata
from types import ModuleType

from litestar import Litestar, Router, asgi
from litestar.di import Provide
from litestar.exceptions import (
    HTTPException,
    MethodNotAllowedException,
    NotFoundException,
    ValidationException,
)
from litestar.handlers import ASGIRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, YamlRenderPlugin
from litestar.plugins import PluginProtocol
from litestar.plugins.problem_details import ProblemDetailsConfig, ProblemDetailsPlugin
from litestar.plugins.pydantic import PydanticPlugin
from litestar.types import ControllerRouterHandler, Receive, Scope, Send

from app.api.admin import get_ingestion, insights, list_ingestions, start_ingestion
from app.api.ask import ask, delete_session, give_feedback, retrieve
from app.api.fields import check_query, invalid_request
from app.api.health import live, live_head, metrics, metrics_head, ready, ready_head
from app.api.openai.protocol import handle_unrouted
from app.api.openai.routes import openai_router
from app.api.openapi import (
    SECURITY_REQUIREMENTS,
    SECURITY_SCHEMES,
    TAGS,
    AllowHeaderPlugin,
    JsonRequest,
    OpenApiModelsPlugin,
    OpenApiProblemsPlugin,
)
from app.api.page import PageController, PageFiles
from app.api.problems import apidesk_problem, http_problem, unexpected_problem
from app.api.question_sources import LoggedQuestions
from app.api.request_body import BodyDeadline, ClientDisconnected, handle_disconnect
from app.api.suggestions import SuggestedQuestions, get_suggestions
from app.container import Container
from app.security.access import AuthGuard, get_caller
from app.security.headers import add_security_headers, cors_config
from app.service.answer_service import AnswerService
from app.telemetry.request_log import RequestLog
from schemas.errors import ApideskError


def create_app(answer_service: AnswerService, local_key: str | None = None) -> Litestar:
    """Return the application for `answer_service`.

    This function blocks while the database is read. The caller opens and closes the answer service.
    `local_key` is an API key that has every scope and is accepted only from this machine; None means that
    there is no such key. Raises ConfigurationError for invalid settings, and StoreUnavailable if the
    database cannot be used.
    """
    services = Container(answer_service, local_key)
    app = Litestar(
        route_handlers=_routes(services),
        dependencies=dependencies_of(services),
        guards=[AuthGuard(services.keyring, services.limits).check, check_query],
        before_send=[add_security_headers],
        cors_config=cors_config(answer_service.settings),
        lifespan=[lambda _: services.running()],
        request_class=JsonRequest,
        request_max_body_size=answer_service.settings.max_body_bytes,
        logging_config=None,  # configured by app.telemetry.logs
        exception_handlers={
            NotFoundException: handle_unrouted,
            MethodNotAllowedException: handle_unrouted,
            ValidationException: invalid_request,
            ClientDisconnected: handle_disconnect,
            Exception: unexpected_problem,
        },
        openapi_config=_openapi_config(),
        plugins=_plugins(),
    )
    with_deadline = BodyDeadline(answer_service.settings.request_timeout)(app.asgi_handler)
    app.asgi_handler = RequestLog(answer_service.metrics)(with_deadline)
    return app


def _routes(services: Container) -> list[ControllerRouterHandler]:
    question_routes = [ask, retrieve, get_suggestions, give_feedback, delete_session]
    ingestion_routes = [start_ingestion, list_ingestions, get_ingestion]
    operations_routes = [
        live,
        live_head,
        ready,
        ready_head,
        metrics,
        metrics_head,
        insights,
    ]
    return [
        *question_routes,
        *ingestion_routes,
        *operations_routes,
        PageController,
        openai_router(),
        mcp_route(services),
    ]


def dependencies_of(services: Container) -> dict[str, Provide]:
    """Return the objects that Litestar injects into routes, by parameter name."""
    return {
        **{name: _provide(service) for name, service in services.dependencies.items()},
        "files": _provide(PageFiles(services.answer_service.platform.platform)),
        "logged_questions": _provide(LoggedQuestions(services.records)),
        "suggestions": _provide(SuggestedQuestions(services.answer_service.collection)),
        "caller": Provide(get_caller, sync_to_thread=False),
    }


def _provide(service: object) -> Provide:
    return Provide(lambda: service, sync_to_thread=False)


def _plugins() -> list[PluginProtocol]:
    problems = ProblemDetailsConfig(
        exception_to_problem_detail_map={
            ApideskError: apidesk_problem,
            HTTPException: http_problem,
        }
    )
    return [
        OpenApiModelsPlugin(),
        PydanticPlugin(prefer_alias=True, validate_strict=True),
        OpenApiProblemsPlugin(),
        AllowHeaderPlugin(),
        ProblemDetailsPlugin(problems),
    ]


def _openapi_config() -> OpenAPIConfig:
    return OpenAPIConfig(
        title="apidesk",
        summary=metadata("apidesk")["Summary"],
        version=metadata("apidesk")["Version"],
        tags=TAGS,
        use_handler_docstrings=True,
        openapi_router=Router(
            "/schema", route_handlers=[], opt={"needs": None}, include_in_schema=False
        ),
        components=SECURITY_SCHEMES,
        security=SECURITY_REQUIREMENTS,
        render_plugins=[JsonRenderPlugin(), YamlRenderPlugin()],
    )


def mcp_route(services: Container) -> ASGIRouteHandler:
    """Return the route of the MCP server. The guard of the application also checks its requests.

    The guard does not count these requests towards the rate limit, because clients list the tools before
    each call. Instead, each tool call and each request that lists or reads resources is counted.
    """

    @asgi("/mcp", copy_scope=True, needs="ask", limited=False)
    async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") != "POST":  # GET and DELETE need MCP sessions, which are not used
            raise MethodNotAllowedException
        server = await asyncio.to_thread(_import_server)
        await server.handle_request(services, scope, receive, send)

    return mcp


def _import_server() -> ModuleType:
    """Return `app.api.mcp.server`. The first call is slow, because it imports the MCP SDK and LangChain."""
    from app.api.mcp import server

    return server
