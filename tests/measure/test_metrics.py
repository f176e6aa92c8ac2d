"""Metrics against the fixtures' oracle values, brute-force twins, and the laws they must obey."""

import doctest
from fractions import Fraction
from itertools import pairwise, permutations
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from benchmark.measure import metrics
from benchmark.measure.evaluate import Ranking, measure, measure_ranking
from benchmark.measure.metrics import class_coverage, kept_weights, percentile_risk, selective_risk
from benchmark.measure.prediction import Evidence, Prediction
from tests.fixtures import F6_LABELS, F6_LOGITS, F6_RESPONSE, M10_CONFIDENCE, M10_ERROR

runs = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=40)
small_runs = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6)


def split(run: list[tuple[int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([c for c, _ in run], dtype=float), np.array([e for _, e in run], dtype=float)


def judged(confidence: np.ndarray, error: np.ndarray) -> dict[str, float]:
    """The numbers that a record keeps of a score, where the first class is predicted of all images."""
    logits, labels = np.tile([1.0, 0.0], (len(error), 1)), np.asarray(error, dtype=np.int64)
    measured = vars(measure_ranking(Ranking("SR", np.asarray(confidence), Evidence(Prediction(logits), labels))))
    names = ("aurc", "e_aurc", "augrc", "auroc", "top_ties", "naurc", "fpr95", "aupr", "coverage_at_risk_5")
    return {name: np.nan if measured[name] is None else measured[name] for name in names}


def test_docstring_examples() -> None:
    assert doctest.testmod(metrics).failed == 0


def test_values_of_m10() -> None:
    assert metrics.aurc(M10_CONFIDENCE, M10_ERROR) == pytest.approx(0.27718254, abs=1e-8)
    assert metrics.e_aurc(M10_CONFIDENCE, M10_ERROR) == pytest.approx(0.16456349, abs=1e-8)
    assert metrics.optimal_aurc(4, 10) == pytest.approx(0.11261905, abs=1e-8)
    assert metrics.failure_auroc(M10_CONFIDENCE, M10_ERROR) == pytest.approx(0.6875)
    assert metrics.augrc(M10_CONFIDENCE, M10_ERROR) == pytest.approx(0.155)
    assert metrics.optimal_aurc(2700, 10_000) == pytest.approx(4.0274656e-2, abs=1e-9)
    in_a_record = {"aurc": 0.27718254, "e_aurc": 0.16456349, "augrc": 0.155, "auroc": 0.6875, "top_ties": 0.1}
    in_a_record |= {"naurc": 0.16456349 / (0.4 - 0.11261905), "fpr95": 0.75, "coverage_at_risk_5": 0.1}
    in_a_record |= {"aupr": (1 + 2 / 3 + 3 / 6 + 4 / 9) / 4}
    assert judged(M10_CONFIDENCE, M10_ERROR) == pytest.approx(in_a_record, abs=1e-8)


@pytest.mark.parametrize(
    ("coverage", "risk"),
    [(0.5, 0.26666667), (0.65, 0.28571429), (0.75, 0.375), (0.85, 0.33333333), (0.95, 0.4), (1.0, 0.4)],
)
def test_risk_at_coverage_of_m10(coverage: float, risk: float) -> None:
    assert metrics.selective_risk(M10_CONFIDENCE, M10_ERROR, coverage) == pytest.approx(risk, abs=1e-8)


@pytest.mark.parametrize(("bins", "value"), [(5, 0.164), (10, 0.184), (15, 0.184)])
def test_ece_of_m10(bins: int, value: float) -> None:
    assert metrics.ece(M10_CONFIDENCE, M10_ERROR, bins) == pytest.approx(value)


def test_ece_puts_an_edge_into_the_lower_bin() -> None:
    assert metrics.ece([0.6, 0.61], [0, 1], bins=5) == pytest.approx((0.4 + 0.61) / 2)


def test_values_of_f6() -> None:
    assert metrics.nll(F6_LOGITS, F6_LABELS) == pytest.approx(0.70077762, abs=1e-8)
    assert metrics.brier(F6_LOGITS, F6_LABELS) == pytest.approx(0.43746517, abs=1e-8)
    ece = metrics.ece(F6_RESPONSE, F6_LOGITS.argmax(axis=1) != F6_LABELS)
    in_a_record = {"accuracy": 0.5, "nll": 0.70077762, "brier": 0.43746517, "ece": ece}
    measured = vars(measure(Evidence(Prediction(F6_LOGITS), F6_LABELS), {}).classifier)
    assert {name: measured[name] for name in in_a_record} == pytest.approx(in_a_record, abs=1e-8)


@pytest.mark.parametrize(("coverage", "n", "k"), [(0.07, 100, 7), (0.29, 100, 29), (0.0, 100, 1), (0.7, 19962, 13974)])
def test_number_kept_is_guarded_against_rounding(coverage: float, n: int, k: int) -> None:
    assert metrics.kept(coverage, n) == k


@given(runs, st.integers(0, 200))
def test_risk_equals_its_definition(run: list[tuple[int, bool]], half_percent: int) -> None:
    """Brute force: strictly better samples count whole, the tied block at the threshold by its share."""
    confidence, error = split(run)
    k = max(1, ceil(Fraction(half_percent, 200) * len(run)))
    threshold = sorted(confidence, reverse=True)[k - 1]
    above, tied = confidence > threshold, confidence == threshold
    expected = (error[above].sum() + (k - above.sum()) * error[tied].mean()) / k
    assert metrics.selective_risk(confidence, error, half_percent / 200) == pytest.approx(expected)


@settings(max_examples=30)
@given(small_runs)
def test_ties_are_the_expectation_over_all_orders(run: list[tuple[int, bool]]) -> None:
    confidence, error = split(run)
    orders = [o for o in permutations(range(len(run))) if all(confidence[a] >= confidence[b] for a, b in pairwise(o))]
    curves = [np.cumsum(error[list(o)]) / np.arange(1, len(run) + 1) for o in orders]
    assert metrics.aurc(confidence, error) == pytest.approx(np.mean(curves))


@given(runs)
def test_auroc_equals_pair_counting_and_augrc_its_closed_form(run: list[tuple[int, bool]]) -> None:
    confidence, error = split(run)
    auroc, accuracy = metrics.failure_auroc(confidence, error), 1 - error.mean()
    if 0 < accuracy < 1:
        right, wrong = confidence[error == 0][:, None], confidence[error == 1]
        assert auroc == pytest.approx(((right > wrong) + 0.5 * (right == wrong)).mean())
        assert auroc == pytest.approx(roc_auc_score(1 - error, confidence))
        closed = (1 - auroc) * accuracy * (1 - accuracy) + 0.5 * (1 - accuracy) ** 2
        assert metrics.augrc(confidence, error) == pytest.approx(closed)
    else:
        assert np.isnan(auroc)


@given(runs, st.randoms())
def test_order_and_monotone_transforms_do_not_matter(run: list[tuple[int, bool]], random: object) -> None:
    confidence, error = split(run)
    shuffled = list(run)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    expected = judged(confidence, error)
    assert judged(*split(shuffled)) == pytest.approx(expected, nan_ok=True)
    assert judged(np.exp(confidence) - 7, error) == pytest.approx(expected, nan_ok=True)


@given(runs)
def test_perfect_ranking_is_the_optimum_and_no_ranking_beats_it(run: list[tuple[int, bool]]) -> None:
    confidence, error = split(run)
    assert metrics.e_aurc(-error + 1e-3 * np.arange(len(error)), error) == pytest.approx(0, abs=1e-12)
    assert metrics.e_aurc(confidence, error) >= -1e-12


def test_curve_has_the_201_coverages() -> None:
    curve = metrics.curve(metrics.ranked_loss(M10_CONFIDENCE, M10_ERROR))
    assert len(curve) == 201
    assert curve[200] == pytest.approx(0.4)
    assert curve[100] == pytest.approx(0.26666667, abs=1e-8)


def test_top_ties() -> None:
    assert metrics.top_ties([3, 3, 1, 0]) == 0.5


@pytest.mark.parametrize(("coverage", "expected"), [(0.5, 0.28571429), (1.0, 0.4)])
def test_the_percentile_rule_keeps_tied_blocks_whole(coverage: float, expected: float) -> None:
    assert percentile_risk(M10_CONFIDENCE, M10_ERROR, coverage)[0] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("n", [7, 100, 1997])
def test_the_percentile_rule_as_the_public_codes_write_it(n: int) -> None:
    draws = np.random.default_rng(n)
    confidence, error = draws.integers(0, n, n) / n, draws.integers(0, 2, n)
    for coverage in (0.01, 0.1, 0.333, 0.7, 0.95, 1.0):
        kept = confidence >= np.percentile(confidence, 100 - 100 * coverage)
        risk, covered = percentile_risk(confidence, error, coverage)
        assert risk == pytest.approx(error[kept].mean())
        assert covered == pytest.approx(kept.mean())


def test_images_kept_of_the_largest_published_test_set_without_ties() -> None:
    """19,962 images: the percentile rule keeps 1 + ⌊(n−1)c⌋, which rounds down at some coverages and up at others."""
    n, published = 19_962, {0.95: 18_963, 0.85: 16_967, 0.75: 14_971, 0.7: 13_973, 0.3: 5_989, 0.1: 1_997}
    confidence = np.arange(n, dtype=float)
    for coverage, kept in published.items():
        lowest_kept = (confidence >= np.percentile(confidence, 100 - 100 * coverage)).argmax()
        assert n - lowest_kept == kept
        error = (confidence == lowest_kept).astype(float)
        assert percentile_risk(confidence, error, coverage)[0] == pytest.approx(1 / kept)


def test_both_rules_agree_without_ties_where_the_coverage_is_a_whole_number_of_images() -> None:
    draws = np.random.default_rng(0)
    confidence, error = draws.permutation(1000), draws.integers(0, 2, 1000)
    coverages = np.array([0.1, 0.25, 0.5, 0.9, 1.0])
    np.testing.assert_allclose(
        percentile_risk(confidence, error, coverages)[0], selective_risk(confidence, error, coverages)
    )


def test_what_is_kept_of_each_class() -> None:
    """By hand: of 6 the 3 most confident are 0.9 and two of the three tied at 0.5, each counting for 2/3."""
    confidence, labels = [0.9, 0.5, 0.5, 0.5, 0.1, 0.0], [0, 0, 1, 1, 1, 2]
    assert kept_weights(confidence, 0.5) == pytest.approx([1, 2 / 3, 2 / 3, 2 / 3, 0, 0])
    found = class_coverage(confidence, labels, 4, 0.5)
    assert found[:3] == pytest.approx([(1 + 2 / 3) / 2, (4 / 3) / 3, 0])
    assert np.isnan(found[3])
    assert kept_weights(confidence, 1.0) == pytest.approx(np.ones(6))


@pytest.mark.parametrize("coverage", [0.1, 0.5, 0.93, 1.0])
def test_kept_weights_give_the_selective_risk(coverage: float) -> None:
    """Σ w·ℓ / Σ w is the risk itself, ties included."""
    random = np.random.default_rng(3)
    confidence, loss = random.integers(0, 9, 200) / 9, (random.random(200) < 0.3).astype(float)
    weights = kept_weights(confidence, coverage)
    assert weights.sum() == pytest.approx(np.ceil(coverage * 200))
    assert (weights * loss).sum() / weights.sum() == pytest.approx(float(selective_risk(confidence, loss, coverage)))


@given(runs)
def test_fpr_and_aupr_are_those_of_sklearn(run: list[tuple[int, bool]]) -> None:
    """Right predictions are positive for the one, errors for the other. Tied samples pass a threshold together."""
    confidence, error = split(run)
    fpr, aupr = metrics.fpr_at_tpr(confidence, error), metrics.failure_aupr(confidence, error)
    if 0 < error.sum() < len(error):
        false, true, _ = roc_curve(1 - error, confidence, drop_intermediate=False)
        assert fpr == pytest.approx(false[np.argmax(true >= 0.95 - 1e-9)])
        assert aupr == pytest.approx(average_precision_score(error, -confidence))
    else:
        assert np.isnan(fpr) and np.isnan(aupr)


@given(runs, st.sampled_from([0.0, 0.01, 0.2, 0.5, 1.0]), st.booleans())
def test_coverage_at_risk_by_trying_all_coverages(run: list[tuple[int, bool]], risk: float, fractional: bool) -> None:
    confidence, loss = split(run)
    loss = loss * (0.37 if fractional else 1)
    n = len(loss)
    fits = [k / n for k in range(1, n + 1) if metrics.selective_risk(confidence, loss, k / n) <= risk + 1e-12]
    assert metrics.coverage_at_risk(confidence, loss, risk) == max(fits, default=0.0)


def test_a_risk_that_is_met_exactly_counts() -> None:
    """Of 100 the last is wrong, and all after it; thirty tie, and a third of them are wrong."""
    assert metrics.coverage_at_risk(np.arange(200), np.arange(200) <= 100, 0.01) == 0.5
    assert metrics.coverage_at_risk(np.zeros(30), np.arange(30) % 3 == 0, 1 / 3) == 1


@settings(max_examples=30)
@given(small_runs)
def test_naurc_is_zero_of_the_best_order_and_one_on_average(run: list[tuple[int, bool]]) -> None:
    _, error = split(run)
    n = len(error)
    found = [metrics.naurc(np.array(order), error) for order in permutations(range(n))]
    if 0 < error.sum() < n:
        assert np.mean(found) == pytest.approx(1)
        assert min(found) == pytest.approx(0, abs=1e-12)
        assert metrics.naurc(np.zeros(n), error) == pytest.approx(1), "all tied"
    else:
        assert np.isnan(found).all()


losses = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, 0.25, 0.6, 1.0])), min_size=1, max_size=30)


