"""create_app(desk): the HTTP service, put together."""

from litestar import Litestar
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, YamlRenderPlugin
from litestar.plugins.problem_details import ProblemDetailsConfig, ProblemDetailsPlugin
from litestar.plugins.pydantic import PydanticPlugin

from app.conversations import Conversations
from app.desk import Desk
from app.history import History
from app.ingestions import Ingestions
from app.json_request import JsonRequest
from app.problems import apidesk_problem, http_problem, unexpected_problem
from app.routes.ask import ask
from app.routes.health import live, ready
from app.routes.ingestions import begin_ingestion, get_ingestion, list_ingestions
from app.routes.metrics import metrics
from app.routes.retrieve import retrieve
from app.routes.sessions import delete_session
from app.telemetry.request_log import RequestLog
from schemas.errors import ApideskError


def create_app(desk: Desk) -> Litestar:
    """The application over an open desk, which whoever opened it closes.

    With an embedded store, which serves one process, the schedule of platform.toml is kept here.
    Raises StoreUnavailable when the database of sessions does not answer.
    """
    ingestions = Ingestions(desk.job)
    history = History.open(desk.settings)
    conversations = Conversations(desk, history)
    plan = desk.platform.ingestion if desk.settings.embedded else None
    app = Litestar(
        route_handlers=[
            ask,
            delete_session,
            retrieve,
            begin_ingestion,
            list_ingestions,
            get_ingestion,
            live,
            ready,
            metrics,
        ],
        dependencies={
            "desk": Provide(lambda: desk, sync_to_thread=False),
            "conversations": Provide(lambda: conversations, sync_to_thread=False),
            "history": Provide(lambda: history, sync_to_thread=False),
            "ingestions": Provide(lambda: ingestions, sync_to_thread=False),
        },
        lifespan=[lambda _: ingestions.running(plan)],
        on_shutdown=[history.close],
        request_class=JsonRequest,
        request_max_body_size=desk.settings.max_body_bytes,
        logging_config=None,  # app.telemetry.logs has done it
        exception_handlers={Exception: unexpected_problem},
        openapi_config=OpenAPIConfig(
            title="apidesk",
            version="0.1.0",
            path="/schema",
            render_plugins=[JsonRenderPlugin(), YamlRenderPlugin()],
        ),
        plugins=[
            PydanticPlugin(prefer_alias=True),
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
    app.asgi_handler = RequestLog(desk.metrics)(app.asgi_handler)
    return app
