"""`apidesk init` creates a platform.toml and tries it; `apidesk check` tests the models."""

import asyncio
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.commands.base import EXIT_FAILED, load_settings, platform_option, report_errors
from schemas.choices import LANGUAGES, Language

if TYPE_CHECKING:
    from app.cli.setup.trial import Trial


@click.command()
@click.argument("file", default="platform.toml", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--openapi",
    metavar="FILE_OR_URL",
    help="Take all answers from this OpenAPI description instead of asking.",
)
@click.option("--documents", metavar="WHERE", help="Folder, or an OpenAPI file or URL.")
@click.option("--name", help="Name of the platform.")
@click.option("--about", help="What the platform is and which questions it covers.")
@click.option("--language", type=click.Choice(LANGUAGES), help="Language of the platform.")
@click.option("--page-url", metavar="TEMPLATE", help="URL template of a page; '' for none.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@report_errors
def init(
    file: Path,
    openapi: str | None,
    documents: str | None,
    name: str | None,
    about: str | None,
    language: Language | None,
    page_url: str | None,
    force: bool,
) -> None:
    """Create a platform.toml from five answers and try it.

    The documents are indexed, as by `apidesk ingest`, and a question about them is answered.
    """
    from app.cli.setup.interview import InterviewAnswers, draft_from_openapi, interview
    from app.cli.setup.platform_file import check_overwrite, write_platform_file
    from app.cli.setup.trial import run_trial
    from app.telemetry.progress import ingestion_progress
    from schemas.platform import SourceLimits

    if openapi is not None and documents is not None:
        raise click.UsageError("--openapi and --documents cannot be combined")
    check_overwrite(file, force)
    settings = load_settings(file)
    answers = InterviewAnswers(openapi or documents, name, about, language, page_url)
    build_draft = interview if openapi is None else draft_from_openapi
    write_platform_file(build_draft(answers, SourceLimits.from_settings(settings)), file)
    click.echo(f"written: {file}")

    with ingestion_progress(summary=False) as progress:
        trial = asyncio.run(run_trial(settings, progress))
    _print_trial(trial, file)


def _print_trial(trial: "Trial", file: Path) -> None:
    from app.cli.terminal.answer_output import print_answer
    from app.cli.terminal.tables import print_ingestion_run

    print_ingestion_run(trial.run, as_json=False)
    if trial.question and trial.answer:
        click.echo(f"\n› {trial.question}\n")
        print_answer(trial.answer)
    setting = f"APIDESK_PLATFORM={shlex.quote(str(file))}"
    click.echo(f"\nnext:\n  export {setting}\n  apidesk chat\n  apidesk serve")


@click.command()
@platform_option
@report_errors
def check(platform: Path | None) -> None:
    """Test every configured model with one small call."""
    from app.cli.setup.model_check import check_models
    from app.cli.terminal.tables import print_checks

    checks = asyncio.run(check_models(load_settings(platform)))
    print_checks(checks)
    if any(check.problem for check in checks):
        sys.exit(EXIT_FAILED)
