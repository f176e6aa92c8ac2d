"""Draw small plots with a line for each column, and a place for each severity."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmark.report.curves import Curve
from benchmark.report.markup import Markup, data_block, tag
from benchmark.report.plot import FEW, Frame, View, dash_of, line_class, line_svg, view_html, x_axis, y_axis
from benchmark.tables.sets.panels import Panel

SMALL = Frame(340, 236, left=44, right=14, top=50, bottom=42)
BESIDE = 0.25
"""Room beside the first and the last place, as a share of the way from one to the next."""


def panel_views(panels: Sequence[Panel], legend: Sequence[Curve]) -> list[Markup]:
    return [panel_view(panel, legend) for panel in panels]


def panel_view(panel: Panel, legend: Sequence[Curve]) -> Markup:
    curves = {entry: filled(curve, panel) for entry, curve in enumerate(legend)}
    known = {entry: curve for entry, curve in curves.items() if curve.values}
    view = View("", -BESIDE, len(panel.places) - 1 + BESIDE, *limits(panel, known.values()))
    lines = [line(curve, entry, view, dash_of(curve)) for entry, curve in known.items()]
    axes = [*x_axis(view, dict(enumerate(panel.places)), panel.axis), *y_axis(view, panel.label), *wanted(panel, view)]
    data = {
        "lines": [points(curve, entry) for entry, curve in known.items()],
        "places": [f"{panel.axis} {place}".strip() for place in panel.places],
    }
    return small_view(panel.title, view, axes, lines, data, many=len(lines) > FEW)


def limits(panel: Panel, curves: Iterable[Curve]) -> tuple[float, Frame, float]:
    """Return the highest value, the frame and the lowest value: 0, but where the axis is about what was asked for."""
    bands = [curve.band(step) for curve in curves for step in curve.values]
    highest = max((high for *_, high in bands), default=0.0)
    if panel.wanted is None:
        return 1.04 * highest or 1.0, SMALL, 0.0
    top, low = max(highest, panel.wanted), min([panel.wanted, *(low for low, *_ in bands)])
    room = 0.05 * (top - low) or 1.0
    return top + room, SMALL, max(0.0, low - room)


def filled(curve: Curve, panel: Panel) -> Curve:
    """Return the values of a column in a panel; places without any are left out."""
    by_seed = panel.values.get(curve.column.name, {})
    values: dict[int, dict[str, float]] = {}
    for seed, found in by_seed.items():
        for step, value in enumerate(found):
            if value is not None and value == value:
                values.setdefault(step, {})[str(seed)] = round(value, 3)
    return Curve(curve.column, dict(sorted(values.items())), curve.is_reference)


def line(curve: Curve, entry: int, view: View, dashes: str | None, class_: str = "") -> Markup:
    """Draw a line and its band; a thin line has none."""
    parts = [*line_svg(curve, view, dashes)][-1:] if class_ else line_svg(curve, view, dashes)
    return tag("g", parts, class_=f"{line_class(curve)} {class_}".strip(), data_line=entry)


def points(curve: Curve, entry: int) -> dict[str, Any]:
    """Return data for the page's script: the seeds of each place."""
    return {"name": curve.column.name, "entry": entry, "points": {str(s): seeds for s, seeds in curve.values.items()}}


def wanted(panel: Panel, view: View) -> list[Markup]:
    """Return the line of the coverage that was asked for."""
    if panel.wanted is None:
        return []
    y = view.frame.top + view.y(panel.wanted)
    return [tag("line", x1=view.frame.left, x2=view.frame.width - view.frame.right, y1=y, y2=y, class_="wanted")]


def small_view(
    title: str, view: View, axes: Sequence[Markup], lines: Sequence[Markup], data: Mapping[str, Any], *, many: bool
) -> Markup:
    """Return a small plot, with its name above and its data for the page's script."""
    name = tag("text", title, x=4, y=15, class_="name")
    return view_html(view, [*axes, name], lines, title, many=many, data=data_block(data))
