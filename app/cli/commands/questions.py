"""`apidesk ask`: one question.
`apidesk chat`: one question after the other.
"""

import asyncio
import sys
from pathlib import Path

import click

from app.cli.commands.base import EXIT_FAILED, one_line_errors, platform_option, settings_with


@click.command()
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
    from app.cli.terminal.answerers import ask_once
    from app.cli.terminal.printing import live_answer, print_answer, print_retrieved
    from schemas.answer import Answer, Source
    from schemas.question import AnswerMode

    settings = settings_with(platform, chat_model=model)
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


@click.command()
@click.option("--model", help="Ask this provider:model, as long as the chat lasts.")
@click.option("--tools", is_flag=True, help="Let the model look things up before it answers.")
@platform_option
@one_line_errors
def chat(model: str | None, tools: bool, platform: Path | None) -> None:
    """Answer questions and follow-ups until Ctrl-D.

    Where standard input is no terminal, each line is a question.
    """
    from app.cli.chat.chat import chat_at_terminal
    from schemas.question import AnswerMode

    settings = settings_with(platform, chat_model=model)
    mode: AnswerMode = "tools" if tools else "pipeline"
    failures = asyncio.run(chat_at_terminal(settings, mode, bool(model)))
    if failures and not sys.stdin.isatty():
        sys.exit(EXIT_FAILED)
