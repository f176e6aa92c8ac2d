"""Show what each ingredient of a crossed grid does: intervals of all methods as static SVG, and the sheets below."""

from collections.abc import Iterator, Sequence

from benchmark.report.markup import Markup, join, tag
from benchmark.report.plot import ticks
from benchmark.report.tables import sheet_html
from benchmark.store.manifest import Manifest
from benchmark.tables.columns import Column
from benchmark.tables.effects.grid import RESPONSES, find_grid
from benchmark.tables.effects.lines import ALL, Estimate, Line, is_cut_off, known, limits_of, main_effects
from benchmark.tables.looks import look_of
from benchmark.tables.model import Row, Sheet

DRAWN = ("aurc", "accuracy")
WIDTH, ROW = 350, 22
LEFT, RIGHT, TOP, BOTTOM = 126, 14, 24, 40
INNER = WIDTH - LEFT - RIGHT
LONGEST = 18
"""Characters of a name that fit beside a panel."""


def effects_section(manifest: Manifest, columns: Sequence[Column], sheets: Sequence[Sheet]) -> Markup:
    """Return panels of the main effects on AURC and accuracy, and the sheets."""
    grid = find_grid(manifest, columns)
    lines = main_effects(grid) if grid else []
    rows = [row for row in RESPONSES if row.measure in DRAWN and known(lines, row)]
    note = tag("p", note_text(lines, rows), class_="note") if rows else ""
    return join([*(tag("div", panels(lines, row), class_="forests figure") for row in rows), note,
                 *map(sheet_html, sheets)])  # fmt: skip


def note_text(lines: Sequence[Line], rows: Sequence[Row]) -> str:
    cut = " Some intervals go on beyond the axis." if any(is_cut_off(known(lines, row)) for row in rows) else ""
    return f"Marks: mean over seeds, with its t interval; open where the table below has no star.{cut}"


def panels(lines: Sequence[Line], row: Row) -> Iterator[Markup]:
    """Yield a panel for each ingredient, all with the same axis."""
    limits = limits_of(known(lines, row))
    for effect in dict.fromkeys(line.effect for line in lines):
        yield tag("div", panel_svg([line for line in lines if line.effect == effect], row, limits), class_="forest")


def panel_svg(lines: Sequence[Line], row: Row, limits: tuple[float, float]) -> Markup:
    """Draw a panel. A nested svg cuts off what is beyond the axis."""
    effect, bottom = lines[0].effect, TOP + ROW * len(lines)
    names = (
        tag("text", short(line.method), x=LEFT - 10, y=TOP + ROW * (index + 0.5) + 4, text_anchor="end")
        for index, line in enumerate(lines)
    )
    marks = (mark_svg(line, row, ROW * (index + 0.5), limits) for index, line in enumerate(lines))
    inner = tag("svg", marks, x=LEFT, y=TOP, width=INNER, height=ROW * len(lines))
    title = tag("text", effect, x=6, y=14, class_="name")
    better = "lower" if row.lower_is_better else "higher"
    what = f"change of {row.label}, {better} is better"
    below = tag("text", what, x=WIDTH / 2, y=bottom + 34, text_anchor="middle")
    parts = (title, axis_svg(limits, bottom), names, inner, below)
    return tag("svg", *parts, viewBox=f"0 0 {WIDTH} {bottom + BOTTOM}", role="img", aria_label=f"{effect}: {what}")


def place_of(value: float, limits: tuple[float, float]) -> float:
    low, high = limits
    return round((value - low) / (high - low) * INNER, 1)


def axis_svg(limits: tuple[float, float], bottom: float) -> Iterator[Markup]:
    """Yield lines at round numbers, every second of them named, and the line at 0."""
    shown = ticks(*limits)
    for value in shown:
        x = LEFT + place_of(value, limits)
        yield tag("line", x1=x, x2=x, y1=TOP, y2=bottom, class_=None if value else "zero")
        if len(shown) <= 4 or round(value / (shown[1] - shown[0])) % 2 == 0:
            yield tag("text", f"{value:g}".replace("-", "−"), x=x, y=bottom + 16, text_anchor="middle")


def mark_svg(line: Line, row: Row, y: float, limits: tuple[float, float]) -> Markup:
    """Draw the interval and the mean of a method; nothing where there is none."""
    shown = line.by_response[row.measure]
    if not shown.n:
        return Markup()
    ends = (place_of(shown.mean + side * shown.shown_width, limits) for side in (-1, 1))
    x1, x2 = (min(max(end, -9.0), INNER + 9.0) for end in ends)
    colour = "whole" if line.method == ALL else f"c{look_of(line.method).colour}"
    interval = tag("line", x1=x1, x2=x2, y1=y, y2=y, class_="range")
    mark = tag("circle", cx=place_of(shown.mean, limits), cy=y, r=4)
    text = tag("title", f"{line.name}: {value_text(shown)}")
    return tag("g", text, interval, mark, class_=colour if shown.is_significant else f"{colour} open")


def value_text(shown: Estimate) -> str:
    interval = f" ± {shown.half_width:.2f}" if shown.n > 1 else ""
    return f"{shown.mean:+z.2f}{interval}, {shown.n} {'seeds' if shown.n > 1 else 'seed'}"


def short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 7]}…{name[-6:]}"
