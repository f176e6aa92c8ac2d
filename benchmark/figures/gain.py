"""Draw what each column gains over the baseline, split into its ranking and its classifier."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.figures.runs import Runs, span_text
from benchmark.figures.style import BLACK, GREY, SINGLE, SMALL, NotDrawn, short_name
from benchmark.measure.statistics import smallest_p_text
from benchmark.tables.columns import Column, split_by_coverage
from benchmark.tables.statistics import seed_gains

BAR = 0.19
"""Inches from one bar to the next."""
ROOM = 1.15
"""Length of the axis from 0 to its end, as a multiple of the largest value that it shows."""
LIGHT = "#B0B0B0"
"""Parts are grey, because each colour stands for a method."""
FAR = 3.0
"""Gains beyond this many times the upper quartile are cut off."""
ENDS = 12
"""Where there are more than twice as many columns, only this many best and worst ones are shown."""


@dataclass(frozen=True)
class Gain:
    """Decrease of the AUGRC ×10³: the means of its two parts, and the standard deviation of their sum over seeds."""

    name: str
    ranking: float
    classifier: float
    std: float
    seeds: int

    @property
    def total(self) -> float:
        return self.ranking + self.classifier


def draw(runs: Runs) -> Figure:
    if not runs.manifest.paired:
        raise NotDrawn("gains are counted in runs of one seed, and nothing says that these are pairs")
    columns = split_by_coverage(runs.judged)
    name = runs.manifest.baseline
    base = next((column for column in columns if column.name == name), None)
    if base is None:
        raise NotDrawn(f"its baseline {name} has no run among those shown" if name else "its task names no baseline")
    every = gains_over(base, columns)
    gains = every if len(every) <= 2 * ENDS else [*every[:ENDS], *every[-ENDS:]]
    if not gains:
        raise NotDrawn(f"no run shares a seed with {base.name}")
    figure = runs.new_figure(SINGLE, 0.87 + BAR * len(gains), caption(runs, base.name, gains, len(every)))
    axes = figure.subplots()
    places = np.arange(len(gains))
    parts = {"ranking": [g.ranking for g in gains], "classifier": [g.classifier for g in gains]}
    starts = bar_starts(*parts.values())
    looks = ({"color": GREY}, {"color": LIGHT, "hatch": "////", "edgecolor": "white", "linewidth": 0})
    for (label, values), start, look in zip(parts.items(), starts, looks, strict=True):
        axes.barh(places, values, left=start, height=0.62, label=label, **look)  # type: ignore[arg-type]
    spreads = [gain.std for gain in gains] if max(gain.seeds for gain in gains) > 1 else None
    style = {"color": BLACK, "markerfacecolor": "white", "markersize": 3.2, "elinewidth": 0.8, "label": "gain"}
    axes.errorbar([gain.total for gain in gains], places, xerr=spreads, fmt="D", **style)  # type: ignore[arg-type]
    label_cut_bars(axes, gains)
    axes.axvline(0, color=BLACK, linewidth=0.6)
    axes.set_yticks(places, [short_name(gain.name, 24) for gain in gains])
    axes.set(ylim=(len(gains) - 0.4, -0.6), xlabel=f"fall of AUGRC ×10³\nagainst {short_name(base.name, 24)}")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper left", ncols=3, handlelength=1.4, columnspacing=1.0, handletextpad=0.4)
    return figure


def gains_over(base: Column, columns: Sequence[Column]) -> list[Gain]:
    """Return the gain of each column over `base`, the largest first."""
    by_column = []
    for column in columns:
        gains = 1000 * seed_gains(base, column)
        if column.name != base.name and len(gains):
            ranking, classifier = gains.mean(axis=0)
            std = float(gains.sum(axis=1).std())
            by_column.append(Gain(column.name, float(ranking), float(classifier), std, len(gains)))
    return sorted(by_column, key=lambda gain: -gain.total)


def bar_starts(first: Sequence[float], second: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return where both bars start: at 0, but a second bar of the same sign starts at the end of the first."""
    return [0.0] * len(first), [a if a * b > 0 else 0.0 for a, b in zip(first, second, strict=True)]


def reach(gains: Sequence[Gain]) -> float:
    """Return how far the axis goes from 0: to the largest gain, except for a few that would make the others tiny."""
    extents = [max(abs(gain.total) + gain.std, abs(gain.ranking), abs(gain.classifier)) for gain in gains]
    limit = FAR * float(np.quantile([extent for extent in extents if extent] or [1.0], 0.75))
    return max((extent for extent in extents if 0 < extent <= limit), default=1.0)


def label_cut_bars(axes: Axes, gains: Sequence[Gain]) -> None:
    """Set the ends of the axis, and write the gain as a number at bars that are cut off there."""
    limit = ROOM * reach(gains)
    low, high = axes.get_xlim()
    axes.set_xlim(max(low, -limit), min(high, limit))
    for place, gain in enumerate(gains):
        if abs(gain.total) > limit:
            spread = f"±{gain.std:.1f}" if gain.seeds > 1 else ""
            text = f"{gain.total:+.1f}{spread}".replace("-", "−")
            text, side = (f"◂ {text}", "left") if gain.total < 0 else (f"{text} ▸", "right")
            shown = axes.text(np.sign(gain.total) * 0.97 * limit, place, text, ha=side, va="center", fontsize=SMALL)
            shown.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.8})


def caption(runs: Runs, base: str, gains: Sequence[Gain], every: int) -> list[str]:
    counts = {gain.seeds for gain in gains}
    seeds = "seeds, with the standard deviation of the gain" if max(counts) > 1 else "seed"
    cut = any(abs(gain.total) > ROOM * reach(gains) for gain in gains)
    return [
        f"{runs.manifest.title}: mean over {span_text(counts)} shared {seeds}.",
        f"Ranking: what the AUROC would give at the accuracy of {base}; classifier: the rest.",
        smallest_p_text(max(counts)),
        *(["◂ ▸: beyond the axis."] if cut else []),
        *([f"The {ENDS} largest and the {ENDS} smallest of {every}."] if len(gains) < every else []),
    ]
