"""Test whether one method is better than another, with the tests that stand behind the markers of the tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from numpy.typing import ArrayLike

from benchmark.base.limits import shown
from benchmark.base.units import counted
from benchmark.library.arrays import vector
from benchmark.measure.statistics import (
    LEVEL,
    OVER_SEEDS,
    TESTS,
    Outcome,
    mean_std,
    run_test,
    seeds_needed,
    smallest_p_for,
)

Numbers = ArrayLike | Mapping[Any, float]
"""One number per seed: in the order of the seeds, or by seed."""
MOST_RUNS = 100
"""The exact tests count all ways to split or to sign the runs. With many more, memory and floats do not suffice."""
SENTENCES = {"better": "a is better than b", "worse": "a is worse than b", "tie": "no significant difference"}


@dataclass(frozen=True)
class Comparison:
    """The outcome of a two-sided test of `a` against `b`; it prints as two lines."""

    verdict: Literal["better", "worse", "tie"]
    """Whether `a` is significantly better or worse than `b` at the level 0.05, or neither."""
    p: float
    statistic: float
    """The rank sum of `a`; in a paired test, that of the pairs in which `a` is lower."""
    direction: Literal["lower", "higher", "equal"]
    """Where `a` lies by its ranks, significantly or not."""
    smallest_p: float
    """The smallest p that an exact test can give with so many runs. Not below 0.05, the verdict is always a tie."""
    seeds_needed: int
    """Seeds of each, before any difference can be shown."""
    test: str
    a: tuple[float, ...]
    """The values that were compared; in a paired test, those of the seeds that both have."""
    b: tuple[float, ...]

    def __str__(self) -> str:
        """Return the verdict with what was compared, then how, and what so many runs can show."""
        (mean_a, std_a), (mean_b, std_b) = mean_std(self.a), mean_std(self.b)
        values = f"{mean_a:.4g}±{std_a:.2g} against {mean_b:.4g}±{std_b:.2g}"
        runs = counted(len(self.b), "run")
        needed = f": no difference can be shown before {self.seeds_needed} seeds" if self.smallest_p >= LEVEL else ""
        return (
            f"{SENTENCES[self.verdict]} (p = {self.p:.4f}): {values}, {len(self.a)} against {runs}\n"
            f"{TESTS[self.test]}; the smallest exact p of so many runs is {self.smallest_p:.4f}{needed}"
        )


def compare(a: Numbers, b: Numbers, test: str = "exact", lower_is_better: bool = True) -> Comparison:
    """Test whether `a` is better than `b`, each one number per seed: a list, array, pandas column, tensor or mapping.

    `test`: "exact" (rank-sum test), "ranksums" (its normal approximation) or "paired" (exact signed-rank test of runs
    with the same seed: mappings are paired by their keys, pandas columns by their index, all else by position).

    >>> print(compare([1.1, 1.0, 1.2, 1.1], [1.4, 1.3, 1.6, 1.5]))
    a is better than b (p = 0.0286): 1.1±0.071 against 1.45±0.11, 4 against 4 runs
    two-sided Wilcoxon rank-sum test, exact; the smallest exact p of so many runs is 0.0286
    """
    if lower_is_better not in (True, False):
        raise ValueError(f"lower_is_better: expected True or False, got {shown(lower_is_better)}")
    a, b = by_index(a), by_index(b)
    if test not in OVER_SEEDS:
        raise ValueError(f"test: expected one of {', '.join(OVER_SEEDS)}, got {shown(test)}")
    first, second = pairs_of(a, b) if test == "paired" else (values_of(a, "a"), values_of(b, "b"))
    most = max(len(first), len(second))
    if test != "ranksums" and most > MOST_RUNS:
        raise ValueError(
            f"test: expected at most {MOST_RUNS} runs for the {test} test, got {most:,}; use test='ranksums'"
        )
    by_seed = dict(enumerate(first)), dict(enumerate(second))
    outcome = cast(Outcome, run_test(test, *by_seed))  # None only if one of them were empty
    smallest = smallest_p_for(test, *by_seed)
    direction: Literal["lower", "higher", "equal"] = "equal"
    if outcome.direction:
        direction = "lower" if outcome.direction > 0 else "higher"
    verdict: Literal["better", "worse", "tie"] = "tie"
    if max(outcome.p, smallest) < LEVEL:
        verdict = "better" if (direction == "lower") == lower_is_better else "worse"
    return Comparison(
        verdict, outcome.p, outcome.statistic, direction, smallest, seeds_needed(test), test, first, second
    )


def by_index(values: Any) -> Numbers:
    """Return a pandas column as a mapping from its index, which may be the seeds; all else as it is."""
    is_column = hasattr(values, "to_dict") and values.index.is_unique
    return cast(Numbers, values.to_dict() if is_column else values)


def values_of(values: Numbers, name: str) -> tuple[float, ...]:
    return tuple(vector(list(values.values()) if isinstance(values, Mapping) else values, name).tolist())


def pairs_of(a: Numbers, b: Numbers) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the values of the seeds that both name, in the same order; without seeds, all values."""
    if isinstance(a, Mapping) != isinstance(b, Mapping):
        raise ValueError("a and b: expected both by seed or neither, got one mapping")
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        common = [seed for seed in a if seed in b]
        if not common:
            raise ValueError("a and b: expected seeds that both have, got none")
        a, b = [a[seed] for seed in common], [b[seed] for seed in common]
    first, second = values_of(a, "a"), values_of(b, "b")
    if len(first) != len(second):
        raise ValueError(
            f"a and b: expected a pair for each seed, got {len(first):,} and {len(second):,} numbers; "
            "give mappings from seed to number"
        )
    return first, second
