"""Draw the risk–coverage plot as static SVG, whole and at the table's coverages; the script adds hover and legend."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from benchmark.report.curves import STEPS, Curve, build_curves, curve_data
from benchmark.report.markup import Markup, data_block, tag
from benchmark.store.manifest import Manifest
from benchmark.tables.columns import Column
from benchmark.tables.looks import DASHES, PALETTE, column_look

LINE = 1.7
"""Width of a line, as in the style sheet."""
ORACLE_DASH = "5 4"
NOISY = 10
"""Below this step of coverage a single error can be higher than the rest of the plot: it does not set the height."""
FEW = 6
"""Up to this many lines all bands are shown; else only those of the reference and of the line pointed at."""
NOTHING = Markup()
MARGIN = 6
BAND_STEP = 2
"""Bands of long lines have points only at every second place, which halves their bytes."""
LONG = 20
LEGEND = 16
"""The most names that fit beside the plot; more stand below it."""


@dataclass(frozen=True)
class Frame:
    """The size of a plot, and the room around its axes."""

    width: int
    height: int
    left: int = 50
    right: int = 20
    top: int = 34
    bottom: int = 48

    @property
    def inner_width(self) -> int:
        return self.width - self.left - self.right

    @property
    def inner_height(self) -> int:
        return self.height - self.top - self.bottom


WHOLE = Frame(640, 400)


@dataclass(frozen=True)
class View:
    """A part of the plot: its range in steps of coverage, and its highest and lowest risk in per cent."""

    name: str
    first: float
    last: float
    top: float
    frame: Frame = WHOLE
    low: float = 0.0

    def x(self, step: float) -> float:
        return round((step - self.first) / (self.last - self.first) * self.frame.inner_width, 1)

    def y(self, risk: float) -> float:
        return round((self.top - risk) / (self.top - self.low) * self.frame.inner_height, 1)


def plot_section(manifest: Manifest, columns: Sequence[Column]) -> Markup:
    curves = build_curves(manifest, columns)
    if not curves:
        return tag("p", "No run is there yet.", class_="note")
    views = make_views(manifest, curves)
    figures = [plot_svg(view, curves, manifest.title) for view in views]
    keys = tag("ul", (legend_entry(curve, index) for index, curve in enumerate(curves)), class_="legend")
    class_ = "plot" if len(curves) <= LEGEND else "plot crowded"
    data = {"lines": [curve_data(curve) for curve in curves]}
    return tag("div", zoom_buttons(views), *figures, keys, plot_note(curves), data_block(data), class_=class_)


def make_views(manifest: Manifest, curves: Sequence[Curve]) -> list[View]:
    """Return a view of all coverages, and before it one of the table's coverages if they are only a part."""
    lowest, highest = (round(2 * end(manifest.coverages)) for end in (min, max))
    whole = View("full", 0, STEPS, highest_risk(curves, NOISY, STEPS))
    if highest - lowest < 4 or (lowest, highest) == (0, STEPS):
        return [whole]
    return [View("table", lowest, highest, highest_risk(curves, lowest, highest)), whole]


def highest_risk(curves: Sequence[Curve], first: int, last: int) -> float:
    risks = [curve.band(step)[2] for curve in curves for step in curve.steps(first, last)]
    return max(risks, default=0.0) * 1.04 or 1.0


def zoom_buttons(views: Sequence[View]) -> Markup:
    names = {"table": "The table's coverages", "full": "All coverages"}
    if len(views) < 2:
        return Markup()
    buttons = (
        tag("button", names[view.name], type="button", data_view=view.name, aria_pressed=str(not index).lower())
        for index, view in enumerate(views)
    )
    return tag("div", buttons, class_="zoom needs-script", role="group", aria_label="Part of the plot")


def plot_svg(view: View, curves: Sequence[Curve], title: str) -> Markup:
    """Draw a view of the risk–coverage curves."""
    lines = [curve_svg(curve, index, view) for index, curve in enumerate(curves)]
    marks = {2 * coverage: f"{coverage:g}" for coverage in ticks(view.first / 2, view.last / 2)}
    axes = [*x_axis(view, marks, "coverage (%)"), *y_axis(view, "selective risk (%)")]
    label = f"Selective risk by coverage on {title}, {view.first / 2:g} to {view.last / 2:g} %"
    return view_html(view, axes, lines, label, many=len(curves) > FEW)


def view_html(
    view: View, axes: Sequence[Markup], lines: Sequence[Markup], label: str, *, many: bool, data: Markup = NOTHING
) -> Markup:
    """Draw a view. A nested svg cuts off what is above the axes; its margin keeps points at the other edges whole."""
    frame = view.frame
    width, height = frame.inner_width + 2 * MARGIN, frame.inner_height + MARGIN
    place = {"x": frame.left - MARGIN, "y": frame.top, "width": width, "height": height}
    box = f"{-MARGIN} 0 {width} {height}"
    inner = tag("svg", lines, **place, viewBox=box, class_="lines many" if many else "lines")
    cross = tag("line", class_="cross", visibility="hidden")
    spot = tag("circle", class_="spot", r=5, visibility="hidden")
    parts = (tag("g", axes, class_="axes"), inner, cross, spot)
    svg = tag("svg", *parts, viewBox=f"0 0 {frame.width} {frame.height}", role="img", aria_label=label)
    tip = tag("output", class_="tip", hidden=True, aria_live="polite")
    shown = f"{view.first} {view.last} {view.top:.6g} {view.low:.6g}"
    inside = f"{frame.left} {frame.top} {frame.inner_width} {frame.inner_height}"
    return tag("div", svg, tip, data, class_="view", data_view=view.name, data_range=shown, data_frame=inside)


