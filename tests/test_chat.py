"""`apidesk chat`: input, answers, commands and the history file."""

import asyncio
import fcntl
import io
import os
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from pydantic import SecretStr
from rich.console import Console

from app.cli.terminal.answerers import LocalAnswerer, RemoteAnswerer, TerminalAnswerer
from app.cli.terminal.chat import Chat, ChatCommand, locale_language, read_command
from app.cli.terminal.line_input import (
    MaskedHistory,
    PipeInput,
    PromptInput,
    cancel_on_interrupt,
    copy_to_clipboard,
    open_history,
)
from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand
from app.serving.local_server import LocalServer, announce_server
from prompts.user_text import user_text
from schemas.answer import Answer, EventSink, Source
from schemas.choices import Language
from tests.live_server import live_server
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.rerank_server import RerankServer, jina

APIDESK = Path(sys.executable).with_name("apidesk")
KEY = "a-key-for-local-commands"
TIMEOUT_S = 60.0

ALT_ENTER = "\x1b\r"
PASTED = "\x1b[200~{}\x1b[201~"

COMMAND_INPUTS = {
    "a command": ("/new", ChatCommand("/new", "")),
    "with an argument": ("/sources 2", ChatCommand("/sources", "2")),
    "the beginning of one": ("/s 2", ChatCommand("/sources", "2")),
    "an unknown one": ("/nwe", ChatCommand("/nwe", "")),
    "a question": ("怎么发货", None),
    "a path": ("/dop/api/v1/order/search", None),
    "a question about a path": ("/orders 接口怎么用", None),
    "a slash": ("/", None),
    "a question with a command in it": ("what is /help", None),
}

KEY_INPUTS = {
    "Enter sends": ("怎么发货\r", "怎么发货"),
    "Alt+Enter begins a line": (f"one{ALT_ENTER}two\r", "one\ntwo"),
    "what is pasted stays together": (PASTED.format("a: 1\r\nb: 2\r\n") + "\r", "a: 1\nb: 2\n"),
    "a blank line is not sent": ("  \r\r怎么\r", "  怎么"),
    "Ctrl-C drops what was typed": ("secret\x03", ""),
    "Ctrl-D leaves": ("\x04", None),
}

CHATS: dict[str, tuple[str, list[str]]] = {
    "a follow-up": (
        "发货接口是哪个\n那错误码呢\n",
        ["/dop/api/v1/order/ship", "41021", "[1] 订单发货 > 错误码\n", "apiId=1110"],
    ),
    "footnotes": (
        "what does error 44203 mean?\n",
        [
            "44203",
            "────\n[1] Update SKU Price > Error codes\n    https://open.example.com/#/api?apiId=1206\n",
            "Confidence high",
        ],
    ),
    "the text of a source": (
        "what does error 44203 mean?\n/sources\n/sources 1\n/sources [1]\n/sources 7\n",
        [
            "Update SKU Price > Error codes",
            "Idempotency key",
            "The last answer has no source [7].",
        ],
    ),
    "what was retrieved": ("怎么发货\n/retrieved\n", ["score", "发货流程"]),
    "nothing to copy to": ("怎么发货\n/copy\n", ["输出不是终端，无法复制。"]),
    "commands without an answer": ("/sources\n/retrieved\n/copy\n", ["还没有回答。"] * 3),
    "a new conversation": ("怎么发货\n/new\n/sources\n", ["已开始新对话。", "还没有回答。"]),
    "help": ("/help\n", ["/retrieved  显示", "Ctrl-C"]),
    "nothing after /quit": ("/quit\n/help\n", []),
    "off topic": ("今天天气怎么样\n/sources\n", ["请换一个问题试试", "上一个回答没有引用文档。"]),
    "blank lines and half a character": ("\n  \n怎么发货\udce4\n", ["/order/ship"]),
}

FAILING = {
    "too long": ("a" * 20_001 + "\n怎么发货\n", "20001 characters, at most 20000"),
    "no such command": ("/nwe\n怎么发货\n", "没有 /nwe 这个命令"),
}


