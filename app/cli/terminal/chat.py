"""Runs the chat of `apidesk chat`, with follow-up questions, slash commands and footnotes."""

import asyncio
from itertools import groupby
from typing import NamedTuple, get_args
from uuid import uuid4

from rich.console import Console
from rich.style import Style
from rich.text import Text

from app.cli.terminal.answer_output import (
    Markdown,
    live_answer,
    print_notes,
    print_retrieved,
    print_steps,
    source_heading,
)
from app.cli.terminal.answerers import TerminalAnswerer, open_terminal_answerer
from app.cli.terminal.line_input import (
    ChatInput,
    cancel_on_interrupt,
    copy_to_clipboard,
    history_path,
    open_chat_input,
)
from app.service.ask_command import AskCommand, check_question
from ingestion.platform_config import read_platform
from ingestion.text.language import detect_question_language, replace_surrogates
from prompts.user_text import ChatCommandName, ChatText, user_text
from schemas.answer import Answer
from schemas.choices import LANGUAGES, Language
from schemas.errors import ApideskError
from schemas.platform import LocalizedText
from schemas.question import AnswerMode
from schemas.settings import Settings, read_variable


def print_with_footnotes(answer: Answer, greeting: LocalizedText, console: Console) -> None:
    """Print the text of `answer`, its sources as footnotes, and the notes (see `print_notes`).

    If the introduction continues after the platform's `greeting`, for example with a warning that the
    answer may not fit the question, the continuation is printed first.
    """
    start = greeting.in_language(answer.language)
    if answer.introduction.startswith(start) and (
        continuation := answer.introduction[len(start) :].strip()
    ):
        console.print(Text(continuation, style="dim"), soft_wrap=True)
        console.print()
    print_steps(answer, console)
    if answer.sources:
        console.print(Text("────", style="dim"))
    print_footnotes(answer, console)
    print_notes(answer, console)


def print_footnotes(answer: Answer, console: Console) -> None:
    """Print one line per source, and the URL of each page after the lines of the sources on that page."""
    for url, sources in groupby(answer.sources, lambda source: source.page_url):
        link = _link_style(url)
        for source in sources:
            line = Text.assemble(f"[{source.number}] ", (source_heading(source), link))
            console.print(line, soft_wrap=True)
        if url:
            line = Text.assemble("    ", (url, Style(color="cyan") + link))
            console.print(line, soft_wrap=True)


def _link_style(url: str) -> Style:
    """Return the style of a hyperlink (OSC 8). Terminals without support only show the text."""
    return Style(link=url) if url else Style()


def as_markdown(answer: Answer) -> str:
    """Return the answer and its footnotes as Markdown, for pasting."""
    footnotes = [
        f"[{source.number}] {source_heading(source)} {source.page_url}".rstrip()
        for source in answer.sources
    ]
    return "\n\n".join([*answer.answer, *(["\n".join(footnotes)] if footnotes else [])])


COMMANDS: tuple[ChatCommandName, ...] = get_args(ChatCommandName)


class ChatCommand(NamedTuple):
    """A command that the user entered, with its argument. The command may be unknown."""

    name: str
    argument: str


def read_command(text: str) -> ChatCommand | None:
    """Parse `text` as a command, which may be abbreviated. Returns None if `text` is a question.

    For example, `/v1/orders returns 404` and `/orders returns 404` are questions.
    """
    name, _, argument = text.partition(" ")
    if not (name[:1] == "/" and name[1:].isalpha()):
        return None
    matching = [command for command in COMMANDS if command.startswith(name)]
    if len(matching) == 1:
        return ChatCommand(matching[0], argument.strip())
    return None if argument else ChatCommand(name, "")