@given(losses, st.integers(0, 100))
def test_the_best_cost_by_trying_all_thresholds(run: list[tuple[int, float]], half_percent: int) -> None:
    """A threshold keeps tied samples together, or none of them."""
    confidence, loss = split(run)  # type: ignore[arg-type]
    ratio = half_percent / 200
    thresholds = [*confidence, np.inf]
    tried = [np.where(confidence >= threshold, loss, ratio).mean() for threshold in thresholds]
    ranked = metrics.ranked_loss(confidence, loss)
    assert metrics.cost_curve(ranked)[half_percent] == pytest.approx(min(tried))
    coverages = np.arange(1, len(run) + 1) / len(run)
    equation = coverages * metrics.selective_risk(confidence, loss, coverages) + ratio * (1 - coverages)
    costs = metrics.threshold_costs(metrics.errors_kept(ranked), ratio)
    assert costs == pytest.approx(np.r_[ratio, equation])


@given(losses, st.integers(0, 100))
def test_chows_rule_sample_by_sample(run: list[tuple[int, float]], half_percent: int) -> None:
    probability, error = np.array([0.5 + level / 10 for level, _ in run]), np.array([loss == 1 for _, loss in run])
    ratio = half_percent / 200
    costs = [(wrong if p >= 1 - ratio else ratio) for p, wrong in zip(probability, error, strict=True)]
    found = metrics.chow_cost_curve(probability, error)[half_percent]
    assert found == pytest.approx(np.mean(costs))
    assert found >= metrics.cost_curve(metrics.ranked_loss(probability, error))[half_percent] - 1e-12


