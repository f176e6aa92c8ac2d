"""Draw a grid of groups: in each the risk of all images and of those that are kept, a row for each column."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmark.measure.statistics import Array
from benchmark.report.curves import Curve
from benchmark.report.markup import Markup, tag
from benchmark.report.plot import Frame, View, line_class, ticks
from benchmark.tables.sets.panels import BySeed, Group, choose_groups, groups_of, masked, worst_groups

ROW = 17
LEFT, RIGHT, TOP, BOTTOM, WIDTH = 118, 40, 26, 42, 340
MOST, MOST_COLUMNS = 24, 30
LONGEST = 15
"""Characters of a name that fit beside a plot."""
SAID = (
    "Open: the risk of all images of a group. Filled: that of its images which the threshold keeps, and their share at "
    "the right, in per cent; bars: standard deviation over seeds. The ring marks the worst group of a method."
)


def group_views(legend: Sequence[Curve], coverage: float) -> tuple[str, str, list[Markup]]:
    """Return heading, note and plots."""
    shown = list(legend)[:MOST_COLUMNS]
    every = groups_of([curve.column for curve in shown], coverage)
    groups, worst = choose_groups(every, MOST), worst_groups(every)
    highest = max((largest(values) for group in groups for values in group.values.values()), default=0.0)
    frame = Frame(WIDTH, TOP + ROW * len(shown) + BOTTOM, LEFT, RIGHT, TOP, BOTTOM)
    view = View("", 0, 1, 1.05 * highest or 1.0, frame)
    left = f" Shown are the {MOST} groups with the largest risks." if len(groups) < len(every) else ""
    left += f" Shown are the first {MOST_COLUMNS} columns of {len(legend)}." if len(shown) < len(legend) else ""
    title = f"Groups at the threshold that keeps {coverage:g} % of all test images"
    return title, SAID + left, [group_view(group, shown, view, worst) for group in groups]


def largest(values: BySeed) -> float:
    """Return the larger of the mean risks of a column in a group."""
    return float(masked(values).mean(axis=0)[:2].filled(0).max())


def group_view(group: Group, shown: Sequence[Curve], view: View, worst: Mapping[str, str]) -> Markup:
    rows = [
        row_svg(curve, entry, masked(group.values[curve.column.name]), view, worst.get(curve.column.name) == group.name)
        for entry, curve in enumerate(shown)
    ]
    axes = tag("g", axis_svg(view), class_="axes")
    name = tag("text", group.name, x=4, y=15, class_="name")
    lines = tag("g", rows, class_="lines")
    box = f"0 0 {view.frame.width} {view.frame.height}"
    svg = tag("svg", axes, name, lines, viewBox=box, role="img", aria_label=f"Risk in the group {group.name}")
    return tag("div", svg, class_="view")


def axis_svg(view: View) -> Iterator[Markup]:
    bottom = view.frame.height - BOTTOM
    for value in ticks(0, view.top)[::2]:
        x = place_of(value, view)
        yield tag("line", x1=x, x2=x, y1=TOP, y2=bottom)
        yield tag("text", f"{value:g}", x=x, y=bottom + 16, text_anchor="middle")
    middle = LEFT + view.frame.inner_width / 2
    yield tag("text", "risk (%)", x=middle, y=view.frame.height - 8, text_anchor="middle")


def place_of(risk: float, view: View) -> float:
    return round(LEFT + risk / view.top * view.frame.inner_width, 1)


def row_svg(curve: Curve, entry: int, values: Array, view: View, is_worst: bool) -> Markup:
    """Draw the row of a column: nothing where it has no risk, as where nothing of the group is kept."""
    y = TOP + ROW * (entry + 0.5)
    name = tag("text", short(curve.column.name), x=LEFT - 10, y=y + 4, text_anchor="end", class_="of")
    full, risk, kept = values.mean(axis=0)
    parts = [name] if np.ma.masked in (full, risk) else [name, *marks(full, risk, values.std(axis=0)[1], y, view)]
    if is_worst and len(parts) > 1:
        parts.append(tag("circle", cx=place_of(risk, view), cy=y, r=7, class_="ring"))
    if kept is not np.ma.masked:
        parts.append(tag("text", f"{kept:.0f}", x=WIDTH - 6, y=y + 4, text_anchor="end", class_="of"))
    text = f"{curve.column.name}: " + ", ".join(
        f"{what} {value:.2f} %" for what, value in (("all", full), ("kept", risk), ("coverage", kept))
        if value is not np.ma.masked
    )  # fmt: skip
    return tag("g", tag("title", text), parts, class_=line_class(curve), data_line=entry)


def marks(full: float, risk: float, std: float, y: float, view: View) -> Iterator[Markup]:
    ends = (place_of(max(0.0, risk - std), view), place_of(min(view.top, risk + std), view))
    yield tag("line", x1=place_of(full, view), x2=place_of(risk, view), y1=y, y2=y, class_="way")
    yield tag("line", x1=ends[0], x2=ends[1], y1=y, y2=y, class_="range")
    yield tag("g", tag("circle", cx=place_of(full, view), cy=y, r=3.5), class_="open")
    yield tag("circle", cx=place_of(risk, view), cy=y, r=4)


def short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 7]}…{name[-6:]}"
