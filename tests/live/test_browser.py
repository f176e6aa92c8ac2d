"""The page that follows a run, in a real browser. Deselected unless asked for: pytest -m browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmark.library.watch import address_of
from benchmark.live.journal import JobFacts, Journal
from benchmark.live.server import Server
from benchmark.store.store import Store
from tests.live.test_server import TOKEN, serving
from tests.report.test_browser import browser
from tests.report.test_report import made_record, made_results, write_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser"]
pytestmark = pytest.mark.browser
JOBS = [JobFacts("made", "M0", seed, f"made/m0/new/seed-{seed}", 20) for seed in range(4)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made_results(tmp_path, methods=3, seeds=3)
    with serving(tmp_path, token=TOKEN) as server:
        yield server


@pytest.fixture
def page(browser: "Browser", server: Server) -> "Iterator[Page]":
    """A page that must report no error while a test uses it, and ask nobody but its server."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    address = address_of(server)
    home = address.partition("?")[0]
    page.on("request", lambda request: None if request.url.startswith(home) else problems.append(request.url))
    page.goto(address)
    yield page
    context.close()
    assert not problems


def renewed(server: Server) -> None:
    server.content.not_before = 0.0


@pytest.fixture
def notes(server: Server) -> Iterator[Journal]:
    """The journal of a command that trains the first of its jobs."""
    notes = Journal(server.content.store.root, JOBS, 3)
    notes.note(JOBS[0].folder, "started", {}, None)
    for done in range(1, 9):
        row = {"epoch": done - 1.0, "loss": 2 / done, "accuracy": 0.1 * done, "epochs_done": done, "seconds": 1.0}
        notes.note(JOBS[0].folder, "epoch", row, 100.0)
    yield notes
    notes.close()


def test_the_token_does_not_stay_in_the_address(page: "Page") -> None:
    assert "token" not in page.url
    assert page.locator("h1", has_text="What runs now").is_visible()


def test_jobs_appear_and_go_by_themselves(page: "Page", notes: Journal) -> None:
    page.get_by_text("0 of 4 jobs ended").wait_for(timeout=60_000)
    assert page.locator(".command tbody tr").inner_text().startswith("made M0\t0\t8/20")
    assert "left" in page.locator(".command .caption").inner_text()
    page.wait_for_function("document.querySelector('time[data-left]').textContent.includes('min')", timeout=60_000)
    for job in JOBS:
        notes.note(job.folder, "done", {}, 0.0)
    notes.close()
    page.get_by_text("It has ended.").wait_for(timeout=60_000)


def test_a_new_record_changes_the_table_and_nothing_moves(page: "Page", server: Server) -> None:
    """Neither what is looked at, nor what the reader has opened, hidden or sorted."""
    task = page.locator("#task-made")
    page.locator("#curves summary").click()
    task.locator(".legend button", has_text="M1+SR").click()
    task.locator("details").first.locator("summary").first.click()
    head = task.locator("table.sortable").first.locator("thead th").nth(1)
    head.locator("button").click()
    title = task.locator("h3", has_text="Pairwise comparison")
    title.scroll_into_view_if_needed()
    page.evaluate("window.scrollBy(0, 300)")
    before = title.bounding_box()
    old = page.locator("[data-section='task-made']").element_handle()
    write_run(Store(server.content.store.root), "made", "m0", made_record(0, 0.25))
    renewed(server)
    page.wait_for_function("(old) => !old.isConnected", arg=old, timeout=60_000)
    after = title.bounding_box()
    assert before
    assert after
    assert abs(after["y"] - before["y"]) < 3
    assert page.locator("#curves details").get_attribute("open") is not None
    assert task.locator(".legend button", has_text="M1+SR").get_attribute("aria-pressed") == "false"
    assert head.get_attribute("aria-sort") == "ascending"
    assert page.locator("[data-section='task-made']").count() == 1


def test_curves_have_values(page: "Page", server: Server, notes: Journal) -> None:
    renewed(server)
    page.locator(".command").wait_for(timeout=60_000)
    view = page.locator("#curves .view", has_text="loss").first
    view.wait_for(state="visible", timeout=60_000)
    view.focus()
    page.keyboard.press("ArrowLeft")
    assert "epoch " in view.locator(".tip").inner_text()


def test_a_server_that_is_gone_is_told(page: "Page", server: Server) -> None:
    page.route("**/versions", lambda route: route.fulfill(status=200, content_type="text/plain", body="not json"))
    page.locator("#silent").wait_for(state="visible", timeout=60_000)
    page.unroute("**/versions")
    page.locator("#silent").wait_for(state="hidden", timeout=60_000)


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_page_never_scrolls_sideways(page: "Page", server: Server, notes: Journal, width: int) -> None:
    renewed(server)
    page.locator(".command").wait_for(timeout=60_000)
    page.set_viewport_size({"width": width, "height": 780})
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
