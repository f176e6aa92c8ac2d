"""Resampled measures equal those of the resampled images, draw by draw; intervals and tests keep their promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap, norm

from benchmark.measure import metrics
from benchmark.measure.bootstrap import (
    ResampledRanking,
    bootstrap_test,
    draw_images,
    interval,
    resampled,
)
from benchmark.measure.evaluate import COST_RATIOS, RISKS, measure
from benchmark.measure.prediction import Evidence, Prediction
from benchmark.measure.scores import softmax_response
from benchmark.measure.sets.formulas import without_logits
from benchmark.measure.statistics import DRAWS

COVERAGES = (100, 55, 10)
OF_ERRORS = {"auroc": metrics.failure_auroc, "fpr95": metrics.fpr_at_tpr, "aupr": metrics.failure_aupr}


@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), levels=st.integers(1, 60), whole=st.booleans())
def test_every_draw_is_measured_as_its_images_would_be(seed: int, n: int, levels: int, whole: bool) -> None:
    """With ties, without errors, with errors alone, with losses between 0 and 1."""
    random = np.random.default_rng(seed)
    confidence = random.integers(0, levels, n).astype(np.float64)
    loss = (random.random(n) < random.random()).astype(np.float64) if whole else random.random(n).round(1)
    strata = random.integers(0, 3, n)
    ranking = ResampledRanking(confidence, loss)
    (counts,) = draw_images(strata, random, 6)
    found = ranking.measured(counts, COVERAGES)
    for draw in range(6):
        rows = np.repeat(np.arange(n), counts[:, draw])
        assert np.array_equal(np.bincount(strata[rows], minlength=3), np.bincount(strata, minlength=3))
        c, ell = confidence[rows], loss[rows]
        assert found["aurc"][draw] == pytest.approx(metrics.aurc(c, ell), abs=1e-12)
        assert found["augrc"][draw] == pytest.approx(metrics.augrc(c, ell), abs=1e-12)
        best = metrics.aurc(-ell, ell)
        assert found["e_aurc"][draw] == pytest.approx(metrics.aurc(c, ell) - best, abs=1e-12)
        for coverage in COVERAGES:
            expected = metrics.selective_risk(c, ell, coverage / 100)
            assert found[f"risk@{coverage}"][draw] == pytest.approx(float(expected), abs=1e-12)
        assert found["naurc"][draw] == pytest.approx(metrics.naurc(c, ell), abs=1e-9, nan_ok=True)
        ranked = metrics.ranked_loss(c, ell)
        for risk in RISKS:
            expected = metrics.largest_coverage(ranked, risk / 100)
            assert found[f"coverage_at_risk_{risk}"][draw] == pytest.approx(expected, abs=1e-12)
        costs = metrics.best_costs(ranked, np.array(COST_RATIOS) / 100)
        assert [found[f"cost_{ratio}"][draw] for ratio in COST_RATIOS] == pytest.approx(costs, abs=1e-12)
        for name, formula in OF_ERRORS.items():
            if ((loss == 0) | (loss == 1)).all():
                assert found[name][draw] == pytest.approx(formula(c, ell), abs=1e-9, nan_ok=True)
            else:
                assert name not in found


def evidence(n: int = 300, seed: int = 0) -> Evidence:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 5, n)
    logits = random.standard_normal((n, 5)) + 1.5 * np.eye(5)[labels]
    posterior = random.dirichlet(np.ones(5), n)
    return Evidence(Prediction(logits.astype(np.float32)), labels, posterior)


def test_all_measures_of_a_run_are_resampled() -> None:
    """By making the resampled run, and measuring that."""
    run = evidence()
    confidence = softmax_response(run.prediction.logits)
    (counts,) = draw_images(run.labels, np.random.default_rng(3), 4)
    found = resampled(run, confidence).measured(counts, COVERAGES)
    for draw in range(4):
        rows = np.repeat(np.arange(len(run.labels)), counts[:, draw])
        drawn = Evidence(Prediction(run.prediction.logits[rows]), run.labels[rows], run.posterior[rows])
        made = measure(drawn, {"SR": confidence[rows]})
        score = made.scores["SR"]
        of_errors = ("auroc", "fpr95", "aupr")
        for name in ("aurc", "e_aurc", "naurc", "augrc", *of_errors, "expected_aurc", "coverage_at_risk_5"):
            assert found[name][draw] == pytest.approx(getattr(score, name)), name
        for name in ("accuracy", "nll", "brier", "ece"):
            assert found[name][draw] == pytest.approx(getattr(made.classifier, name)), name
        for ratio in COST_RATIOS:
            assert found[f"cost_{ratio}"][draw] == pytest.approx(score.cost[2 * ratio])
            assert found[f"expected_cost_{ratio}"][draw] == pytest.approx(score.expected_cost[2 * ratio])
            assert found[f"chow_cost_{ratio}"][draw] == pytest.approx(made.classifier.chow_cost[2 * ratio])
        assert found["risk@55"][draw] == pytest.approx(score.risk[110])
        assert found["expected_risk@55"][draw] == pytest.approx(score.expected_risk[110])


def test_without_logits_chows_rule_is_resampled_by_the_stored_probabilities() -> None:
    run = evidence()
    confidence = softmax_response(run.prediction.logits)
    stored = without_logits(run, {"SR": confidence})
    (counts,) = draw_images(run.labels, np.random.default_rng(3), 4)
    found, expected = (resampled(each, confidence).measured(counts, COVERAGES) for each in (stored, run))
    for ratio in COST_RATIOS:
        assert found[f"chow_cost_{ratio}"] == pytest.approx(expected[f"chow_cost_{ratio}"])


def test_every_image_is_drawn_as_often_as_any_other_of_its_stratum() -> None:
    strata = np.array([0] * 10 + [1] * 3 + [2])
    counts = np.concatenate(list(draw_images(strata, np.random.default_rng(0), 20_000)), axis=1)
    assert counts.shape == (14, 20_000)
    assert counts[-1].tolist() == [1] * 20_000, "alone in its stratum"
    assert np.abs(counts.mean(axis=1) - 1).max() < 0.03
    assert counts[0].var() == pytest.approx(0.9, abs=0.05), "binomial with n = 10, p = 1/10"


def test_the_interval_of_a_mean_is_that_of_scipy() -> None:
    loss = (np.random.default_rng(1).random(400) < 0.2).astype(np.float64)
    ranking = ResampledRanking(np.arange(400.0), loss)
    blocks = draw_images(np.zeros(400, np.int64), np.random.default_rng(0), 5000)
    low, high = interval(np.concatenate([ranking.measured(counts, (100,))["risk@100"] for counts in blocks]))
    other = bootstrap((loss,), np.mean, n_resamples=5000, method="percentile", rng=np.random.default_rng(2))
    assert (low, high) == pytest.approx(tuple(other.confidence_interval), abs=0.006)


def test_intervals_contain_the_truth_as_often_as_they_say() -> None:
    """Of the error of a classifier that errs at 30 %, in 200 test sets."""
    random = np.random.default_rng(5)
    inside = 0
    for _ in range(200):
        loss = (random.random(200) < 0.3).astype(np.float64)
        counts = np.concatenate(list(draw_images(np.zeros(200, np.int64), random, 400)), axis=1)
        low, high = interval(ResampledRanking(random.random(200), loss).measured(counts, (100,))["risk@100"])
        inside += low <= 0.3 <= high
    assert 0.89 <= inside / 200 <= 0.99


def test_the_test_by_pairs_sees_what_overlapping_intervals_hide() -> None:
    """Two measures that move together: each is uncertain, their difference is not."""
    shared = np.random.default_rng(0).standard_normal(DRAWS)
    ours, theirs = shared, shared + 0.1
    assert bootstrap_test(ours, theirs).p == pytest.approx(2 / (1 + DRAWS))
    assert bootstrap_test(ours, theirs).direction > 0, "ours is lower"
    assert bootstrap_test(ours, ours).p == 1


def test_the_noise_of_sums_is_no_difference() -> None:
    ours = np.random.default_rng(0).random(DRAWS)
    assert bootstrap_test(ours, ours + 1e-13).p == 1


def test_p_is_that_of_a_normal_law_where_the_difference_is_normal() -> None:
    draws = 1.5 + np.random.default_rng(0).standard_normal(DRAWS)
    assert bootstrap_test(np.zeros(DRAWS), draws).p == pytest.approx(2 * norm.cdf(-1.5), abs=0.01)


def test_draws_without_a_value_are_left_out() -> None:
    """A draw without an error has no AUROC."""
    draws = np.r_[np.full(10, np.nan), np.linspace(0, 1, 101)]
    assert interval(draws) == pytest.approx((0.025, 0.975))
    assert bootstrap_test(np.zeros(111), draws).p == pytest.approx(2 * 2 / 102)
