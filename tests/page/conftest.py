"""Fixtures of the pages: a browser, a server of the samples, and a site that embeds the widget."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser

from app.service.answer_service import AnswerService
from tests.browser import Site, Window, missing_chromium, running_chromium, running_site, window
from tests.live_server import live_server
from tests.model_server import ModelServer
from tests.page.page_actions import ENGLISH

Open = Callable[..., Window]

ServeModel = Callable[..., AbstractContextManager[str]]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser of this module."""
    if reason := missing_chromium():
        pytest.skip(reason)
    with running_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """The site that embeds the widget."""
    with running_site() as other:
        yield other


@pytest.fixture(scope="module")
def served(sample_service: AnswerService, site: Site) -> Iterator[str]:
    """A server of the samples without a model; `site` may frame it."""
    settings = sample_service.settings.model_copy(update={"embed_origins": (site.origin(),)})
    with live_server(AnswerService(settings, sample_service.platform, sample_service.job)) as url:
        yield url


@pytest.fixture
def open_page(chromium: Browser, served: str) -> Iterator[Open]:
    """Open the page, in English by default. Errors in the page fail the test."""
    with ExitStack() as stack:
        windows: list[Window] = []

        def opened(url: str = served, **context: Any) -> Window:
            windows.append(stack.enter_context(window(chromium, url, **(ENGLISH | context))))
            windows[-1].page.goto(url)
            return windows[-1]

        yield opened
        assert [fault for each in windows for fault in each.faults] == []


@pytest.fixture
def serve_model(sample_service: AnswerService) -> ServeModel:
    """Serve the samples with the scripted model."""

    @contextmanager
    def serving(
        server: ModelServer, answer_service: AnswerService = sample_service, **more: Any
    ) -> Iterator[str]:
        settings = answer_service.settings.model_copy(update=server.settings | more)
        with live_server(
            AnswerService(settings, answer_service.platform, answer_service.job)
        ) as url:
            yield url

    return serving
