"""Define how every figure looks, and write it to files: the same runs give the same bytes."""

import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from benchmark.base.files import write_if_changed
from benchmark.measure.statistics import Array
from benchmark.tables.columns import Column
from benchmark.tables.looks import DASHES, PALETTE, column_look

SINGLE, DOUBLE = 3.3, 6.8
"""Widths in inches of one and of two columns of a page."""
SMALL = 7.0
"""The smallest text, in points."""

BLACK, GREY = "#000000", "#666666"
COLOURS = tuple(on_white for on_white, _ in PALETTE)
MARKERS = "osD^vP<>"

SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "axes.titlesize": 7.5,
    "legend.fontsize": SMALL,
    "legend.title_fontsize": SMALL,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "pdf.fonttype": 42,
}
PNG_DPI = 200
LINE_HEIGHT = SMALL * 1.35 / 72
"""Height of a line of the caption, in inches."""
CHARACTERS_PER_INCH = 19.5


class NotDrawn(Exception):
    """The reason why a figure cannot be drawn."""


@contextmanager
def house_style() -> Iterator[None]:
    """Use only these settings, and none of the user's own, while a figure is drawn."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)  # type: ignore[arg-type,unused-ignore]
        yield


def new_figure(width: float, height: float, caption: Sequence[str], *, plain: bool = False) -> Figure:
    """Return an empty figure of this size in inches, its caption below it; a plain figure has it as its label."""
    text = " ".join(caption)
    lines = [] if plain else textwrap.wrap(text, int(width * CHARACTERS_PER_INCH))
    room = len(lines) * LINE_HEIGHT + 0.06
    figure = Figure(figsize=(width, height + room), dpi=PNG_DPI)
    figure.set_label(text if plain else "")
    FigureCanvasAgg(figure)
    share = room / (height + room)
    figure.set_layout_engine("constrained", rect=(0, share, 1, 1 - share), w_pad=0.03, h_pad=0.03)
    for number, line in enumerate(lines):
        y = (room - 0.02 - number * LINE_HEIGHT) / (height + room)
        figure.text(0.04 / width, y, no_formula(line), fontsize=SMALL, color="#333333", va="top")
    return figure


def colour_of(column: Column) -> str:
    return COLOURS[column_look(column).colour]


def line_look(column: Column, reference: str) -> dict[str, Any]:
    """Return colour, line and mark: columns differ in grey too. Only the reference is thick, solid and unmarked."""
    look, colour = column_look(column), colour_of(column)
    if column.name == reference:
        return {"color": colour, "linestyle": "-", "linewidth": 1.9}
    return {
        "color": colour,
        "linestyle": (0, DASHES[look.dash]) if DASHES[look.dash] else "-",
        "linewidth": 1.0,
        "marker": MARKERS[look.mark],
        "markersize": 3.0,
        "markerfacecolor": "white" if look.hollow else colour,
    }


def short_name(name: str, longest: int = 30) -> str:
    """Shorten a name in the middle, so that it fits; names that begin alike still differ at their end."""
    end = longest // 3
    return no_formula(name if len(name) <= longest else f"{name[: longest - 1 - end]}…{name[-end:]}")


def no_formula(text: str) -> str:
    """Escape dollar signs, so that two of them in a name do not make a formula."""
    return text.replace("$", r"\$")


def panel_name(axes: Axes, text: str) -> None:
    """Write above a panel, at its left end, what it shows."""
    axes.set_title(text, loc="left", pad=4)


def draw_mean(axes: Axes, x: ArrayLike, curves: Array, label: str, style: dict[str, Any], alpha: float) -> None:
    """Draw the mean over seeds and a light band from the smallest to the largest; `curves` is (seeds, places)."""
    axes.plot(x, curves.mean(axis=0), label=label, **style)
    if len(curves) > 1:
        low, high = curves.min(axis=0), curves.max(axis=0)
        axes.fill_between(x, low, high, color=style["color"], alpha=alpha, linewidth=0)


def draw_legend(figure: Figure, axes: Axes) -> None:
    """Draw the legend of one panel above all panels, with as many columns as fit beside each other."""
    handles, labels = axes.get_legend_handles_labels()
    widest = 0.55 + 0.062 * max(map(len, labels))
    ncols = max(1, min(len(labels), int(DOUBLE / widest)))
    figure.legend(handles, labels, loc="outside upper left", ncols=ncols, columnspacing=1.2)


def settle(figure: Figure) -> None:
    """Lay a figure out once, and round the places: the last digits of the layout differ from one time to the next."""
    if figure.get_layout_engine() is None:
        return
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(tuple(round(number, 6) for number in axes.get_position().bounds))


def files_of(figure: Figure) -> dict[str, bytes]:
    """Return the figure as PNG and PDF, by suffix; they contain no time, version or path."""
    settle(figure)
    nobody = {"CreationDate": None, "ModDate": None, "Producer": "selbench", "Creator": "selbench"}
    kinds: dict[str, dict[str, Any]] = {"png": {"Software": None}, "pdf": nobody}
    by_suffix = {}
    for suffix, metadata in kinds.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix, dpi=PNG_DPI, metadata=metadata)
        by_suffix[suffix] = buffer.getvalue()
    return by_suffix


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write the files of a figure and return their paths."""
    contents = {folder / f"{name}.{suffix}": content for suffix, content in files_of(figure).items()}
    for path, content in contents.items():
        write_if_changed(path, content)
    return list(contents)
