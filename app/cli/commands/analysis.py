"""Commands that analyse questions: `apidesk evaluate`, `apidesk insights` and `apidesk replay`."""

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from app.cli.commands.base import (
    EXIT_FAILED,
    fail,
    load_settings,
    platform_option,
    print_error,
    report_errors,
)
from schemas.choices import TABLES, TableName

if TYPE_CHECKING:
    from app.analytics.evaluation.answer_scoring import AnswerEvaluation
    from app.analytics.replay import Replay
    from schemas.settings import Settings

RETRIEVAL_OPTIONS = ("k", "mode", "plot", "min_recall", "save")
"""Parameters of `evaluate` that cannot be combined with --answers."""


@click.command()
@click.argument("questions", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--k",
    type=click.IntRange(1, 20),
    help="The k of hit@k and recall@k.  [default: APIDESK_TOP_K, at most 20]",
)
@click.option(
    "--mode",
    type=click.Choice(["all", "full_text", "dense", "hybrid"]),
    default="all",
    show_default=True,
    help="Retrieval route to measure; all means every available route.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Plot recall over k into this .svg or .png file.",
)
@click.option(
    "--min-recall",
    type=click.FloatRange(0, 1),
    help="Exit with code 1 if recall@k of the configured route, or of the route in --mode, is lower.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for generated questions.  [default: data/evaluation/<name>.jsonl; <name> is the name of "
    "the platform file, or of its folder if the file is called platform.toml]",
)
@click.option(
    "--answers", is_flag=True, help="Measure answers instead of retrieval; requires QUESTIONS."
)
@click.option(
    "--min-answer",
    type=click.FloatRange(0, 1),
    help="With --answers, exit with code 1 if the share of right answers is lower.",
)
@click.option(
    "--judge",
    help="With --answers, let this provider:model grade the answers by the facts in QUESTIONS.  "
    "[default: APIDESK_JUDGE_MODEL]",
)
@click.option(
    "--compare",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="With --answers, compare with an earlier result, saved from the output of --json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all results as JSON.")
@platform_option
@report_errors
def evaluate(
    questions: Path | None,
    answers: bool,
    min_answer: float | None,
    judge: str | None,
    compare: Path | None,
    as_json: bool,
    platform: Path | None,
    **retrieval: Any,
) -> None:
    """Measure the quality of retrieval or, with --answers, of answers.

    Uses the file QUESTIONS, or questions generated from the documents.

    Each line of QUESTIONS is {"question": "...", "gold": ["..."], "facts": [["..."]], "type": "general"}.
    gold lists the documents that answer the question, each by id, page url, api url, api name, file path
    or operation (POST /orders). facts lists what a right answer states, each fact as a list of
    alternative strings; --answers looks for them in the answer. A question with neither gold nor facts
    is off-topic or, with "kind": "unanswerable", one that the documents do not answer. type is the
    expected type of the question: general, api_call or unknown. The only required field is "question".
    Unknown fields are ignored, but one that looks like a misspelling of a known field is refused.
    """
    if not answers:
        if min_answer is not None or judge is not None or compare is not None:
            raise click.UsageError("--min-answer, --judge and --compare require --answers")
        _evaluate_retrieval(load_settings(platform), questions, as_json, **retrieval)
        return
    if questions is None:
        raise click.UsageError("--answers requires QUESTIONS")
    _reject_retrieval_options()
    if compare and as_json:
        raise click.UsageError("--compare and --json cannot be combined")
    _evaluate_answers(load_settings(platform), questions, as_json, min_answer, judge, compare)


def _reject_retrieval_options() -> None:
    context = click.get_current_context()
    for name in RETRIEVAL_OPTIONS:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} cannot be combined with --answers")


def _evaluate_answers(
    settings: "Settings",
    questions: Path,
    as_json: bool,
    min_answer: float | None,
    judge: str | None,
    compare: Path | None,
) -> None:
    from app.analytics.evaluation.answer_report import (
        compare_evaluations,
        print_answers,
        print_comparison,
        read_evaluation,
        share_text,
    )
    from app.analytics.evaluation.answer_run import evaluate_answers
    from app.telemetry.progress import question_progress

    earlier = read_evaluation(compare) if compare else None
    with question_progress() as progress:
        result = asyncio.run(evaluate_answers(settings, questions, progress, judge))
    if as_json:
        click.echo(result.model_dump_json(by_alias=True, indent=2))
    else:
        print_answers(result)
    if earlier:
        click.echo()
        print_comparison(compare_evaluations(earlier, result))
    _report_judge_failures(result)
    if min_answer is not None:
        right = result.scores.right
        if right is None:
            fail("--min-answer cannot be checked: no question has facts", EXIT_FAILED)
        if right < min_answer:
            share = share_text(right)
            fail(f"the share of right answers is {share}, below {min_answer}", EXIT_FAILED)


