"""Effects of crossed grids: against plain loops, against least squares with effect coding, and against scipy's test."""

from itertools import product
from math import inf, isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test, t

from benchmark.measure.effects import (
    MOST_FLIPPED,
    interaction,
    main_effect,
    mean_with_interval,
    sign_flip_p,
    sign_flips,
    smallest_flip_p,
    smallest_flip_p_text,
    zero_level,
)

SHAPE = (3, 2, 3, 2)
"""Methods and the levels of three factors."""


def response(seed: int, shape: tuple[int, ...] = SHAPE, seeds: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(*shape, seeds))


def at(cell: tuple[int, ...], **places: int) -> tuple[int, ...]:
    """The cell with other levels: `axis1=0` puts level 0 in the place of axis 1."""
    changed = list(cell)
    for name, level in places.items():
        changed[int(name.removeprefix("axis"))] = level
    return tuple(changed)


@pytest.mark.parametrize(("axis", "level", "zero"), [(1, 0, 1), (2, 0, 2), (2, 1, 2), (3, 0, 1), (0, 2, 1)])
def test_main_effects_are_those_of_plain_loops(axis: int, level: int, zero: int) -> None:
    y = response(0)
    for seed, found in enumerate(main_effect(y, axis, level, zero)):
        others = [cell for cell in product(*map(range, SHAPE)) if cell[axis] == zero]
        one, none = f"axis{axis}", zero
        differences = [y[at(cell, **{one: level})][seed] - y[at(cell, **{one: none})][seed] for cell in others]
        assert found == pytest.approx(sum(differences) / len(differences))


@pytest.mark.parametrize(("first", "second"), [((1, 0, 1), (2, 0, 2)), ((2, 1, 2), (3, 0, 1)), ((0, 0, 2), (1, 0, 1))])
def test_interactions_are_those_of_plain_loops(first: tuple[int, int, int], second: tuple[int, int, int]) -> None:
    y, ((f, a, f0), (g, b, g0)) = response(1), (first, second)
    f_axis, g_axis = f"axis{f}", f"axis{g}"
    for seed, found in enumerate(interaction(y, first, second)):
        terms = []
        for cell in product(*map(range, SHAPE)):
            if cell[f] == f0 and cell[g] == g0:
                y_ab, y_a0 = y[at(cell, **{f_axis: a, g_axis: b})][seed], y[at(cell, **{f_axis: a})][seed]
                y_0b, y_00 = y[at(cell, **{g_axis: b})][seed], y[cell][seed]
                terms.append(y_ab - y_a0 - y_0b + y_00)
        assert found == pytest.approx(sum(terms) / len(terms))


def test_of_two_levels_each_effects_are_those_of_least_squares() -> None:
    """With ±1 coding a main effect is twice its coefficient, an interaction four times it."""
    y = response(2, (2, 2, 2), seeds=4)
    signs = np.array([[1.0 if level == 0 else -1.0 for level in cell] for cell in product(range(2), repeat=3)])
    one, two, three = signs.T
    design = np.column_stack([np.ones(8), one, two, three, one * two, one * three, two * three, one * two * three])
    coefficients = np.linalg.lstsq(design, y.reshape(8, 4), rcond=None)[0]
    for axis in range(3):
        assert main_effect(y, axis, 0, 1) == pytest.approx(2 * coefficients[1 + axis])
    for index, (f, g) in enumerate([(0, 1), (0, 2), (1, 2)]):
        assert interaction(y, (f, 0, 1), (g, 0, 1)) == pytest.approx(4 * coefficients[4 + index])


def test_the_effect_over_all_methods_is_the_mean_of_theirs() -> None:
    y = response(3)
    alone = [main_effect(y[index : index + 1], 2, 0, 2) for index in range(SHAPE[0])]
    assert main_effect(y, 2, 0, 2) == pytest.approx(np.mean(alone, axis=0))


@given(st.integers(0, 10**6), st.lists(st.floats(-100, 100), min_size=5, max_size=5))
def test_what_all_cells_of_a_seed_share_changes_nothing(number: int, constants: list[float]) -> None:
    y = response(number)
    shifted = y + np.array(constants)
    assert main_effect(shifted, 1, 0, 1) == pytest.approx(main_effect(y, 1, 0, 1), abs=1e-9)
    assert interaction(shifted, (1, 0, 1), (2, 0, 2)) == pytest.approx(interaction(y, (1, 0, 1), (2, 0, 2)), abs=1e-9)


