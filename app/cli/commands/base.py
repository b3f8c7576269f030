"""What every command has in common: its settings, and how it fails."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from schemas.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2


def one_line_errors(command: F) -> F:
    """Run `command`; what it raises on purpose becomes one line and an exit code, never a stack."""

    @wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        from app.telemetry.logs import configure_logging
        from schemas.errors import ApideskError, ConfigurationError, QuestionError, SourceError

        configure_logging("ERROR")

        try:
            return command(*args, **kwargs)
        except (ConfigurationError, QuestionError, SourceError) as error:
            fail(str(error), EXIT_BAD_INPUT)
        except ApideskError as error:
            fail(str(error), EXIT_FAILED)

    return guarded  # type: ignore[return-value]


def platform_option(command: F) -> F:
    """The option that every command has."""
    return click.option(
        "--platform",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The platform.toml to use.  [default: APIDESK_PLATFORM, else the sample platform]",
    )(command)


def settings_with(platform: Path | None, **options: object) -> "Settings":
    """Settings, with what was given on the command line. Raises ConfigurationError."""
    from schemas.settings import read_settings

    given = {"platform": platform, **options}
    return read_settings(**{name: value for name, value in given.items() if value is not None})


def run_to_signal(work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives; SIGTERM stops it as Ctrl-C does. Raises KeyboardInterrupt."""
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return asyncio.run(work)
    finally:
        signal.signal(signal.SIGTERM, before)


def complain(message: str) -> None:
    """Say on stderr what is wrong."""
    click.echo(f"apidesk: {message}", err=True)


def fail(message: str, code: int = EXIT_FAILED) -> NoReturn:
    """Say on stderr what is wrong, and exit with `code`."""
    complain(message)
    sys.exit(code)
