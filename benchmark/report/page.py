"""Build the whole page: head, navigation, overview, a section for each task and for each published table."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from benchmark.report.classes import classes_section
from benchmark.report.effects import effects_section
from benchmark.report.health import health_section
from benchmark.report.markup import Markup, join, tag
from benchmark.report.matrix import matrix_section
from benchmark.report.parts import Part
from benchmark.report.plot import palette_css, plot_section
from benchmark.report.runs import cost_section, provenance_section
from benchmark.report.sets.section import set_topics
from benchmark.report.summary import summary
from benchmark.report.tables import costs_html, sheet_html, statistics_html, table_html
from benchmark.store.store import Store
from benchmark.tables.assemble import Assembled
from benchmark.tables.effects.sheets import NAMES as EFFECTS

TITLE = "Selective classification: results"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
IN_PAGE = Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">')
"""For a page that is a file; a server says it in a header."""


def build_page(parts: Sequence[Part]) -> str:
    """Return the page, joined only once: long sections are too large to be copied from element to element."""
    skip = tag("a", "Skip to the results", href="#main", class_="skip")
    bar = top_bar(navigation(parts))
    begin = ("<!doctype html>\n", '<html lang="en">', head(), "<body>", skip, bar, '<main id="main">')
    end = ("</main>", tag("script", Markup(asset("report.js"))), "</body></html>\n")
    return "".join([*begin, overview(parts), *(part.section for part in parts), *end])


def make_part(kind: str, shown: Assembled, store: Store) -> Part:
    """Return the part of a task, or of a published table (kind: paper)."""
    is_task = kind == "task"
    anchor = f"{kind}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', shown.name)}"
    link = shown.name if is_task else f"paper: {shown.name}"
    title = shown.title if is_task else f"Published table: {shown.title}"
    sentence = capital(summary(shown))
    card = tag("article", tag("h2", tag("a", title, href=f"#{anchor}")), tag("p", sentence), class_="card")
    topics = (task_topics(shown) if is_task else paper_topics(shown)) | run_topics(shown, store)
    return Part(anchor, link, card, section(anchor, title, sentence, topics))


@cache
def asset(name: str) -> str:
    return files("benchmark.report").joinpath(name).read_text(encoding="utf-8")


def head(*more: Markup, title: str = TITLE, policy: Markup = IN_PAGE) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        policy,
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup(asset("report.css") + palette_css())),
        more,
    )


def navigation(parts: Sequence[Part], **attributes: str) -> Markup:
    """Return the links to the tasks and tables."""
    links = (tag("a", part.link, href=f"#{part.anchor}") for part in parts)
    return tag("nav", tag("ul", (tag("li", link) for link in links)), aria_label="Tasks and tables", **attributes)


def top_bar(links: Markup) -> Markup:
    theme = tag("button", "Dark", type="button", id="theme", class_="needs-script")
    return tag("header", tag("a", "Results", href="#main", class_="home"), links, theme)


def overview(parts: Sequence[Part]) -> Markup:
    """Return a section with a card of one sentence for each part."""
    about = (
        "Selective risk: the share of errors among the inputs that a classifier keeps, at a coverage. "
        "Lower is better everywhere, unless a table says otherwise."
    )
    cards = tag("div", (part.card for part in parts), class_="cards")
    return tag("section", tag("h1", TITLE), tag("p", about, class_="lead"), cards)


def capital(text: str) -> str:
    """Return the sentence with a capital letter, unless it begins with a name."""
    return text[0].upper() + text[1:] if text.startswith(("no ", "all ", "provisional", "too ")) else text


def task_topics(shown: Assembled) -> dict[str, Markup]:
    """Return what is shown of a task alone, by heading."""
    effects = [sheet for sheet in shown.statistics if sheet.name in EFFECTS]
    others = [sheet for sheet in shown.statistics if sheet.name not in EFFECTS]
    return {
        "Tables": join([*map(table_html, shown.tables), costs_html(shown.costs), statistics_html(others)]),
        **set_topics(shown.manifest, shown.columns),
        **({"Effects of ingredients": effects_section(shown.manifest, shown.columns, effects)} if effects else {}),
        "Risk–coverage curves": plot_section(shown.manifest, shown.columns),
        "Pairwise comparison": matrix_section(shown.columns),
        "Rejection by class": classes_section(shown.manifest, shown.columns),
    }


def paper_topics(shown: Assembled) -> dict[str, Markup]:
    """Return what is shown of a published table alone, by heading."""
    return {
        "Table": join(map(table_html, shown.tables)),
        "Published and ours": join([*map(sheet_html, shown.companion), statistics_html(shown.statistics)]),
    }


def run_topics(shown: Assembled, store: Store) -> dict[str, Markup]:
    """Return what is shown of all runs, by heading."""
    return {
        "Health and failures": health_section(shown.manifest, shown.columns, store),
        "Cost": cost_section(shown.columns),
        "Provenance": provenance_section(shown.manifest, shown.columns),
    }


def section(anchor: str, title: str, sentence: str, topics: dict[str, Markup]) -> Markup:
    """Return a heading with links to the topics, and the topics."""
    words = {name: name.replace("–", " ").split()[0].lower() for name in topics}
    links = (tag("li", tag("a", name, href=f"#{anchor}-{word}")) for name, word in words.items())
    bodies = (
        tag("section", tag("h3", name, id=f"{anchor}-{words[name]}"), body, class_=f"part {words[name]}")
        for name, body in topics.items()
    )
    lead = tag("p", sentence, class_="lead")
    contents = tag("ul", links, class_="parts")
    return tag("section", tag("h2", title), lead, contents, bodies, id=anchor, class_="task")
