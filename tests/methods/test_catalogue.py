"""docs/methods.md has every label of the registry, each in a row of a family and no other."""

import re
from pathlib import Path

from benchmark.config.ingredient_names import ALL
from benchmark.interface import Method
from methods import Registry

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
FAMILIES, COST = PAGE.split("## Cost per step")
REGISTRY = Registry()
METHODS = {label: REGISTRY.get(name) for name in REGISTRY.names() for label in REGISTRY.get(name).labels}


def table_rows(text: str) -> dict[str, list[str]]:
    """The rows of all tables by their first cell, without the headings."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    labels = [row[0] for row in rows]
    assert len(set(labels) - {"label", "---"}) == len([label for label in labels if label not in ("label", "---")])
    return {row[0]: row for row in rows if row[0] not in ("label", "---")}


def test_every_label_is_in_the_page_and_no_other() -> None:
    assert set(table_rows(FAMILIES)) == set(METHODS)


def test_every_row_says_everything() -> None:
    for label, row in table_rows(FAMILIES).items():
        assert len(row) == 6, label
        assert all(row), label
        assert re.search(r"(19|20)\d\d", row[2]) or row[2].startswith("same"), label


def test_references_are_those_of_the_code() -> None:
    """Each paper that a row names, by its first author and year, is named by the method."""
    for label, row in table_rows(FAMILIES).items():
        for paper in [] if row[2].startswith("same") else row[2].split("; "):
            first, year = re.findall(r"^[\w+-]+|(?:19|20)\d\d$", paper.strip())
            named = METHODS[label].reference
            assert first in named and year in named, (label, paper, named)


def test_what_is_declared_is_in_the_row() -> None:
    for label, row in table_rows(FAMILIES).items():
        method, needs = METHODS[label], f"{row[3]} "
        assert method.needs_validation == ("validation images" in needs), label
        if issubclass(method, Method):
            own = needs.startswith("as ")
            assert own or (method.warmup is not None) == ("warm-up" in needs), label
            assert own or method.couples_samples == ("coupled samples" in needs) or label == "SelectiveNet", label
            assert own or (method.extra_outputs > 0) == ("extra output" in needs), label


def test_the_cost_of_every_label_that_takes_steps() -> None:
    """The table of the command that is named beside it, and the same numbers in the families."""
    assert "`python -m tests.speed.methods`" in COST
    takes_steps = {
        label for label, method in METHODS.items() if issubclass(method, Method) and method.starts_from is None
    }
    costs = table_rows(COST.split("## Ingredients")[0])
    assert set(costs) == takes_steps
    for label, row in table_rows(FAMILIES).items():
        if label in takes_steps:
            assert float(row[4]) == float(costs[label][1]), label


def test_the_page_ends_with_the_ingredients() -> None:
    assert re.findall(r"^## .*", PAGE, re.MULTILINE)[-1] == "## Ingredients"


def test_every_ingredient_has_a_row_that_says_everything() -> None:
    rows = table_rows(COST.split("## Ingredients")[1].replace("| ingredient |", "| label |"))
    assert list(rows) == [each.title for each in ALL], "in the order of labels"
    for each in ALL:
        name, setting, *_ = row = rows[each.title]
        assert (len(row), all(row)) == (8, True), name
        assert f"`{each.field} = " in setting and f'"{each.value}"' in setting
        assert re.search(r"(19|20)\d\d", row[4]), name
