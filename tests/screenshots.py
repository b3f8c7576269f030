"""The pictures of docs/page.md: `make screenshots`. Needs chromium and a font with Chinese characters."""

import io
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page

from app.desk import connect_desk
from schemas.settings import read_settings
from tests.browser import running_chromium, window
from tests.live_server import live_server

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"

PHONE = {"viewport": {"width": 375, "height": 780}}
DESKTOP = {"viewport": {"width": 1280, "height": 860}}
CHINESE = {"locale": "zh-CN", "color_scheme": "light"}
ENGLISH = {"locale": "en-US", "color_scheme": "dark"}


def main() -> None:
    """Take every picture anew."""
    logging.disable(logging.ERROR)  # uvicorn's complaint of being stopped without notice
    with samples() as url, running_chromium() as browser:
        for name, size in (("375", PHONE), ("1280", DESKTOP)):
            with opened(browser, url, size | CHINESE) as page:
                ask(page, "怎么发货")
                take(page, f"page-{name}")
            with opened(browser, url, size | ENGLISH) as page:
                take(page, f"page-{name}-start")
                ask(page, "what does error 44203 mean?")
                page.locator(".citation").first.click()
                take(page, f"page-{name}-source")


@contextmanager
def samples() -> Iterator[str]:
    """The address of the sample platform, served without a model."""
    with tempfile.TemporaryDirectory() as folder:
        store = {"milvus_uri": f"{folder}/milvus.db", "database_url": f"sqlite:///{folder}/a.db"}
        desk = connect_desk(read_settings(**store))
        try:
            desk.job.run(desk.job.new_run("start"))
            with live_server(desk) as url:
                yield url
        finally:
            desk.job.close()


@contextmanager
def opened(browser: Browser, url: str, context: dict[str, Any]) -> Iterator[Page]:
    """The page with its suggestions, standing still."""
    with window(browser, url, reduced_motion="reduce", **context) as win:
        win.page.goto(url)
        win.page.locator(".suggestions button").first.wait_for()
        yield win.page


def ask(page: Page, question: str) -> None:
    """Ask, and wait for the whole answer."""
    page.get_by_role("textbox").fill(question)
    page.keyboard.press("Enter")
    page.locator(".details").wait_for()


def take(page: Page, name: str) -> None:
    """Write what the window shows, in as many colours as such a page has."""
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
