"""A chat over standard input and output."""

import asyncio

from rich.console import Console
from rich.text import Text

from app.chat.chat import Chat
from app.chat.history import history_file
from app.chat.readers import open_reader
from app.terminal.terminal_desk import open_terminal_desk
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
    voice = platform.platform
    async with open_terminal_desk(settings, other_model) as desk:
        if console.is_terminal:
            console.print(Text(voice.say(voice.greeting, voice.language), style="dim"))
        chat = Chat(desk, settings, voice.language, mode, console, errors)
        await chat.run(open_reader(history_file(), voice.language, console))
    return chat.failures
