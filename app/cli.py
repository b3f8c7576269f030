"""The command line. Heavy imports stand in the commands that use them: `--help` is instant."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
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
@click.option("--dry-run", is_flag=True, help="Only say what would be added, changed and deleted.")
@click.option("--allow-deletes", is_flag=True, help="Delete also when much of a source vanished.")
@click.option("--rebuild", is_flag=True, help="Fill a new collection, then put it in place.")
@click.option("--watch", is_flag=True, help="Go on, and index again what changes.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the run as GET /ingestions/{id} would."
)
@platform_option
@one_line_errors
def ingest(
    dry_run: bool,
    allow_deletes: bool,
    rebuild: bool,
    watch: bool,
    as_json: bool,
    platform: Path | None,
) -> None:
    """Index what changed in the platform's documents."""
    from app.ingest_once import ingest_and_watch, ingest_once
    from app.printing import print_report
    from schemas.ingestion import IngestionOptions

    options = IngestionOptions(dry_run=dry_run, allow_deletes=allow_deletes, rebuild=rebuild)
    settings = _settings(platform)
    if watch:
        with suppress(KeyboardInterrupt):
            asyncio.run(
                ingest_and_watch(
                    settings, options, lambda run: print_report(run, as_json), _complain
                )
            )
        return
    run = asyncio.run(ingest_once(settings, options))
    print_report(run, as_json)
    if run.state != "succeeded":
        sys.exit(EXIT_FAILED)


@main.command()
@platform_option
@one_line_errors
def schedule(platform: Path | None) -> None:
    """Index when [ingestion] schedule says, as a process of its own."""
    from app.scheduler import run_scheduler

    with suppress(KeyboardInterrupt):
        asyncio.run(run_scheduler(_settings(platform)))


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
@click.option("--tools", is_flag=True, help="Let the model look things up before it answers.")
@click.option("--show-retrieved", is_flag=True, help="List the retrieved chunks on stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print the body that POST /ask would give.")
@platform_option
@one_line_errors
def ask(
    question: str,
    model: str | None,
    k: int | None,
    tools: bool,
    show_retrieved: bool,
    as_json: bool,
    platform: Path | None,
) -> None:
    """Answer one QUESTION."""
    from app.ask_once import ask_once
    from app.live_answer import live_answer
    from app.printing import print_answer, print_retrieved
    from schemas.answer import Answer, Source
    from schemas.question import AnswerMode

    settings = _settings(platform, chat_model=model)
    mode: AnswerMode = "tools" if tools else "pipeline"

    async def asking() -> tuple[Answer, list[Source]]:
        async with live_answer() as listener:
            return await ask_once(
                settings, question, k, show_retrieved, bool(model), mode, listener
            )

    answer, sources = asyncio.run(asking())
    if show_retrieved:
        print_retrieved(sources)
    if as_json:
        click.echo(answer.model_dump_json(by_alias=True, indent=2))
    else:
        print_answer(answer)


@main.command()
@click.argument("questions", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--k", type=click.IntRange(1, 20), help="Documents that count.  [default: top_k]")
@click.option(
    "--mode",
    type=click.Choice(["all", "full_text", "dense", "hybrid"]),
    default="all",
    show_default=True,
    help="The route to measure; all means all that are possible.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw recall over k into this .svg or .png.",
)
@click.option(
    "--min-recall",
    type=click.FloatRange(0, 1),
    help="Exit with 1 when recall@k of the configured route is lower.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where made questions are kept.  [default: data/evaluation/<name>.jsonl]",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything that was found as JSON.")
@platform_option
@one_line_errors
def evaluate(
    questions: Path | None,
    k: int | None,
    mode: Any,
    plot: Path | None,
    min_recall: float | None,
    save: Path | None,
    as_json: bool,
    platform: Path | None,
) -> None:
    """Measure retrieval by QUESTIONS, or by questions made from the documents.

    Each line of QUESTIONS is {"question": "...", "gold": ["..."], "type": "general"}: gold names the
    documents that answer it, by id, page url, api url or api name; type is optional.
    """
    from app.evaluation.plots import check_plot, plot_recall
    from app.evaluation.report import print_evaluation
    from app.evaluation.run import EvaluationOptions, evaluate_retrieval

    if plot:
        check_plot(plot)
    options = EvaluationOptions(questions=questions, k=k, mode=mode, save=save)
    found = asyncio.run(evaluate_retrieval(_settings(platform), options))
    if plot:
        plot_recall(found, plot)
    if as_json:
        click.echo(found.model_dump_json(by_alias=True, indent=2))
    else:
        print_evaluation(found)
    if min_recall is not None and found.recall < min_recall:
        route = found.judged_route.label
        _fail(f"recall@{found.k} of {route} is {found.recall:.3f}, below {min_recall}", EXIT_FAILED)


def _settings(platform: Path | None, **options: object) -> "Settings":
    """Settings, with what was given on the command line."""
    from schemas.settings import read_settings

    given = {"platform": platform, **options}
    return read_settings(**{name: value for name, value in given.items() if value is not None})


def _complain(message: str) -> None:
    click.echo(f"apidesk: {message}", err=True)


def _fail(message: str, code: int) -> None:
    _complain(message)
    sys.exit(code)
