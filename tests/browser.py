"""A real browser for tests: the system's Chromium, headless, controlled by Playwright."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.effectiveDirective} ${event.blockedURI}`));
"""


def missing_chromium() -> str:
    """Return why no browser can be started, or an empty string."""
    return "" if shutil.which("chromium") else "chromium is not installed"


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Run a browser within the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(ARGUMENTS)
        )
        try:
            yield browser
        finally:
            browser.close()


class Window:
    """A browser page that collects its errors."""

    def __init__(self, page: Page, home: str) -> None:
        self.page = page
        self.home = home
        self.faults: list[str] = []
        page.add_init_script(REPORT_VIOLATIONS)
        page.on("request", self._requested)
        page.on("dialog", lambda dialog: self._fault(f"dialog: {dialog.message}"))
        page.on("pageerror", lambda error: self._fault(f"error: {error}"))
        page.on("console", self._said)

    def _requested(self, request: Request) -> None:
        if not request.url.startswith((self.home, "data:")):
            self._fault(f"request: {request.url}")

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._fault(message.text)

    def _fault(self, text: str) -> None:
        self.faults.append(text)


@contextmanager
def window(browser: Browser, home: str, **context: Any) -> Iterator[Window]:
    """Open an empty page in a new profile. Requests to sites other than `home` are errors."""
    opened = browser.new_context(**context)
    opened.set_default_timeout(15_000)
    try:
        yield Window(opened.new_page(), home)
    finally:
        opened.close()


class Site(ThreadingHTTPServer):
    """A second site on loopback. For a browser, `localhost` and `127.0.0.1` are different origins."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _SitePage)
        self.pages: dict[str, str] = {}
        """The HTML pages by path."""

    def origin(self, host: str = "localhost") -> str:
        """Return the origin of the site under one of its two host names."""
        return f"http://{host}:{self.server_port}"


class _SitePage(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        html = self.server.pages.get(self.path)
        self.send_response(404 if html is None else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write((html or "").encode())

    def log_message(self, *_: object) -> None:
        """Suppress the log."""


@contextmanager
def running_site() -> Iterator[Site]:
    """Run a site within the block."""
    with Site() as site:
        threading.Thread(target=site.serve_forever, name="site", daemon=True).start()
        try:
            yield site
        finally:
            site.shutdown()
