"""`apidesk chat`: one question after the other."""

import asyncio
import sys
from pathlib import Path

import click

from app.commands.command import EXIT_FAILED, one_line_errors, platform_option, settings_with


@click.command()
@click.option("--model", help="Ask this provider:model, as long as the chat lasts.")
@click.option("--tools", is_flag=True, help="Let the model look things up before it answers.")
@platform_option
@one_line_errors
def chat(model: str | None, tools: bool, platform: Path | None) -> None:
    """Answer questions and follow-ups until Ctrl-D.

    Where standard input is no terminal, each line is a question.
    """
    from app.chat.at_terminal import chat_at_terminal
    from schemas.question import AnswerMode

    settings = settings_with(platform, chat_model=model)
    mode: AnswerMode = "tools" if tools else "pipeline"
    failures = asyncio.run(chat_at_terminal(settings, mode, bool(model)))
    if failures and not sys.stdin.isatty():
        sys.exit(EXIT_FAILED)
