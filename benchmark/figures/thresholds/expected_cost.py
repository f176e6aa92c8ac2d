"""Draw what errors and rejections cost together, by what a rejection costs: best thresholds, and Chow's rule."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.figures.differences import far_off, limits
from benchmark.figures.risk_coverage import FAINT, base_of, choose_columns
from benchmark.figures.runs import Runs, seeds_text
from benchmark.figures.style import DOUBLE, GREY, NotDrawn, draw_legend, draw_mean, line_look, panel_name, short_name
from benchmark.measure.metrics import COST_RATIOS
from benchmark.measure.statistics import Array
from benchmark.tables.columns import Column, abbreviate

EVERY = slice(1, None)
"""The points that are drawn: to reject for nothing is no choice."""
RATIO = 100 * COST_RATIOS[EVERY]
"""What a rejection costs at each point, in per cent of what an error costs."""
CHOW = (
    "Chow's rule keeps an image if its largest class probability is at least 1 minus the cost of a rejection: where "
    "probabilities are true, no rule is better."
)
MARKS = 4
"""How many marks a line has in a panel."""
DASHED: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 0.8}
BySeed = Mapping[int, Array]
Style = dict[str, Any]


def draw(runs: Runs) -> Figure:
    usable = [column for column in runs.judged if not column.parts and best_costs(column)]
    if not usable:
        raise NotDrawn("no column has a run whose costs are known")
    shown = choose_columns(usable, runs.ranked, runs.manifest.reference)
    best = {column.name: best_costs(column) for column in usable}
    chow = {column.name: costs for column in shown if (costs := chow_costs(column))}
    looks = {column.name: solid(column, runs.manifest.reference, i, len(shown)) for i, column in enumerate(shown)}
    base = base_of(usable, runs.manifest) if runs.manifest.paired else ""
    panels = difference_panels(list(looks), best, chow, base)
    figure = runs.new_figure(DOUBLE, 2.75, caption(runs, shown, len(usable), panels, has_chow=bool(chow)))
    first, *others = np.ravel(figure.subplots(1, 1 + len(panels)))
    draw_costs(first, best, chow, looks)
    draw_oracle(first, runs.columns)
    for axes, letter, (title, deltas) in zip(others, "bc", panels.items(), strict=False):
        draw_deltas(axes, deltas, looks)
        panel_name(axes, f"({letter}) {title}")
    draw_legend(figure, first)
    return figure


def difference_panels(
    names: Sequence[str], best: Mapping[str, BySeed], chow: Mapping[str, BySeed], base: str
) -> dict[str, dict[str, Array]]:
    """Return the differences of each panel by its title, and by column; panels without any are left out."""
    over_base = {name: minus(best[name], best.get(base, {})) for name in names if name != base}
    over_best = {name: minus(costs, best[name]) for name, costs in chow.items()}
    panels = {f"best threshold minus that of {short_name(base, 12)}": over_base, "Chow's rule minus best": over_best}
    known = {title: {name: each for name, each in found.items() if len(each)} for title, found in panels.items()}
    return {title: found for title, found in known.items() if found}


def best_costs(column: Column) -> BySeed:
    """Return the costs by the best threshold, in per cent, by seed."""
    return by_seed({record.seed: record.score(column.score).cost for record in column.records})


def chow_costs(column: Column) -> BySeed:
    """Return the costs by Chow's rule, in per cent, by seed."""
    return by_seed({record.seed: record.measures.classifier.chow_cost for record in column.records})


def by_seed(costs: Mapping[int, Sequence[float] | None]) -> BySeed:
    return {seed: 100 * np.asarray(values)[EVERY] for seed, values in costs.items() if values is not None}


def minus(costs: BySeed, base: BySeed) -> Array:
    """Return differences in runs of the same seed, as (seeds, ratios)."""
    return np.array([values - base[seed] for seed, values in costs.items() if seed in base])


def solid(column: Column, reference: str, index: int, lines: int) -> Style:
    """Return the look of a column by colour and mark alone: a dashed line is Chow's rule."""
    step = len(RATIO) // MARKS
    return line_look(column, reference) | {
        "linestyle": "-",
        "markevery": slice(round((index + 0.5) / lines * step), None, step),
    }


def draw_costs(axes: Axes, best: Mapping[str, BySeed], chow: Mapping[str, BySeed], looks: Mapping[str, Style]) -> None:
    """Draw a line for each column by its best threshold, and a dashed one by Chow's rule."""
    for name, look in looks.items():
        draw_mean(axes, RATIO, np.array(list(best[name].values())), short_name(name), look, FAINT / len(looks))
        if name in chow:
            mean = np.mean(list(chow[name].values()), axis=0)
            axes.plot(RATIO, mean, color=look["color"], **DASHED)
    if chow:
        axes.plot([], [], color=GREY, label="Chow's rule", **DASHED)
    axes.set(xlim=(0, RATIO[-1]), ylabel="mean cost (% of an error)")
    axes.set_ylim(bottom=0)
    name_ratio(axes)
    panel_name(axes, "(a) cost of an image")


def draw_oracle(axes: Axes, columns: Sequence[Column]) -> None:
    for column in columns:
        if column.is_oracle and (costs := best_costs(column)):
            axes.plot(RATIO, np.mean(list(costs.values()), axis=0), color=GREY, linewidth=1.0, label="oracle")


def draw_deltas(axes: Axes, deltas: Mapping[str, Array], looks: Mapping[str, Style]) -> None:
    for name, delta in deltas.items():
        draw_mean(axes, RATIO, delta, short_name(name), looks[name], FAINT / len(deltas))
    far = far_off(deltas, slice(None))
    near = [delta for name, delta in deltas.items() if name not in far]
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=1.5)
    axes.set(xlim=(0, RATIO[-1]), ylim=limits(near, slice(None)), ylabel="points")
    name_ratio(axes)


def name_ratio(axes: Axes) -> None:
    axes.set_xlabel("cost of a rejection (% of an error)")


def caption(
    runs: Runs, shown: Sequence[Column], usable: int, panels: Mapping[str, Mapping[str, Array]], *, has_chow: bool
) -> list[str]:
    """Return sentences that say what the lines are, and what is not shown."""
    more = usable - len(shown)
    unknown = [c.name for c in runs.judged if c not in shown and not c.parts and not best_costs(c)]
    far = [name for deltas in panels.values() for name in far_off(deltas, slice(None))]
    return [
        f"{runs.manifest.title}: {seeds_text(shown, '; band: smallest to largest')}.",
        "Solid: by the threshold that is best for these test images.",
        *([CHOW] if has_chow else []),
        *([f"{more} more columns are left out."] if more else []),
        *([f"Beyond the axis of a difference: {abbreviate(list(dict.fromkeys(far)))}."] if far else []),
        *([f"Without costs that this code has measured: {abbreviate(unknown)}."] if unknown else []),
    ]
