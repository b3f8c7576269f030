"""Reads the input of the chat, cancels an answer on Ctrl-C, and copies to the clipboard.

On a terminal, the input is typed at an editable prompt with a history. Otherwise, each line of standard
input is one input.
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
from ingestion.text.language import replace_surrogates
from prompts.user_text import user_text
from schemas.choices import Language


def history_path() -> Path:
    """Return the path of the chat history, in the user's data folder."""
    return user_data_path("apidesk", appauthor=False) / "chat-history"


def open_history(path: Path) -> History:
    """Open the history at `path`. A new file is readable only by the user.

    If the file cannot be opened, return a history in memory.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.read_bytes()
    except OSError:
        return InMemoryHistory()
    return MaskedHistory(path)


class MaskedHistory(FileHistory):
    """A history that masks secrets in its file, but not in memory."""

    def store_string(self, string: str) -> None:
        """Append `string` with its secrets masked. Write errors, such as a full disk, are ignored."""
        with suppress(OSError):
            super().store_string(replace_surrogates(mask(string)))


PROMPT = "› "

STYLE = Style.from_dict({"prompt": "bold ansicyan", "placeholder": "ansibrightblack"})


class ChatInput(Protocol):
    """Reads the inputs of the chat."""

    async def read(self) -> str | None:
        """Return the next input, or None at the end."""


def open_chat_input(history: Path, language: Language, console: Console) -> ChatInput:
    """Return a PromptInput with the history at `history`, or a PipeInput if stdin is not a terminal."""
    if not sys.stdin.isatty():
        return PipeInput(console)
    output = create_output(always_prefer_tty=True)
    return PromptInput(open_history(history), language, output)


class PromptInput:
    """An editable prompt. Enter sends the input, Alt+Enter starts a new line. Pasted text is one input."""

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
            key_bindings=_key_bindings(),
            style=STYLE,
            output=output,
        )

    async def read(self) -> str | None:
        """Return the next input, an empty string after Ctrl-C, or None after Ctrl-D."""
        try:
            text = await self._session.prompt_async()
            self._session.placeholder = None  # not needed after the first input
            return text
        except KeyboardInterrupt:
            return ""
        except EOFError:
            return None


def _key_bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=has_focus(DEFAULT_BUFFER))
    def send(event: KeyPressEvent) -> None:
        if event.current_buffer.text.strip():
            event.current_buffer.validate_and_handle()

    @bindings.add("escape", "enter", filter=has_focus(DEFAULT_BUFFER))
    def start_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return bindings


class PipeInput:
    """Reads one input per line from stdin, and prints it."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def read(self) -> str | None:
        """Return the next line, or None at the end.

        This method blocks the event loop, which has no other work meanwhile. It does not read in a
        thread, because Ctrl-C could not stop that thread.
        """
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            line = sys.stdin.readline()
        finally:
            signal.signal(signal.SIGINT, previous)
        if line.strip():
            self._console.print(Text(f"{PROMPT}{line.strip()}", style="bold"), soft_wrap=True)
        return line or None


T = TypeVar("T")


async def cancel_on_interrupt(work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of `work`, or None if SIGINT cancelled `work`. Call this in the main thread."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    previous = signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(task.cancel))
    try:
        return await task
    except asyncio.CancelledError:
        if _is_caller_cancelled():
            raise
        return None
    finally:
        signal.signal(signal.SIGINT, previous)


def _is_caller_cancelled() -> bool:
    """Return whether the current task is being cancelled, as opposed to the task that it awaits."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


def copy_to_clipboard(text: str, console: Console) -> bool:
    """Copy `text` to the clipboard. If `console` is not a terminal, do nothing and return False.

    The text is sent in the escape sequence OSC 52, which also works over SSH. The result is True even if
    the terminal does not support OSC 52, because terminals do not report this.
    """
    if not console.is_terminal:
        return False
    encoded = base64.b64encode(text.encode()).decode()
    console.file.write(f"\x1b]52;c;{encoded}\x07")
    console.file.flush()
    return True
