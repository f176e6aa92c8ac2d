"""How every figure looks, and how it becomes a file: the same runs give the same bytes."""

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

from benchmark.files import write_if_other

SINGLE, DOUBLE = 3.3, 6.8
"""Widths in inches of one and of two columns of a page."""
SMALL = 7.0
"""Points; no text is smaller."""

REFERENCE, BLACK, GREY = "#D55E00", "#000000", "#666666"
COLOURS = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666")
"""Okabe and Ito's, the vermillion kept for the reference; grey for their yellow, which a thin line on white loses."""
DASHES: tuple[Any, ...] = ((0, (5, 1.4)), (0, (1.2, 1.2)), (0, (6, 1.2, 1.2, 1.2)), "-", (0, (2.4, 1.2)))
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
"""Inches of a line of the caption."""
CHARACTERS_PER_INCH = 19.5


class NotDrawn(Exception):
    """Why there is no figure."""


@contextmanager
def house_style() -> Iterator[None]:
    """These settings and nothing of the user's own, for the time of one figure."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)  # type: ignore[arg-type,unused-ignore]
        yield


def new_figure(width: float, height: float, caption: Sequence[str]) -> Figure:
    """A canvas of the given inches, with room below for the sentences of the caption."""
    lines = textwrap.wrap(" ".join(caption), int(width * CHARACTERS_PER_INCH))
    room = len(lines) * LINE_HEIGHT + 0.06
    figure = Figure(figsize=(width, height + room), dpi=PNG_DPI)
    FigureCanvasAgg(figure)
    share = room / (height + room)
    figure.set_layout_engine("constrained", rect=(0, share, 1, 1 - share), w_pad=0.03, h_pad=0.03)
    for number, line in enumerate(lines):
        y = (room - 0.02 - number * LINE_HEIGHT) / (height + room)
        figure.text(0.04 / width, y, plain(line), fontsize=SMALL, color="#333333", va="top")
    return figure


def look(index: int) -> dict[str, Any]:
    """Colour, line and mark of the index-th column beside the reference; in grey the marks tell them apart."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASHES[index % len(DASHES)],
        "linewidth": 1.0,
        "marker": MARKERS[index % len(MARKERS)],
        "markersize": 3.0,
    }


def reference_look() -> dict[str, Any]:
    """Thick, solid and without marks."""
    return {"color": REFERENCE, "linestyle": "-", "linewidth": 1.9}


def short_name(name: str, longest: int = 30) -> str:
    """A name that a figure has room for; names that begin alike still differ at their end."""
    end = longest // 3
    return plain(name if len(name) <= longest else f"{name[: longest - 1 - end]}…{name[-end:]}")


def plain(text: str) -> str:
    """Two dollar signs in a name are no formula."""
    return text.replace("$", r"\$")


def panel_name(axes: Axes, text: str) -> None:
    """What a panel shows, above it and flush left."""
    axes.set_title(text, loc="left", pad=4)


def files_of(figure: Figure) -> dict[str, bytes]:
    """The figure as PNG and PDF, by suffix; no time, version or path enters them."""
    nobody = {"CreationDate": None, "ModDate": None, "Producer": "selbench", "Creator": "selbench"}
    kinds: dict[str, dict[str, Any]] = {"png": {"Software": None}, "pdf": nobody}
    found = {}
    for suffix, metadata in kinds.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix, dpi=PNG_DPI, metadata=metadata)
        found[suffix] = buffer.getvalue()
    return found


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    paths = []
    for suffix, content in files_of(figure).items():
        paths.append(folder / f"{name}.{suffix}")
        write_if_other(paths[-1], content)
    return paths
