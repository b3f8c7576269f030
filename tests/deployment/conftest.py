"""Fixtures of the tests of deployment files."""

from types import SimpleNamespace
from typing import cast

import pytest

from app.main import create_app
from app.service.answer_service import AnswerService
from app.telemetry.metrics import Metrics
from ingestion.database.engine import open_engine
from ingestion.platform_config import read_platform
from schemas.settings import SAMPLE_PLATFORM, read_settings


@pytest.fixture(scope="module")
def paths() -> set[str]:
    """The paths of the application's OpenAPI document."""
    settings = read_settings(database_url="sqlite://")
    platform = read_platform(SAMPLE_PLATFORM)
    nothing = SimpleNamespace()
    answer_service = SimpleNamespace(
        settings=settings,
        engine=open_engine(settings),
        platform=platform,
        job=SimpleNamespace(embeddings=None),
        collection=nothing,
        models=None,
        metrics=Metrics(),
    )
    return set(create_app(cast(AnswerService, answer_service)).openapi_schema.paths or {})