def _report_judge_failures(result: "AnswerEvaluation | Replay") -> None:
    """Print how often the judge failed, if at all, and its first error.

    Exits with EXIT_FAILED if the judge failed for every answer.
    """
    messages = [q.judge_failure for q in result.questions if q.judge_failure is not None]
    if not messages:
        return
    graded = sum((result.grades or {}).values())
    print_error(
        f"the judge failed for {len(messages)} of {len(messages) + graded} answers: {messages[0]}"
    )
    if not graded:
        sys.exit(EXIT_FAILED)


def _evaluate_retrieval(
    settings: "Settings",
    questions: Path | None,
    as_json: bool,
    *,
    k: int | None,
    mode: Any,
    plot: Path | None,
    min_recall: float | None,
    save: Path | None,
) -> None:
    from app.analytics.evaluation.report import print_evaluation
    from app.analytics.evaluation.run import EvaluationOptions, evaluate_retrieval
    from app.analytics.plots import check_plot, plot_recall

    if plot:
        check_plot(plot)
    options = EvaluationOptions(questions=questions, k=k, mode=mode, save=save)
    result = asyncio.run(evaluate_retrieval(settings, options))
    if plot:
        plot_recall(result, plot)
    if as_json:
        click.echo(result.model_dump_json(by_alias=True, indent=2))
    else:
        print_evaluation(result)
    if min_recall is not None and result.recall < min_recall:
        measured = f"recall@{result.k} of {result.primary_route.label} is {result.recall:.3f}"
        fail(f"{measured}, below {min_recall}", EXIT_FAILED)


@click.command()
@click.option(
    "--days",
    default=30,
    show_default=True,
    type=click.IntRange(1, 36_500),
    help="Number of days to report on.",
)
@click.option("--table", type=click.Choice(TABLES), help="Print only this table of the report.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the table as CSV; requires --table.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as GET /insights returns it.")
@platform_option
@report_errors
def insights(
    days: int, table: TableName | None, as_csv: bool, as_json: bool, platform: Path | None
) -> None:
    """Report on recent questions.

    Shows counts, feedback, and the topics that the documentation does not cover.
    """
    if as_csv and as_json:
        raise click.UsageError("--csv and --json cannot be combined")
    if as_csv and table is None:
        raise click.UsageError("--csv requires --table")

    from app.analytics.insights.report import to_csv
    from app.cli.terminal.insights import load_insights, print_insights

    report = asyncio.run(load_insights(load_settings(platform), days, table))
    if as_csv:
        assert table is not None, "checked above"
        for note in report.notes:
            print_error(note)
        click.echo(to_csv(report, table), nl=False)
    elif as_json:
        click.echo(json.dumps(report.as_json(table), ensure_ascii=False, indent=2))
    else:
        print_insights(report, table)


@click.command()
@click.option(
    "--days",
    default=30,
    show_default=True,
    type=click.IntRange(1),
    help="Number of days to go back.",
)
@click.option(
    "--limit",
    default=200,
    show_default=True,
    type=click.IntRange(1),
    help="Maximum number of questions, newest first.",
)
@click.option("--model", help="Use this provider:model instead of the configured one.")
@click.option("-k", type=click.IntRange(1, 50), help="Number of chunks to retrieve.")
@click.option(
    "--judge",
    help="Let this provider:model grade changed answers against the recorded answers.  "
    "[default: APIDESK_JUDGE_MODEL]",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Plot the changes into this .svg or .png file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the old and new outcomes as JSON.")
@platform_option
@report_errors
def replay(
    days: int,
    limit: int,
    model: str | None,
    k: int | None,
    judge: str | None,
    plot: Path | None,
    as_json: bool,
    platform: Path | None,
) -> None:
    """Ask recorded questions again and compare the answers.

    Shows how the answers have changed, for example after a change to the documentation or with another
    model or k. Nothing is recorded.
    """
    from app.analytics.plots import check_plot, plot_replay
    from app.analytics.replay import ReplayOptions
    from app.analytics.replay import replay as replay_questions
    from app.analytics.replay_report import print_replay
    from app.telemetry.progress import question_progress

    if plot:
        check_plot(plot)
    options = ReplayOptions(days=days, limit=limit, k=k, judge=judge)
    with question_progress() as progress:
        result = asyncio.run(
            replay_questions(load_settings(platform, chat_model=model), options, progress)
        )
    if plot:
        plot_replay(result, plot)
    if as_json:
        click.echo(result.model_dump_json(by_alias=True, indent=2))
    else:
        print_replay(result)
    _report_judge_failures(result)
