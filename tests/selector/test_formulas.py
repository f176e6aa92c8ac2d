"""Scores on tensors against the same scores in numpy, on ordinary and on extreme numbers, also in onnxruntime."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmark.measure.catalogue import EXPONENTS, OWN, POST_HOC, confidence_of
from benchmark.measure.prediction import Classifier, Evidence, Prediction, Stored
from benchmark.measure.scores import Confidence
from benchmark.selector import formulas
from benchmark.selector.graph import quiet
from benchmark.selector.scores import FORMULAS, REFUSED, Reading, Score
from methods._ensembles import log_mean_probability

CLASSES, WIDTH = 7, 12
AUX = ("abstain", "reject", "variance", "uncertainty", "mutual information", "disagreement")
EXTREMES = {
    "ordinary": 1.0,
    "saturated": 300.0,
    "flat": 1e-9,
    "huge": 1e30,
}
"""How large logits and further outputs are."""


@dataclass(frozen=True)
class Run:
    """A finished run of random numbers."""

    test: Evidence
    validation: Evidence
    train: Evidence
    classifier: Classifier


def run_of(scale: float, seed: int = 0) -> Run:
    random = np.random.default_rng(seed)
    weight, bias = random.normal(size=(CLASSES, WIDTH)), random.normal(size=CLASSES)

    def evidence(count: int, size: float) -> Evidence:
        labels = random.integers(CLASSES, size=count)
        features = random.normal(size=(count, WIDTH)) + weight[labels]
        logits = (features @ weight.T + bias) * size
        aux = {name: (random.normal(size=count) * size).astype(np.float32) for name in AUX}
        prediction: Stored = Prediction(logits.astype(np.float32), features.astype(np.float32), aux)
        return Evidence(prediction, labels)

    classifier = Classifier(weight.astype(np.float32), bias.astype(np.float32))
    return Run(evidence(60, scale), evidence(80, 1.0), evidence(150, 1.0), classifier)


def reading_of(prediction: Stored) -> Reading:
    aux = {name: torch.from_numpy(values).double() for name, values in prediction.aux.items()}
    assert prediction.features is not None
    return Reading(torch.from_numpy(prediction.logits).double(), torch.from_numpy(prediction.features).double(), aux)


def expected(name: str, run: Run) -> Confidence:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return confidence_of(name, run)


def test_every_score_is_exported_or_refused_with_a_reason() -> None:
    assert set(FORMULAS) | set(REFUSED) == set(POST_HOC) | set(OWN)
    assert not set(FORMULAS) & set(REFUSED)


@pytest.mark.parametrize("size", EXTREMES)
@pytest.mark.parametrize("name", FORMULAS)
def test_a_score_on_tensors_is_that_of_numpy(name: str, size: str) -> None:
    run = run_of(EXTREMES[size])
    found = Score.fitted(name, run)(reading_of(run.test.prediction)).numpy()
    assert found == pytest.approx(expected(name, run), rel=1e-9, abs=1e-12, nan_ok=True)
    assert len(np.unique(found)) > 1 or size == "huge"


class AllScores(nn.Module):
    """All scores as one module of tensors, which torch.onnx writes as one graph."""

    def __init__(self, scores: list[Score]) -> None:
        super().__init__()
        self.scores = nn.ModuleList(scores)

    def forward(self, logits: Tensor, features: Tensor, *aux: Tensor) -> list[Tensor]:
        reading = Reading(logits, features, dict(zip(AUX, aux, strict=True)))
        return [score(reading) for score in self.scores]


def test_onnxruntime_computes_scores_in_double_precision() -> None:
    """Extreme numbers are where forms that cancel or overflow would show. Nothing is computed in float32."""
    onnxruntime = pytest.importorskip("onnxruntime")
    runs = {size: run_of(scale) for size, scale in EXTREMES.items()}
    scores = {name: Score.fitted(name, runs["ordinary"]) for name in FORMULAS}
    scores |= {f"pNorm {p}": Score("pNorm", {}, {"p": p}) for p in (None, *EXPONENTS)}
    module = AllScores(list(scores.values()))
    inputs = {size: tensors(reading_of(run.test.prediction)) for size, run in runs.items()}
    with quiet():
        program: Any = torch.onnx.export(module, inputs["ordinary"], dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    for size, values in inputs.items():
        found = session.run(None, {name: value.numpy() for name, value in zip(names, values, strict=True)})
        for name, ours, theirs in zip(scores, found, module(*values), strict=True):
            assert ours.dtype == np.float64
            assert ours == pytest.approx(theirs.numpy(), rel=1e-9, abs=1e-12, nan_ok=True), (name, size)


def tensors(reading: Reading) -> tuple[Tensor, ...]:
    return reading.logits, reading.part("features"), *reading.aux.values()


def test_small_logarithms_are_exact() -> None:
    x = np.array([1e-300, 1e-20, 1e-16, 1e-8, 0.5, -0.5, -1e-17, 0.0])
    assert formulas.log_one_plus(torch.from_numpy(x)).numpy() == pytest.approx(np.log1p(x), rel=1e-14)
    x = np.array([-800.0, -40.0, -1.0, 0.0, 1.0, 40.0, 800.0])
    assert formulas.softplus(torch.from_numpy(x)).numpy() == pytest.approx(np.logaddexp(0, x), rel=1e-14)


def test_the_log_odds_of_softmax_response_do_not_tie_where_the_probability_rounds_to_one() -> None:
    logits = torch.tensor([[50.0, 0.0, 0.0], [60.0, 0.0, 0.0], [600.0, 0.0, -1.0]], dtype=torch.float64)
    found = formulas.softmax_response(logits)
    assert found.tolist() == pytest.approx([50 - np.log(2), 60 - np.log(2), 600 - np.log(1 + np.exp(-1))])


def test_the_mean_probability_of_members_is_that_of_the_ensemble() -> None:
    members: NDArray[np.float64] = np.random.default_rng(0).normal(size=(3, 20, CLASSES)) * 40
    found = formulas.log_mean_probability(torch.from_numpy(members)).numpy()
    assert found == pytest.approx(log_mean_probability(list(members)), rel=1e-13)