class ChatRun:
    """Runs a chat on lines of text; stdout and stderr go to one console."""

    def __init__(
        self, answer_service: AnswerService, language: Language = "zh", terminal: bool = False
    ) -> None:
        self.output = io.StringIO()
        self.console = Console(
            file=self.output,
            highlight=False,
            width=80,
            force_terminal=terminal,
            legacy_windows=False,
        )
        self._answer_service = answer_service
        self._language: Language = language

    def run(
        self, lines: str, patch: pytest.MonkeyPatch, answerer: TerminalAnswerer | None = None
    ) -> int:
        """Run the chat; return the number of lines that failed."""
        patch.setattr(sys, "stdin", io.StringIO(lines))
        local = LocalAnswerer(self._answer_service)
        settings, console = self._answer_service.settings, self.console
        greeting = self._answer_service.platform.platform.greeting
        chat = Chat(
            answerer or local, settings, self._language, "pipeline", greeting, console, console
        )
        try:
            asyncio.run(chat.run(PipeInput(console)))
        finally:
            local.close()
        return chat.failures

    @property
    def output_text(self) -> str:
        """Everything printed."""
        return self.output.getvalue()


def appear_in_order(texts: list[str], output_text: str) -> bool:
    """Whether `output_text` contains `texts` in this order."""
    return re.search(".*".join(map(re.escape, texts)), output_text, re.DOTALL) is not None


@pytest.mark.parametrize(("text", "command"), COMMAND_INPUTS.values(), ids=COMMAND_INPUTS)
def test_read_command(text: str, command: ChatCommand | None) -> None:
    assert read_command(text) == command


@pytest.mark.parametrize(("lines", "texts"), CHATS.values(), ids=CHATS)
def test_chat_prints_in_order(
    sample_service: AnswerService, monkeypatch: pytest.MonkeyPatch, lines: str, texts: list[str]
) -> None:
    chat_run = ChatRun(sample_service)
    assert chat_run.run(lines, monkeypatch) == 0
    assert appear_in_order(texts, chat_run.output_text), chat_run.output_text
    if not texts:
        assert chat_run.output_text == "› /quit\n"


@pytest.mark.parametrize(("lines", "sentence"), FAILING.values(), ids=FAILING)
def test_failed_input_does_not_end_the_chat(
    sample_service: AnswerService, monkeypatch: pytest.MonkeyPatch, lines: str, sentence: str
) -> None:
    """One sentence reports the error, and the next question is answered."""
    chat_run = ChatRun(sample_service)
    assert chat_run.run(lines, monkeypatch) == 1
    assert appear_in_order([sentence, "/order/ship"], chat_run.output_text)


@pytest.mark.parametrize(
    ("lines", "is_doubtful"), [("怎么发货\n", True), ("错误码 44203 是什么意思\n", False)]
)
def test_chat_warns_if_the_answer_may_not_fit_the_question(
    sample_service: AnswerService,
    monkeypatch: pytest.MonkeyPatch,
    lines: str,
    is_doubtful: bool,
) -> None:
    chat_run = ChatRun(sample_service)
    chat_run.run(lines, monkeypatch)
    assert ("不一定能回答这个问题。\n\n**" in chat_run.output_text) is is_doubtful
    assert "您好" not in chat_run.output_text


