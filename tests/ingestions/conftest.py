"""An ingestion job of a small platform, and its server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.main import create_app
from app.service.answer_service import AnswerService
from ingestion.job import IngestionJob
from ingestion.platform_config import read_platform
from schemas.settings import Settings
from tests.http_client import http_client
from tests.small_platform import PLATFORM, settings_of
from tests.sync_harness import write_pages


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A platform of six pages that is not indexed."""
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    write_pages(tmp_path / "guides", 6)
    return settings_of(tmp_path)


@pytest.fixture
def job(settings: Settings) -> Iterator[IngestionJob]:
    job = IngestionJob.connect(settings)
    yield job
    job.close()


@pytest.fixture
def answer_service(job: IngestionJob, settings: Settings) -> AnswerService:
    return AnswerService(settings, read_platform(settings.platform), job)


@pytest.fixture
def http(answer_service: AnswerService) -> Iterator[TestClient[Litestar]]:
    with http_client(create_app(answer_service)) as client:
        yield client
