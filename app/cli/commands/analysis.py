"""`apidesk evaluate`: how well retrieval finds.
`apidesk insights`: what the kept questions tell.
`apidesk replay`: kept questions, asked again.
"""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.cli.commands.base import (
    EXIT_FAILED,
    complain,
    fail,
    one_line_errors,
    platform_option,
    settings_with,
)

if TYPE_CHECKING:
    from schemas.insights import Table


@click.command()
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
    from app.analytics.evaluation.plots import check_plot, plot_recall
    from app.analytics.evaluation.report import print_evaluation
    from app.analytics.evaluation.run import EvaluationOptions, evaluate_retrieval

    if plot:
        check_plot(plot)
    options = EvaluationOptions(questions=questions, k=k, mode=mode, save=save)
    found = asyncio.run(evaluate_retrieval(settings_with(platform), options))
    if plot:
        plot_recall(found, plot)
    if as_json:
        click.echo(found.model_dump_json(by_alias=True, indent=2))
    else:
        print_evaluation(found)
    if min_recall is not None and found.recall < min_recall:
        route = found.judged_route.label
        fail(f"recall@{found.k} of {route} is {found.recall:.3f}, below {min_recall}", EXIT_FAILED)


TABLES: tuple["Table", ...] = ("byType", "byApi", "gaps", "errors", "feedback")
"""Those of `schemas.insights`, which would take a tenth of a second to import."""


@click.command()
@click.option(
    "--days", default=30, show_default=True, type=click.IntRange(1, 36_500), help="How far back."
)
@click.option("--table", type=click.Choice(TABLES), help="This part of the report alone.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the --table as CSV.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the body that GET /insights would give."
)
@platform_option
@one_line_errors
def insights(
    days: int, table: "Table | None", as_csv: bool, as_json: bool, platform: Path | None
) -> None:
    """Show what the questions of the last days tell about the documentation."""
    if as_csv and as_json:
        raise click.UsageError("--csv and --json are two formats: name one")
    if as_csv and table is None:
        raise click.UsageError("--csv takes a --table")

    from app.analytics.insights.report import csv_of
    from app.cli.terminal.insights import insights_once
    from app.cli.terminal.insights_report import print_insights

    found = asyncio.run(insights_once(settings_with(platform), days, table))
    if as_csv:
        assert table is not None, "it was asked for above"
        for note in found.notes:
            complain(note)
        click.echo(csv_of(found, table), nl=False)
    elif as_json:
        click.echo(json.dumps(found.as_json(table), ensure_ascii=False, indent=2))
    else:
        print_insights(found, table)


@click.command()
@click.option("--days", default=30, show_default=True, type=click.IntRange(1), help="How far back.")
@click.option(
    "--limit",
    default=200,
    show_default=True,
    type=click.IntRange(1),
    help="At most so many, newest first.",
)
@click.option("--model", help="Ask this provider:model instead.")
@click.option("-k", type=click.IntRange(1, 50), help="Retrieve so many chunks instead.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw what changed into this .svg or .png.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print every question, then and now, as JSON."
)
@platform_option
@one_line_errors
def replay(
    days: int,
    limit: int,
    model: str | None,
    k: int | None,
    plot: Path | None,
    as_json: bool,
    platform: Path | None,
) -> None:
    """Ask the questions of the last days again, and show what has changed.

    After a change of the documentation, or to try another model or k. Nothing of it is kept.
    """
    from app.analytics.evaluation.plots import check_plot
    from app.analytics.replay.plot import plot_replay
    from app.analytics.replay.report import print_replay
    from app.analytics.replay.run import ReplayOptions
    from app.analytics.replay.run import replay as replay_questions
    from app.cli.terminal.progress import question_progress

    if plot:
        check_plot(plot)
    options = ReplayOptions(days=days, limit=limit, k=k)
    with question_progress() as progress:
        found = asyncio.run(
            replay_questions(settings_with(platform, chat_model=model), options, progress)
        )
    if plot:
        plot_replay(found, plot)
    if as_json:
        click.echo(found.model_dump_json(by_alias=True, indent=2))
    else:
        print_replay(found)