@given(st.integers(0, 10**6))
def test_what_adds_up_does_not_interact(number: int) -> None:
    """And its main effects are the differences that it was made of."""
    parts = [response(number + axis, (size,)) for axis, size in enumerate(SHAPE)]
    y = sum(part.reshape(*(size if axis == i else 1 for i, size in enumerate(SHAPE)), 5)
            for axis, (size, part) in enumerate(zip(SHAPE, parts, strict=True)))  # fmt: skip
    assert isinstance(y, np.ndarray)
    for first, second in (((1, 0, 1), (2, 1, 2)), ((0, 0, 1), (3, 0, 1))):
        assert interaction(y, first, second) == pytest.approx(np.zeros(5), abs=1e-12)
    assert main_effect(y, 2, 1, 2) == pytest.approx(parts[2][1] - parts[2][2])


@pytest.mark.parametrize("n", [2, 3, 5, 6, 8, 10])
@pytest.mark.parametrize("kind", ["normal", "shifted", "ties"])
def test_the_p_is_scipys(n: int, kind: str) -> None:
    random = np.random.default_rng(n)
    d = {"normal": random.normal(size=n), "shifted": random.normal(1, size=n), "ties": random.integers(-2, 3, n) / 1.0}
    theirs = permutation_test((d[kind],), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip_p(d[kind]) == pytest.approx(theirs.pvalue)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=10), st.sampled_from([1e-3, 1.0, 0.1, 1e3]))
def test_the_p_is_that_of_plain_loops(whole: list[int], unit: float) -> None:
    """Of multiples of a unit, whose sums tie exactly in whole numbers, and only nearly in floats."""
    sums = [abs(sum(s * d for s, d in zip(signs, whole, strict=True))) for signs in product((1, -1), repeat=len(whole))]
    expected = sum(each >= abs(sum(whole)) for each in sums) / len(sums)
    assert sign_flip_p(unit * np.array(whole, dtype=float)) == expected


@pytest.mark.parametrize("n", [1, 2, 5, 6, 8, MOST_FLIPPED])
def test_the_smallest_p_is_that_of_equal_signs(n: int) -> None:
    assert sign_flip_p(np.arange(1.0, n + 1)) == smallest_flip_p(n) == 2 / 2**n


def test_with_many_seeds_signs_are_drawn() -> None:
    """The p of the drawn signs is near that of the normal limit, the same each time, and never 0."""
    d = np.random.default_rng(0).normal(0.3, size=30)
    theirs = permutation_test((d,), np.mean, permutation_type="samples", n_resamples=50_000, rng=1)
    assert sign_flip_p(d) == sign_flip_p(d.copy()) == pytest.approx(theirs.pvalue, abs=0.01)
    assert len(sign_flips(30)) == 2**MOST_FLIPPED
    assert sign_flip_p(np.ones(40)) == smallest_flip_p(40) == 2**-MOST_FLIPPED


def test_the_interval_is_students() -> None:
    d = np.array([0.5, 1.0, -0.25, 0.75, 2.0])
    low, high = t.interval(0.95, 4, d.mean(), d.std(ddof=1) / np.sqrt(5))
    mean, half_width = mean_with_interval(d)
    assert (mean - half_width, mean + half_width) == pytest.approx((low, high))
    assert mean_with_interval(d[:1]) == (0.5, inf)
    assert isnan(mean_with_interval(d[:0])[0])
    assert isnan(sign_flip_p(d[:0]))
    assert sign_flip_p(np.zeros(6)) == 1.0


def test_effects_are_counted_from_none_or_from_the_last_level() -> None:
    assert zero_level(("a", "none", "b")) == "none"
    assert zero_level(("a", "b")) == "b"


def test_few_seeds_say_how_many_it_takes() -> None:
    assert smallest_flip_p_text([5], 1) == (
        "The smallest p that flipping signs can give is 0.0625 with 5 seeds: below 6 seeds nothing can be significant."
    )
    assert smallest_flip_p_text([8, 1, 8], 12).endswith(
        "1 with 1 seed, 0.00781 with 8 seeds: below 6 seeds nothing can be significant; with Holm's correction over 12 "
        "lines, below 9."
    )
