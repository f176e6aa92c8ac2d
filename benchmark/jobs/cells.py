"""Read and plan cells of the grid of methods and ingredients: SR+SAM+SWA is a label with two ingredients."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from benchmark.base.errors import UserError
from benchmark.base.names import canonical
from benchmark.config.ingredient_names import ALL, Ingredient, find_ingredients, label_suffix, split_label
from benchmark.config.ingredients import NONE
from benchmark.config.recipe import flatten
from benchmark.config.task import TaskConfig
from benchmark.interface import Contestant, Recipe
from benchmark.jobs.plan import Planner
from benchmark.jobs.suite import Entry
from benchmark.measure.labels import labels_named, match_labels

Factors = tuple[tuple[str, tuple[str, ...]], ...]
"""The names of factors, each with its levels; `none` is the level without an ingredient."""

Levels = Sequence[Ingredient | None]
"""Of one factor; None is the one without an ingredient."""


@dataclass(frozen=True)
class Cell:
    """A label and the ingredients that go with it."""

    label: str
    ingredients: tuple[Ingredient, ...]
    levels: tuple[str, ...] = ()
    """In a crossed grid: its level of each factor."""

    @property
    def overrides(self) -> tuple[str, ...]:
        return tuple(each.override for each in self.ingredients)


def split_name(name: str, owners: Mapping[str, str]) -> tuple[str, tuple[Ingredient, ...]]:
    """Return what comes before the ingredients of a name, and these: nothing is split that is a label as a whole."""
    base, names = split_label(name, lambda each: labels_named(canonical(each), owners))
    return (base, find_ingredients(names)) if labels_named(canonical(base), owners) else (name, ())


def read_cells(names: Iterable[str], owners: Mapping[str, str]) -> list[Cell]:
    """Return the cells that names such as `SR+SAM+SWA` mean; a name without an ingredient is a cell too."""
    split = (split_name(name, owners) for name in names)
    return [Cell(label, used) for base, used in split for label in match_labels([base], owners)]


def crossed(labels: Iterable[str], factors: Sequence[Levels]) -> list[Cell]:
    """Return every label with every combination of levels."""
    return [
        Cell(label, tuple(each for each in levels if each), tuple(each.title if each else NONE for each in levels))
        for label in labels
        for levels in product(*factors)
    ]


def read_factors(texts: Iterable[str]) -> list[Levels]:
    """Return the factors of a grid, each from a text such as `swa|none`; the level without comes first."""
    factors: list[Levels] = []
    for text in texts:
        names = [name.strip() for name in text.split("|")]
        levels = [None if canonical(name) == NONE else find_ingredients([name])[0] for name in names]
        kinds = {each.factor for each in levels if each}
        if len(set(levels)) < 2 or len(set(levels)) < len(levels) or len(kinds) != 1:
            raise UserError(
                f"--with '{text}': expected two or more different levels of one ingredient, e.g. \"swa|none\" or "
                '"swa|ema|none"; another ingredient is another text'
            )
        factors.append(sorted(levels, key=lambda level: level is not None))
    names_of = [name_of_factor(levels) for levels in factors]
    if doubled := next((name for name in names_of if names_of.count(name) > 1), ""):
        raise UserError(f"--with: the factor {doubled} is named twice; write all its levels in one text")
    return factors


def name_of_factor(levels: Levels) -> str:
    return next(each.factor for each in levels if each)


def factor_levels(factors: Sequence[Levels]) -> Factors:
    """Return the factors as a manifest keeps them."""
    return tuple((name_of_factor(levels), tuple(each.title if each else NONE for each in levels)) for levels in factors)


def named_cell_misfit(method: type[Contestant], task: TaskConfig) -> str:
    """Return why a label that names a cell has no place in a task: its ingredients are not those of the cell."""
    if not issubclass(method, Recipe):
        return ""
    own = [each for each in ALL if flatten(method.changes).get(each.field) == each.value]
    other = [each for each in task.ingredients if each not in own]
    if not other:
        return ""
    factors = {each.factor for each in other}
    meant = label_suffix([*other, *(each for each in own if each.factor not in factors)])
    cell = f"is {method.of}{label_suffix(own)} with constants of its own, and has no {other[0].title}"
    return f"{cell}; another cell is named by what it is made of: {method.of}{meant}"


def plan_cells(
    cells: Iterable[Cell],
    planner_with: Callable[[tuple[str, ...]], Planner],
    owners: Mapping[str, str],
    seeds: Sequence[int],
) -> tuple[Entry, ...]:
    """Return the entry of each cell; `planner_with` plans the task with some changed settings."""
    entries = []
    for cell in cells:
        planner, owner = planner_with(cell.overrides), owners[cell.label]
        if cell.levels and issubclass(planner.methods.get(owner), Recipe):
            raise UserError(f"{cell.label} is itself a cell of such a grid; cross the method that it is made of")
        if reason := named_cell_misfit(planner.methods.get(owner), planner.task):
            entries.append(Entry(cell.label, owner, (), reason=reason))
            continue
        for entry in planner.entries(cell.label, owner, seeds):
            named = replace(entry, base=cell.label, levels=cell.levels) if cell.levels else entry
            entries.append(named)
    return tuple(entries)
