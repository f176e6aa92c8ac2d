"""The last layer of a tested network is kept where it alone makes the logits of the features, and read back whole."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmark.config.load import load_task
from benchmark.interface import Method, Task
from benchmark.jobs.plan import plan
from benchmark.measure.catalogue import NO_CLASSIFIER, Unavailable, confidence_of
from benchmark.measure.prediction import Prediction
from benchmark.store.finished import Finished
from benchmark.store.store import CLASSIFIER
from benchmark.train.context import Context
from benchmark.train.networks import Network
from benchmark.train.outcome.predict import last_layer
from benchmark.train.run_job import run_job
from methods import Registry
from tests.conftest import NOWHERE, data_hash

CPU = torch.device("cpu")


def run_of(tiny: Path, folder: Path, label: str, registry: Registry, **changes: Any) -> Finished:
    """Train what a label needs, with features."""
    task = load_task(str(tiny))
    jobs = plan(task, [label], [0], registry, data_hash(task))[0].jobs
    context = Context(folder, NOWHERE, registry, keep_features=True, keep_weights=True)
    job = replace(jobs[0], **changes)
    for each in (*job.needs, job):
        run_job(each, context, CPU, lambda values: None)
    return Finished(job.folder, context.store)


@pytest.mark.parametrize("label", ["SR", "SAT", "SelectiveNet"])
def test_the_stored_layer_makes_the_stored_logits_of_the_stored_features(
    label: str, tiny: Path, tmp_path: Path, registry: Registry
) -> None:
    run = run_of(tiny, tmp_path, label, registry)
    prediction, layer = run.test.prediction, run.classifier
    assert prediction.features is not None
    assert layer.weight.shape == (prediction.logits.shape[1], prediction.features.shape[1])
    assert prediction.features @ layer.weight.T + layer.bias == pytest.approx(prediction.logits, abs=1e-4)
    record = run.store.read_record(run.folder)
    assert record is not None and CLASSIFIER in (record.checksums or {})
    for name in ("normalised margin", "ViM", "SIRC"):
        assert len(np.unique(confidence_of(name, run))) > 1


def test_what_takes_over_or_combines_or_is_a_trial_has_none(tiny: Path, tmp_path: Path, registry: Registry) -> None:
    tried: list[tuple[str, dict[str, Any]]] = [
        ("MC-dropout", {}),
        ("Temperature scaling", {}),
        ("SR", {"held_out": 0.2}),
    ]
    for number, (label, changes) in enumerate(tried):
        run = run_of(tiny, tmp_path / str(number), label, registry, **changes)
        assert not (run.store.root / run.folder / CLASSIFIER).exists()
        with pytest.raises(Unavailable, match="weights of the last layer"):
            run.classifier  # noqa: B018


def test_a_damaged_or_missing_layer_is_a_reason_and_no_crash(tiny: Path, tmp_path: Path, registry: Registry) -> None:
    run = run_of(tiny, tmp_path, "SR", registry)
    path = run.store.root / run.folder / CLASSIFIER
    with pytest.raises(Unavailable) as told:
        Finished(run.folder, run.store, epoch=2).classifier  # noqa: B018
    assert str(told.value) == NO_CLASSIFIER
    path.write_bytes(path.read_bytes()[:-9] + b"other tex")
    assert list(run.store.damage(run.folder)) == [CLASSIFIER]
    with pytest.raises(Unavailable, match="damaged"):
        Finished(run.folder, run.store).classifier  # noqa: B018
    path.unlink()
    with pytest.raises(Unavailable, match="weights of the last layer"):
        Finished(run.folder, run.store).classifier  # noqa: B018
    assert confidence_of("SIRC", run) is not None, "what needs no weights is there"


class CosineClassifier(nn.Linear):
    """Scaled cosines in the place of products: the rows have no length of their own."""

    def forward(self, features: Tensor) -> Tensor:
        return 10 * nn.functional.normalize(features) @ nn.functional.normalize(self.weight).T


class Plain(Method):
    title, reference, labels = "plain", "nobody 2000", {"plain": {}}


class OtherWeights(Plain):
    """Predicts with an average of weights, as methods with a second network do."""

    def predict(self, images: Tensor) -> Prediction[Tensor]:
        logits, features = self.network(images)
        return Prediction(logits * 1.5, features)


class WithoutFeatures(Plain):
    def predict(self, images: Tensor) -> Prediction[Tensor]:
        return Prediction(self.network(images)[0])


IMAGES = torch.randn(6, 1, 2, 3, generator=torch.Generator().manual_seed(0))


def method_with(head: nn.Linear, kind: type[Method] = Plain) -> Method:
    return kind(Network(nn.Flatten(), head, dropout=0.5), Task(4, 10, 6), None)


def test_only_logits_that_are_products_with_the_features_leave_a_layer() -> None:
    assert last_layer(method_with(nn.Linear(6, 4)), IMAGES) is not None
    assert last_layer(method_with(CosineClassifier(6, 4)), IMAGES) is None
    assert last_layer(method_with(nn.Linear(6, 4), OtherWeights), IMAGES) is None
    assert last_layer(method_with(nn.Linear(6, 4), WithoutFeatures), IMAGES) is None


def test_a_layer_without_bias_has_zeros() -> None:
    head = nn.Linear(6, 4, bias=False)
    layer = last_layer(method_with(head), IMAGES)
    assert layer is not None and layer.bias.tolist() == [0.0] * 4
    assert layer.weight.tolist() == head.weight.tolist()
    assert layer.weight.dtype == layer.bias.dtype == np.float32


def test_further_outputs_are_no_classes() -> None:
    method = method_with(nn.Linear(6, 4))
    network = method.network
    assert isinstance(network, Network)
    network.add_outputs(2, zero=False)

    def predict(images: Tensor) -> Prediction[Tensor]:
        logits, features = network(images)
        return Prediction(logits[:, :4], features)

    method.predict = predict  # type: ignore[method-assign]
    layer = last_layer(method, IMAGES)
    assert layer is not None and layer.weight.shape == (4, 6)