def test_table_of_a_source_is_not_truncated(
    sample_service: AnswerService, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat_run = ChatRun(sample_service)
    chat_run.run("订单发货接口的错误码有哪些\n/sources 1\n", monkeypatch)
    table = chat_run.output_text.rpartition("/sources 1")[2]
    cells = ["".join(line.split()) for line in table.splitlines()]
    assert "错误信息" in table
    assert "…" not in "".join(cells)


def test_chat_in_english(sample_service: AnswerService, monkeypatch: pytest.MonkeyPatch) -> None:
    chat_run = ChatRun(sample_service, "en")
    chat_run.run("/help\n/sources\n", monkeypatch)
    assert appear_in_order(
        ["start a new conversation", "There is no answer yet."], chat_run.output_text
    )


def test_terminal_links_and_clipboard(
    sample_service: AnswerService, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat_run = ChatRun(sample_service, terminal=True)
    chat_run.run("what does error 44203 mean?\n/copy\n", monkeypatch)
    linked = (
        r"\x1b\]8;[^;]*;https://open.example.com/#/api\?apiId=1206\x1b\\[^\x1b]*Update SKU Price"
    )
    assert re.search(linked, chat_run.output_text)
    assert re.search(r"\x1b\]52;c;[A-Za-z0-9+/=]+\x07", chat_run.output_text)


def test_copy_to_clipboard_uses_osc_52() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    assert copy_to_clipboard("发货", console)
    assert console.file.getvalue() == "\x1b]52;c;5Y+R6LSn\x07"  # type: ignore[attr-defined]


def test_chat_with_a_server(sample_service: AnswerService, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server keeps the session; once it is gone, one sentence reports it and the chat goes on."""
    lines = "发货接口是哪个\n那错误码呢\n/retrieved\n"
    chat_run, silent = ChatRun(sample_service), ChatRun(sample_service)
    with live_server(sample_service, KEY) as url:
        failures = chat_run.run(lines, monkeypatch, ReconnectingAnswerer(url))
    assert failures == 0
    assert appear_in_order(["41021", "[1] 订单发货 > 错误码\n", "score"], chat_run.output_text)
    assert silent.run("怎么发货\n怎么发货\n", monkeypatch, ReconnectingAnswerer(url)) == 2
    assert silent.output_text.count(f"the server at {url} does not answer") == 2


def test_interrupt_stops_only_the_retrieval(
    sample_service: AnswerService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Recorded) -> Reply:
        os.kill(os.getpid(), signal.SIGINT)
        return Reply(action="stall")

    with RerankServer() as server:
        server.reply(jina({0: 1.0}), interrupt)
        rerank = {"rerank": "endpoint", "rerank_url": server.base_url, "rerank_model": "scripted"}
        settings = sample_service.settings.model_copy(update=rerank)
        answer_service = AnswerService(settings, sample_service.platform, sample_service.job)
        chat_run = ChatRun(answer_service)
        assert chat_run.run("怎么发货\n/retrieved\n/help\n", monkeypatch) == 0
        assert server.abandoned.wait(TIMEOUT_S), "the retrieval goes on"
    assert appear_in_order(["/retrieved\n已中断。", "/retrieved  显示"], chat_run.output_text)


def test_replies_are_in_the_language_of_the_last_question(
    sample_service: AnswerService, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat_run = ChatRun(sample_service, "zh")
    chat_run.run("/new\nwhat does error 44203 mean?\n/new\n怎么发货\n/new\n", monkeypatch)
    chinese, english = user_text("zh").chat.new, user_text("en").chat.new
    assert appear_in_order([chinese, english, chinese], chat_run.output_text)


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({"LANG": "en_US.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "C.UTF-8"}, None),
        ({"LANG": "xx_XX.UTF-8"}, None),
        ({}, None),
    ],
)
def test_language_before_the_first_question_is_that_of_the_locale(
    variables: dict[str, str], language: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.setenv(name, variables.get(name, ""))
    assert locale_language() == language


class ReconnectingAnswerer:
    """Connects to a server for each call, because each runs in its own event loop."""

    def __init__(self, url: str) -> None:
        self._server = LocalServer(url=url, platform="", key=SecretStr(KEY))

    async def ask(self, command: AskCommand, on_event: EventSink | None = None) -> Answer:
        async with RemoteAnswerer.connect(self._server, TIMEOUT_S) as answerer:
            return await answerer.ask(command, on_event)

    async def retrieve(self, command: AskCommand) -> list[Source]:
        async with RemoteAnswerer.connect(self._server, TIMEOUT_S) as answerer:
            return await answerer.retrieve(command)


@pytest.mark.parametrize(("keys", "text"), KEY_INPUTS.values(), ids=KEY_INPUTS)
def test_prompt_keys(keys: str, text: str | None) -> None:
    with create_pipe_input() as keyboard, create_app_session(keyboard, DummyOutput()):
        keyboard.send_text(keys)
        reader = PromptInput(InMemoryHistory(), "zh")
        assert asyncio.run(reader.read()) == text


def test_history_file_masks_secrets(tmp_path: Path) -> None:
    path = tmp_path / "apidesk" / "chat-history"
    history = open_history(path)
    secret = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
    history.append_string(f"签名错误\nsign={secret}&page=1")
    history.append_string("half \udce4")
    assert next(iter(history.get_strings())) == f"签名错误\nsign={secret}&page=1"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    again = MaskedHistory(str(path))
    assert list(again.load_history_strings()) == ["half \ufffd", "签名错误\nsign=‹sign›&page=1"]


def test_unwritable_history_stays_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    history = open_history(tmp_path / "file" / "chat-history")
    history.append_string("怎么发货")
    assert history.get_strings() == ["怎么发货"]


def test_interrupt_cancels_only_the_work() -> None:
    before = signal.getsignal(signal.SIGINT)
    ended: list[str] = []

    async def work() -> str:
        try:
            asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
            await asyncio.sleep(TIMEOUT_S)
        finally:
            ended.append("cleaned up")
        return "never"

    async def quick() -> str:
        return "done"

    async def main() -> list[str | None]:
        return [await cancel_on_interrupt(work()), await cancel_on_interrupt(quick())]

    assert asyncio.run(main()) == [None, "done"]
    assert ended == ["cleaned up"]
    assert signal.getsignal(signal.SIGINT) == before


class Terminal:
    """A process at a pseudo-terminal of 80 columns."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        name = os.ttyname(slave)
        # A session's leader that opens a terminal gets it, and with it Ctrl-C.
        opened = f"exec {shlex.join(command)} <{name} >{name} 2>&1"
        self.process = subprocess.Popen(
            ["sh", "-c", opened], env=environment, start_new_session=True
        )
        self._slave = slave  # kept open: reading fails without another end
        self._unread = ""

    def type(self, keys: str) -> None:
        """Send keys."""
        os.write(self._master, keys.encode())

    def read_to(self, text: str) -> str:
        """Read the output up to and including `text`."""
        deadline = time.monotonic() + TIMEOUT_S
        while text not in self._unread:
            assert time.monotonic() < deadline, self._unread
            assert self.process.poll() is None, self._unread
            if select.select([self._master], [], [], 1)[0]:
                self._unread += os.read(self._master, 65536).decode(errors="replace")
        shown, _, self._unread = self._unread.partition(text)
        return shown + text

    def close(self) -> None:
        """Kill the process and close the terminal."""
        self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)


@pytest.fixture
def open_terminal() -> Iterator[Callable[..., Terminal]]:
    """Open terminals and close them after the test."""
    opened: list[Terminal] = []

    def make(command: list[str], environment: dict[str, str]) -> Terminal:
        opened.append(Terminal(command, environment))
        return opened[-1]

    yield make
    for terminal in opened:
        terminal.close()


@contextmanager
def announced_server(answer_service: AnswerService) -> Iterator[None]:
    """Run a server and announce it, so that commands find it."""
    with live_server(answer_service, KEY) as url:
        host, port = url.removeprefix("http://").split(":")
        with announce_server(answer_service.settings, host, int(port), KEY):
            yield


@pytest.mark.acceptance
def test_chat_at_a_pseudo_terminal(
    tmp_path: Path,
    sample_service: AnswerService,
    model_server: ModelServer,
    open_terminal: Callable[..., Terminal],
) -> None:
    """Questions over two lines, an answer with links, one that Ctrl-C stops, and Ctrl-D."""
    model_server.default = Reply("no such key", status=401)
    model_server.route(lambda request: "怎么发货" in request.text, Reply(action="stall"))
    settings = sample_service.settings.model_copy(update=model_server.settings)
    environment = os.environ | {
        "APIDESK_MILVUS_URI": settings.milvus_uri,
        "APIDESK_DATABASE_URL": settings.database_url,
        "XDG_DATA_HOME": str(tmp_path),
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }
    with announced_server(AnswerService(settings, sample_service.platform, sample_service.job)):
        terminal = open_terminal([str(APIDESK), "chat"], environment)
        assert "青桥开放平台" in terminal.read_to("/help 列出全部命令")
        terminal.type(
            f"what does error 44203 mean?{ALT_ENTER}token=9f8e7d6c5b4a39281706f5e4d3c2b1a0\r"
        )
        assert "\x1b]8;" in terminal.read_to("answered by extractive")
        terminal.type("怎么发货\r")
        deadline = time.monotonic() + TIMEOUT_S
        while not any("怎么发货" in request.text for request in model_server.chat_requests):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        terminal.type("\x03")
        terminal.read_to("已中断。")
        assert model_server.abandoned.wait(TIMEOUT_S), "the answer goes on"
        terminal.type("/h")
        terminal.read_to("列出全部命令")
        terminal.type("\t\r")
        terminal.read_to("/quit")
        terminal.read_to("› ")
        terminal.type("\x04")
        assert terminal.process.wait(TIMEOUT_S) == 0
    kept = (tmp_path / "apidesk" / "chat-history").read_text(encoding="utf-8")
    assert appear_in_order(["+what does error 44203 mean?\n+token=‹token›\n", "+怎么发货\n"], kept)
