"""`apidesk replay`: kept questions, asked again."""

import asyncio
from pathlib import Path

import click

from app.commands.command import one_line_errors, platform_option, settings_with


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
    from app.evaluation.plots import check_plot
    from app.replay.plot import plot_replay
    from app.replay.report import print_replay
    from app.replay.run import ReplayOptions
    from app.replay.run import replay as replay_questions
    from app.terminal.progress import question_progress

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
