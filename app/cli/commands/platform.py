"""`apidesk init`: a platform.toml of one's own, tried at once.
`apidesk check`: do the models answer?.
"""

import asyncio
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.commands.base import EXIT_FAILED, one_line_errors, platform_option, settings_with

if TYPE_CHECKING:
    from app.cli.setup.trial import Trial
    from schemas.choices import Language


@click.command()
@click.argument("file", default="platform.toml", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--openapi", metavar="FILE_OR_URL", help="Ask nothing: an OpenAPI description says it all."
)
@click.option("--documents", metavar="WHERE", help="A folder, or an OpenAPI file or url.")
@click.option("--name", help="What the platform is called.")
@click.option("--about", help="What it is, and what may be asked about it.")
@click.option("--language", type=click.Choice(("zh", "en")), help="Its own language.")
@click.option("--page-url", metavar="TEMPLATE", help="A page's url; '' for none.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@one_line_errors
def init(
    file: Path,
    openapi: str | None,
    documents: str | None,
    name: str | None,
    about: str | None,
    language: "Language | None",
    page_url: str | None,
    force: bool,
) -> None:
    """Write a platform.toml from five answers, and try it.

    It is indexed as `apidesk ingest` would, and a question is answered that its documents suggest.
    """
    from app.cli.setup.interview import InterviewAnswers, draft_of, interview
    from app.cli.setup.platform_file import check_free, write
    from app.cli.setup.trial import try_out
    from app.cli.terminal.progress import ingestion_progress
    from schemas.source import SourceLimits

    if openapi is not None and documents is not None:
        raise click.UsageError("--openapi stands for --documents: give one of them")
    check_free(file, force)
    settings = settings_with(file)
    given = InterviewAnswers(openapi or documents, name, about, language, page_url)
    make = interview if openapi is None else draft_of
    write(make(given, SourceLimits.of(settings)), file)
    click.echo(f"written: {file}")

    with ingestion_progress(summary=False) as progress:
        trial = asyncio.run(try_out(settings, progress))
    _print(trial, file)


def _print(trial: "Trial", file: Path) -> None:
    from app.cli.terminal.printing import print_answer, print_report

    print_report(trial.run, as_json=False)
    if trial.question and trial.answer:
        click.echo(f"\n› {trial.question}\n")
        print_answer(trial.answer)
    setting = f"APIDESK_PLATFORM={shlex.quote(str(file))}"
    click.echo(f"\nnext:\n  export {setting}\n  apidesk chat\n  apidesk serve")


@click.command()
@platform_option
@one_line_errors
def check(platform: Path | None) -> None:
    """Try every configured model with one tiny call."""
    from app.cli.setup.trial import check_models
    from app.cli.terminal.printing import print_checks

    checks = asyncio.run(check_models(settings_with(platform)))
    print_checks(checks)
    if any(check.problem for check in checks):
        sys.exit(EXIT_FAILED)
