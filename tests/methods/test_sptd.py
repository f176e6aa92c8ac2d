"""SPTD: the weighted disagreement of a network's earlier states with its last, and the states that are asked."""

import numpy as np
import pytest

from benchmark.base.errors import UserError
from benchmark.base.schema import build
from benchmark.interface import Prediction
from benchmark.measure.scores import disagreement, softmax_response
from methods.sptd import FORMS, SPTD, disagreements, evenly_spaced, importance

PATTERNS = np.array([[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 1, 1, 1, 0]]).T
"""By state: which of three images has not yet its last class. Of five states."""


def logits_of(classes: list[int]) -> np.ndarray:
    return 2.0 * np.eye(3)[classes]


def states() -> list[Prediction]:
    """Five predictions of three images that change their class as PATTERNS says, to another one each time."""
    return [Prediction(logits_of([1 if a else 0 for a in row])) for row in PATTERNS]


def combined(**settings: object) -> np.ndarray:
    config = build(SPTD.Config, settings, "here")
    return SPTD.combine(config, states(), []).prediction.aux["disagreement"]


@pytest.mark.parametrize(
    ("power", "form", "expected"),
    [
        (2.0, "sum", [0.2, 0.4, 1.2]),
        (2.0, "max", [0.16, 0.36, 0.64]),
        (3.0, "sum", [0.072, 0.224, 0.8]),
    ],
)
def test_the_printed_values(power: float, form: str, expected: list[float]) -> None:
    assert combined(power=power, form=form) == pytest.approx(expected)
    assert FORMS[form](importance(5, power)[:, None] * PATTERNS) == pytest.approx(expected)


@pytest.mark.parametrize("form", FORMS)
def test_equals_a_plain_loop(form: str) -> None:
    draws = np.random.default_rng(0)
    predictions = [Prediction(draws.normal(size=(20, 4))) for _ in range(7)]
    config = SPTD.Config(power=2.5, form=form)
    found = SPTD.combine(config, predictions, []).prediction
    for i in range(20):
        classes = [each.logits[i].tolist().index(max(each.logits[i])) for each in predictions]
        terms = [((t + 1) / 7) ** 2.5 for t in range(7) if classes[t] != classes[-1]]
        expected = sum(terms) if form == "sum" else max(terms, default=0)
        assert found.aux["disagreement"][i] == pytest.approx(expected)
    assert found.logits is predictions[-1].logits, "the last state predicts"


def test_one_state_never_disagrees_and_says_so() -> None:
    found = SPTD.combine(SPTD.Config(), states()[:1], [])
    assert found.prediction.aux["disagreement"].tolist() == [0, 0, 0]
    assert found.facts == {"images that never changed class (%)": 100}
    assert disagreements([logits_of([0, 1])] * 3).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize(
    ("epochs", "checkpoints", "expected"),
    [
        (300, 12, list(range(25, 301, 25))),
        (20, 12, [1, 3, 5, 6, 8, 10, 11, 13, 15, 16, 18, 20]),
        (4, 12, [1, 2, 3, 4]),
        (7, 1, [7]),
    ],
)
def test_checkpoints_are_evenly_spaced_and_end_with_the_training(
    epochs: int, checkpoints: int, expected: list[int]
) -> None:
    assert evenly_spaced(epochs, checkpoints) == expected


def test_any_number_of_checkpoints_gives_as_many_epochs() -> None:
    for epochs in range(1, 40):
        for checkpoints in range(1, 45):
            found = evenly_spaced(epochs, checkpoints)
            assert len(set(found)) == min(epochs, checkpoints)
            assert found[-1] == epochs
            assert found[0] >= 1
            assert max(np.diff(found), default=0) - min(np.diff(found), default=0) <= 1


def test_members_are_states_of_one_training_with_the_recipe_as_it_is() -> None:
    members = SPTD.members(SPTD.Config(checkpoints=4), 5, 40)
    assert [member.epoch for member in members] == [10, 20, 30, None], "the last is tested, or its average"
    assert len({id(member.recipe) for member in members}) == 1, "one training"
    assert members[0].recipe == {"evaluate_at": [10, 20, 30]}
    assert {(member.method, member.seed) for member in members} == {("cross_entropy", 5)}


def test_ties_are_broken_by_softmax_response_and_nothing_else_is() -> None:
    draws = np.random.default_rng(1)
    logits = draws.normal(size=(400, 3)) * draws.choice([1, 5, 300], size=(400, 1))
    s = FORMS["sum"](importance(12, 2.0)[:, None] * draws.integers(2, size=(12, 400)) * draws.integers(2, size=400))
    assert (s == 0).mean() > 0.4
    confidence, response = disagreement(logits, s), softmax_response(logits)
    expected = sorted(range(400), key=lambda i: (-round(144 * s[i]), response[i]))  # equal sums differ by rounding
    gaps = np.diff(confidence[expected])
    assert (gaps > -1e-14).all()
    assert (gaps[s[expected][1:] == 0] > 0).all(), "no two images that never changed tie, however sure the network is"
    some = draws.permutation(400)[:50]
    assert disagreement(logits[some], s[some]).tolist() == confidence[some].tolist(), "no matter what is beside"


def test_values_of_s_lie_further_apart_than_ties_are_broken() -> None:
    build(SPTD.Config, {"checkpoints": 1000}, "here")
    for settings in ({"checkpoints": 101, "power": 3.0}, {"checkpoints": 1000, "power": 2.5}):
        with pytest.raises(UserError, match="checkpoints"):
            build(SPTD.Config, settings, "here")
    with pytest.raises(UserError, match="power"):
        build(SPTD.Config, {"power": 0.5}, "here")


def test_scores() -> None:
    prediction = Prediction(logits_of([0, 1, 2]), None, {"disagreement": np.array([0.0, 0.5, 0.2])})
    scores = SPTD.scores(prediction)
    assert list(scores) == ["disagreement", "SR"], "the published one first"
    assert scores["disagreement"].argsort().tolist() == [1, 2, 0]