def test_costs_by_hand() -> None:
    """Four samples, the second and the last wrong; to reject costs a fifth of an error."""
    ranked = metrics.ranked_loss([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    assert metrics.threshold_costs(metrics.errors_kept(ranked), 0.2) * 4 == pytest.approx([0.8, 0.6, 1.4, 1.2, 2.0])
    assert metrics.best_costs(ranked, np.array([0.2])) == pytest.approx(0.15), "keep the first alone"
    assert metrics.chow_costs([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], 0.2) == pytest.approx((0 + 1 + 0.2 + 0.2) / 4)


def test_where_probabilities_are_true_chows_rule_is_the_best_threshold() -> None:
    random = np.random.default_rng(0)
    probability = random.uniform(0.4, 1, 200_000)
    error = random.random(200_000) > probability
    best = np.array(metrics.cost_curve(metrics.ranked_loss(probability, error)))
    chow = np.array(metrics.chow_cost_curve(probability, error))
    assert np.abs(chow - best).max() < 1e-3
    overconfident = np.array(metrics.chow_cost_curve(probability**0.3, error))
    assert (overconfident - best)[20:].min() > 5e-3


def test_the_oracle_costs_what_the_bayes_rule_costs() -> None:
    """E min(1 − max P, ρ), and no classifier is expected to cost less."""
    random = np.random.default_rng(1)
    posterior = random.dirichlet(np.full(3, 0.4), 500)
    labels = (random.random((500, 1)) > posterior.cumsum(axis=1)).sum(axis=1)
    logits = np.log(posterior) + random.normal(size=(500, 3))
    measured = measure(Evidence(Prediction(logits), labels, posterior), {"SR": logits.max(axis=1)})
    floor = [np.minimum(1 - posterior.max(axis=1), ratio).mean() for ratio in metrics.COST_RATIOS]
    assert measured.oracle is not None and measured.oracle.expected_cost == pytest.approx(floor)
    found = measured.scores["SR"].expected_cost
    assert found is not None and (np.array(found) >= np.array(floor) - 1e-12).all() and found[100] > floor[100]


def test_what_is_not_defined_is_none() -> None:
    """Losses between 0 and 1 have no AUPR and no FPR; without an error, or without a difference, there is no NAURC."""
    nothing = np.zeros((4, 0))
    for loss, known in ([0.0, 0.5, 0.1, 1.0], {"naurc"}), ([0.3] * 4, set()), ([0.0] * 4, set()), ([1.0] * 4, set()):
        evidence = Evidence(Prediction(nothing), np.zeros(0, np.int64), loss=np.array(loss))
        found = vars(measure_ranking(Ranking("own", np.arange(4.0), evidence)))
        assert {name for name in ("naurc", "aupr", "fpr95", "auroc") if found[name] is not None} == known
        assert found["coverage_at_risk_5"] is not None and found["cost"] is not None
