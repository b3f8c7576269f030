"""The entry point of the command line, and its commands `ask`, `chat` and `completion`.

The other commands are in `app.cli.commands`.

Commands import heavy modules inside their functions, so that `--help` is fast.
"""

import asyncio
import sys
from pathlib import Path

import click

from app.cli.commands.analysis import evaluate, insights, replay
from app.cli.commands.base import EXIT_FAILED, load_settings, platform_option, report_errors
from app.cli.commands.platform import check, graph, ingest, init
from app.cli.commands.serve import keys, mcp, schedule, serve

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("question")
@click.option("--model", help="Use this provider:model for this question.")
@click.option("-k", type=click.IntRange(1, 50), help="Number of chunks to retrieve.")
@click.option("--tools", is_flag=True, help="Let the model use search tools before it answers.")
@click.option("--show-retrieved", is_flag=True, help="List the retrieved chunks on stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as POST /ask returns it.")
@platform_option
@report_errors
def ask(
    question: str,
    model: str | None,
    k: int | None,
    tools: bool,
    show_retrieved: bool,
    as_json: bool,
    platform: Path | None,
) -> None:
    """Answer QUESTION."""
    from app.cli.terminal.answer_output import live_answer, print_answer, print_retrieved
    from app.cli.terminal.answerers import open_terminal_answerer
    from app.service.ask_command import AskCommand, check_question
    from ingestion.text.language import replace_surrogates
    from schemas.answer import Answer, Source

    settings = load_settings(platform, chat_model=model)
    command = AskCommand(replace_surrogates(question), k=k, mode="tools" if tools else "pipeline")
    check_question(command.text, settings)

    async def answer_and_retrieve() -> tuple[Answer, list[Source]]:
        async with (
            live_answer() as on_event,
            open_terminal_answerer(settings, custom_model=bool(model)) as answerer,
        ):
            retrieved = await answerer.retrieve(command) if show_retrieved else []
            return await answerer.ask(command, on_event), retrieved

    answer, sources = asyncio.run(answer_and_retrieve())
    if show_retrieved:
        print_retrieved(sources)
    if as_json:
        click.echo(answer.model_dump_json(by_alias=True, indent=2))
    else:
        print_answer(answer)


@click.command()
@click.option("--model", help="Use this provider:model for this chat.")
@click.option("--tools", is_flag=True, help="Let the model use search tools before it answers.")
@platform_option
@report_errors
def chat(model: str | None, tools: bool, platform: Path | None) -> None:
    """Answer questions and follow-ups until Ctrl-D.

    If standard input is not a terminal, each line is a question.
    """
    from app.cli.terminal.chat import run_chat
    from schemas.question import AnswerMode

    settings = load_settings(platform, chat_model=model)
    mode: AnswerMode = "tools" if tools else "pipeline"
    failures = asyncio.run(run_chat(settings, mode, bool(model)))
    if failures and not sys.stdin.isatty():
        sys.exit(EXIT_FAILED)


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL: bash, zsh or fish."""
    from click.shell_completion import get_completion_class

    program = context.find_root()
    completion_class = get_completion_class(shell)
    assert completion_class is not None, "click supports all SHELLS"
    click.echo(completion_class(program.command, {}, "apidesk", "_APIDESK_COMPLETE").source())


COMMANDS = (
    init,
    serve,
    ingest,
    schedule,
    check,
    ask,
    chat,
    evaluate,
    keys,
    insights,
    replay,
    mcp,
    graph,
    completion,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="apidesk")
def main() -> None:
    """Answer developers' questions about an open platform from its documentation."""


for command in COMMANDS:
    main.add_command(command)
