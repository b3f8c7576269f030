"""Fixtures: a desk over the samples, its HTTP face, a scripted model server. Nothing leaves loopback."""

import gc
import logging
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient
from pydantic import SecretStr

from app.main import create_app
from app.service.answer_service import AnswerService, connect_answer_service
from app.telemetry.logs import NOISE, OURS
from schemas.settings import Settings, read_settings
from tests.http_client import http_client
from tests.model_desk import MakeClient
from tests.model_server import ModelServer
from tests.postgres import Postgres, missing_postgres, running_postgres

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

needs_shared_data = pytest.mark.skipif(
    not SHARED_DATA.is_dir(), reason="the measuring data does not lie beside this checkout"
)

PROVIDERS = ("OPENAI_", "ANTHROPIC_", "DEEPSEEK_", "OLLAMA_")
"""What their variables begin with."""

LONGEST = (
    "test_workers",
    "test_readme",
    "test_page",
    "test_misbehaviour",
    "test_sessions",
    "test_kill",
    "test_exact",
    "test_grounding",
    "test_files",
    "test_openapi_bounds",
    "test_fusion",
    "test_tools",
    "test_bad_input",
    "test_foreign_documents",
    "test_classification",
)
"""Files that take longest: they begin first, so that no worker ends alone with one of them."""

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: the garbage collector is not to look for it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first; all others as they come."""
    rank = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


@pytest.fixture(scope="session", autouse=True)
def loopback_only() -> Iterator[None]:
    """Any connection beyond loopback is an error of the test."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in _LOOPBACK:
            raise AssertionError(f"a test reached for {address}")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


@pytest.fixture(scope="session", autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No setting of whoever runs the tests reaches them; no key is needed."""
    import os

    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(
                ("APIDESK_", "LANGSMITH_", "LANGCHAIN_", "OTEL_", "TAVILY_", *PROVIDERS)
            ):
                patch.delenv(name)
        patch.chdir(tmp_path_factory.mktemp("cwd"))
        yield


@pytest.fixture(autouse=True)
def log_levels() -> None:
    """A command that a test runs sets the levels of its process, which is every test's."""
    for name in (*OURS, *NOISE):
        logging.getLogger(name).setLevel(logging.NOTSET)


DeskMaker = Callable[..., AnswerService]


@pytest.fixture(scope="session")
def make_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskMaker]:
    """Makes an indexed desk with the settings given; the store is its own unless one is named."""
    desks: list[AnswerService] = []

    def make(**overrides: object) -> AnswerService:
        settings = make_settings(tmp_path_factory, **overrides)
        answer_service = connect_answer_service(settings)
        answer_service.job.run(answer_service.job.new_run("start"))
        desks.append(answer_service)
        return answer_service

    yield make
    for answer_service in desks:
        answer_service.job.close()


def make_settings(tmp_path_factory: pytest.TempPathFactory, **overrides: object) -> Settings:
    """Settings with a store of their own; nothing is cached, so that scripted models are asked."""
    store = tmp_path_factory.mktemp("store") / "milvus.db"
    own = {
        "milvus_uri": str(store),
        "database_url": f"sqlite:///{store.with_name('apidesk.db')}",
        "spool": store.with_name("spool"),
        "cache_answers": False,
    }
    return read_settings(**(own | overrides))


@pytest.fixture(scope="session")
def sample_desk(make_desk: DeskMaker) -> AnswerService:
    """The default: the sample platform, no model. Shared: do not index it again."""
    return make_desk()


@pytest.fixture(scope="session")
def client(sample_desk: AnswerService) -> Iterator[TestClient[Litestar]]:
    """HTTP to the sample desk."""
    with http_client(create_app(sample_desk)) as test_client:
        yield test_client


@pytest.fixture
def serve_samples(sample_desk: AnswerService) -> Iterator[MakeClient]:
    """Makes HTTP to a desk over the samples' collection with the settings given."""
    with ExitStack() as stack:

        def make(**overrides: object) -> TestClient[Litestar]:
            settings = sample_desk.settings.model_copy(update=overrides)
            answer_service = AnswerService(settings, sample_desk.platform, sample_desk.job)
            return stack.enter_context(http_client(create_app(answer_service)))

        yield make


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """A scripted OpenAI-compatible server; the test fails when its script ran out."""
    with ModelServer() as server:
        yield server
    assert not server.faults


@pytest.fixture
def model_client(serve_samples: MakeClient, model_server: ModelServer) -> MakeClient:
    """Makes HTTP to a desk over the samples' collection, with the scripted model."""
    scripted = {
        "chat_model": "openai:scripted-chat",
        "chat_base_url": model_server.base_url,
        "chat_api_key": SecretStr("test-key"),
    }
    return lambda **overrides: serve_samples(**(scripted | overrides))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server that runs."""
    if reason := missing_postgres():
        pytest.skip(reason)
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'apidesk.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.emptied()
