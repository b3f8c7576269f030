"""The command line. Heavy imports stand in the commands that use them: `--help` is instant."""

import asyncio
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from schemas.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="apidesk")
def main() -> None:
    """Answers developers' questions about an open platform from its own documentation."""


def one_line_errors(command: F) -> F:
    """Run `command`; what it raises on purpose becomes one line and an exit code, never a stack."""

    @wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        from app.logs import configure_logging
        from schemas.errors import ApideskError, ConfigurationError, QuestionError, SourceError

        configure_logging("ERROR")

        try:
            return command(*args, **kwargs)
        except (ConfigurationError, QuestionError, SourceError) as error:
            _fail(str(error), EXIT_BAD_INPUT)
        except ApideskError as error:
            _fail(str(error), EXIT_FAILED)

    return guarded  # type: ignore[return-value]


def platform_option(command: F) -> F:
    """The option that every command has."""
    return click.option(
        "--platform",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The platform.toml to use.  [default: APIDESK_PLATFORM, else the sample platform]",
    )(command)


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@platform_option
@one_line_errors
def serve(host: str, port: int, platform: Path | None) -> None:
    """Answer questions over HTTP; index the platform first, if that was never done."""
    from app.server import run_server

    asyncio.run(run_server(_settings(platform), host, port))


@main.command()
@platform_option
@one_line_errors
def ingest(platform: Path | None) -> None:
    """Index the platform's documents."""
    from app.desk import connect_desk
    from app.progress import ingestion_progress

    desk = connect_desk(_settings(platform))
    with ingestion_progress() as progress:
        desk.index(progress)


@main.command()
@platform_option
@one_line_errors
def check(platform: Path | None) -> None:
    """Try every configured model with one tiny call."""
    from app.model_check import check_models
    from app.printing import print_checks

    checks = asyncio.run(check_models(_settings(platform)))
    print_checks(checks)
    if any(check.problem for check in checks):
        sys.exit(EXIT_FAILED)


@main.command()
@click.argument("question")
@click.option("--model", help="Ask this provider:model, this once.")
@click.option("-k", type=click.IntRange(1, 50), help="How many chunks to retrieve.")
@click.option("--show-retrieved", is_flag=True, help="List the retrieved chunks on stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print the body that POST /ask would give.")
@platform_option
@one_line_errors
def ask(
    question: str,
    model: str | None,
    k: int | None,
    show_retrieved: bool,
    as_json: bool,
    platform: Path | None,
) -> None:
    """Answer one QUESTION."""
    from app.ask_once import ask_once
    from app.printing import print_answer, print_retrieved

    settings = _settings(platform, chat_model=model)
    answer, sources = asyncio.run(ask_once(settings, question, k, show_retrieved, bool(model)))
    if show_retrieved:
        print_retrieved(sources)
    if as_json:
        click.echo(answer.model_dump_json(by_alias=True, indent=2))
    else:
        print_answer(answer)


def _settings(platform: Path | None, **options: object) -> "Settings":
    """Settings, with what was given on the command line."""
    from schemas.settings import read_settings

    given = {"platform": platform, **options}
    return read_settings(**{name: value for name, value in given.items() if value is not None})


def _fail(message: str, code: int) -> None:
    click.echo(f"apidesk: {message}", err=True)
    sys.exit(code)
