"""Build HTML from nested calls. All text that is not markup already is escaped."""

import html
import json
from collections.abc import Iterable


class Markup(str):
    """Text that is HTML and goes into the page as it is."""


Child = str | Iterable[str]
VOID = frozenset({"meta", "path", "line", "circle", "rect"})
"""Elements without content."""


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """Return an element. `class_` becomes class, `aria_sort` becomes aria-sort; None and False are left out."""
    opening = name + "".join(attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{opening}/>")
    return Markup(f"<{opening}>{join(children)}</{name}>")


def attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.removesuffix("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'


def join(children: Iterable[Child]) -> Markup:
    """Join all children; plain text is escaped."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(html.escape(child, quote=False))
        else:
            parts.append(join(child))
    return Markup("".join(parts))


def data_block(value: object) -> Markup:
    """Return an element with data for the page's script; no text in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return tag("script", Markup(text), type="application/json", class_="data")


def details(summary: Child, *children: Child) -> Markup:
    return tag("details", tag("summary", summary), *children)


def plain_table(heading: Iterable[Child], rows: Iterable[Iterable[Child]], label: str) -> Markup:
    """Return a sortable table; the first cell of each row is its heading."""
    body = (tag("tr", tag("th", first, scope="row"), (tag("td", cell) for cell in rest)) for first, *rest in rows)
    return sortable_table(heading, body, label)


def sortable_table(heading: Iterable[Child], body: Iterable[Markup], label: str) -> Markup:
    """Return a table with these rows, which the page's script lets the reader sort."""
    return table_box(tag("tr", (tag("th", text, scope="col") for text in heading)), body, "sortable", label)


def table_box(head: Markup, body: Iterable[Markup], class_: str, label: str) -> Markup:
    """Return a table in a box that scrolls by itself and can have the focus, so that the keyboard can scroll it."""
    table = tag("table", tag("thead", head), tag("tbody", body), class_=class_)
    return tag("div", table, class_="box", tabindex="0", role="region", aria_label=label)
