"""The tests behind the tables, on people's own numbers."""

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import mannwhitneyu, ranksums, wilcoxon

import benchmark as sb
from benchmark.library.compare import MOST_RUNS

LOW, HIGH = [1.0, 1.1, 1.3, 1.2, 0.9], [1.4, 1.25, 1.6, 1.5, 1.7]


def test_against_another_library() -> None:
    assert sb.compare(LOW, HIGH).p == pytest.approx(mannwhitneyu(LOW, HIGH, method="exact").pvalue)
    assert sb.compare(LOW, HIGH, "ranksums").p == pytest.approx(ranksums(LOW, HIGH).pvalue)
    paired = sb.compare(LOW, HIGH, "paired")
    assert paired.p == pytest.approx(wilcoxon(LOW, HIGH, method="exact").pvalue)
    assert paired.statistic == 15, "a is lower in all five pairs"


def test_against_all_ways_to_split_and_to_sign() -> None:
    pooled = sorted([*LOW, *HIGH])
    rank_sums = [sum(chosen) for chosen in combinations(range(1, 11), 5)]
    observed = sum(pooled.index(value) + 1 for value in LOW)
    assert sb.compare(LOW, HIGH).statistic == observed
    assert sb.compare(LOW, HIGH).p == pytest.approx(2 * np.mean([each <= observed for each in rank_sums]))
    signs = [sum(rank * sign for rank, sign in zip(range(1, 6), s, strict=True)) for s in product((0, 1), repeat=5)]
    assert sb.compare(LOW, HIGH, "paired").p == pytest.approx(2 * np.mean([each >= 15 for each in signs]))


@pytest.mark.parametrize(
    ("a", "b", "lower_is_better", "verdict", "direction"),
    [
        (LOW, HIGH, True, "better", "lower"),
        (LOW, HIGH, False, "worse", "lower"),
        (HIGH, LOW, True, "worse", "higher"),
        (HIGH, LOW, False, "better", "higher"),
        (LOW, LOW, True, "tie", "equal"),
    ],
)
def test_which_is_better(a: Any, b: Any, lower_is_better: bool, verdict: str, direction: str) -> None:
    found = sb.compare(a, b, lower_is_better=lower_is_better)
    assert (found.verdict, found.direction) == (verdict, direction)


def test_columns_of_pandas_are_paired_by_their_index() -> None:
    a, b = dict(enumerate(LOW)), {4: 1.7, 3: 1.5, 2: 1.6, 1: 1.25, 0: 1.4}
    assert sb.compare(pd.Series(a), pd.Series(b), "paired").p == sb.compare(a, b, "paired").p == 0.0625
    with pytest.raises(ValueError, match="lower_is_better: expected True or False"):
        sb.compare(LOW, HIGH, lower_is_better="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("test", ["exact", "ranksums", "paired"])
def test_too_few_runs_never_give_a_verdict(test: str) -> None:
    """Also where the normal approximation is below the level: 0.0495 with three against three."""
    found = sb.compare([1, 2, 3], [4, 5, 6], test)
    assert found.verdict == "tie"
    assert found.smallest_p == {"paired": 0.25}.get(test, 0.1)
    needed = {"paired": 6}.get(test, 4)
    assert found.seeds_needed == needed
    assert f"no difference can be shown before {needed} seeds" in str(found)
    assert sb.compare(range(needed), range(10, 10 + needed), test).verdict == "better"


def test_pairs_go_by_seed_or_by_position() -> None:
    by_seed = dict(enumerate(LOW))
    shuffled = {seed: HIGH[seed] for seed in (3, 1, 4, 0, 2)} | {9: 100.0}
    found = sb.compare(by_seed, shuffled, "paired")
    assert found == sb.compare(LOW, HIGH, "paired")
    assert len(found.b) == 5, "seed 9 has no partner"
    assert sb.compare(by_seed, shuffled).p == sb.compare(LOW, [*HIGH, 100.0]).p, "unpaired, all runs count"
    named = sb.compare({"x": 1.0, 2: 2.0}, {2: 4.0, "x": 2.0}, "paired")
    assert (named.a, named.b) == ((1.0, 2.0), (2.0, 4.0)), "seeds may have any names"


@pytest.mark.parametrize("hold", [tuple, np.array, pd.Series, torch.tensor], ids=lambda hold: hold.__name__)
def test_whatever_holds_the_numbers(hold: Callable[[list[float]], Any]) -> None:
    assert sb.compare(hold(LOW), hold(HIGH)).p == pytest.approx(sb.compare(LOW, HIGH).p)


def test_in_words() -> None:
    first, second = str(sb.compare(LOW, HIGH)).splitlines()
    assert first == "a is better than b (p = 0.0159): 1.1±0.14 against 1.49±0.16, 5 against 5 runs"
    assert second == "two-sided Wilcoxon rank-sum test, exact; the smallest exact p of so many runs is 0.0079"
    assert str(sb.compare([1], [2])).splitlines()[0].endswith("1 against 1 run")


BAD: dict[str, Callable[[], Any]] = {
    "test: expected one of exact, ranksums, paired, got 't-test'": lambda: sb.compare(LOW, HIGH, "t-test"),
    "a: expected at least one value, got none": lambda: sb.compare([], HIGH),
    "b: expected numbers that are neither NaN nor infinite, got nan": lambda: sb.compare(LOW, [float("nan")]),
    "got nan at position 0": lambda: sb.compare({3: float("nan")}, {3: 1.0}, "paired"),
    "a: expected a list or an array": lambda: sb.compare(1.0, 2.0),
    "expected a pair for each seed, got 5 and 1 numbers": lambda: sb.compare(LOW, [1.0], "paired"),
    "expected both by seed or neither": lambda: sb.compare({0: 1.0}, [1.0], "paired"),
    "expected seeds that both have, got none": lambda: sb.compare({0: 1.0}, {1: 1.0}, "paired"),
    "at most 100 runs for the exact test, got 1,000; use test='ranksums'": lambda: sb.compare(range(1000), LOW),
}
"""By what is said of it: what must not give a number."""


@pytest.mark.parametrize("message", BAD)
def test_each_mistake_is_one_clear_error(message: str) -> None:
    with pytest.raises(ValueError) as caught:
        BAD[message]()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_as_many_runs_as_the_exact_tests_take() -> None:
    """The largest are still counted exactly: far apart, p is as small as floats tell."""
    most = [*range(MOST_RUNS)]
    assert 0 < sb.compare(most, [value + 1000 for value in most]).p < 1e-50
    assert sb.compare(most, [value + 0.5 for value in most], "paired").p == pytest.approx(2 / 2**MOST_RUNS)
    assert sb.compare([*range(5000)], [*range(5000)], "ranksums").p == 1.0
