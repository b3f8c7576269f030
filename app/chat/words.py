"""What a chat says of itself, in the platform's language."""

from collections.abc import Mapping
from types import MappingProxyType

from schemas.language import Language

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
