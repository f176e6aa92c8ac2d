"""`sb.score`: predictions of a program are measured at once, and stored where a folder is named."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import SVC

import benchmark as sb
from tests.imports.runs import SAMPLES, labels, logits, loss_run, softmax


def test_measures_at_once() -> None:
    scored = sb.score(labels=labels(), logits=logits(), method="vit")
    error = logits().argmax(1) != labels()
    confidence = sb.scores.softmax_response(logits())
    assert scored.measures["aurc"] == pytest.approx(sb.metrics.aurc(confidence, error))
    assert scored.measures["accuracy"] == pytest.approx(1 - error.mean())
    assert scored.measures["risk@90"] == pytest.approx(sb.metrics.selective_risk(confidence, error, 0.9))
    assert "vit" in str(scored)
    frame = scored.to_frame()
    assert list(frame.columns) == ["task", "method", "label", "score", "seed", "set", "measure", "value"]
    assert frame.value.dtype == np.float64


def test_lists_tensors_and_columns() -> None:
    import torch

    expected = sb.score(labels=labels(), logits=logits()).measures
    for table in (logits().tolist(), torch.tensor(logits(), requires_grad=True), pd.DataFrame(logits())):
        found = sb.score(labels=pd.Series(labels()), logits=table).measures
        assert found == pytest.approx(expected)
    half = sb.score(labels=torch.tensor(labels()), logits=torch.tensor(logits()).bfloat16())
    assert half.measures["nll"] == pytest.approx(expected["nll"], rel=0.02)


def test_stored_where_a_folder_is_named(tmp_path: Path) -> None:
    for seed in range(2):
        scored = sb.score(labels=labels(), logits=logits(seed), method="vit", seed=seed, results=tmp_path / "r")
    assert scored.results is not None
    frame = scored.results.to_frame()
    assert sorted(set(frame.seed)) == [0, 1]
    assert sb.load_results(tmp_path / "r").tasks == ["predictions"]
    again = sb.score(labels=labels(), logits=logits(1), method="vit", seed=1, results=tmp_path / "r")
    assert again.new == 0
    with pytest.raises(sb.UserError, match="with other content; add --replace"):
        sb.score(labels=labels(), logits=logits(2), method="vit", seed=1, results=tmp_path / "r")
    sb.score(labels=labels(), logits=logits(2), method="vit", seed=1, results=tmp_path / "r", replace=True)


def test_everything_that_a_run_may_bring(tmp_path: Path) -> None:
    part = {"labels": labels(), "logits": logits(1), "features": logits(2)}
    scored = sb.score(
        labels=labels(),
        logits=logits(),
        features=logits(2),
        ids=[f"image {index}" for index in range(SAMPLES)],
        confidence={"mc": np.arange(SAMPLES)},
        groups={"age": ["young", "old"] * (SAMPLES // 2)},
        outputs={"abstain": np.zeros(SAMPLES)},
        val=part,
        train=part,
        sets={"fog": part},
        results=tmp_path / "r",
        coverages=[100, 90],
    )
    assert [(record.task, list(record.measures.scores)) for record in scored.records] == [
        ("predictions", ["SR", "mc", "abstention"]),
        ("predictions-fog", ["SR"]),
        ("predictions-groups", ["SR", "mc", "abstention"]),
    ]
    assert scored.results is not None
    assert scored.results.manifests["predictions"].coverages == (100, 90)


def test_losses() -> None:
    scored = sb.score(**loss_run())
    assert scored.measures["risk@100"] == pytest.approx(loss_run()["loss"].mean())
    assert "accuracy" not in scored.measures


def test_a_frame(tmp_path: Path) -> None:
    p = softmax(logits())
    frame = pd.DataFrame(p, columns=[f"p{index}" for index in range(4)]).assign(y=labels(), model="vit", fold=3)
    columns = {"method": "model", "seed": "fold", "labels": "y", "probabilities": "p*"}
    scored = sb.score(frame, columns=columns)
    assert [(record.label, record.seed) for record in scored.records] == [("vit", 3)]
    assert scored.measures["nll"] == pytest.approx(sb.metrics.nll(np.log(p), labels()))
    bare = sb.score(frame.drop(columns=["model", "fold"]), columns={"labels": "y", "probabilities": "p*"}, method="b")
    assert bare.records[0].label == "b"


def test_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "vit-2.npz", labels=labels(), logits=logits())
    scored = sb.score(tmp_path / "vit-2.npz")
    assert [(record.label, record.seed) for record in scored.records] == [("vit", 2)]
    assert sb.score([tmp_path / "vit-2.npz"]).measures == scored.measures


class TestEstimators:
    X, y = load_digits(return_X_y=True)

    def test_probabilities(self) -> None:
        forest = RandomForestClassifier(20, random_state=0).fit(self.X[::2], self.y[::2])
        scored = sb.score(estimator=forest, X=self.X[1::2], y=self.y[1::2])
        assert scored.measures["accuracy"] == pytest.approx(forest.score(self.X[1::2], self.y[1::2]))
        assert scored.records[0].label == "RandomForestClassifier"

    def test_decision_values(self) -> None:
        ridge = RidgeClassifier().fit(self.X[::2], self.y[::2])
        scored = sb.score(estimator=ridge, X=self.X[1::2], y=self.y[1::2], method="ridge")
        assert scored.measures["accuracy"] == pytest.approx(ridge.score(self.X[1::2], self.y[1::2]))

    def test_two_classes_with_names(self) -> None:
        names = np.where(self.y < 5, "small", "large")
        for model in (RidgeClassifier(), RandomForestClassifier(20, random_state=0)):
            fitted = model.fit(self.X[::2], names[::2])
            scored = sb.score(estimator=fitted, X=self.X[1::2], y=names[1::2])
            assert scored.measures["accuracy"] == pytest.approx(fitted.score(self.X[1::2], names[1::2]))

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"estimator": RidgeClassifier()}, "expected X and y too"),
            ({"estimator": RidgeClassifier(), "X": X, "y": y}, "expected a fitted classifier"),
            ({"estimator": RidgeClassifier().fit(X, y % 2), "X": X, "y": y}, "y: expected classes that the estimator"),
            (
                {"estimator": SimpleNamespace(classes_=np.array([0, 1])), "X": X, "y": y % 2},
                "expected predict_proba or",
            ),
            ({"estimator": SVC(decision_function_shape="ovo").fit(X, y), "X": X, "y": y}, "got 45 decision values"),
            (
                {"estimator": SVC(decision_function_shape="ovo").fit(X, y % 3), "X": X, "y": y % 3},
                "got 3 decision values",
            ),
            ({"estimator": RandomForestClassifier(2).fit(X, np.c_[y, y]), "X": X, "y": y}, "expected one output"),
        ],
    )
    def test_mistakes(self, arguments: dict[str, Any], said: str) -> None:
        with pytest.raises(sb.UserError, match=said):
            sb.score(**arguments)


def test_the_output_of_a_trainer() -> None:
    expected = sb.score(labels=labels(), logits=logits()).measures
    output = SimpleNamespace(predictions=logits(), label_ids=labels(), metrics={"test_loss": 1.0})
    assert sb.score(output).measures == expected
    several = SimpleNamespace(predictions=(logits(), np.zeros((SAMPLES, 9))), label_ids=labels(), metrics=None)
    assert sb.score(several).measures == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"labels": labels(), "logit": logits()}, "unknown field of score: 'logit': did you mean 'logits'?"),
        ({"labels": labels(), "logits": [[1, 2], [1]]}, "logits: expected rows of one length"),
        ({"labels": labels(), "logits": logits(), "seed": "one"}, "seed: expected a whole number"),
        ({"labels": labels(), "logits": logits(), "groups": [1, 2]}, "groups: expected arrays by name"),
        ({"labels": labels(), "logits": np.full((SAMPLES, 4), None)}, "logits: 480 values are NaN or infinite"),
        ({"labels": labels(), "logits": logits(), "task": "a/b", "results": "r"}, "--task 'a/b'"),
        ({"labels": labels(), "logits": logits(), "X": [1]}, "X and y are for an estimator"),
        (
            {"labels": labels(), "logits": logits(), "columns": {"labels": "y"}},
            "columns: expected nothing beside arrays",
        ),
        ({"labels": labels(), "logits": logits(), "given": "logits"}, "given: expected nothing beside arrays"),
        ({"labels": labels(), "logits": logits(), "val": 3}, "val: expected arrays by name"),
        ({"labels": labels(), "logits": logits(), "seed": [1, 2]}, "seed: expected a whole number"),
        (
            {"labels": labels(), "logits": logits(), "ids": np.array([1, "a"] * 60, dtype=object)},
            "ids: expected numbers, or text alone, got 'a'",
        ),
        ({"labels": np.ma.masked_equal(labels(), 3), "logits": logits()}, "labels: 30 values are NaN or infinite"),
        ({"labels": labels(), "logits": logits(), "scores": "pNorm"}, "no score 'pNorm': it needs val.…"),
    ],
)
def test_mistakes_are_one_clear_error(
    arguments: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sb.UserError) as caught:
        sb.score(**arguments)
    assert said in str(caught.value)


def test_what_is_said_beside_files_is_used_or_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a-0.npy", softmax(logits()))
    np.save(tmp_path / "y.npy", labels())
    beside = {"labels": tmp_path / "y.npy", "given": "probabilities", "method": "vit", "seed": 4, "scores": ["margin"]}
    (record,) = sb.score(tmp_path / "a-0.npy", **beside).records
    assert (record.label, record.seed, list(record.measures.scores)) == ("vit", 4, ["margin"])
    with pytest.raises(sb.UserError, match="logits: expected nothing beside files"):
        sb.score(tmp_path / "a-0.npy", logits=logits())
    with pytest.raises(sb.UserError, match="labels: expected nothing beside a frame"):
        sb.score(pd.DataFrame(loss_run()), labels=labels())


def test_scores_that_need_other_parts_can_be_named() -> None:
    part = {"labels": labels(), "logits": logits(1), "features": logits(2)}
    scored = sb.score(
        labels=labels(), logits=logits(), features=logits(3), val=part, train=part, scores=["pNorm", "kNN", "SR"]
    )
    assert list(scored.records[0].measures.scores) == ["pNorm", "kNN", "SR"]


def test_an_object_that_means_nothing() -> None:
    with pytest.raises(sb.UserError, match="expected files, a frame, a mapping or named arrays, got int"):
        sb.score(3)
