"""Names with ingredients, among the labels that a results folder has."""

import pytest

from benchmark.base.errors import UserError
from benchmark.library.selection import labels_with

LABELS = (
    "SR",
    "SR+SWA",
    "SR+SAM",
    "SR+SAM+SWA",
    "SAT",
    "SAT+EM",
    "SAT+EM+SAM",
    "SAT+SWA",
    "SAT+EM+SWA",
    "Mine+SWA+EMA",
    "DG",
)
OWNERS = {label: {"SR": "plain", "SA": "self_adaptive", "Mi": "mine", "DG": "gamblers"}[label[:2]] for label in LABELS}


def meant(names: str, ingredients: str = "") -> list[str]:
    return labels_with(names.split(), ingredients.split(), OWNERS, "method:")


@pytest.mark.parametrize(
    ("names", "ingredients", "labels"),
    [
        ("sr+swa+sam", "", ["SR+SAM+SWA"]),
        ("sat+em+sam", "", ["SAT+EM+SAM"]),
        ("sat+em+sr", "", ["SAT+EM"]),  # a column: SAT+EM read with SR
        ("sr sat", "swa", ["SR", "SR+SWA", "SAT", "SAT+SWA"]),
        ("sr+swa", "SAM", ["SR+SAM+SWA"]),
        ("sr", "swa sam", ["SR+SAM", "SR+SAM+SWA"]),
        ("self_adaptive", "sam", ["SAT+EM+SAM"]),
        ("all", "sam", ["SR+SAM", "SAT+EM+SAM"]),
        ("all", "swa", ["SR", "SAT", "SAT+EM", "SR+SWA", "SAT+SWA", "SAT+EM+SWA"]),
        ("mine+swa+ema", "", ["Mine+SWA+EMA"]),
        ("sr sr+sam", "sam", ["SR+SAM"]),
    ],
)
def test_names_and_ingredients_mean_what_they_make(names: str, ingredients: str, labels: list[str]) -> None:
    assert meant(names, ingredients) == labels


@pytest.mark.parametrize(
    ("names", "ingredients", "said"),
    [
        ("sat", "sam", "unknown method: 'sat\\+SAM': did you mean"),
        ("sr", "ema", "unknown method: 'sr\\+EMA'"),
        ("sr", "swaa", "unknown ingredient 'swaa': did you mean 'swa'"),
        ("sr+swa", "ema", "SWA and EMA exclude each other"),
    ],
)
def test_what_no_run_has_is_refused(names: str, ingredients: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        meant(names, ingredients)
