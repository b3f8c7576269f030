"""`apidesk evaluate`: how well retrieval finds."""

import asyncio
from pathlib import Path
from typing import Any

import click

from app.commands.command import EXIT_FAILED, fail, one_line_errors, platform_option, settings_with


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
    from app.evaluation.plots import check_plot, plot_recall
    from app.evaluation.report import print_evaluation
    from app.evaluation.run import EvaluationOptions, evaluate_retrieval

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
