"""Guarantees against oracles, loops, other libraries, and populations whose risk is known."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, comb, e, exp, log, log2

import numpy as np
import pytest
from mapie.risk_control import BinaryClassificationController
from scipy.special import xlogy
from scipy.stats import beta, binomtest, kstest

from benchmark.measure import guarantees
from benchmark.measure.guarantees import (
    FIRST,
    Thresholds,
    binomial_p,
    certify,
    certify_coverage,
    clopper_pearson,
    hoeffding_bentkus_p,
    needed_without_errors,
)

BOUNDS = ("fixed-sequence", "sgr", "hoeffding-bentkus")
DELTA = 0.05
POPULATIONS = 2000


@pytest.mark.parametrize(
    ("kept", "errors", "delta", "expected"),
    [
        (100, 2, 0.05, 0.06161920),
        (1000, 10, 0.001, 0.02396381),
        (500, 0, 0.001, 0.01372051),
        (10000, 50, 0.001 / 14, 0.00826071),
    ],
)
def test_upper_bound_of_an_error_rate(kept: int, errors: int, delta: float, expected: float) -> None:
    found = clopper_pearson(errors, kept, delta)
    assert found == pytest.approx(expected, abs=5e-9)
    two_sided = binomtest(errors, kept).proportion_ci(1 - 2 * delta, method="exact")
    assert found == pytest.approx(two_sided.high, rel=1e-9)


def test_upper_bound_where_all_are_wrong() -> None:
    assert clopper_pearson(3, 3, 0.05) == 1.0


@pytest.mark.parametrize(("kept", "errors", "risk"), [(20, 0, 0.1), (20, 3, 0.1), (60, 60, 0.3), (45, 7, 0.02)])
def test_binomial_p_is_the_sum_of_its_terms(kept: int, errors: int, risk: float) -> None:
    r = Fraction(risk)
    exact = sum(comb(kept, k) * r**k * (1 - r) ** (kept - k) for k in range(errors + 1))
    assert float(binomial_p(errors, kept, risk)) == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.parametrize(("kept", "total", "risk"), [(30, 0.0, 0.1), (30, 1.4, 0.2), (80, 7.0, 0.1), (50, 40.2, 0.3)])
def test_hoeffding_bentkus_term_by_term(kept: int, total: float, risk: float) -> None:
    mean = min(total / kept, risk)
    h = (mean * log(mean / risk) if mean else 0.0) + (1 - mean) * log((1 - mean) / (1 - risk))
    expected = min(exp(-kept * h), e * float(binomial_p(ceil(total), kept, risk)))
    assert float(hoeffding_bentkus_p(total, kept, risk)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("delta", [0.2, 0.05, 0.001])
@pytest.mark.parametrize("risk", [0.001, 0.01, 0.02, 0.05, 0.5, 0.95, 1.0])
def test_needed_images_are_the_fewest(risk: float, delta: float) -> None:
    fewest, share, allowed = 1, 1 - Fraction(str(risk)), Fraction(str(delta))
    while share**fewest > allowed:
        fewest += 1
    assert needed_without_errors(risk, delta) == fewest


def made_up(n: int, seed: int, digits: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    confidence = rng.random(n)
    return confidence.round(digits), (rng.random(n) < 0.4 * (1 - confidence) ** 2).astype(float)


@pytest.mark.parametrize("digits", [6, 1])
@pytest.mark.parametrize("seed", range(12))
def test_fixed_sequence_is_its_loop(seed: int, digits: int) -> None:
    confidence, loss = made_up(300, seed, digits)
    first = max(needed_without_errors(0.08, DELTA), ceil(FIRST * 300))
    expected = None
    for threshold in sorted(set(confidence), reverse=True):
        kept = loss[confidence >= threshold]
        if len(kept) < first:
            continue
        if binomtest(int(kept.sum()), len(kept), 0.08, alternative="less").pvalue > DELTA:
            break
        expected = threshold
    found = certify(confidence, loss, 0.08, DELTA)
    assert found.threshold == expected
    if expected is not None:
        assert (found.kept, found.errors) == ((confidence >= expected).sum(), loss[confidence >= expected].sum())
        assert found.upper_bound is not None
        assert found.upper_bound <= 0.08


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 47, 49, 55, 300, 1024])
def test_sgr_looks_no_more_often_than_it_pays_for(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def counting(errors: int, kept: int, delta: float) -> float:
        looks.append((errors, kept, delta))
        return clopper_pearson(errors, kept, delta)

    monkeypatch.setattr(guarantees, "clopper_pearson", counting)
    confidence, loss = made_up(n, n)
    found = certify(confidence, loss, 0.2, DELTA, "sgr")
    steps = max(1, ceil(log2(n)))
    assert 0 < len(looks) <= steps
    assert {delta for *_, delta in looks} == {DELTA / steps}
    for errors, kept, _ in looks:
        assert errors == loss[np.argsort(-confidence)][:kept].sum()
    passed = [kept for errors, kept, delta in looks if clopper_pearson(errors, kept, delta) <= 0.2]
    assert found.kept == max(passed, default=0)
    assert (found.threshold is None) == (not passed)


@pytest.mark.parametrize("bound", BOUNDS)
def test_too_few_images_certify_nothing(bound: str) -> None:
    found = certify(np.arange(58.0), np.zeros(58), 0.05, DELTA, bound)
    assert (found.threshold, found.coverage, found.upper_bound, found.needed) == (None, 0.0, None, 59)
    assert certify([], [], 0.05, DELTA, bound).threshold is None


def test_without_errors_the_fewest_images_suffice() -> None:
    found = certify(np.arange(59.0), np.zeros(59), 0.05, DELTA)
    assert (found.threshold, found.coverage) == (0.0, 1.0)


def test_losses_between_0_and_1_are_not_binomial() -> None:
    loss = np.full(200, 0.001)
    assert certify(np.arange(200.0), loss, 0.05, DELTA).bound == "hoeffding-bentkus"
    with pytest.raises(ValueError, match="hoeffding-bentkus"):
        certify(np.arange(200.0), loss, 0.05, DELTA, "sgr")


Risk = Callable[[np.ndarray], np.ndarray]
SHAPES: dict[str, tuple[Risk, Callable[[float], float]]] = {
    "falls": (lambda c: 0.01 + 0.3 * (1 - c) ** 2, lambda t: 0.01 + 0.1 * (1 - t) ** 2),
    "flat": (lambda c: np.full_like(c, 0.0501), lambda t: 0.0501),
    "rises": (lambda c: 0.15 * c**2, lambda t: 0.05 * (1 - t**3) / (1 - t)),
}
"""By name: the risk of a sample by its confidence, which is uniform, and the risk of what a threshold keeps."""


@pytest.mark.parametrize(
    ("shape", "n", "ties"),
    [
        ("flat", 50, False),
        ("flat", 100, True),
        ("flat", 1000, False),
        ("falls", 100, False),
        ("falls", 300, True),
        ("falls", 1000, False),
        ("falls", 5000, False),
        ("falls", 5000, True),
        ("rises", 300, False),
        ("rises", 300, True),
    ],
)
@pytest.mark.parametrize("bound", BOUNDS)
def test_guarantees_are_broken_as_rarely_as_stated(bound: str, shape: str, n: int, ties: bool) -> None:
    risk_of_sample, risk_above = SHAPES[shape]
    rng = np.random.default_rng([n, ties, BOUNDS.index(bound)])
    wanted, broken, coverage = 0.05, 0, 0.0
    for _ in range(POPULATIONS):
        sample = rng.random(n)
        loss = (rng.random(n) < risk_of_sample(sample)).astype(float)
        found = certify(np.floor(20 * sample) / 20 if ties else sample, loss, wanted, DELTA, bound)
        broken += found.threshold is not None and risk_above(min(found.threshold, 1 - 1e-9)) > wanted
        coverage += found.coverage / POPULATIONS
    assert binomtest(broken, POPULATIONS, DELTA, alternative="greater").pvalue > 0.001
    if (shape, n) == ("falls", 5000):
        assert coverage > 0.5  # 0.63 is the largest that is right


def test_the_share_of_broken_guarantees_comes_near_to_what_is_allowed() -> None:
    """A test that could not fail would let a bound pass that rejects everything."""
    rng = np.random.default_rng(5)
    runs = (certify(rng.random(200), rng.random(200) < 0.0501, 0.05, DELTA) for _ in range(POPULATIONS))
    assert sum(run.threshold is not None for run in runs) > 0.6 * DELTA * POPULATIONS


@pytest.mark.parametrize("n", [100, 1000])
def test_guarantees_for_losses_between_0_and_1(n: int) -> None:
    rng, broken = np.random.default_rng(n), 0
    for _ in range(POPULATIONS):
        sample = rng.random(n)
        found = certify(sample, rng.beta(0.3, 2.7, n) * (1.5 - sample), 0.08, DELTA)
        threshold = found.threshold
        broken += threshold is not None and 0.1 * (1.5 - (1 + threshold) / 2) > 0.08
    assert binomtest(broken, POPULATIONS, DELTA, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(("n", "wanted"), [(50, 0.8), (199, 0.9), (1000, 0.5)])
def test_coverage_follows_its_law(n: int, wanted: float) -> None:
    rng = np.random.default_rng(n)
    found = [certify_coverage(rng.random(n), wanted, DELTA) for _ in range(POPULATIONS)]
    realised = np.array([1 - each.threshold for each in found])
    rank = int((n + 1) * (1 - wanted) + 1e-9)
    assert kstest(realised, beta(n + 1 - rank, rank).cdf).pvalue > 0.001
    assert (n + 1 - rank) / (n + 1) >= wanted - 1e-12
    assert realised.mean() == pytest.approx((n + 1 - rank) / (n + 1), abs=0.005)
    within = sum(each.low <= share <= each.high for each, share in zip(found, realised, strict=True))
    assert binomtest(within, POPULATIONS, 1 - DELTA).pvalue > 0.001


def test_coverage_with_ties_and_of_everything() -> None:
    tied = certify_coverage([0.1] * 5 + [0.9] * 5, 0.8, DELTA)
    assert (tied.threshold, tied.kept) == (0.1, 10)
    everything = certify_coverage(np.arange(10.0), 1.0, DELTA)
    assert (everything.threshold, everything.kept, everything.low, everything.high) == (-np.inf, 10, 1.0, 1.0)


@pytest.mark.filterwarnings("ignore:Fixed sequence testing requires")
@pytest.mark.parametrize(("n", "risk"), [(400, 0.1), (1000, 0.05), (2000, 0.11)])
def test_mapie_controls_precision_alike(n: int, risk: float) -> None:
    """Kept and right is a true positive. Its p is the least of Hoeffding's and the binomial one, with m·(1 − precision)
    errors rounded up, which is at times one too many."""
    confidence, loss = made_up(n, n, 3)
    found = Thresholds.of(confidence, loss)
    tested = found.kept >= max(needed_without_errors(risk, DELTA), ceil(FIRST * n))
    controller = BinaryClassificationController(
        lambda given: np.column_stack([1 - given[:, 0], given[:, 0]]),
        "precision",
        1 - risk,
        confidence_level=1 - DELTA,
        list_predict_params=found.values[tested],
        fwer_method="fixed_sequence",
    )
    controller.calibrate(confidence[:, None], 1 - loss.astype(int))
    theirs, kept, errors = controller.p_values[:, 0], found.kept[tested], found.loss[tested]
    mean = np.minimum(errors / kept, risk)
    hoeffding = np.exp(-kept * (xlogy(mean, mean / risk) + (1 - mean) * np.log((1 - mean) / (1 - risk))))
    either = [np.minimum(hoeffding, binomial_p(errors + more, kept, risk)) for more in (0, 1)]
    alike = [np.isclose(theirs, each, rtol=1e-9) for each in either]
    assert np.logical_or(*alike).all()
    assert alike[0].any()
    ours = certify(confidence, loss, risk, DELTA).threshold
    assert ours is not None
    assert ours <= controller.valid_predict_params.min()