class Chat:
    """Answers the questions and runs the commands that a user enters.

    Its messages are in the language of the last question; before the first question, in `language`.
    """

    def __init__(
        self,
        answerer: TerminalAnswerer,
        settings: Settings,
        language: Language,
        mode: AnswerMode,
        greeting: LocalizedText,
        console: Console,
        errors: Console,
    ) -> None:
        self.failures = 0
        """Number of inputs that raised an ApideskError or are unknown commands."""
        self._answerer = answerer
        self._settings = settings
        self._language = language
        self._mode = mode
        self._greeting = greeting
        self._console = console
        self._errors = errors
        self._session = uuid4().hex
        self._last_answer: Answer | None = None
        self._has_quit = False

    @property
    def _text(self) -> ChatText:
        return user_text(self._language).chat

    async def run(self, line_input: ChatInput) -> None:
        """Process inputs until the input ends or the user enters /quit."""
        while not self._has_quit and (text := await line_input.read()) is not None:
            text = replace_surrogates(text).strip()
            if not text:
                continue
            try:
                await self._process(text)
            except ApideskError as error:
                self.failures += 1
                self._print_error(str(error))

    async def _process(self, text: str) -> None:
        command = read_command(text)
        if command is None:
            await self._ask(text)
            return
        match command.name:
            case "/new":
                self._start_session()
            case "/sources":
                self._show_sources(command.argument)
            case "/retrieved":
                await self._show_retrieved()
            case "/copy":
                self._copy()
            case "/help":
                self._show_help()
            case "/quit":
                self._has_quit = True
            case unknown:
                self.failures += 1
                self._print_error(self._text.no_command.format(name=unknown))

    async def _ask(self, question: str) -> None:
        self._language = detect_question_language(question) or self._language
        check_question(question, self._settings)
        answer = await cancel_on_interrupt(self._answer(question))
        if answer is None:
            self._print_error(self._text.stopped)
            return
        self._last_answer = answer
        self._console.print()
        print_with_footnotes(answer, self._greeting, self._console)
        self._console.print()

    async def _answer(self, question: str) -> Answer:
        command = AskCommand(question, mode=self._mode, session=self._session)
        async with live_answer() as on_event:
            return await self._answerer.ask(command, on_event)

    def _start_session(self) -> None:
        self._session = uuid4().hex
        self._last_answer = None
        self._print_info(self._text.new)

    def _show_sources(self, argument: str) -> None:
        """Print the footnotes of the last answer or, if `argument` is a number, the text of that source."""
        if (answer := self._require_answer()) is None:
            return
        if not argument:
            print_footnotes(answer, self._console)
            if not answer.sources:
                self._print_info(self._text.no_sources)
            return
        number = argument.strip("[]")
        source = next((cited for cited in answer.sources if str(cited.number) == number), None)
        if source is None:
            self._print_error(self._text.no_source.format(number=number))
            return
        self._console.print(Text(source_heading(source), style="bold"))
        self._console.print(Markdown(source.text))
        self._console.print(Text(source.page_url, style="cyan"), soft_wrap=True)

    async def _show_retrieved(self) -> None:
        if (answer := self._require_answer()) is None:
            return
        retrieval = self._answerer.retrieve(AskCommand(answer.question))
        sources = await cancel_on_interrupt(retrieval)
        if sources is None:
            self._print_error(self._text.stopped)
            return
        print_retrieved(sources, self._console)

    def _copy(self) -> None:
        if (answer := self._require_answer()) is not None:
            copied = copy_to_clipboard(as_markdown(answer), self._console)
            self._print_info(self._text.copied if copied else self._text.no_clipboard)

    def _show_help(self) -> None:
        for name, meaning in self._text.commands.items():
            self._console.print(Text.assemble((f"{name:<12}", "bold"), meaning))
        self._print_info(self._text.keys)

    def _require_answer(self) -> Answer | None:
        """Return the last answer, or print an error and return None if there is no answer."""
        if self._last_answer is None:
            self._print_error(self._text.none_yet)
        return self._last_answer

    def _print_info(self, sentence: str) -> None:
        self._console.print(Text(sentence, style="dim"))

    def _print_error(self, sentence: str) -> None:
        self._errors.print(Text(sentence, style="yellow"), soft_wrap=True)


def locale_language() -> Language | None:
    """Return the language of the terminal's locale, or None if there are no texts in this language."""
    values = map(read_variable, ("LC_ALL", "LC_MESSAGES", "LANG"))
    code = next(filter(None, values), "").partition(".")[0].partition("_")[0]
    return next((language for language in LANGUAGES if language == code), None)


async def run_chat(settings: Settings, mode: AnswerMode, custom_model: bool) -> int:
    """Chat on standard input and output until the user quits; return `Chat.failures`.

    `open_terminal_answerer` explains `custom_model`. Raises ApideskError if the chat cannot start.
    """
    console, errors = Console(highlight=False), Console(stderr=True, highlight=False)
    platform = await asyncio.to_thread(read_platform, settings.platform)
    platform_info = platform.platform
    language = locale_language() or platform_info.language
    async with open_terminal_answerer(settings, custom_model) as answerer:
        if console.is_terminal:
            console.print(Text(platform_info.greeting.in_language(language), style="dim"))
        greeting = platform_info.greeting
        chat = Chat(answerer, settings, language, mode, greeting, console, errors)
        await chat.run(open_chat_input(history_path(), language, console))
    return chat.failures
