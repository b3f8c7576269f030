"""Functions that the commands share: settings, error reporting, exit codes and signal handling."""

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


def report_errors(command: F) -> F:
    """Decorate `command` to print an ApideskError as one line on stderr and exit.

    The exit status is 2 for invalid settings, questions or sources, and 1 for any other error. The log
    level is set to ERROR before the command runs.
    """

    @wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        from app.telemetry.logs import configure_logging
        from schemas.errors import ApideskError, ConfigurationError, QuestionError, SourceError

        configure_logging("ERROR")

        try:
            return command(*args, **kwargs)
        except (ConfigurationError, QuestionError, SourceError) as error:
            fail(str(error), EXIT_BAD_INPUT)
        except ApideskError as error:
            fail(str(error), EXIT_FAILED)

    return wrapper  # type: ignore[return-value]


def platform_option(command: F) -> F:
    """Decorate `command` with the option `--platform`."""
    return click.option(
        "--platform",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Path of platform.toml.  [default: APIDESK_PLATFORM, ./platform.toml or the sample platform]",
    )(command)


def load_settings(platform: Path | None, **options: object) -> "Settings":
    """Read the settings. Arguments that are not None override them. Raises ConfigurationError."""
    from schemas.settings import read_settings

    overrides = {"platform": platform, **options}
    return read_settings(**{name: value for name, value in overrides.items() if value is not None})


def run_until_signal(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` and return its result. Raises KeyboardInterrupt after SIGTERM or Ctrl-C."""
    previous_sigterm = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    # A shell script starts background processes with SIGINT ignored, and asyncio leaves it ignored.
    previous_sigint = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return asyncio.run(work)
    finally:
        signal.signal(signal.SIGTERM, previous_sigterm)
        signal.signal(signal.SIGINT, previous_sigint)


def print_error(message: str) -> None:
    """Print `message` on stderr."""
    click.echo(f"apidesk: {message}", err=True)


def fail(message: str, code: int) -> NoReturn:
    """Print `message` on stderr and exit with `code`."""
    print_error(message)
    sys.exit(code)
