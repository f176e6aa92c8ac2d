"""The page in a real browser. Deselected unless asked for: pytest -m browser."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmark.paper.assemble import MAKERS
from benchmark.report.update import update_report
from tests.report.test_report import made_results
from tests.tables.made_sets import made_set

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Names that are odd, points beside lines, more columns than a phone is wide."""
    store = made_results(tmp_path_factory.mktemp("page"), methods=4)
    manifest = store.manifests()[0]
    *others, last = manifest.entries
    apart = [replace(others[0], label="Each", coverage=coverage) for coverage in (90, 80)]
    entries = (*others, replace(last, label="Odd <b> & 'name'"), *apart)
    coverages = (100, 99, 98, 97, 95, 90, 85, 80, 70)
    store.write_manifest(replace(manifest, entries=entries, coverages=coverages))
    return update_report(store, MAKERS).as_uri()


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: "Browser", address: str) -> "Iterator[Page]":
    yield from opened(browser, address)


def opened(browser: "Browser", address: str) -> "Iterator[Page]":
    """Yield a page that must make no request and report no error while a test uses it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: problems.append(request.url) if request.url != address else None)
    page.goto(address)
    yield page
    context.close()
    assert not problems


def column(page: "Page", index: int) -> list[str]:
    return page.locator("table.sortable").first.locator(f"tbody tr > :nth-child({index})").all_inner_texts()


def numbers(texts: list[str]) -> list[float]:
    return [float(re.split("±", text)[0]) for text in texts if text[0].isdigit()]


def test_it_loads_without_errors_or_requests(page: "Page") -> None:
    assert page.title() == "Selective classification: results"
    assert page.locator("h2", has_text="made data").count() == 2


def test_sorting_by_click(page: "Page") -> None:
    before = column(page, 1)
    head = page.locator("table.sortable").first.locator("thead th").nth(1)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert numbers(column(page, 2)) == sorted(numbers(column(page, 2)))
    assert column(page, 2)[-1].startswith("–"), "what has no number comes last"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert numbers(column(page, 2)) == sorted(numbers(column(page, 2)), reverse=True)
    assert column(page, 2)[-1].startswith("–")
    head.get_by_role("button").click()
    assert column(page, 1) == before


def test_sorting_by_keyboard(page: "Page") -> None:
    heads = page.locator("table.sortable").first.locator("thead th")
    heads.nth(0).get_by_role("button").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert heads.nth(1).get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert heads.nth(1).get_attribute("aria-sort") == "none"
    assert heads.nth(2).get_attribute("aria-sort") == "ascending"


def test_a_method_is_hidden_by_click_and_by_enter(page: "Page") -> None:
    entry = page.locator(".legend button", has_text="M1+SR")
    line = page.locator(f".lines > [data-line='{entry.get_attribute('data-line')}']").first
    assert line.is_visible()
    entry.click()
    assert entry.get_attribute("aria-pressed") == "false"
    assert not line.is_visible()
    entry.focus()
    page.keyboard.press("Enter")
    assert entry.get_attribute("aria-pressed") == "true"
    assert line.is_visible()
    page.locator(".every").click()
    assert page.locator(".lines > g:visible").count() == 0


def test_pointing_at_a_line_tells_its_value(page: "Page") -> None:
    view = page.locator(".view:visible")
    view.scroll_into_view_if_needed()
    box = view.locator("svg").first.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5)
    tip = view.locator(".tip")
    assert re.search(r"coverage \d+(\.5)? %: \d+\.\d\d ± \d+\.\d\d", tip.inner_text())
    assert "by seed 0: " in tip.inner_text()
    page.mouse.move(0, 0)
    assert not tip.is_visible()


def test_the_plot_by_keyboard(page: "Page") -> None:
    page.locator(".zoom button").last.focus()
    page.keyboard.press("Tab")
    tip = page.locator(".view:visible .tip")
    assert tip.inner_text().startswith("M0+SR")
    assert "coverage 100 %" in tip.inner_text()
    page.keyboard.press("ArrowLeft")
    assert "coverage 99.5 %" in tip.inner_text()
    page.keyboard.press("ArrowDown")
    assert not tip.inner_text().startswith("M0+SR")
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_zoom(page: "Page") -> None:
    assert page.locator(".view:visible").get_attribute("data-view") == "table"
    page.get_by_role("button", name="All coverages").click()
    assert page.locator(".view:visible").get_attribute("data-view") == "full"
    assert page.locator(".view:visible").count() == 1


def test_another_column_by_class(page: "Page") -> None:
    panel = page.locator(".panel").first
    before = panel.locator("tbody").inner_text()
    panel.locator("select").select_option("Odd <b> & 'name'")
    assert panel.locator("tbody").inner_text() != before
    assert panel.locator("tbody tr").count() == 3
    panel.locator("thead button").first.click()


@pytest.fixture(scope="module")
def address_of_set(tmp_path_factory: pytest.TempPathFactory) -> str:
    _, store = made_set(tmp_path_factory.mktemp("set"), "corruptions", ("Ours", "Theirs", "Plain"))
    return update_report(store, MAKERS).as_uri()


@pytest.fixture
def set_page(browser: "Browser", address_of_set: str) -> "Iterator[Page]":
    yield from opened(browser, address_of_set)


def point_at(page: "Page", title: str) -> str:
    """Point at the middle of a small plot, and return what is told."""
    view = page.locator(".sets .view", has_text=title).first
    view.scroll_into_view_if_needed()
    box = view.locator("svg").first.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5)
    return view.locator(".tip").inner_text()


def test_of_a_set_every_small_plot_tells_its_values(set_page: "Page") -> None:
    assert re.search(r"(Ours|Theirs|Plain)\n?.*severity 2: \d+\.\d\d ± ", point_at(set_page, "AURC, noise"), re.DOTALL)
    shown = point_at(set_page, "threshold for 80 %: coverage kept")
    assert re.search(r"severity 2: \d+\.\d\d ± .*by seed 0: ", shown, re.DOTALL)
    assert re.search(r"(clean|shifted|severity \d).*coverage 5\d %: ", point_at(set_page, "coverage (%)"), re.DOTALL)


def test_of_a_set_one_legend_hides_a_method_in_all_plots(set_page: "Page") -> None:
    views, lines = set_page.locator(".sets .view"), set_page.locator(".sets [data-line='0'].reference:visible")
    before = views.locator("visible=true").count()
    assert lines.count() > 5
    set_page.locator(".sets .legend button", has_text="Ours").click()
    assert lines.count() == 0
    assert views.locator("visible=true").count() == before - 1, "its own plot is gone"
    set_page.locator(".sets .every").click()
    assert views.locator("visible=true").count() == before


def test_a_small_plot_by_keyboard(set_page: "Page") -> None:
    view = set_page.locator(".sets .view", has_text="AURC, mean over kinds")
    view.focus()
    set_page.keyboard.press("ArrowLeft")
    assert "severity 2" in view.locator(".tip").inner_text()
    set_page.keyboard.press("ArrowDown")
    assert view.locator(".tip").inner_text().startswith("Theirs")


@pytest.mark.parametrize("width", [360, 700, 1280])
def test_the_page_of_a_set_never_scrolls_sideways(set_page: "Page", width: int) -> None:
    set_page.set_viewport_size({"width": width, "height": 780})
    assert set_page.evaluate("document.documentElement.scrollWidth") <= width


def background(page: "Page") -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_dark_by_preference_and_by_button(page: "Page") -> None:
    light = background(page)
    page.emulate_media(color_scheme="dark")
    dark = background(page)
    assert dark != light
    page.locator("#theme").focus()
    page.keyboard.press("Enter")
    assert background(page) == light
    page.emulate_media(color_scheme="light")
    page.locator("#theme").click()
    assert background(page) == dark


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_page_never_scrolls_sideways(page: "Page", width: int) -> None:
    page.set_viewport_size({"width": width, "height": 780})
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator(".box").first
    box.evaluate("(each) => (each.scrollLeft = 200)")
    name = page.locator("table.sortable tbody th").first.bounding_box()
    edge = box.bounding_box()
    assert name and edge
    assert abs(name["x"] - edge["x"]) < 3, "the names stay"


def test_copy_as_latex(page: "Page") -> None:
    button = page.locator("button.copy").first
    page.evaluate("() => { navigator.clipboard.writeText = async (text) => { window.copied = text; } }")
    button.click()
    page.get_by_text("Copied").wait_for()
    assert r"\begin{tabular}" in page.evaluate("window.copied")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    button.click()
    page.locator(".latex pre").first.wait_for(state="visible")
    assert r"\begin{tabular}" in page.evaluate("getSelection().toString()")


def test_the_first_tab_skips_to_the_results(page: "Page") -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["x"] >= 0  # type: ignore[index]


def test_without_script_everything_is_there(browser: "Browser", address: str) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 360, "height": 780})
    page = context.new_page()
    page.goto(address)
    assert page.locator("table.sortable").first.is_visible()
    assert page.locator(".view").count() == 2
    assert page.locator(".view .mean").first.is_visible()
    assert page.locator(".panel h4").first.is_visible()
    for control in ("#theme", ".copy", ".zoom", ".panel select"):
        assert not page.locator(control).first.is_visible()
    context.close()
