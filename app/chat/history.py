"""What was typed in earlier chats, for the arrow keys."""

from contextlib import suppress
from pathlib import Path

from platformdirs import user_data_path
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from app.characters import whole_characters
from app.masking.masking import mask


def history_file() -> Path:
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
