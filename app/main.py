"""create_app(desk): the HTTP service, put together."""

from importlib.metadata import metadata

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, YamlRenderPlugin
from litestar.plugins.problem_details import ProblemDetailsConfig, ProblemDetailsPlugin
from litestar.plugins.pydantic import PydanticPlugin

from app.api.ask import ask
from app.api.feedback import delete_session, give_feedback
from app.api.fields import JsonRequest
from app.api.health import live, metrics, ready
from app.api.ingestions import begin_ingestion, get_ingestion, list_ingestions
from app.api.insights import insights
from app.api.mcp import mcp_route
from app.api.openai_chat import complete_chat
from app.api.openai_models import HANDLERS, PREFIX, get_model, handle_lost, list_models
from app.api.openapi import TAGS, AllowHeaderPlugin, OpenApiModelsPlugin, OpenApiProblemsPlugin
from app.api.page import admin_page, asset, embedded_page, page, widget
from app.api.problems import apidesk_problem, http_problem, unexpected_problem
from app.api.retrieve import retrieve
from app.api.suggestions import suggest
from app.security.access import SCHEMES, SECURITY, AuthGuard, OpenApiSecurityPlugin, caller_of
from app.security.headers import add_security_headers, cors_config
from app.service.answer_service import AnswerService
from app.service.container import Container
from app.telemetry.request_log import RequestLog
from schemas.errors import ApideskError


def create_app(answer_service: AnswerService, local_key: str | None = None) -> Litestar:
    """The application over an open desk, which whoever opened it closes.

    `local_key` is taken from this machine as an API key with every scope. It blocks. Raises
    ConfigurationError, and StoreUnavailable when the database does not answer.
    """
    services = Container(answer_service, local_key)
    app = Litestar(
        route_handlers=[
            ask,
            give_feedback,
            delete_session,
            retrieve,
            begin_ingestion,
            list_ingestions,
            get_ingestion,
            live,
            ready,
            metrics,
            insights,
            suggest,
            page,
            admin_page,
            embedded_page,
            widget,
            asset,
            mcp_route(services),
            Router(
                PREFIX,
                route_handlers=[complete_chat, list_models, get_model],
                exception_handlers=HANDLERS,
            ),
        ],
        dependencies={
            **{name: _provided(service) for name, service in services.by_name.items()},
            "caller": Provide(caller_of, sync_to_thread=False),
        },
        guards=[AuthGuard(services.keyring, services.limits).check],
        before_send=[add_security_headers],
        cors_config=cors_config(answer_service.settings),
        lifespan=[lambda _: services.running()],
        request_class=JsonRequest,
        request_max_body_size=answer_service.settings.max_body_bytes,
        logging_config=None,  # app.telemetry.logs has done it
        exception_handlers={
            NotFoundException: handle_lost,
            MethodNotAllowedException: handle_lost,
            Exception: unexpected_problem,
        },
        openapi_config=OpenAPIConfig(
            title="apidesk",
            summary=metadata("apidesk")["Summary"],
            version=metadata("apidesk")["Version"],
            tags=TAGS,
            use_handler_docstrings=True,
            openapi_router=Router(
                "/schema", route_handlers=[], opt={"needs": None}, include_in_schema=False
            ),
            components=SCHEMES,
            security=SECURITY,
            render_plugins=[JsonRenderPlugin(), YamlRenderPlugin()],
        ),
        plugins=[
            OpenApiModelsPlugin(),
            PydanticPlugin(prefer_alias=True, validate_strict=True),
            OpenApiSecurityPlugin(),
            OpenApiProblemsPlugin(),
            AllowHeaderPlugin(),
            ProblemDetailsPlugin(
                ProblemDetailsConfig(
                    exception_to_problem_detail_map={
                        ApideskError: apidesk_problem,
                        HTTPException: http_problem,
                    }
                )
            ),
        ],
    )
    app.asgi_handler = RequestLog(answer_service.metrics)(app.asgi_handler)
    return app


def _provided(service: object) -> Provide:
    return Provide(lambda: service, sync_to_thread=False)
