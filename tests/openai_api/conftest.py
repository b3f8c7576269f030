"""Clients of the OpenAI-compatible API of a real server."""

from collections.abc import Iterator

import pytest
from openai import OpenAI

from app.service.answer_service import AnswerService
from tests.live_server import live_server
from tests.model_server import ModelServer
from tests.openai_api.openai_client import open_client


@pytest.fixture(scope="module")
def plain(sample_service: AnswerService) -> Iterator[OpenAI]:
    """A client of a server without a model."""
    with live_server(sample_service) as url, open_client(url) as client:
        yield client


@pytest.fixture
def scripted(sample_service: AnswerService, model_server: ModelServer) -> Iterator[OpenAI]:
    """A client of a server with the scripted model."""
    settings = sample_service.settings.model_copy(update=model_server.settings)
    answer_service = AnswerService(settings, sample_service.platform, sample_service.job)
    with live_server(answer_service) as url, open_client(url) as client:
        yield client
