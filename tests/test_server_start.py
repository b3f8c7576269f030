"""What a server logs when it starts, and when its workers cannot be replaced."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from uvicorn.supervisors import Multiprocess

from app.serving.server import NO_KEY_MESSAGE, run_server, warn_of_unknown_settings
from app.serving.workers import _Supervisor
from schemas.errors import ConfigurationError
from schemas.settings import read_settings


@pytest.fixture
def kept_signal_handler() -> Iterator[None]:
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


def test_unknown_settings_are_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("APIDESK_RATELIMIT", "1/minute")
    warn_of_unknown_settings()
    assert caplog.messages == [
        "APIDESK_RATELIMIT is not a setting: did you mean APIDESK_RATE_LIMIT?"
    ]


@pytest.mark.usefixtures("kept_signal_handler")
def test_server_that_cannot_start_does_not_say_that_requests_are_accepted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "platform.toml").write_text("[platform")
    settings = read_settings(
        platform=tmp_path / "platform.toml",
        milvus_uri=str(tmp_path / "milvus.db"),
        database_url=f"sqlite:///{tmp_path / 'apidesk.db'}",
    )
    with pytest.raises(ConfigurationError, match="not valid TOML"):
        asyncio.run(run_server(settings, "127.0.0.1", 0))
    assert NO_KEY_MESSAGE not in caplog.messages


def test_failed_replacement_of_workers_is_explained(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Multiprocess, "restart_all", lambda self: None)
    supervisor = object.__new__(_Supervisor)  # its constructor replaces the signal handlers
    supervisor.processes, supervisor.should_exit = [object()], threading.Event()  # type: ignore[list-item]
    supervisor.restart_all()
    assert "for the reason that is logged above" in caplog.text
