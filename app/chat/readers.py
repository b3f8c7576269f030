"""Where questions come from: a person at a terminal, or the lines of a file or pipe."""

import signal
import sys
from pathlib import Path
from typing import Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.styles import Style
from rich.console import Console
from rich.text import Text

from app.chat.commands import COMMANDS
from app.chat.history import open_history
from app.chat.words import WORDS
from schemas.language import Language

PROMPT = "› "

STYLE = Style.from_dict({"prompt": "bold ansicyan", "placeholder": "ansibrightblack"})


class LineInput(Protocol):
    """Gives one text after the other."""

    async def read(self) -> str | None:
        """The next text; None when there is none any more."""


def open_reader(history: Path, language: Language, console: Console) -> LineInput:
    """A person's, who finds in `history` what was typed before, where standard input is a terminal."""
    if not sys.stdin.isatty():
        return LineReader(console)
    output = create_output(always_prefer_tty=True)
    return TerminalReader(open_history(history), language, output)


class TerminalReader:
    """Lines that can be edited: Enter sends, Alt+Enter begins a line, what is pasted stays together."""

    def __init__(self, history: History, language: Language, output: Output | None = None) -> None:
        meanings = {name: meaning[language] for name, meaning in COMMANDS.items()}
        self._session: PromptSession[str] = PromptSession(
            message=FormattedText([("class:prompt", PROMPT)]),
            multiline=True,
            prompt_continuation=" " * len(PROMPT),
            placeholder=FormattedText([("class:placeholder", WORDS[language]["keys"])]),
            completer=WordCompleter(list(meanings), meta_dict=meanings, sentence=True),
            history=history,
            key_bindings=_keys(),
            style=STYLE,
            output=output,
        )

    async def read(self) -> str | None:
        """What was sent; empty after Ctrl-C, None after Ctrl-D."""
        try:
            text = await self._session.prompt_async()
            self._session.placeholder = None  # whoever has sent something knows how
            return text
        except KeyboardInterrupt:
            return ""
        except EOFError:
            return None


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=has_focus(DEFAULT_BUFFER))
    def send(event: KeyPressEvent) -> None:
        if event.current_buffer.text.strip():
            event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=has_focus(DEFAULT_BUFFER))
    def begin_a_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


class LineReader:
    """A question a line, each shown before its answer."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def read(self) -> str | None:
        """The next line; None at the end.

        It blocks: nothing else goes on meanwhile, and a thread that waits would outlive Ctrl-C.
        """
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            line = sys.stdin.readline()
        finally:
            signal.signal(signal.SIGINT, before)
        if line.strip():
            self._console.print(Text(f"{PROMPT}{line.strip()}", style="bold"), soft_wrap=True)
        return line or None
