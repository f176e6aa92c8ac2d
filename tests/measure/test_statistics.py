"""The rank-sum test against scipy and the tabulated values, and the markers it may draw."""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import PermutationMethod, mannwhitneyu, rankdata, ttest_ind, ttest_rel, wilcoxon

from benchmark.measure.statistics import (
    Summary,
    bootstrap_ranks,
    competition_ranks,
    exact_rank_sum_p,
    holm,
    normal_rank_sum_p,
    paired_difference,
    probability_of_best,
    run_test,
    seeds_needed,
    signed_rank_p,
    smallest_p,
    smallest_p_for,
    welch,
)
from benchmark.tables.markers import mark
from benchmark.tables.model import Cell, Row


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


def splits(pooled: list[float], n: int) -> Iterator[tuple[list[float], list[float]]]:
    """Every way to give n of the pooled values to the first sample."""
    for chosen in combinations(range(len(pooled)), n):
        yield [pooled[i] for i in chosen], [pooled[i] for i in range(len(pooled)) if i not in chosen]


def counted_p(a: list[float], b: list[float]) -> float:
    """By definition: the share of all splits whose rank sum lies as far out, twice the smaller tail."""
    ranks = dict(zip(sorted(set(a + b)), [np.mean([i + 1 for i, v in enumerate(sorted(a + b)) if v == x])
                                          for x in sorted(set(a + b))], strict=True))  # fmt: skip
    sums = [sum(ranks[x] for x in part) for part, _ in splits(a + b, len(a))]
    observed = sum(ranks[x] for x in a)
    low, high = (np.mean([s <= observed + 1e-9 for s in sums]), np.mean([s >= observed - 1e-9 for s in sums]))
    return float(min(1.0, 2 * min(low, high)))


POOLS = {
    "no ties": lambda n: [float(i) for i in range(2 * n)],
    "one pair": lambda n: [float(max(i, 1)) for i in range(2 * n)],
    "pairs": lambda n: [float(i // 2) for i in range(2 * n)],
    "two values": lambda n: [float(i >= n) for i in range(2 * n)],
    "one value": lambda n: [1.0] * (2 * n),
}


@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("n", [3, 4, 5])
def test_markers_at_every_rank_sum(n: int, kind: str) -> None:
    """Hand-made values for every split, hence every rank sum: a marker exactly where the counted p is below 0.05."""
    for ours, theirs in splits(POOLS[kind](n), n):
        p = counted_p(ours, theirs)
        assert exact_rank_sum_p(ours, theirs) == pytest.approx(p)
        expected = "tie" if p >= 0.05 else "better" if sum(ours) < sum(theirs) else "worse"
        assert compare(ours, theirs, "exact") == expected


@pytest.mark.parametrize(("n", "marked"), [(3, set()), (4, {10, 26}), (5, {15, 16, 17, 38, 39, 40})])
def test_the_rank_sums_that_are_marked(n: int, marked: set[int]) -> None:
    """Without ties, as tabulated: at 5 against 5 the exact test ends at 17, the normal approximation at 18."""
    marked_by = {
        test: {int(sum(a) + n) for a, b in splits([float(i) for i in range(2 * n)], n) if compare(a, b, test) != "tie"}
        for test in ("exact", "ranksums")
    }
    assert marked_by["exact"] == marked
    assert marked_by["ranksums"] == marked | {3: set(), 4: {11, 25}, 5: {18, 37}}[n]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1, 1).filter(bool), min_size=1, max_size=9, unique_by=abs))
def test_signed_rank_without_ties_agrees_with_scipy(differences: list[float]) -> None:
    assert signed_rank_p(differences) == pytest.approx(wilcoxon(differences, method="exact").pvalue)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=7))
