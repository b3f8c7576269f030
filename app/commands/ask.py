"""`apidesk ask`: one question."""

import asyncio
from pathlib import Path

import click

from app.commands.command import one_line_errors, platform_option, settings_with


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
    from app.terminal.ask_once import ask_once
    from app.terminal.live_answer import live_answer
    from app.terminal.printing import print_answer, print_retrieved
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
