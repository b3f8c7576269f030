"""The admin page in a real browser, on a server with API keys and hostile documents."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect
from pydantic import SecretStr

from app.analytics.insights.report import BYTE_ORDER_MARK
from app.security.api_keys import ApiKeyStore
from app.service.answer_service import AnswerService
from app.service.records import RecordStore
from ingestion.database.engine import open_engine
from ingestion.job import run_lock
from schemas.answer import Page as DocumentPage
from schemas.ingestion import SourceReport
from schemas.insights import Feedback, Insights
from schemas.settings import Settings
from tests.browser import Window, window
from tests.conftest import ServiceFactory
from tests.insights_records import NOON, SHIP, asked, keep, wordings
from tests.live_server import live_server
from tests.page.hostile import HOSTILE, PAYLOADS, hostile_platform
from tests.page.page_actions import change_language, problem, violations

pytestmark = pytest.mark.acceptance

ENGLISH = {"locale": "en-US", "viewport": {"width": 1280, "height": 860}}
PHONE = {"width": 375, "height": 780}

ADMIN_KEY = "a" * 40

NEAREST = DocumentPage(title="Kettles", page_url="https://open.example.com/docs/kettles")

RECORDS = [
    asked(1, **SHIP),
    asked(2, **SHIP, asked_at=NOON - timedelta(days=1), error="44203"),
    asked(3, **SHIP, confidence="low", error="44203"),
    asked(4, api_name=HOSTILE, api_url=HOSTILE, error=HOSTILE),
    asked(5, type="unknown", pages=(), confidence=None, cached=True),
    asked(6, type=None, confidence=None, failure="model_timeout"),
    asked(7, question=HOSTILE, feedback=Feedback(score=-1, comment=f"no use {HOSTILE}")),
    asked(8, **SHIP, asked_at=NOON - timedelta(days=20)),
    *wordings(
        ["drone delivery", f"Is there a drone API? {HOSTILE}", "drone delivery\nprice"],
        nearest=NEAREST,
    ),
]


class Served(NamedTuple):
    """A server and its keys."""

    url: str
    answer_service: AnswerService
    ask_key: str


@pytest.fixture(scope="module")
def served(
    make_service: ServiceFactory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """The server of this module; its database contains `RECORDS`."""
    platform = hostile_platform(tmp_path_factory.mktemp("hostile"))
    nearest = f"---\ntitle: {NEAREST.title}\nurl: {NEAREST.page_url}\n---\nNothing else.\n"
    (platform.parent / "docs" / "nearest.md").write_text(nearest)
    answer_service = make_service(platform=platform, admin_key=SecretStr(ADMIN_KEY))
    key = prepare(answer_service.settings)
    with live_server(answer_service) as url:
        yield Served(url, answer_service, key)


def prepare(settings: Settings) -> str:
    """Store the records and return a key with the scope `ask`."""
    engine = open_engine(settings)
    keep(RecordStore(engine), RECORDS)
    _, key = ApiKeyStore(engine).add("asks", ("ask",), None)
    engine.dispose()
    return key


Open = Callable[..., Page]


@pytest.fixture
def open_admin(chromium: Browser, served: Served) -> Iterator[Open]:
    """Open a view with a stored key. Errors in the page fail the test."""
    opened: list[Window] = []
    with window(chromium, served.url, **ENGLISH) as one:

        def opening(view: str, **media: Any) -> Page:
            one.page.emulate_media(reduced_motion="reduce", **media)
            one.page.add_init_script(f"sessionStorage.setItem('apidesk.key', '{ADMIN_KEY}')")
            one.page.goto(f"{served.url}/admin#{view}")
            opened.append(one)
            return one.page

        yield opening
        assert [fault for each in opened for fault in each.faults] == []


def card(page: Page, title: str) -> Any:
    """Return the card with this title."""
    return page.get_by_role("region", name=title, exact=True).first


def view(page: Page, name: str) -> None:
    """Open another view."""
    page.get_by_role("navigation").get_by_role("link", name=name).click()


def made_of_it(page: Page) -> list[str]:
    """Return elements and URLs that only a payload can create."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("body :is(img, script, iframe, object, svg:not([class])), body a")]
          .filter((node) => node.tagName !== "A" || !/^https?:/.test(node.protocol))
          .map((node) => node.outerHTML)"""
    )
    return found


def test_key_with_the_admin_scope_is_required(chromium: Browser, served: Served) -> None:
    with window(chromium, served.url, **ENGLISH) as opened:
        page = opened.page
        page.goto(f"{served.url}/admin")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("a valid API key is required")
        page.keyboard.press("Escape")
        expect(page.get_by_role("alert")).to_contain_text("This page requires an API key")
        page.get_by_role("button", name="Try again").click()
        page.get_by_label("API key", exact=True).fill(served.ask_key)
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("an API key with the scope admin")

        page.get_by_role("button", name="Use another key").click()
        page.get_by_label("API key", exact=True).fill(ADMIN_KEY)
        page.keyboard.press("Enter")
        expect(page.locator(".tiles")).to_be_visible()
        page.reload()
        expect(page.locator(".tiles")).to_be_visible()
        view(page, "Ingestion")
        expect(page.locator(".state").first).to_be_visible()
        assert dialog.count() == 0, "it is asked for once"


def test_insights_are_shown(open_admin: Open) -> None:
    page = open_admin("insights")
    expect(page.locator(".tiles b")).to_have_text(["11", "10%", "10%", "1"])
    expect(page.get_by_role("img")).to_have_attribute(
        "aria-label", re.compile(r"About an API 9, Off topic 1, Failed 1\.")
    )
    page.get_by_text("Show as table").click()
    row = card(page, "Questions by day").get_by_role("row").nth(1)
    expect(row.get_by_role("cell")).to_have_text(["7", "1", "1"])

    gap = page.locator(".gaps > li")
    expect(gap).to_have_count(1)
    expect(gap.locator(".size b")).to_have_text("3")
    expect(gap.locator(".missing")).to_contain_text("drone")
    expect(gap.get_by_role("link", name="Kettles")).to_have_attribute("href", NEAREST.page_url)
    expect(gap.locator("details li").first).to_be_hidden()
    gap.get_by_text("Other wordings (2)").click()
    expect(gap.locator("details li")).to_have_count(2)

    shipping = card(page, "Questions by API").get_by_role("row", name="订单发货")
    expect(shipping.get_by_role("cell")).to_have_text(["4", "1"])
    code = card(page, "Error codes").get_by_role("row", name="44203")
    expect(code.get_by_role("cell")).to_have_text(["2"])
    expect(card(page, "Feedback").locator("blockquote")).to_contain_text("no use")

    page.get_by_role("button", name="7 days").click()
    expect(page.locator(".tiles b").first).to_have_text("10")
    expect(page.get_by_role("button", name="7 days")).to_have_attribute("aria-pressed", "true")
    assert made_of_it(page) == []


def test_table_is_saved_as_csv(open_admin: Open, tmp_path: Path) -> None:
    page = open_admin("insights")
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save as CSV: Gaps").click()
    assert saving.value.suggested_filename == "insights-gaps-30-days.csv"
    saving.value.save_as(tmp_path / "gaps.csv")
    saved = (tmp_path / "gaps.csv").read_text(encoding="utf-8")
    assert saved.startswith(f"{BYTE_ORDER_MARK}question,size,")
    assert "drone delivery" in saved


def test_run_progress_is_shown_until_its_end(open_admin: Open, served: Served) -> None:
    """First a run of another process, during which none can be started; then one started by the button."""
    job = served.answer_service.job
    run = job.new_run("schedule")
    run.sources = [SourceReport(name=HOSTILE, expected=8, documents=3, refused=[f"x: {HOSTILE}"])]
    earlier = job.new_run("watch")
    earlier.sources, earlier.state = [SourceReport(name="docs", refused=["broken"])], "partial"
    job.runs.save(earlier)
    with run_lock(served.answer_service.settings, run):
        job.runs.save(run)
        page = open_admin("ingestions")
        expect(page.locator(".card.running")).to_contain_text("3 of 8 read")
        page.locator(".rows summary").click()
        run.sources[0].documents = 7
        job.runs.save(run)
        expect(page.get_by_role("progressbar")).to_have_attribute("value", "7")
        expect(page.locator(".rows li")).to_be_visible()
        run.state = "partial"
        job.runs.save(run)
        expect(page.get_by_role("status")).to_have_text("The run has ended: Partial.")
        expect(page.locator(".state").first).to_have_text("Partial")
        expect(page.get_by_role("progressbar")).to_have_count(0)
        assert made_of_it(page) == []
    page.get_by_label("Dry run").check()
    page.get_by_role("button", name="Start a run").click()
    expect(page.get_by_role("status")).to_have_text("The run has ended: Succeeded.")
    expect(page.get_by_role("row").nth(1)).to_contain_text("by request · dry run")


def test_concurrent_run_is_refused_with_a_message(chromium: Browser, served: Served) -> None:
    run = served.answer_service.job.new_run("command")
    with (
        window(chromium, served.url, **ENGLISH) as opened,
        run_lock(served.answer_service.settings, run),
    ):
        page = opened.page
        page.add_init_script(f"sessionStorage.setItem('apidesk.key', '{ADMIN_KEY}')")
        page.goto(f"{served.url}/admin#ingestions")
        page.get_by_role("button", name="Start a run").click()
        expect(page.get_by_role("alert")).to_contain_text("another ingestion is running: process")


def test_run_is_polled_only_while_the_view_is_visible(chromium: Browser, served: Served) -> None:
    run = served.answer_service.job.new_run("command")
    served.answer_service.job.runs.save(run)
    polls: list[str] = []
    with (
        run_lock(served.answer_service.settings, run),
        window(chromium, served.url, **ENGLISH) as opened,
    ):
        page = opened.page
        page.clock.install()
        page.add_init_script(f"sessionStorage.setItem('apidesk.key', '{ADMIN_KEY}')")
        page.on("request", lambda sent: polls.extend([sent.url] if run.id in sent.url else []))
        page.goto(f"{served.url}/admin#ingestions")
        expect(page.locator(".card.running")).to_be_visible()
        view(page, "Search")
        expect(page.get_by_role("search")).to_be_visible()
        polls.clear()
        page.clock.run_for(5_000)
        assert polls == []
        view(page, "Ingestion")
        expect(page.locator(".card.running")).to_be_visible()
        with page.expect_request(f"**/ingestions/{run.id}"):
            page.clock.run_for(1_500)
    run.state = "failed"
    served.answer_service.job.runs.save(run)


def test_search_shows_scores(open_admin: Open) -> None:
    page = open_admin("search")
    page.get_by_role("searchbox").fill("does the kettle need vinegar?")
    page.keyboard.press("Enter")
    found = page.locator(".results > li").first
    expect(found.locator(".score b")).to_have_text(re.compile(r"^\d+(\.\d+)?$"))
    expect(found.get_by_role("heading")).to_contain_text(PAYLOADS[0])
    expect(found.locator(".excerpt")).to_contain_text("needs vinegar. alert(1)")
    expect(found.locator(".from")).to_have_text("docs")
    assert found.get_by_role("link").count() == 0, "its page is no web address"
    found.get_by_role("button", name="Show full text").click()
    expect(page.get_by_role("dialog")).to_contain_text("alert(1)")
    assert made_of_it(page) == []


def test_empty_views_show_a_placeholder(open_admin: Open) -> None:
    page = open_admin("search")
    expect(page.locator(".empty-state")).to_contain_text("Enter a question as a developer")
    page.get_by_role("searchbox").fill("zzzz")
    page.keyboard.press("Enter")
    expect(page.locator(".empty-state")).to_contain_text("No results")
    empty = Insights(days=30, questions=0, unanswered=0, off_topic_share=0, cached_share=0)
    page.route("**/insights?*", lambda route: route.fulfill(json=empty.as_json()))
    view(page, "Insights")
    expect(page.locator(".empty-state")).to_contain_text("No questions in this period")
    page.route("**/ingestions", lambda route: route.fulfill(json={"ingestions": []}))
    view(page, "Ingestion")
    expect(page.locator(".empty-state")).to_contain_text("No ingestion runs yet")


@pytest.mark.parametrize(
    ("locale", "name"), [("en-US", f"Kettles {PAYLOADS[0]}"), ("zh-CN", "水壶")]
)
def test_name_of_the_platform_is_in_the_language_of_the_page(
    chromium: Browser, served: Served, locale: str, name: str
) -> None:
    with window(chromium, served.url, locale=locale) as opened:
        opened.page.goto(f"{served.url}/admin")
        expect(opened.page.get_by_role("heading", level=1)).to_have_text(name)
        expect(opened.page).to_have_title(f"{name} · apidesk")


def test_problem_is_shown_with_a_retry_button(chromium: Browser, served: Served) -> None:
    with window(chromium, served.url, **ENGLISH) as opened:
        page = opened.page
        page.add_init_script(f"sessionStorage.setItem('apidesk.key', '{ADMIN_KEY}')")
        page.route("**/insights?*", problem(503, "the database rests"))
        page.goto(f"{served.url}/admin")
        expect(page.get_by_role("alert")).to_contain_text("the database rests")
        page.unroute("**/insights?*")
        page.get_by_role("button", name="Try again").click()
        expect(page.locator(".tiles")).to_be_visible()


def test_page_is_usable_with_the_keyboard(open_admin: Open) -> None:
    page = open_admin("insights")
    expect(page.locator(".tiles")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    for _ in range(4):
        page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("link", name="Ingestion")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Ingestion runs")).to_be_visible()
    expect(page.get_by_role("link", name="Ingestion")).to_be_focused()
    page.go_back()
    expect(page.get_by_role("heading", name="Question statistics")).to_be_visible()


def test_page_is_translated(open_admin: Open) -> None:
    page = open_admin("insights")
    expect(page.locator(".tiles")).to_be_visible()
    change_language(page, "切换到中文")
    for name, heading in (("入库", "入库记录"), ("检索", "检索"), ("洞察", "问题统计")):
        view(page, name)
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    expect(page.locator(".tiles dt").first).to_have_text("问题")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violations(open_admin: Open, served: Served, scheme: str) -> None:
    page = open_admin("insights", color_scheme=scheme)
    expect(page.locator(".tiles")).to_be_visible()
    page.get_by_text("Show as table").click()
    page.get_by_text("Other wordings").click()
    sound(page)
    view(page, "Search")
    page.get_by_role("searchbox").fill("kettle vinegar")
    page.keyboard.press("Enter")
    expect(page.locator(".results")).to_be_visible()
    sound(page)
    run = served.answer_service.job.new_run("watch")
    run.sources = [SourceReport(name="docs", expected=8, documents=3, refused=["x: is broken"])]
    with run_lock(served.answer_service.settings, run):
        served.answer_service.job.runs.save(run)
        view(page, "Ingestion")
        expect(page.get_by_role("progressbar")).to_be_visible()
        sound(page)
    run.state, run.error = "failed", "the disk is full"
    served.answer_service.job.runs.save(run)


def sound(page: Page) -> None:
    """Check accessibility and overflow at both widths."""
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert violations(page) == []
    page.set_viewport_size(ENGLISH["viewport"])  # type: ignore[arg-type]
    assert violations(page) == []