def test_signed_rank_counts_all_signs(differences: list[int]) -> None:
    """Against its definition, ties by mid-ranks, zeros left out."""
    found = [d for d in differences if d]
    ranks = rankdata(np.abs(found)) if found else np.zeros(0)
    sums = [sum(r for r, s in zip(ranks, signs, strict=True) if s) for signs in product([0, 1], repeat=len(found))]
    observed = sum(r for r, d in zip(ranks, found, strict=True) if d > 0)
    tail = min(np.mean([s <= observed + 1e-9 for s in sums]), np.mean([s >= observed - 1e-9 for s in sums]))
    assert signed_rank_p([float(d) for d in differences]) == pytest.approx(min(1.0, 2 * tail))


def test_seeds_before_any_marker_is_possible() -> None:
    assert seeds_needed("paired") == 6
    assert seeds_needed("exact") == 4
    assert seeds_needed("exact", 7) == seeds_needed("exact", 13) == 6
    assert seeds_needed("exact", 7 * 13) == 8


def test_paired_markers_go_by_seed() -> None:
    """Six pairs that all lean one way are the least that can be marked; which seed is which decides."""
    row = Row("100", lambda record, score: None)
    ours = {seed: float(seed) for seed in range(6)}
    theirs = {seed: seed + 0.1 + seed / 100 for seed in reversed(range(6))}
    cells = {("100", "ours"): Cell(ours, 6, 2), ("100", "theirs"): Cell(theirs, 6, 2)}
    marked = mark(cells, [row], "ours", "paired", "")["100", "theirs"]
    assert (marked.verdict, marked.p) == ("better", pytest.approx(2 / 64))
    assert mark(cells, [row], "ours", "exact", "")["100", "theirs"].verdict == "tie"
    del theirs[3]
    assert mark(cells, [row], "ours", "paired", "")["100", "theirs"].verdict == "tie"


def test_holm_by_hand() -> None:
    """The textbook example: 0.01, 0.02, 0.03, 0.04 → ×4, ×3, ×2, ×1, never falling."""
    p = {("r", str(i)): value for i, value in enumerate([0.04, 0.01, 0.03, 0.02])}
    assert [holm(p)["r", str(i)] for i in range(4)] == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm({}) == {}
    assert holm({("r", "c"): 0.9, ("r", "d"): 0.8})["r", "c"] == 1.0


@pytest.mark.parametrize("family", ["", "row", "column", "table"])
def test_holm_families(family: str) -> None:
    """Three comparisons of p = 2/70: one in row a, two in row b; two of column x, one of column y."""
    low, high = {i: float(i) for i in range(4)}, {i: 10.0 + i for i in range(4)}
    rows = [Row(name, lambda record, score: None) for name in "ab"]
    cells = {("a", "ref"): low, ("a", "x"): high, ("b", "ref"): low, ("b", "x"): high, ("b", "y"): high}
    cells = {key: Cell(values, 4, 2) for key, values in cells.items()}
    marked = mark(cells, rows, "ref", "exact", family)
    sizes = {"": (1, 1, 1), "row": (1, 2, 2), "column": (2, 2, 1), "table": (3, 3, 3)}[family]
    for (row, column), size in zip([("a", "x"), ("b", "x"), ("b", "y")], sizes, strict=True):
        cell = marked[row, column]
        assert cell.p == pytest.approx(2 / 70)
        assert cell.verdict == ("better" if size * 2 / 70 < 0.05 else "tie")
        if family:
            assert cell.corrected_p == pytest.approx(min(1.0, size * 2 / 70))


@settings(max_examples=40, deadline=None)
@given(*[st.lists(st.integers(0, 1000), min_size=2, max_size=6, unique=True)] * 2)
def test_welch_from_mean_std_and_n(a: list[int], b: list[int]) -> None:
    summaries = [Summary(float(np.mean(x)), float(np.std(x)), len(x)) for x in (a, b)]
    found, expected = welch(*summaries), ttest_ind(b, a, equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue, abs=1e-6)
    assert found.half_width == pytest.approx((interval.high - interval.low) / 2, abs=1e-6)


