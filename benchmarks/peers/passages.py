"""The passages that all systems answer from: one file of chunks."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Passage:
    """A chunk of a document."""

    id: str
    title: str
    text: str
    url: str

    @property
    def content(self) -> str:
        """The text to index, with the title as context."""
        return f"{self.title}\n\n{self.text}"


def write_passages(path: Path, passages: Iterable[Passage]) -> None:
    """Write one JSON object per line."""
    lines = (json.dumps(asdict(passage), ensure_ascii=False) + "\n" for passage in passages)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)


def read_passages(path: Path) -> list[Passage]:
    """Return the passages in a file of `write_passages`. Raises TypeError for a line with other members."""
    with path.open(encoding="utf-8") as file:
        return [Passage(**json.loads(line)) for line in file]
