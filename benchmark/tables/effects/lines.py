"""Compute the effects of a grid: a line for each method and ingredient, with an estimate for each response."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from math import isnan, nan

import numpy as np

from benchmark.measure.effects import interaction, main_effect, mean_with_interval, sign_flip_p, smallest_flip_p
from benchmark.measure.statistics import LEVEL, Array, holm
from benchmark.tables.columns import abbreviate
from benchmark.tables.effects.grid import RESPONSES, Grid, Key, Values
from benchmark.tables.model import Row

ALL = "all methods"
FAR = 3.0
"""Ends of intervals beyond this many times the upper quartile leave an axis."""


@dataclass(frozen=True)
class Question:
    """One effect: the cells that it is made of, as names along each axis, and the axes along which it compares.

    On an axis that it compares along, the first name is set against the second.
    """

    method: str
    effect: str
    axes: tuple[tuple[str, ...], ...]
    compared: tuple[int, ...]

    @property
    def key(self) -> tuple[str, str]:
        return self.method, self.effect

    @property
    def cells(self) -> list[Key]:
        return list(product(*self.axes))


@dataclass(frozen=True)
class Estimate:
    """An effect on one response, by seed; or why there is none."""

    by_seed: Mapping[int, float]
    reason: str = ""
    remarks: tuple[str, ...] = ()
    """What is left out."""
    holm_p: float = nan
    """Corrected for the lines that are shown together."""
    reachable_p: float = nan
    """The smallest corrected p that is possible with these seeds."""

    @property
    def n(self) -> int:
        return len(self.by_seed)

    @cached_property
    def per_seed(self) -> Array:
        return np.array(list(self.by_seed.values()))

    @cached_property
    def mean(self) -> float:
        return mean_with_interval(self.per_seed)[0]

    @cached_property
    def half_width(self) -> float:
        """Return the half width of the t interval; infinite with one seed."""
        return mean_with_interval(self.per_seed)[1]

    @property
    def shown_width(self) -> float:
        """Return the half width as it is drawn: nothing with one seed."""
        return self.half_width if self.n > 1 else 0.0

    @cached_property
    def p(self) -> float:
        return sign_flip_p(self.per_seed)

    @property
    def is_significant(self) -> bool:
        return self.holm_p < LEVEL


@dataclass(frozen=True)
class Line:
    """One effect, by the name of each response."""

    method: str
    effect: str
    by_response: Mapping[str, Estimate]

    @property
    def name(self) -> str:
        return f"{self.method}: {self.effect}"


def main_effects(grid: Grid) -> list[Line]:
    """Return the effect of each ingredient for each method, then for all."""
    return answer_all(grid, [
        Question(name, grid.name_of(factor, level), axes_of(grid, methods, {factor: level}), (1 + factor,))
        for name, methods in groups_of(grid)
        for factor, level in ingredients(grid)
    ])  # fmt: skip


def interactions(grid: Grid) -> list[Line]:
    """Return the interaction of each two ingredients, then what each does more for a method than for the baseline."""
    asked = [
        Question(
            name,
            f"{grid.name_of(f, a)} × {grid.name_of(g, b)}",
            axes_of(grid, methods, {f: a, g: b}),
            (1 + f, 1 + g),
        )
        for name, methods in groups_of(grid)
        for (f, a), (g, b) in combinations(ingredients(grid), 2)
        if f != g
    ]
    for method in grid.methods if grid.baseline in grid.methods else ():
        if method != grid.baseline:
            asked += [
                Question(
                    method,
                    f"{grid.name_of(factor, level)} (minus {grid.baseline})",
                    axes_of(grid, (method, grid.baseline), {factor: level}),
                    (0, 1 + factor),
                )
                for factor, level in ingredients(grid)
            ]
    return answer_all(grid, asked)


def groups_of(grid: Grid) -> list[tuple[str, tuple[str, ...]]]:
    """Return each method, then all of them if there are several."""
    alone: list[tuple[str, tuple[str, ...]]] = [(method, (method,)) for method in grid.methods]
    return [*alone, (ALL, grid.methods)] if len(alone) > 1 else alone


def ingredients(grid: Grid) -> list[tuple[int, str]]:
    """Return the factor and the level of all that has an effect."""
    zeros = grid.zeros
    return [(i, level) for i, (_, levels) in enumerate(grid.factors) for level in levels if level != zeros[i]]


def axes_of(grid: Grid, methods: tuple[str, ...], compared: Mapping[int, str]) -> tuple[tuple[str, ...], ...]:
    """Return the names along each axis: of a factor that is compared, a level and its zero level; of others, all."""
    return (methods, *(
        (compared[index], grid.zeros[index]) if index in compared else levels
        for index, (_, levels) in enumerate(grid.factors)
    ))  # fmt: skip


def answer_all(grid: Grid, asked: Sequence[Question]) -> list[Line]:
    """Return a line for each question, with estimates of the responses that some run has."""
    answers = {}
    for row in RESPONSES:
        values = grid.values(row)
        if any(values.values()):
            answers[row.measure] = corrected({each.key: estimate(each, values, grid, row) for each in asked})
    return [Line(*each.key, {name: found[each.key] for name, found in answers.items()}) for each in asked]


def corrected(estimates: Mapping[tuple[str, str], Estimate]) -> dict[tuple[str, str], Estimate]:
    """Add Holm's correction over all lines of a response."""
    known = {key: each for key, each in estimates.items() if not isnan(each.p)}
    p = holm({key: each.p for key, each in known.items()})
    reachable = holm({key: smallest_flip_p(each.n) for key, each in known.items()})
    changed = {key: replace(each, holm_p=p[key], reachable_p=reachable[key]) for key, each in known.items()}
    return {**estimates, **changed}


