"""Evaluation sets that people bring are measured part by part, as those of trained runs are."""

# ruff: noqa: E501 (a case is a line)

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import benchmark as sb
from benchmark.config import evaluation
from benchmark.imports import sets
from benchmark.measure.metrics import selective_risk
from benchmark.measure.prediction import LARGEST_P
from benchmark.measure.sets import parts
from benchmark.measure.sets.formulas import SHIFTED, TOGETHER
from benchmark.measure.sets.parts import CLEAN
from benchmark.store.store import Store
from tests.conftest import TINY, run_here
from tests.imports.runs import (
    CLASSES,
    SAMPLES,
    Arrays,
    imported,
    labels,
    logit_run,
    logits,
    loss_run,
    refused,
    save,
    snapshot,
    softmax,
)

LEFT_OUT = (8, 9)
SEVERITIES = np.arange(1, 6)
COUNTS = np.random.default_rng(1).integers(0, 20, (1397, 10))
WARDS = np.array(["north", "south", "west"])[np.random.default_rng(2).integers(3, size=1397)]


def write_shifted(folder: Path) -> Path:
    """Write digits under noise in the layout of CIFAR-10-C."""
    from sklearn.datasets import load_digits

    pictures, truth = (array[:60] for array in load_digits(return_X_y=True))
    random = np.random.default_rng(0)
    folder.mkdir()
    np.save(folder / "labels.npy", np.tile(truth, 5))
    for kind in ("snow_fall", "fog"):
        noisy = [pictures * 15 + random.normal(size=pictures.shape) * 25 * severity for severity in SEVERITIES]
        np.save(folder / f"{kind}.npy", np.clip(np.concatenate(noisy), 0, 255).astype(np.uint8).reshape(-1, 8, 8, 1))
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A folder with runs that were trained, and evaluated on a set of each kind."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "tiny.toml").write_text(TINY.replace("val = 0.1", f"val = 0.1\nleave_out = {list(LEFT_OUT)}"))
    np.savez(folder / "people.npz", counts=COUNTS)
    with (folder / "wards.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["ward"], *([ward] for ward in WARDS)])
    words = ("--methods", "sr", "--seeds", 2, "--results", folder / "r", "-q", "--set", "epochs=3", "--keep-weights")
    wanted = (f"shift={write_shifted(folder / 'bad-weather')}", "new", f"humans={folder / 'people.npz'}")
    made = run_here("--datasets", folder / "tiny.toml", *words, "--evaluate", *wanted, f"groups={folder / 'wards.csv'}")
    assert made.returncode == 0, made.stderr
    return Store(folder / "r")


def shifted_fields(store: Store, folder: Path) -> Arrays:
    """The predictions of the parts of a trained run, as somebody would bring them."""
    found: dict[str, list[NDArray[Any]]] = {"logits": [], "labels": [], "corruption": [], "severity": []}
    for kind in ("fog", "snow_fall"):
        for severity in SEVERITIES:
            part = store.read_prediction(folder, f"prediction-{kind}-{severity}.npz")
            columns = (part.prediction.logits, part.labels, [kind] * part.num_samples, [severity] * part.num_samples)
            for own, column in zip(found.values(), columns, strict=True):
                own.append(np.asarray(column))
    return {name: np.concatenate(own) for name, own in found.items()}


def brought(store: Store, seed: int) -> Arrays:
    """A trained run with all of its sets."""
    folders = {each.parts[0]: each for each in store.finished() if each.name == f"seed-{seed}"}
    (run,) = [run for run in sb.load_results(store.root).predictions("tiny") if run.seed == seed]
    ids = run.arrays["ids"]
    found = {
        "bad-weather": shifted_fields(store, folders["tiny-bad-weather"]),
        "new": {"logits": store.read_prediction(folders["tiny-new"], "prediction-new.npz").prediction.logits},
        "humans": {"counts": np.delete(COUNTS[ids], LEFT_OUT, axis=1)},
    }
    flat = {f"set.{name}.{field}": array for name, fields in found.items() for field, array in fields.items()}
    return {**run.arrays, "group.ward": WARDS[ids], **flat}


@pytest.fixture(scope="module")
def again(trained: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The same runs, brought in."""
    folder = tmp_path_factory.mktemp("imported")
    paths = save(folder, mine_0=brought(trained, 0), mine_1=brought(trained, 1))
    imported(folder / "r", *paths, "--task", "tiny", "--coverages", 100, 90, 80)
    return Store(folder / "r")


SETS = ("bad-weather", "new", "humans", "groups")


@pytest.mark.parametrize("name", SETS)
def test_an_imported_run_is_measured_as_the_trained_one(name: str, trained: Store, again: Store) -> None:
    """The same predictions, part by part and all together, for each seed."""
    runs = {record.seed: record for record in trained.records(f"tiny-{name}")}
    found = {record.seed: record for record in again.records(f"tiny-{name}")}
    assert found.keys() == runs.keys() == {0, 1}
    for seed, record in found.items():
        assert record.evaluation is not None
        assert record.evaluation == runs[seed].evaluation
        assert record.measures.scores == runs[seed].measures.scores
        assert record.measures.oracle == runs[seed].measures.oracle
        assert record.measures.classifier.accuracy == pytest.approx(runs[seed].measures.classifier.accuracy)
    (manifest,) = [each for each in again.manifests() if each.task == f"tiny-{name}"]
    assert manifest.set_of == "tiny"


@pytest.mark.parametrize(("name", "table"), [*((name, "risk") for name in SETS), ("humans", "expected_risk")])
def test_the_tables_of_both_are_the_same(name: str, table: str, trained: Store, again: Store) -> None:
    ours, theirs = (sb.load_results(store.root).table(f"tiny-{name}", table).to_frame() for store in (again, trained))
    assert list(ours["row"]) == list(theirs["row"])
    assert list(ours["mean"]) == list(theirs["mean"])


def test_what_is_measured_can_be_made_again_from_what_is_stored(again: Store) -> None:
    """Of every set, the pool has its confidences; and the largest probabilities, where it has no logits."""
    for folder in again.finished():
        record = again.read_record(folder)
        assert record is not None
        if record.evaluation is not None:
            evidence = again.read_prediction(folder)
            further = [] if evidence.has_logits else [LARGEST_P]
            expected = [*(f"confidence.{score}" for score in record.evaluation.parts), *further]
            assert expected == list(evidence.prediction.aux)
            assert record.measures.classifier.chow_cost is not None


def test_brought_in_twice_nothing_changes(trained: Store, tmp_path: Path) -> None:
    paths = save(tmp_path, mine_0=brought(trained, 0))
    imported(tmp_path / "r", *paths)
    before = snapshot(tmp_path / "r")
    assert "0 runs imported, 5 runs are there already" in imported(tmp_path / "r", *paths)
    assert snapshot(tmp_path / "r") == before


def test_beside_the_trained_runs(trained: Store, tmp_path: Path) -> None:
    """In one table by part: the rows of both are the same images."""
    import shutil

    shutil.copytree(trained.root, tmp_path / "r")
    arrays = {
        name: array for name, array in brought(trained, 0).items() if "humans" not in name and "group" not in name
    }
    said = imported(tmp_path / "r", *save(tmp_path, mine_0=arrays), "--task", "tiny")
    assert "3 runs imported" in said
    store = Store(tmp_path / "r")
    for task in ("tiny-bad-weather", "tiny-new"):
        mine, theirs = (
            next(r for r in store.records(task) if (r.label, r.seed) == (label, 0)) for label in ("mine", "SR")
        )
        assert mine.evaluation == theirs.evaluation
    turned = {**arrays, "set.bad-weather.corruption": arrays["set.bad-weather.corruption"][::-1]}
    said = refused(*save(tmp_path, other_0=turned), "--task", "tiny", "--results", tmp_path / "r")
    assert "expected the same parts in the same rows, got snow_fall-1 and fog-1 in row 0" in said


def part_run(**more: Any) -> Arrays:
    """A run with a set of two corruptions and two severities."""
    fields: Arrays = {
        "logits": logits(3, 1.0),
        "labels": labels(),
        "corruption": np.tile(["fog", "shot noise"], SAMPLES // 2),
        "severity": np.repeat([1.0, 2.0], SAMPLES // 2),
    }
    return logit_run(**{f"set.weather.{field}": array for field, array in fields.items()}, **more)


VAL: Arrays = {"val.logits": logits(9), "val.labels": labels()}


def evaluation_of(results: Path, name: str) -> Any:
    (record,) = Store(results).records(f"predictions-{name}")
    return record.evaluation


def test_parts_are_called_as_those_that_the_suite_makes(tmp_path: Path) -> None:
    imported(tmp_path / "r", *save(tmp_path, a_0=part_run()))
    found = evaluation_of(tmp_path / "r", "weather")
    assert found.kind == "shift"
    assert found.stored == ("fog-1", "shot-noise-1", "fog-2", "shot-noise-2")
    names = {CLEAN, "severity 1", "severity 2", *found.stored, SHIFTED, TOGETHER}
    assert set(found.parts["SR"]) == names
    part = found.parts["SR"]["shot-noise-2"]
    assert (part.kind, part.severity, part.num_images) == ("shot noise", 2, SAMPLES // 4)
    rows = np.arange(SAMPLES // 2 + 1, SAMPLES, 2)
    wrong = logits(3, 1.0)[rows].argmax(1) != labels()[rows]
    assert part.error == pytest.approx(wrong.mean())


def test_a_table_of_lines_has_columns_for_the_parts(tmp_path: Path) -> None:
    """And one of test samples may have columns of the same names, which mean nothing there."""
    import pandas as pd

    frame = pd.DataFrame(logits(), columns=[f"logits_{index}" for index in range(CLASSES)]).assign(label=labels())
    foggy = frame.assign(part="corruptions", corruption="fog", severity=np.arange(SAMPLES) % 2 + 3)
    new = frame.drop(columns="label").assign(part="svhn", kind="new", share=0.25)
    clean = frame.assign(part="test", severity=0, kind="what I call it")
    pd.concat([clean, foggy, new]).to_csv(tmp_path / "a-0.csv", index=False)
    imported(tmp_path / "r", tmp_path / "a-0.csv")
    found = evaluation_of(tmp_path / "r", "corruptions")
    assert (found.kind, found.stored) == ("corruptions", ("fog-3", "fog-4"))
    new_part = evaluation_of(tmp_path / "r", "svhn")
    assert new_part.kind == "new"
    assert new_part.parts["SR"]["new"].num_images == SAMPLES / 3


def test_a_list_says_kind_and_share(tmp_path: Path) -> None:
    for name, array in {"y": labels(), "u": logits(), "new": logits(1)}.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "runs.toml").write_text(
        'labels = "y.npy"\n[[run]]\nmethod = "a"\nlogits = "u.npy"\n'
        'set.svhn.logits = "new.npy"\nset.svhn.kind = "new"\nset.svhn.share = 0.25\n'
    )
    imported(tmp_path / "r", tmp_path / "runs.toml")
    assert evaluation_of(tmp_path / "r", "svhn").parts["SR"]["new"].num_images == SAMPLES / 3


def test_thresholds_are_set_on_validation_samples_alone(tmp_path: Path) -> None:
    imported(tmp_path / "r", *save(tmp_path, a_0=part_run(**VAL)))
    found = evaluation_of(tmp_path / "r", "weather")
    confidence = sb.scores.softmax_response(logits(9))
    assert found.thresholds["SR"]["80"] == np.sort(confidence)[SAMPLES - 96]
    assert found.no_thresholds == ""
    at, own = found.parts["SR"][CLEAN].kept["80"], sb.scores.softmax_response(logits())
    assert at.coverage == (own >= found.thresholds["SR"]["80"]).mean()
    wrong = logits().argmax(1) != labels()
    assert at.risk == pytest.approx(float(selective_risk(own, wrong, at.coverage)))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({}, "the run brings no validation samples"),
        ({"val.probabilities": softmax(logits(9)), "val.labels": labels()}, "the run brings probabilities for its validation samples and logits"),
        ({**VAL, "confidence.mc": np.arange(SAMPLES), "set.weather.confidence.mc": np.arange(SAMPLES)}, "the validation samples bring no confidence mc"),
    ],
)  # fmt: skip
def test_why_there_is_no_threshold(more: Arrays, reason: str, tmp_path: Path) -> None:
    imported(tmp_path / "r", *save(tmp_path, a_0=part_run(**more)))
    found = evaluation_of(tmp_path / "r", "weather")
    assert reason in found.no_thresholds
    assert not found.parts["mc" if "confidence.mc" in more else "SR"]["fog-1"].kept


def test_predicted_classes_and_losses_have_sets_too(tmp_path: Path) -> None:
    confidence = softmax(logits()).max(1)
    test = {"predicted": logits().argmax(1), "confidence": confidence}
    run = {"labels": labels(), **test} | {f"set.new.{field}": array for field, array in test.items()}
    imported(tmp_path / "r", *save(tmp_path, a_0=run))
    assert evaluation_of(tmp_path / "r", "new").parts["confidence"]["new"].error == 1
    loss = loss_run(**{f"set.rain.{field}": array for field, array in loss_run(1).items()})
    loss["group.ward"] = np.arange(SAMPLES) % 3
    imported(tmp_path / "q", *save(tmp_path, b_0=loss))
    rainy = evaluation_of(tmp_path / "q", "rain").parts["confidence"]
    assert rainy[SHIFTED].error == pytest.approx(loss_run(1)["loss"].mean())
    assert "balanced" not in evaluation_of(tmp_path / "q", "groups").parts["confidence"]


def test_a_set_may_bring_fewer_confidences_or_more(tmp_path: Path) -> None:
    """Its own table has all of its own; by part, those that the clean samples have as well."""
    run = part_run(**{"confidence.mc": np.arange(SAMPLES), "set.weather.confidence.tta": np.arange(SAMPLES)})
    imported(tmp_path / "r", *save(tmp_path, a_0=run))
    (record,) = Store(tmp_path / "r").records("predictions-weather")
    assert list(record.measures.scores) == ["SR", "tta"]
    assert list(record.evaluation.parts) == ["SR"]


def test_samples_in_another_order_have_their_parts_with_them(tmp_path: Path) -> None:
    ids = {"set.weather.ids": np.arange(SAMPLES)}
    order = np.random.default_rng(0).permutation(SAMPLES)
    turned = {
        name: array[order] if name.startswith("set.weather.") else array for name, array in part_run(**ids).items()
    }
    imported(tmp_path / "r", *save(tmp_path, a_0=part_run(**ids), b_0=turned))
    first, second = (record.evaluation for record in Store(tmp_path / "r").records("predictions-weather"))
    assert first == second


def test_people_and_groups_go_with_the_test_samples_in_whatever_order(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    run = logit_run(ids=np.arange(SAMPLES), **{"group.ward": random.integers(3, size=SAMPLES)})
    run["set.humans.counts"] = random.integers(1, 9, (SAMPLES, CLASSES))
    run |= {"set.new.logits": logits(4)[:50]}
    order = random.permutation(SAMPLES)
    turned = {name: array if "new" in name else array[order] for name, array in run.items()}
    imported(tmp_path / "r", *save(tmp_path, a_0=run, b_0=turned))
    for name in ("humans", "groups", "new"):
        first, second = Store(tmp_path / "r").records(f"predictions-{name}")
        assert first.evaluation == second.evaluation
        assert first.measures == second.measures


def test_an_imported_set_can_be_handed_on(tmp_path: Path) -> None:
    imported(tmp_path / "r", *save(tmp_path, a_0=part_run()))
    (run,) = sb.load_results(tmp_path / "r").predictions("predictions-weather")
    fresh = sb.score(run.arrays, method="a")
    (before,) = Store(tmp_path / "r").records("predictions-weather")
    assert fresh.records[0].measures.scores == before.measures.scores


def test_groups_of_too_many_values_are_stored_and_have_no_table(tmp_path: Path) -> None:
    groups = {"group.patient": np.arange(SAMPLES), "group.ward": np.arange(SAMPLES) % 2 == 0}
    said = imported(tmp_path / "r", *save(tmp_path, a_0=logit_run(**groups)))
    assert "warning: a-0.npz: group.patient is stored, and has no table: 120 values, and tables have groups" in said
    names = set(evaluation_of(tmp_path / "r", "groups").parts["SR"])
    assert names == {CLEAN, "ward = no", "ward = yes", "balanced"}


def test_arrays_of_a_program(tmp_path: Path) -> None:
    scored = sb.score(
        labels=labels(),
        logits=logits(),
        val={"labels": labels(), "logits": logits(9)},
        sets={
            "weather": {"labels": labels(), "logits": logits(3), "severity": [1, 5] * (SAMPLES // 2)},
            "svhn": {"kind": "new", "logits": logits(4), "share": 0.1},
            "humans": {"counts": np.ones((SAMPLES, CLASSES))},
            "sites": {"kind": "groups", "groups": {"site": ["a", "b"] * (SAMPLES // 2)}},
        },
    )
    found = {record.task: record.evaluation for record in scored.records}
    assert {name: each.kind for name, each in found.items() if each is not None} == {
        "predictions-weather": "shift",
        "predictions-svhn": "new",
        "predictions-humans": "humans",
        "predictions-sites": "groups",
    }
    weather = found["predictions-weather"]
    assert weather is not None
    assert set(weather.parts["SR"]) == {CLEAN, "severity 1", "severity 5", SHIFTED, TOGETHER}
    assert weather.parts["SR"]["severity 5"].risk is not None
    assert "predictions-svhn" in str(scored)


NEW = {"set.svhn.logits": logits(1), "set.svhn.kind": np.array("new")}
WIDE = np.c_[logits(), logits()]
MISTAKES: dict[str, tuple[Arrays, str]] = {
    "unknown kind": (part_run(**{"set.weather.kind": np.array("shfit")}), "unknown kind of vit-0.npz, set weather: 'shfit': did you mean 'shift'?"),
    "several kinds": (part_run(**{"set.weather.kind": np.array(["new", "shift"] * 60)}), "vit-0.npz, set weather: kind: expected one value for the whole set, got 2 values"),
    "a set named twice": (part_run(**{"set.Weather.logits": logits(), "set.Weather.labels": labels()}), "vit-0.npz: a set named twice: 'weather' and 'Weather'"),
    "a class out of range": (part_run(**{"set.fog.logits": logits(), "set.fog.labels": labels() + 1}), "vit-0.npz, set fog: labels: expected classes from 0 to 3, got 4 in row 3"),
    "other classes": (part_run(**{"set.fog.logits": WIDE, "set.fog.labels": labels()}), "vit-0.npz, set fog: expected 4 classes, as the test samples have, got 8"),
    "new of other classes": (logit_run(**NEW) | {"set.svhn.logits": WIDE}, "vit-0.npz, set svhn: expected 4 classes, as the test samples have, got 8"),
    "another form": (part_run(**{"set.fog.probabilities": softmax(logits()), "set.fog.labels": labels()}), "set fog: expected logits, as the test samples have, with which they are compared, got probabilities"),
    "new with labels": (logit_run(**NEW, **{"set.svhn.labels": labels()}), "vit-0.npz, set svhn: labels: images of new classes have no class that is known; leave it out, or add the `kind` shift"),
    "new of losses": (loss_run(**{"set.new.loss": loss_run()["loss"], "set.new.confidence": labels()}), "the test samples have a loss and no classes, and so none is new"),
    "a share of more than all": (logit_run(**NEW, **{"set.svhn.share": np.array(50)}), "set svhn: share: expected a number between 0 and 1, got 50"),
    "a share of text": (logit_run(**NEW, **{"set.svhn.share": np.array("half")}), "set svhn: share: expected a number between 0 and 1, got 'half'"),
    "a share of shifted images": (part_run(**{"set.weather.share": np.array(0.5)}), "set weather: share: sets of kind new have it, and this one is of kind shift"),
    "severity 0": (part_run() | {"set.weather.severity": np.arange(SAMPLES) % 6}, "vit-0.npz, set weather: severity: expected whole numbers from 1 to 5, got 0 in row 0 (20 such rows)"),
    "severity 6": (part_run() | {"set.weather.severity": np.full(SAMPLES, 6)}, "severity: expected whole numbers from 1 to 5, got 6 in row 0"),
    "severity 2.5": (part_run() | {"set.weather.severity": np.full(SAMPLES, 2.5)}, "severity: expected whole numbers from 1 to 5, got 2.5 in row 0"),
    "severity of text": (part_run() | {"set.weather.severity": np.full(SAMPLES, "high")}, "severity: expected numbers, got 'high' in row 0"),
    "too few severities": (part_run() | {"set.weather.severity": np.ones(7)}, "logits and severity: expected as many samples in both, got 120 and 7"),
    "a number as corruption": (part_run() | {"set.weather.corruption": np.arange(SAMPLES)}, "corruption: expected text, such as fog, got 0"),
    "a corruption without name": (part_run() | {"set.weather.corruption": np.full(SAMPLES, " ")}, "corruption: expected the name of a corruption, such as fog, got ' '"),
    "a severity of test samples": (logit_run(severity=np.ones(SAMPLES)), "vit-0.npz: 'severity': only evaluation sets have it; call it set.NAME.severity"),
    "too few counts": (logit_run(**{"set.humans.counts": np.ones((7, CLASSES))}), "vit-0.npz, set humans: labels and counts: expected as many samples in both, got 120 and 7"),
    "counts of other classes": (logit_run(**{"set.humans.counts": np.ones((SAMPLES, 9))}), "vit-0.npz, set humans: counts: expected 4 columns, one for each class, got 9 columns"),
    "counts of one dimension": (logit_run(**{"set.humans.counts": np.ones(SAMPLES)}), "counts: expected two dimensions, samples × columns, got the shape (120,)"),
    "counts below 0": (logit_run(**{"set.humans.counts": np.eye(CLASSES)[labels()] * 3 - 1}), "counts: expected numbers from 0 on, got -1 in row 0 (120 such rows)"),
    "nobody": (logit_run(**{"set.humans.counts": np.zeros((SAMPLES, CLASSES))}), "counts: expected rows with a sum above 0, got 0 in row 0"),
    "shares that are none": (logit_run(**{"set.humans.posterior": np.ones((SAMPLES, CLASSES))}), "vit-0.npz, set humans: posterior: 120 rows do not sum to 1"),
    "people with predictions": (logit_run(**{"set.humans.counts": np.ones((SAMPLES, CLASSES)), "set.humans.logits": logits()}), "expected `counts` or `posterior` alone, a row for each test sample, got counts, logits"),
    "too few groups": (logit_run(**{"set.groups.group.age": labels()[:5]}), "vit-0.npz, set groups: labels and group.age: expected as many samples in both, got 120 and 5"),
    "groups that are numbers": (logit_run(**{"set.groups.group.age": np.arange(SAMPLES) / 7}), "set groups: group.age: expected text or whole numbers, got float64"),
    "too many groups": (logit_run(**{"set.groups.group.age": np.arange(SAMPLES)}), "set groups: group.age: 120 values, and tables have groups of at most 100"),
    "a group without name": (logit_run(**{"set.groups.group.age": np.full(SAMPLES, "")}), "group.age: the value ''; write a word for it, such as 'unknown'"),
    "groups without columns": (logit_run(**{"set.sites.kind": np.array("groups")}), "set sites: expected `group.NAME` alone, a value for each test sample, got nothing"),
    "new predictions beyond the classes": ({"labels": labels(), "predicted": labels(), "confidence": labels(), "set.new.predicted": labels() + 1, "set.new.confidence": labels()}, "predicted: expected classes from 0 to 3, as the test samples have, got 4"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_set_that_cannot_be_right(case: str, tmp_path: Path) -> None:
    """One line, and nothing is written; a program gets the same."""
    arrays, said = MISTAKES[case]
    (path,) = save(tmp_path, vit_0=arrays)
    assert said in refused(path, "--results", tmp_path / "r")
    assert not (tmp_path / "r").exists() or not snapshot(tmp_path / "r")
    with pytest.raises(sb.UserError) as caught:
        sb.score(dict(arrays), method="vit")
    assert said.replace("vit-0.npz", "Python") in str(caught.value).replace("score: '", "Python: '")


def test_two_kinds_under_one_name(tmp_path: Path) -> None:
    new = {name.replace("svhn", "weather"): array for name, array in NEW.items()}
    said = refused(*save(tmp_path, a_0=part_run(), b_0=logit_run(**new)), "--results", tmp_path / "r")
    assert "b-0.npz, set weather and a-0.npz, set weather: expected sets of one kind, got new and shift" in said


def test_kinds_are_those_of_the_command_line() -> None:
    assert set(parts.KINDS) == set(evaluation.KINDS)
    assert parts.SHARE == evaluation.SHARE
    assert evaluation.SEVERITIES[-1] == sets.MOST_SEVERITIES