def test_welch_where_there_is_no_spread() -> None:
    assert np.isnan(welch(Summary(1, 0, 1), Summary(2, 0.1, 5)).p)
    assert welch(Summary(1, 0, 5), Summary(1, 0, 5)).p == 1
    assert welch(Summary(1, 0, 5), Summary(2, 0, 5)).p == 0


def test_paired_difference_with_its_interval() -> None:
    a, b = np.array([1.0, 2.0, 4.0, 3.0]), np.array([1.5, 2.1, 4.9, 3.3])
    found = paired_difference(a, b)
    interval = ttest_rel(b, a).confidence_interval(0.95)
    assert found.mean == pytest.approx(0.45)
    assert found.mean - found.half_width == pytest.approx(interval.low)
    assert found.mean + found.half_width == pytest.approx(interval.high)
    assert found.correlation == pytest.approx(np.corrcoef(a, b)[0, 1])
    one = paired_difference(a[:1], b[:1])
    assert (one.n, one.half_width) == (1, np.inf)
    assert np.isnan(paired_difference(a, np.ones(4)).correlation)


def test_bootstrap_of_ranks_draws_seeds_jointly() -> None:
    """B is above A by the same in every seed, so no joint draw ever turns them; C is better in half."""
    a = np.array([[1.0], [2.0], [3.0], [4.0]])
    c = np.array([[0.35], [0.35], [9.17], [9.17]])
    values = np.stack([a, a + 0.01, c])
    ranks = bootstrap_ranks(values, 2, 500, np.random.default_rng(1))
    assert (ranks[:, 0] < ranks[:, 1]).all()
    best = probability_of_best(ranks)
    assert best.sum() == pytest.approx(1)
    drawn = np.random.default_rng(1).integers(4, size=(500, 4))
    assert best[2] == pytest.approx(np.mean([c[seeds, 0].mean() < a[seeds, 0].mean() for seeds in drawn]))
    assert best[1] == 0
    assert probability_of_best(np.array([[1.0, 1.0], [1.0, 2.0]])) == pytest.approx([0.75, 0.25])


def test_noise_of_floating_point_sums_makes_no_order() -> None:
    """Risks of k wrong images in 1,258: equal differences are ties, by whole numbers 7/128 and not 6/128."""
    a, b = [22, 40, 48, 29, 33, 59, 50, 59], [21, 42, 52, 30, 36, 61, 52, 58]
    ours, theirs = ({seed: 100 * (count / 1258) for seed, count in enumerate(each)} for each in (a, b))
    whole = signed_rank_p([float(y - x) for x, y in zip(a, b, strict=True)])
    assert run_test("paired", ours, theirs).p == whole == pytest.approx(0.0546875)
    noisy = {seed: value + 1e-13 * seed for seed, value in dict.fromkeys(range(5), 10.0).items()}
    assert run_test("exact", dict.fromkeys(range(5), 10.0), noisy).p == 1.0


def test_holm_steps_down_where_runs_differ() -> None:
    """Five against five leaves 0.0159, then three against five is not doubled any more: both are marked."""
    rows = [Row("a", lambda record, score: None)]
    low, high = {i: float(i) for i in range(5)}, {i: 10.0 + i for i in range(5)}
    few = {i: high[i] for i in range(3)}
    cells = {("a", "ref"): Cell(low, 5, 2), ("a", "x"): Cell(high, 5, 2), ("a", "y"): Cell(few, 5, 2)}
    marked = mark(cells, rows, "ref", "exact", "row")
    assert marked["a", "x"].corrected_p == pytest.approx(2 * 2 / 252)
    assert marked["a", "y"].corrected_p == pytest.approx(2 / 56)
    assert [marked["a", name].verdict for name in "xy"] == ["better", "better"]


def test_pairs_are_the_common_seeds() -> None:
    ours, theirs = dict.fromkeys(range(8), 1.0), dict.fromkeys(range(5, 13), 2.0)
    assert smallest_p_for("paired", ours, theirs) == 0.25
    assert smallest_p_for("exact", ours, theirs) == smallest_p(8, 8)
