"""Labelled questions for tests of gaps.

tests/data/gap_questions.jsonl has sets of three topics that the samples do not cover, in fifteen wordings
each.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
ASKED_AT = datetime(2025, 3, 1, tzinfo=UTC)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def gap_set(name: str) -> list[tuple[str, str | None]]:
    """Questions of one set with their topics."""
    lines = read_lines(DATA / "gap_questions.jsonl")
    return [(line["question"], line["topic"]) for line in lines if line["set"] == name]
