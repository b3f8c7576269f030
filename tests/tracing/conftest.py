"""Servers that receive traces, and answer services that send them."""

from collections.abc import Iterator

import pytest

from app.service.answer_service import AnswerService
from tests.langsmith_server import LangSmith, langsmith_server
from tests.model_server import ModelServer
from tests.otlp_server import Collector, collector
from tests.tracing.traced_questions import MakeService, open_services, reply


@pytest.fixture
def make_traced(sample_service: AnswerService, model_server: ModelServer) -> Iterator[MakeService]:
    model_server.default = reply
    with open_services(sample_service, model_server) as make:
        yield make


@pytest.fixture
def langsmith() -> Iterator[LangSmith]:
    with langsmith_server(tracing=True) as server:
        yield server


@pytest.fixture
def untraced() -> Iterator[LangSmith]:
    with langsmith_server(tracing=False) as server:
        yield server


@pytest.fixture
def spans() -> Iterator[Collector]:
    with collector() as server:
        yield server
