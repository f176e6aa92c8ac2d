"""Read and plan cells of the grid of methods and ingredients: SR+SAM+SWA is a label with two ingredients."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from benchmark.base.errors import UserError
from benchmark.base.names import canonical, match_name
from benchmark.config.ingredient_names import INGREDIENTS, Ingredient
from benchmark.config.ingredients import NONE
from benchmark.interface import Recipe
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


def find_ingredients(names: Iterable[str]) -> tuple[Ingredient, ...]:
    """Return the ingredients that are meant. Refuse two of which only one can be had."""
    found = tuple(INGREDIENTS[match_name(name, INGREDIENTS, "ingredient")] for name in names)
    by_factor: dict[str, Ingredient] = {}
    for each in found:
        other = by_factor.setdefault(each.factor, each)
        if other != each:
            apart = f"name them apart, e.g. --methods SR+{other.title} SR+{each.title}"
            raise UserError(f"{other.title} and {each.title} exclude each other; {apart}")
    return tuple(dict.fromkeys(found))


def split_name(name: str, owners: Mapping[str, str]) -> tuple[str, tuple[Ingredient, ...]]:
    """Return what comes before the ingredients of a name, and these: nothing is split that is a label as a whole."""
    base, titles = name, list[str]()
    while not labels_named(canonical(base), owners):
        front, plus, last = base.rpartition("+")
        if not plus or canonical(last) not in map(canonical, INGREDIENTS):
            return name, ()
        base, titles = front, [last, *titles]
    return base, find_ingredients(titles)


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
        for entry in planner.entries(cell.label, owner, seeds):
            named = replace(entry, base=cell.label, levels=cell.levels) if cell.levels else entry
            entries.append(named)
    return tuple(entries)
