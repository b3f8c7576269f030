"""Actions of a user on the page, and answers that tests send to it."""

import json
from collections.abc import Callable
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from schemas.answer import Answer, Source
from schemas.choices import LANGUAGES
from schemas.question import StructuredQuestion

SHIPPING = "怎么发货"

CHINESE = {"locale": "zh-CN"}

ENGLISH = {"locale": "en-US"}


def ask(page: Page, question: str) -> None:
    """Type the question and send it."""
    page.get_by_role("textbox").fill(question)
    page.keyboard.press("Enter")


def answered(page: Page) -> None:
    """Wait for the last answer to be complete."""
    expect(page.locator(".turn:last-child .details")).to_be_visible()


def change_language(page: Page, label: str) -> None:
    """Click the language button until the click on the one with `label`, such as "Switch to English"."""
    button = page.locator("#tools .language")
    for _ in LANGUAGES:
        is_next = button.get_attribute("aria-label") == label
        button.click()
        if is_next:
            return
    raise AssertionError(f"no language button {label!r}")


def answer_with(page: Page, answer: Answer) -> None:
    """Answer the next questions with `answer` instead of the server."""
    body = f"event: answer\r\ndata: {answer.model_dump_json(by_alias=True)}\r\n\r\n"
    page.route("**/ask", lambda route: route.fulfill(content_type="text/event-stream", body=body))


def problem(status: int, detail: str, **headers: str) -> Callable[[Route], None]:
    """Return a route that responds with a retryable problem."""
    body = json.dumps({"status": status, "detail": detail, "code": "x", "retryable": True})
    kind = "application/problem+json"
    return lambda route: route.fulfill(status=status, body=body, content_type=kind, headers=headers)


def violations(page: Page) -> list[str]:
    """Return serious and critical violations of axe-core, after all transitions have ended."""
    page.emulate_media(reduced_motion="reduce")
    violations = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{each['id']}: {node['html']}"
        for each in violations
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def made_answer(step: str, **fields: Any) -> Answer:
    """Return an answer with one step and, by default, one source."""
    source = made_source("It is so.")
    made: dict[str, Any] = {
        "id": "made",
        "question": "q",
        "introduction": "",
        "answer": [step],
        "related_url": [],
        "type": "general",
        "structured": StructuredQuestion(type="general"),
        "sources": [source],
        "confidence": "medium",
        "language": "en",
        "answered_by": "scripted",
        "timings": {"total": 1},
    }
    return Answer(**(made | fields))


def made_source(text: str, name: str = "Title", url: str = "https://open.example.com/") -> Source:
    """Return source 1."""
    return Source(
        number=1, source=name, document_id=name, title=name, section=name, page_url=url, api_name=name, api_url=url, score=1, text=text
    )  # fmt: skip