def x_axis(view: View, marks: Mapping[float, str], label: str) -> Iterator[Markup]:
    """Yield a line and a text for each mark, which are by step."""
    frame = view.frame
    bottom = frame.height - frame.bottom
    for step, text in marks.items():
        x = frame.left + view.x(step)
        yield tag("line", x1=x, x2=x, y1=frame.top, y2=bottom)
        yield tag("text", text, x=x, y=bottom + 18, text_anchor="middle")
    yield tag("text", label, x=frame.left + frame.inner_width / 2, y=frame.height - 6, text_anchor="middle")


def y_axis(view: View, label: str) -> Iterator[Markup]:
    frame = view.frame
    for value in ticks(view.low, view.top):
        y = frame.top + view.y(value)
        yield tag("line", x1=frame.left, x2=frame.width - frame.right, y1=y, y2=y)
        yield tag("text", f"{value:g}", x=frame.left - 8, y=y + 4, text_anchor="end")
    yield tag("text", label, x=4, y=frame.top - 16)


def ticks(low: float, high: float) -> list[float]:
    """Return four to nine round numbers within the range."""
    rough = (high - low) / 7
    power = 10 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    return [round(index * step, 9) for index in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def curve_svg(curve: Curve, index: int, view: View) -> Markup:
    parts = points_svg(curve, view) if curve.column.parts else line_svg(curve, view, dash_of(curve))
    return tag("g", parts, class_=line_class(curve), data_line=index)


def line_svg(curve: Curve, view: View, dashes: str | None) -> Iterator[Markup]:
    steps = curve.steps(view.first, view.last)
    low, mean, high = zip(*map(curve.band, steps), strict=True)
    if low != high:
        every = BAND_STEP if len(steps) > LONG else 1
        there, back = (path_points(steps, risks, view)[::every] for risks in (high, low))
        yield tag("path", class_="band", d=f"M{'L'.join(there)}L{'L'.join(reversed(back))}Z")
    yield tag("path", class_="mean", d=f"M{'L'.join(path_points(steps, mean, view))}", stroke_dasharray=dashes)


def path_points(steps: Sequence[int], risks: Sequence[float], view: View) -> list[str]:
    return [f"{view.x(step):g} {view.y(risk):g}" for step, risk in zip(steps, risks, strict=True)]


def points_svg(curve: Curve, view: View) -> Iterator[Markup]:
    """Draw a point for each training, with the range of its seeds."""
    for step in curve.steps(view.first, view.last):
        low, mean, high = (view.y(risk) for risk in curve.band(step))
        x = view.x(step)
        yield tag("line", class_="range", x1=x, x2=x, y1=low, y2=high)
        yield tag("circle", cx=x, cy=mean, r=4)


def line_class(curve: Curve) -> str:
    colour = "oracle" if curve.column.is_oracle else f"c{column_look(curve.column).colour}"
    return f"{colour} reference" if curve.is_reference else colour


def dash_of(curve: Curve) -> str | None:
    """Return the dashes of a line: they differ within a colour; the reference is solid, as in the figures."""
    if curve.column.is_oracle:
        return ORACLE_DASH
    dashes = () if curve.is_reference else DASHES[column_look(curve.column).dash]
    return " ".join(f"{LINE * length:.3g}" for length in dashes) or None


def palette_css() -> str:
    """Return the style rules of the palette: its colours, and the classes of lines that use them."""
    colours = "".join(f"--c{index}:light-dark({light},{dark});" for index, (light, dark) in enumerate(PALETTE))
    return f":root{{{colours}}}" + "".join(f".c{index}{{--ink:var(--c{index})}}" for index in range(len(PALETTE)))


def legend_entry(curve: Curve, index: int) -> Markup:
    line = tag("line", class_="mean", x1=1, x2=27, y1=6, y2=6, stroke_dasharray=dash_of(curve))
    sample = tag("circle", cx=14, cy=6, r=4) if curve.column.parts else line
    swatch = tag("svg", tag("g", sample, class_=line_class(curve)), viewBox="0 0 28 12", aria_hidden="true")
    return tag("li", tag("button", swatch, curve.column.name, type="button", data_line=index, aria_pressed="true"))


def plot_note(curves: Sequence[Curve]) -> Markup:
    bands = "" if len(curves) <= FEW else " (of the reference, and of the line pointed at)"
    texts = [f"Lines: mean over seeds; bands: from the lowest to the highest seed{bands}."]
    if any(curve.column.parts for curve in curves):
        texts.append("Points: one training for each coverage; bars: its seeds.")
    if any(curve.column.is_oracle for curve in curves):
        texts.append("Dashed grey: the oracle.")
    keys = " Point at a line, or focus the plot and use the arrow keys, for its values; a click on a name hides it."
    return tag("p", " ".join(texts), tag("span", keys, class_="needs-script"), class_="note")
