"""What a chat says of itself, in the platform's language.
What begins with a slash and is no question.
"""

from typing import NamedTuple, get_args

from prompts.user_text import ChatCommandName

COMMANDS: tuple[ChatCommandName, ...] = get_args(ChatCommandName)


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
