"""Fixtures: an answer service over the samples, an HTTP client for it, a scripted model server.

No test connects beyond the loopback interface.

The fixtures import the product, not this module: pytest-xdist's main process loads the module too, and
would spend five seconds on imports before it starts its workers.
"""

from __future__ import annotations

import gc
import logging
import os
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from multiprocessing.util import get_temp_dir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from litestar import Litestar
    from litestar.testing import TestClient

    from app.service.answer_service import AnswerService
    from schemas.settings import Settings
    from tests.app_pool import AppPool
    from tests.model_replies import MakeClient
    from tests.model_server import ModelServer
    from tests.postgres import Postgres

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

needs_shared_data = pytest.mark.skipif(
    not SHARED_DATA.is_dir(), reason="the shared measurement data is not available"
)

PROVIDER_PREFIXES = ("OPENAI_", "ANTHROPIC_", "DEEPSEEK_", "OLLAMA_")
"""Prefixes of the environment variables that provider libraries read."""

SLOWEST_TEST_FILES = (
    "test_kill",
    "test_workers",
    "test_misbehaviour",
    "test_stopping",
    "test_page_conversation",
    "test_page_answers",
    "test_page_accessibility",
    "test_page_safety",
    "test_unchanged_sources",
    "test_sync",
    "test_sync_results",
    "test_files",
    "test_hostile_files",
    "test_running_server",
    "test_ingest_command",
    "test_cache",
    "test_milvus_lite_copy",
    "test_snapshot",
    "test_openapi_description",
    "test_tools",
    "test_catalogue",
    "test_traces",
    "test_trace_export",
    "test_collection_writes",
    "test_openapi_bounds",
    "test_exact",
    "test_classification",
    "test_admin_page",
    "test_insights_output",
    "test_chunking",
    "test_evaluation",
)
"""Slow test files. They start first, so that the other workers do not have to wait for one at the end."""

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude imported modules and collected tests from garbage collection, because they are never freed."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest files first; keep the order of all others."""
    rank = {name: number for number, name in enumerate(SLOWEST_TEST_FILES)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


@pytest.fixture(scope="session", autouse=True)
def loopback_only() -> Iterator[None]:
    """Fail a test that connects beyond the loopback interface."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in _LOOPBACK:
            raise AssertionError(f"a test connected to {address}")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


@pytest.fixture(scope="session", autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Remove the settings and keys of the environment that runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(
                ("APIDESK_", "LANGSMITH_", "LANGCHAIN_", "OTEL_", "TAVILY_", *PROVIDER_PREFIXES)
            ):
                patch.delenv(name)
        patch.chdir(tmp_path_factory.mktemp("cwd"))
        # Otherwise each HTTP client would read the certificates of the system, although none uses TLS.
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("certificates")))
        yield


@pytest.fixture(scope="session", autouse=True)
def temporary_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the tests and their processes a temporary directory that is removed at the end.

    Ingestions leave lock files there. The path is short, because the length of a socket's path is
    limited. Other users may enter the directory, because PostgreSQL does not run as root.
    """
    tmp_path_factory.getbasetemp()  # stays where pytest keeps the last runs
    get_temp_dir()  # multiprocessing removes its own at exit, and would not find it
    with (
        TemporaryDirectory(prefix="apidesk-tests-", ignore_cleanup_errors=True) as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        Path(name).chmod(0o755)
        patch.setenv("TMPDIR", name)
        patch.setattr("tempfile.tempdir", name)
        yield


@pytest.fixture(autouse=True)
def log_levels() -> None:
    """Reset the log levels, which a command run by a test sets for the whole process."""
    from app.telemetry.logs import APPLICATION_LOGGERS, NOISY_LOGGERS

    for name in (*APPLICATION_LOGGERS, *NOISY_LOGGERS):
        if (logger := logging.getLogger(name)).level:
            logger.setLevel(logging.NOTSET)


@pytest.fixture
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry requests to providers without waiting."""
    from tenacity import wait_none

    monkeypatch.setattr("ingestion.providers._backoff", wait_none())


ServiceFactory = Callable[..., "AnswerService"]


@pytest.fixture(scope="session")
def make_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceFactory]:
    """Return a factory of indexed services. By default, each service has its own store."""
    from app.service.answer_service import connect_answer_service

    services: list[AnswerService] = []

    def make(**overrides: object) -> AnswerService:
        settings = make_settings(tmp_path_factory, **overrides)
        answer_service = connect_answer_service(settings)
        answer_service.job.run(answer_service.job.new_run("start"))
        services.append(answer_service)
        return answer_service

    yield make
    for answer_service in services:
        answer_service.job.close()


def make_settings(tmp_path_factory: pytest.TempPathFactory, **overrides: object) -> Settings:
    """Return settings with their own store and without a cache, so that scripted models are called."""
    from schemas.settings import read_settings

    store = tmp_path_factory.mktemp("store") / "milvus.db"
    defaults = {
        "milvus_uri": str(store),
        "database_url": f"sqlite:///{store.with_name('apidesk.db')}",
        "spool": store.with_name("spool"),
        "cache_answers": False,
    }
    return read_settings(**(defaults | overrides))


@pytest.fixture(scope="session")
def sample_service(make_service: ServiceFactory) -> AnswerService:
    """Return a service for the samples without a model. All tests share it, so do not index it again."""
    return make_service()


@pytest.fixture(scope="session")
def client(sample_service: AnswerService) -> Iterator[TestClient[Litestar]]:
    """Return an HTTP client of `sample_service`."""
    from app.main import create_app
    from tests.http_client import http_client

    with http_client(create_app(sample_service)) as test_client:
        yield test_client


@pytest.fixture(scope="session")
def app_pool() -> AppPool:
    """Applications that tests use one after the other."""
    from tests.app_pool import AppPool

    return AppPool()


@pytest.fixture
def serve_samples(sample_service: AnswerService, app_pool: AppPool) -> Iterator[MakeClient]:
    """Return a factory of HTTP clients, whose services use the sample collection and the given settings."""
    from app.service.answer_service import AnswerService

    with ExitStack() as stack:

        def make(**overrides: object) -> TestClient[Litestar]:
            settings = sample_service.settings.model_copy(update=overrides)
            answer_service = AnswerService(settings, sample_service.platform, sample_service.job)
            return stack.enter_context(app_pool.client(answer_service))

        yield make


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """Yield a scripted OpenAI-compatible server. The test fails if the script has no reply for a request."""
    from tests.model_server import ModelServer

    with ModelServer() as server:
        yield server
    assert not server.faults


@pytest.fixture
def model_client(serve_samples: MakeClient, model_server: ModelServer) -> MakeClient:
    """Return a factory of HTTP clients, whose services use the sample collection and the scripted model."""
    return lambda **overrides: serve_samples(**(model_server.settings | overrides))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A running PostgreSQL server."""
    from tests.postgres import missing_postgres, running_postgres

    if reason := missing_postgres():
        pytest.skip(reason)
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.acceptance)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, in SQLite and in PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'apidesk.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.empty_database()
