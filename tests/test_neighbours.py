"""Tests of the neighbours that short results of `POST /retrieve` are returned with."""

import asyncio
from pathlib import Path

import pytest

from app.service.answer_service import open_answer_service
from app.service.ask_command import AskCommand
from runnables.retrieval.ranking import MAX_BYTES
from schemas.answer import Source
from schemas.question import Filters
from tests.small_platform import PLATFORM, guides, settings_of

LONG = "A refund is paid out. " * (MAX_BYTES // 20)

PAGE = f"""# Refunds

Refunds are paid to the card of the buyer.

## Deadline

A refund arrives within 9 days.

## Zebra clause

The zebra clause applies.

## Exceptions

Gift cards are not refunded.

## Fees

No fee is charged.

## Appendix

{LONG}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an indexed page of short sections and a long one."""
    folder = tmp_path_factory.mktemp("neighbours")
    (folder / "platform.toml").write_text(PLATFORM)
    settings = settings_of(folder)
    guides(settings).mkdir()
    (guides(settings) / "refunds.md").write_text(PAGE)
    return folder


def retrieve(folder: Path, question: str, k: int, filters: Filters | None = None) -> list[Source]:
    async def ask() -> list[Source]:
        async with open_answer_service(settings_of(folder)) as answer_service:
            return await answer_service.retrieve(AskCommand(question, k=k, filters=filters))

    return asyncio.run(ask())


def test_short_section_is_returned_between_its_neighbours(folder: Path) -> None:
    (source,) = retrieve(folder, "zebra clause", k=1)
    assert source.section == "Zebra clause"
    assert source.text == (
        "## Refunds\n\nRefunds are paid to the card of the buyer.\n\n"
        "## Deadline\n\nA refund arrives within 9 days.\n\n"
        "## Zebra clause\n\nThe zebra clause applies.\n\n"
        "## Exceptions\n\nGift cards are not refunded.\n\n"
        "## Fees\n\nNo fee is charged."
    )


def test_neighbours_of_another_result_are_not_added(tmp_path: Path) -> None:
    (tmp_path / "platform.toml").write_text(PLATFORM)
    settings = settings_of(tmp_path)
    guides(settings).mkdir()
    bodies = [f"Sentence {number}." for number in range(10)]
    bodies[2] = bodies[7] = "The zebra clause applies."
    page = "\n\n".join(f"## Part {number}\n\n{body}" for number, body in enumerate(bodies))
    (guides(settings) / "parts.md").write_text(f"# Parts\n\n{page}\n")
    texts = [source.text for source in retrieve(tmp_path, "zebra clause", k=2)]
    assert sorted(text.count("## Part") for text in texts) == [5, 5]


def test_no_section_is_returned_twice(folder: Path) -> None:
    sources = retrieve(folder, "zebra clause deadline gift cards", k=3)
    whole = "\n\n".join(source.text for source in sources)
    assert len(sources) == 3
    for sentence in ("The zebra clause applies.", "within 9 days", "not refunded", "No fee"):
        assert whole.count(sentence) == 1


def test_long_section_is_returned_alone(folder: Path) -> None:
    (source,) = retrieve(folder, "appendix", k=1)
    assert source.section == "Appendix"
    assert "No fee is charged" not in source.text


def test_neighbours_match_the_filters(folder: Path) -> None:
    (source,) = retrieve(folder, "zebra clause", k=1, filters=Filters(source="guides"))
    assert "within 9 days" in source.text
    assert retrieve(folder, "zebra clause", k=1, filters=Filters(source="other")) == []
