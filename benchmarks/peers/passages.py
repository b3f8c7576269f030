"""The passages that everybody answers from: one file, already cut, the same for all."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Passage:
    """A piece of a document, as it is retrieved and cited."""

    id: str
    title: str
    text: str
    url: str

    @property
    def content(self) -> str:
        """What is indexed: a passage says little without its title."""
        return f"{self.title}\n\n{self.text}"


def write_passages(path: Path, passages: Iterable[Passage]) -> None:
    """Write one JSON object a line."""
    lines = (json.dumps(asdict(passage), ensure_ascii=False) + "\n" for passage in passages)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)


def read_passages(path: Path) -> list[Passage]:
    """The passages of such a file. Raises TypeError where a line has other members."""
    with path.open(encoding="utf-8") as file:
        return [Passage(**json.loads(line)) for line in file]