def estimate(asked: Question, values: Values, grid: Grid, row: Row) -> Estimate:
    """Return the effect by seed, over the seeds that all of its cells have; over the methods that have all cells."""
    kept, remarks = (asked, ()) if asked.method != ALL else complete_methods(asked, values)
    empty = [cell for cell in kept.cells if not values.get(cell)]
    if empty or not kept.axes[0]:
        return Estimate({}, grid.why_empty(empty, row) if empty else "fewer than two methods have all cells")
    seeds = sorted(frozenset.intersection(*(frozenset(values[cell]) for cell in kept.cells)))
    if not seeds:
        return Estimate({}, "its cells have no seed in common")
    effects = effect_by_seed(kept, values, seeds)
    wanted = {seed for cell in kept.cells for seed in grid.entries[cell].seeds}
    return Estimate(effects, remarks=(*remarks, *seeds_left_out(wanted - set(seeds))))


def effect_by_seed(asked: Question, values: Values, seeds: Sequence[int]) -> dict[int, float]:
    shape = (*map(len, asked.axes), len(seeds))
    y = np.array([[values[cell][seed] for seed in seeds] for cell in asked.cells]).reshape(shape)
    first, *others = ((axis, 0, 1) for axis in asked.compared)
    effects = interaction(y, first, others[0]) if others else main_effect(y, *first)
    return dict(zip(seeds, effects.tolist(), strict=True))


def complete_methods(asked: Question, values: Values) -> tuple[Question, tuple[str, ...]]:
    """Return a question on all methods with those that have every cell, and a remark on the others."""
    alone = {method: replace(asked, axes=((method,), *asked.axes[1:])) for method in asked.axes[0]}
    complete = tuple(name for name, each in alone.items() if all(values.get(cell) for cell in each.cells))
    others = [name for name in alone if name not in complete]
    remarks = (f"without {abbreviate(others)}, of which not every cell has a value",) if others else ()
    return replace(asked, axes=(complete if len(complete) > 1 else (), *asked.axes[1:])), remarks


def seeds_left_out(seeds: set[int]) -> Iterator[str]:
    if seeds:
        several = "seeds" if len(seeds) > 1 else "seed"
        yield f"{several} {', '.join(map(str, sorted(seeds)))} left out, as not every cell has a value there"


def known(lines: Sequence[Line], row: Row) -> list[Estimate]:
    """Return the estimates of a response that are there."""
    found = (line.by_response.get(row.measure) for line in lines)
    return [each for each in found if each is not None and each.n]


def limits_of(estimates: Sequence[Estimate]) -> tuple[float, float]:
    """Return the ends of an axis: all intervals and 0, but for a few that would make the others tiny."""
    means = np.array([each.mean for each in estimates])
    widths = np.array([each.shown_width for each in estimates])
    far = FAR * float(np.quantile(np.abs(means) + widths, 0.75))
    ends = np.clip(np.concatenate([means - widths, means + widths]), min(-far, means.min()), max(far, means.max()))
    low, high = min(0.0, float(ends.min())), max(0.0, float(ends.max()))
    margin = 0.06 * (high - low) or 1.0
    return low - margin, high + margin


def is_cut_off(estimates: Sequence[Estimate]) -> bool:
    """Tell whether an axis with these limits does not show the whole interval of one of them."""
    low, high = limits_of(estimates)
    return any(not low <= each.mean - each.shown_width <= each.mean + each.shown_width <= high for each in estimates)
