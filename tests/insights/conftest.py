"""A database for question records."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from app.service.records import RecordStore
from ingestion.database.engine import open_engine
from schemas.settings import read_settings


class RecordDatabase(NamedTuple):
    """A database for question records."""

    url: str
    store: RecordStore


@pytest.fixture
def kept(url: str) -> Iterator[RecordDatabase]:
    engine = open_engine(read_settings(database_url=url))
    yield RecordDatabase(url, RecordStore(engine))
    engine.dispose()
