"""The rank-sum test against scipy and the tabulated values, and the markers it may draw."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import PermutationMethod, mannwhitneyu

from benchmark.cells import Cell, Row
from benchmark.markers import mark
from benchmark.stats import competition_ranks, exact_rank_sum_p, normal_rank_sum_p, smallest_p


def compare(reference: list[float], other: list[float], test: str, lower_is_better: bool = True) -> str:
    """The verdict that a table with these two cells prints."""
    row = Row("100", lambda record, score: None, lower_is_better=lower_is_better)
    cells = {("100", name): Cell(dict(enumerate(v)), 5, 2) for name, v in (("ours", reference), ("theirs", other))}
    return mark(cells, [row], "ours", test, "")["100", "theirs"].verdict


def samples_with_inversions(n: int, inversions: int) -> tuple[list[float], list[float]]:
    """n against n values of which the first are lower, but for so many inverted pairs."""
    low = [float(i) for i in range(n)]
    high = [n + 0.5 + i for i in range(n)]
    while inversions:
        moved = min(inversions, n)
        index = max(i for i in range(n) if low[i] < n)
        low[index] = n + moved
        inversions -= moved
    return low, high


@pytest.mark.parametrize(
    ("inversions", "exact", "normal"),
    [(0, 0.00794, 0.00902), (1, 0.01587, 0.01629), (2, 0.03175, 0.02828), (3, 0.05556, 0.04720), (4, 0.09524, 0.07580)],
)
def test_five_against_five(inversions: int, exact: float, normal: float) -> None:
    low, high = samples_with_inversions(5, inversions)
    assert sum(a > b for a in low for b in high) == inversions
    assert exact_rank_sum_p(low, high) == pytest.approx(exact, abs=1e-5)
    assert normal_rank_sum_p(low, high) == pytest.approx(normal, abs=1e-5)
    assert compare(low, high, "exact") == ("better" if inversions <= 2 else "tie")
    assert compare(low, high, "ranksums") == ("better" if inversions <= 3 else "tie")


def test_no_marker_beyond_what_n_supports() -> None:
    """Three against three: the normal approximation says 0.0495, the exact test can never be below 0.1."""
    assert normal_rank_sum_p([1, 2, 3], [4, 5, 6]) < 0.05
    assert compare([1, 2, 3], [4, 5, 6], "ranksums") == "tie"
    assert smallest_p(3, 3) == pytest.approx(0.1)
    assert smallest_p(5, 5) == pytest.approx(0.0079, abs=1e-4)


def test_direction() -> None:
    low, high = [1.0, 2, 3, 4], [5.0, 6, 7, 8]
    assert compare(low, high, "exact") == "better"
    assert compare(high, low, "exact") == "worse"
    assert compare(low, high, "exact", lower_is_better=False) == "worse"
    assert compare([], high, "exact") == "tie"


values = st.lists(st.integers(0, 4), min_size=2, max_size=5)


@settings(max_examples=40, deadline=None)
@given(values, values)
def test_ties_agree_with_the_full_permutation_test(a: list[int], b: list[int]) -> None:
    a, b = [float(x) for x in a], [float(x) for x in b]
    expected = mannwhitneyu(a, b, method=PermutationMethod(n_resamples=np.inf)).pvalue
    assert exact_rank_sum_p(a, b) == pytest.approx(min(1.0, expected))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=4, max_size=14, unique=True), st.data())
def test_no_ties_agrees_with_the_exact_test(pooled: list[float], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(pooled) - 1))
    expected = mannwhitneyu(pooled[:n], pooled[n:], method="exact").pvalue
    assert exact_rank_sum_p(pooled[:n], pooled[n:]) == pytest.approx(expected)


def test_competition_ranks() -> None:
    assert list(competition_ranks([2.0, 1.0, 2.0, 3.0])) == [2, 1, 2, 4]
