"""A chat over standard input and output."""

import asyncio

from rich.console import Console
from rich.text import Text

from app.chat.chat import Chat
from app.chat.history import history_file
from app.chat.readers import open_reader
from app.terminal.terminal_desk import open_terminal_answerer
from ingestion.profile import read_platform
from schemas.question import AnswerMode
from schemas.settings import Settings


async def chat_at_terminal(settings: Settings, mode: AnswerMode, other_model: bool) -> int:
    """Chat until whoever sits there leaves; how many texts could not be answered.

    With `other_model` the settings name another model than the server's, which cannot serve then.

    Raises ApideskError before the first text.
    """
    console, errors = Console(highlight=False), Console(stderr=True, highlight=False)
    platform = await asyncio.to_thread(read_platform, settings.platform)
    platform_info = platform.platform
    async with open_terminal_answerer(settings, other_model) as answer_service:
        if console.is_terminal:
            console.print(
                Text(platform_info.say(platform_info.greeting, platform_info.language), style="dim")
            )
        chat = Chat(answer_service, settings, platform_info.language, mode, console, errors)
        await chat.run(open_reader(history_file(), platform_info.language, console))
    return chat.failures
