"""A chat: questions of one conversation, answered one after the other.
A chat over standard input and output.
"""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

from rich.console import Console
from rich.text import Text

from app.cli.chat.commands import COMMANDS, ChatCommand, read_command
from app.cli.chat.footnotes import (
    as_markdown,
    print_footnotes,
    print_with_footnotes,
    source_heading,
)
from app.cli.chat.line_input import (
    LineInput,
    cancel_on_interrupt,
    copy_to_clipboard,
    history_path,
    open_line_input,
)
from app.cli.terminal.answerers import TerminalAnswerer, open_terminal_answerer
from app.cli.terminal.printing import Markdown, live_answer, print_retrieved
from app.service.ask_command import AskCommand, check_question
from ingestion.platform_config import read_platform
from ingestion.text.language import whole_characters
from prompts.user_text import user_text
from schemas.answer import Answer
from schemas.choices import Language
from schemas.errors import ApideskError
from schemas.question import AnswerMode
from schemas.settings import Settings


class Chat:
    """What is known of the conversation, and what is done with each text."""

    def __init__(
        self,
        answer_service: TerminalAnswerer,
        settings: Settings,
        language: Language,
        mode: AnswerMode,
        console: Console,
        errors: Console,
    ) -> None:
        self.failures = 0
        """Texts that could not be answered."""
        self._answer_service = answer_service
        self._settings = settings
        self._text = user_text(language).chat
        self._mode = mode
        self._console = console
        self._errors = errors
        self._session = uuid4().hex
        self._last: Answer | None = None
        self._left = False

    async def run(self, reader: LineInput) -> None:
        """Answer until nothing comes any more, or until /quit."""
        while not self._left and (text := await reader.read()) is not None:
            text = whole_characters(text).strip()
            if not text:
                continue
            try:
                await self._take(text)
            except ApideskError as error:
                self.failures += 1
                self._complain(str(error))

    async def _take(self, text: str) -> None:
        command = read_command(text)
        if command is None:
            await self._ask(text)
        elif command.name in COMMANDS:
            await self._does[command.name](command)
        else:
            self.failures += 1
            self._complain(self._text.no_command.format(name=command.name))

    async def _ask(self, question: str) -> None:
        check_question(question, self._settings)
        answer = await cancel_on_interrupt(self._answer(question))
        if answer is None:
            self._complain(self._text.stopped)
            return
        self._last = answer
        self._console.print()
        print_with_footnotes(answer, self._console)
        self._console.print()

    async def _answer(self, question: str) -> Answer:
        asked = AskCommand(question, mode=self._mode, session=self._session)
        async with live_answer() as listener:
            return await self._answer_service.ask(asked, listener)

    @property
    def _does(self) -> dict[str, Callable[[ChatCommand], Awaitable[None]]]:
        return {
            "/new": self._begin_anew,
            "/sources": self._show_sources,
            "/retrieved": self._show_retrieved,
            "/copy": self._copy,
            "/help": self._help,
            "/quit": self._leave,
        }

    async def _begin_anew(self, command: ChatCommand) -> None:
        self._session = uuid4().hex
        self._last = None
        self._say(self._text.new)

    async def _show_sources(self, command: ChatCommand) -> None:
        """All that the last answer cites, or the text of one."""
        if (answer := self._answered()) is None:
            return
        if not command.argument:
            print_footnotes(answer, self._console)
            if not answer.sources:
                self._say(self._text.no_sources)
            return
        number = command.argument.strip("[]")
        source = next((s for s in answer.sources if str(s.number) == number), None)
        if source is None:
            self._complain(self._text.no_source.format(number=number))
            return
        self._console.print(Text(source_heading(source), style="bold"))
        self._console.print(Markdown(source.text))
        self._console.print(Text(source.page_url, style="cyan"), soft_wrap=True)

    async def _show_retrieved(self, command: ChatCommand) -> None:
        if (answer := self._answered()) is not None:
            found = await self._answer_service.retrieve(AskCommand(answer.question))
            print_retrieved(found, self._console)

    async def _copy(self, command: ChatCommand) -> None:
        if (answer := self._answered()) is not None:
            copied = copy_to_clipboard(as_markdown(answer), self._console)
            self._say(self._text.copied if copied else self._text.no_clipboard)

    async def _help(self, command: ChatCommand) -> None:
        for name, meaning in self._text.commands.items():
            self._console.print(Text.assemble((f"{name:<12}", "bold"), meaning))
        self._say(self._text.keys)

    async def _leave(self, command: ChatCommand) -> None:
        self._left = True

    def _answered(self) -> Answer | None:
        """The last answer; where there is none, that is said."""
        if self._last is None:
            self._complain(self._text.none_yet)
        return self._last

    def _say(self, sentence: str) -> None:
        self._console.print(Text(sentence, style="dim"))

    def _complain(self, sentence: str) -> None:
        self._errors.print(Text(sentence, style="yellow"), soft_wrap=True)


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
        await chat.run(open_line_input(history_path(), platform_info.language, console))
    return chat.failures
