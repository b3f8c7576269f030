"""What a chat says of itself, in the platform's language.
What begins with a slash and is no question.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from schemas.choices import Language

WORDS: Mapping[Language, Mapping[str, str]] = MappingProxyType(
    {
        "zh": {
            "keys": "回车发送，Alt+回车换行，Ctrl-C 中断回答，/help 列出命令",
            "new": "新的会话。",
            "none_yet": "还没有回答。",
            "stopped": "已中断。",
            "no_command": "没有 {name} 这个命令，/help 列出全部命令；若是问题，请多写几个字。",
            "no_source": "上一个回答没有 [{number}]。",
            "no_sources": "上一个回答没有引用文档。",
            "copied": "已复制。",
            "no_clipboard": "输出不是终端，无法复制。",
        },
        "en": {
            "keys": "Enter sends, Alt+Enter begins a line, Ctrl-C stops an answer, /help lists commands",
            "new": "A new conversation.",
            "none_yet": "There is no answer yet.",
            "stopped": "Stopped.",
            "no_command": "There is no command {name}: /help lists them; a question takes more words.",
            "no_source": "The last answer has no [{number}].",
            "no_sources": "The last answer cites nothing.",
            "copied": "Copied.",
            "no_clipboard": "The output is no terminal: there is nowhere to copy to.",
        },
    }
)


COMMANDS: Mapping[str, Mapping[Language, str]] = MappingProxyType(
    {
        "/new": {"zh": "开始新的会话", "en": "begin a new conversation"},
        "/sources": {
            "zh": "列出上一个回答的依据；/sources 2 显示第 2 条",
            "en": "list what the last answer cites; /sources 2 shows [2]",
        },
        "/retrieved": {
            "zh": "显示为上一个问题检索到的片段",
            "en": "show the chunks found for the last question",
        },
        "/copy": {"zh": "复制上一个回答", "en": "copy the last answer"},
        "/help": {"zh": "列出命令", "en": "list the commands"},
        "/quit": {"zh": "退出，同 Ctrl-D", "en": "leave, as Ctrl-D does"},
    }
)
"""What each is for."""


class ChatCommand(NamedTuple):
    """One of COMMANDS, or a word that looks like one; and what stands behind it."""

    name: str
    argument: str


def read_command(text: str) -> ChatCommand | None:
    """The command that `text` is, or the only one that begins so; None for a question, such as one that
    begins with a path.
    """
    name, _, argument = text.partition(" ")
    if not (name[:1] == "/" and name[1:].isalpha()):
        return None
    beginning = [each for each in COMMANDS if each.startswith(name)]
    if len(beginning) == 1:
        return ChatCommand(beginning[0], argument.strip())
    return None if argument else ChatCommand(name, "")
