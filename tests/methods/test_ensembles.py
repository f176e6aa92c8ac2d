"""Deep and snapshot ensembles: the mean of probabilities, and which trainings they are made of."""

import numpy as np
import pytest
from scipy.special import softmax

from methods._ensembles import log_mean_probability
from methods.deep_ensemble import DeepEnsemble, member_seeds
from methods.snapshot_ensemble import SnapshotEnsemble, cycle_ends


def test_probabilities_are_averaged_not_logits() -> None:
    logits = np.random.default_rng(0).normal(size=(3, 6, 4)) * 5
    expected = softmax(logits, axis=2).mean(axis=0)
    np.testing.assert_allclose(softmax(log_mean_probability(list(logits)), axis=1), expected, rtol=1e-12)
    np.testing.assert_allclose(np.exp(log_mean_probability(list(logits))), expected, rtol=1e-12)


def test_saturated_members_do_not_overflow() -> None:
    assert np.isfinite(log_mean_probability([np.array([[800.0, 0.0]]), np.array([[0.0, 800.0]])])).all()


def test_the_first_member_is_the_run_of_the_seed_and_ensembles_share_none() -> None:
    members = [member_seeds(seed, 5) for seed in range(200)]
    assert all(seeds[0] == seed for seed, seeds in enumerate(members))
    assert len({seed for seeds in members for seed in seeds}) == 1000
    assert member_seeds(3, 2) == member_seeds(3, 5)[:2], "a larger ensemble keeps the members of a smaller one"
    found = DeepEnsemble.members(DeepEnsemble.Config(size=3), 7, 20)
    assert [member.seed for member in found] == member_seeds(7, 3)
    assert {member.method for member in found} == {"cross_entropy"}


@pytest.mark.parametrize(
    ("epochs", "cycles", "ends"),
    [(200, 5, [40, 80, 120, 160, 200]), (4, 2, [2, 4]), (10, 1, [10]), (3, 3, [1, 2, 3])],
)
def test_cycle_ends(epochs: int, cycles: int, ends: list[int]) -> None:
    assert cycle_ends(epochs, cycles) == ends


def test_cycles_that_leave_a_part_are_refused() -> None:
    with pytest.raises(ValueError, match="must divide epochs = 12"):
        cycle_ends(12, 5)


def test_snapshots_are_states_of_one_training_with_a_cyclic_rate() -> None:
    members = SnapshotEnsemble.members(SnapshotEnsemble.Config(cycles=4, last=3, lr=0.2), 5, 40)
    assert [member.epoch for member in members] == [20, 30, 40]
    assert all(member.seed == 5 for member in members)
    assert members[0].recipe == {
        "schedule": {"name": "cyclic", "cycles": 4}, "evaluate_at": [20, 30, 40], "optimizer": {"lr": 0.2}
    }  # fmt: skip
    assert "optimizer" not in SnapshotEnsemble.members(SnapshotEnsemble.Config(), 0, 40)[0].recipe
