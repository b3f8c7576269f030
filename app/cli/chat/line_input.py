"""What was typed in earlier chats, for the arrow keys.
Ctrl-C ends what is being done, not the program.
The clipboard of whoever sits at the terminal, by OSC 52: it works over ssh and needs no program.
Where questions come from: a person at a terminal, or the lines of a file or pipe.
"""

import asyncio
import base64
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from platformdirs import user_data_path
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.styles import Style
from rich.console import Console
from rich.text import Text

from app.masking.masking import mask
from ingestion.text.language import whole_characters
from prompts.user_text import user_text
from schemas.choices import Language


def history_path() -> Path:
    """Where it lies: in the user's own data folder."""
    return user_data_path("apidesk", appauthor=False) / "chat-history"


def open_history(path: Path) -> History:
    """The history at `path`, which nobody else may read; one that ends with the program where none can
    be kept.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.read_bytes()
    except OSError:
        return InMemoryHistory()
    return MaskedHistory(path)


class MaskedHistory(FileHistory):
    """A file without secrets: they are there again only as long as the program runs."""

    def store_string(self, string: str) -> None:
        """Append `string`; a disk that is full costs nobody their answer."""
        with suppress(OSError):
            super().store_string(whole_characters(mask(string)))


T = TypeVar("T")


async def cancel_on_interrupt(work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` gives; None when SIGINT cancelled it. For the main thread."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    before = signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(task.cancel))
    try:
        return await task
    except asyncio.CancelledError:
        if _is_being_cancelled():
            raise
        return None
    finally:
        signal.signal(signal.SIGINT, before)


def _is_being_cancelled() -> bool:
    """Whether it is the caller that is to end, and not only its work."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


def copy_to_clipboard(text: str, console: Console) -> bool:
    """Hand `text` to the terminal; whether there is one. What it does with it, it does not say."""
    if not console.is_terminal:
        return False
    encoded = base64.b64encode(text.encode()).decode()
    console.file.write(f"\x1b]52;c;{encoded}\x07")
    console.file.flush()
    return True


PROMPT = "› "

STYLE = Style.from_dict({"prompt": "bold ansicyan", "placeholder": "ansibrightblack"})


class LineInput(Protocol):
    """Gives one text after the other."""

    async def read(self) -> str | None:
        """The next text; None when there is none any more."""


def open_line_input(history: Path, language: Language, console: Console) -> LineInput:
    """A person's, who finds in `history` what was typed before, where standard input is a terminal."""
    if not sys.stdin.isatty():
        return PipeInput(console)
    output = create_output(always_prefer_tty=True)
    return PromptInput(open_history(history), language, output)


class PromptInput:
    """Lines that can be edited: Enter sends, Alt+Enter begins a line, what is pasted stays together."""

    def __init__(self, history: History, language: Language, output: Output | None = None) -> None:
        text = user_text(language).chat
        meanings: dict[str, str] = dict(text.commands.items())
        self._session: PromptSession[str] = PromptSession(
            message=FormattedText([("class:prompt", PROMPT)]),
            multiline=True,
            prompt_continuation=" " * len(PROMPT),
            placeholder=FormattedText([("class:placeholder", text.keys)]),
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


class PipeInput:
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
