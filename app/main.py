"""create_app(desk): the HTTP service, put together."""

from importlib.metadata import metadata

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, YamlRenderPlugin
from litestar.plugins.problem_details import ProblemDetailsConfig, ProblemDetailsPlugin
from litestar.plugins.pydantic import PydanticPlugin

from app.answer_service import AnswerService
from app.description.models import OpenApiModelsPlugin
from app.description.problems import OpenApiProblemsPlugin
from app.description.tags import TAGS
from app.json_request import JsonRequest
from app.openai.errors import HANDLERS, PREFIX, handle_lost
from app.problems import apidesk_problem, http_problem, unexpected_problem
from app.routes.ask import ask
from app.routes.chat_completions import complete_chat
from app.routes.feedback import give_feedback
from app.routes.health import live, ready
from app.routes.ingestions import begin_ingestion, get_ingestion, list_ingestions
from app.routes.insights import insights
from app.routes.mcp import mcp_route
from app.routes.metrics import metrics
from app.routes.models import get_model, list_models
from app.routes.options import AllowHeaderPlugin
from app.routes.page import admin_page, asset, embedded_page, page, widget
from app.routes.retrieve import retrieve
from app.routes.sessions import delete_session
from app.routes.suggestions import suggest
from app.security.access import SCHEMES, SECURITY, AuthGuard, OpenApiSecurityPlugin, caller_of
from app.security.cors import cors_config
from app.security.headers import add_security_headers
from app.services import Container
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
