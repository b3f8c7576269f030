"""Takes the screenshots of docs/how-to/embed-the-page.md, for `make screenshots`.

It needs Chromium and a Chinese font.
"""

import asyncio
import io
import json
import logging
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page

from app.service.answer_service import AnswerService, connect_answer_service
from app.service.ask_command import AskCommand
from app.service.records import RecordStore, build_record
from ingestion.database.engine import open_engine
from schemas.ingestion import IngestionRun, SourceReport
from schemas.insights import Feedback, QuestionRecord
from schemas.settings import read_settings
from tests.browser import running_chromium, window
from tests.live_server import live_server

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"

DATA = Path(__file__).parent / "data"

COMMENTS = ("答的是别的接口", "", "The limit has changed since.")
"""Comments of negative ratings."""

PHONE = {"viewport": {"width": 375, "height": 780}}
DESKTOP = {"viewport": {"width": 1280, "height": 860}}
CHINESE = {"locale": "zh-CN", "color_scheme": "light"}
ENGLISH = {"locale": "en-US", "color_scheme": "dark"}


def main() -> None:
    """Take all screenshots."""
    logging.disable(logging.ERROR)  # hides uvicorn's message about being stopped
    with samples() as url, running_chromium() as browser:
        for name, size in (("375", PHONE), ("1280", DESKTOP)):
            with opened(browser, url, size | CHINESE) as page:
                ask(page, "订单发货返回 41024 怎么处理")
                take(page, f"page-{name}")
            with opened(browser, url, size | ENGLISH | {"color_scheme": "light"}) as page:
                ask(page, "what does error 44203 mean?")
                take(page, f"page-{name}-en")
            with opened(browser, url, size | ENGLISH) as page:
                take(page, f"page-{name}-start")
                ask(page, "what does error 44203 mean?")
                page.locator(".citation").first.click()
                take(page, f"page-{name}-source")
            with opened_admin(browser, url, size | CHINESE) as page:
                take(page, f"admin-{name}")
                page.locator(".gaps").evaluate("node => scrollTo(0, node.offsetTop - 160)")
                take(page, f"admin-{name}-gaps")
            with opened_admin(browser, url, size | ENGLISH) as page:
                page.locator("[href='#ingestions']").click()
                page.locator("progress").first.wait_for()
                take(page, f"admin-{name}-ingestions")
                page.locator("[href='#search']").click()
                page.get_by_role("searchbox").fill("how do I sign a request?")
                page.keyboard.press("Enter")
                page.locator(".results").wait_for()
                take(page, f"admin-{name}-search")


@contextmanager
def samples() -> Iterator[str]:
    """Serve the sample platform without a model and yield the URL."""
    with tempfile.TemporaryDirectory() as folder:
        store = {"milvus_uri": f"{folder}/milvus.db", "database_url": f"sqlite:///{folder}/a.db"}
        answer_service = connect_answer_service(read_settings(**store))
        try:
            answer_service.job.run(answer_service.job.new_run("start"))
            keep(answer_service, asyncio.run(month(answer_service)))
            answer_service.job.runs.save(halfway(answer_service))
            with live_server(answer_service) as url:
                yield url
        finally:
            answer_service.job.close()


@contextmanager
def opened(browser: Browser, url: str, context: dict[str, Any]) -> Iterator[Page]:
    """Open the page, and wait until it shows its suggestions and has stopped moving."""
    with window(browser, url, reduced_motion="reduce", **context) as win:
        win.page.goto(url)
        win.page.locator(".suggestions button").first.wait_for()
        yield win.page


@contextmanager
def opened_admin(browser: Browser, url: str, context: dict[str, Any]) -> Iterator[Page]:
    """Open the admin page, and wait until it shows its report and has stopped moving."""
    with window(browser, url, reduced_motion="reduce", **context) as win:
        win.page.goto(f"{url}/admin")
        win.page.locator(".tiles").wait_for()
        yield win.page


def halfway(answer_service: AnswerService) -> IngestionRun:
    """Return an unfinished run of another process."""
    run = answer_service.job.new_run("schedule")
    done = SourceReport(name="reference", expected=18, documents=18, changed=2, unchanged=16)
    run.sources = [done, SourceReport(name="guides", expected=14, documents=9, added=1)]
    return run


async def month(answer_service: AnswerService) -> list[QuestionRecord]:
    """Return records of questions on random days of the last month, with a fixed seed."""
    names = (
        "insights_gaps",
        "on_topic",
        "on_topic_held_out",
        "on_topic_fresh",
        "retrieval_samples",
    )
    lines = [line for name in names for line in (DATA / f"{name}.jsonl").read_text().splitlines()]
    chance = random.Random(5)
    return [await asked(answer_service, json.loads(line)["question"], chance) for line in lines]


async def asked(
    answer_service: AnswerService, question: str, chance: random.Random
) -> QuestionRecord:
    """Return the record of one question; one in twenty is rated."""
    record = build_record(AskCommand(question), await answer_service.ask(AskCommand(question)), 1)
    days = 29 - 29 * chance.random() ** 1.4
    told: dict[str, Any] = {"asked_at": datetime.now(UTC) - timedelta(days=days), "session": None}
    if chance.random() < 0.05:
        helped = chance.random() < 0.6
        told["feedback"] = Feedback(
            score=1 if helped else -1, comment="" if helped else chance.choice(COMMENTS)
        )
    return record.model_copy(update=told | {"cached": chance.random() < 0.2})


def keep(answer_service: AnswerService, records: list[QuestionRecord]) -> None:
    """Write the records to the database of the server."""
    engine = open_engine(answer_service.settings)
    store = RecordStore(engine)
    store.add(records)
    for record in records:
        if record.feedback:
            store.rate(record.owner, record.id, record.feedback)
    engine.dispose()


def ask(page: Page, question: str) -> None:
    """Ask a question and wait for the complete answer."""
    page.get_by_role("textbox").fill(question)
    page.keyboard.press("Enter")
    page.locator(".details").wait_for()


def take(page: Page, name: str) -> None:
    """Save a screenshot of the window with a reduced palette."""
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
