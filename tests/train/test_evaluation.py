"""Finished runs tried on evaluation sets, end to end on a tiny task."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, softmax
from scipy.stats import rankdata

from benchmark.config.load import load_task
from benchmark.data.dataset import load
from benchmark.data.evaluation.parts import Part
from benchmark.jobs.evaluations import OF_EPOCHS
from benchmark.launch.evaluations import GONE, NOT_KEPT
from benchmark.measure.labels import name_at
from benchmark.measure.metrics import aurc
from benchmark.measure.prediction import Evidence
from benchmark.measure.sets.parts import CLEAN
from benchmark.store.record import Record
from benchmark.store.store import PREDICTION, PREDICTION_VAL, Store, folder_of, of_part
from benchmark.train.evaluation.predictors import Predictor
from tests.conftest import NOWHERE, TINY, run_all, run_here
from tests.store.test_damage import contents

LABELS = ["sr", "mc-dropout", "deep-ensemble", "temperature-scaling", "selectivenet", "sele", "sr+swa", "sat"]
SEVERITIES = 5
Whole = tuple[Path, tuple[str, ...]]


def write_sets(folder: Path) -> tuple[str, ...]:
    """Write evaluation sets of the tiny task; return them as the command line names them."""
    task = folder / "tiny.toml"
    task.write_text(TINY)
    test = load(load_task(str(task)).data, NOWHERE)[0].test
    images, labels = np.asarray(test.pictures)[test.rows], np.asarray(test.labels)
    random = np.random.default_rng(0)
    np.savez(folder / "again.npz", images=images, labels=labels)
    np.savez(folder / "unseen.npz", images=random.integers(0, 256, (90, 8, 8), dtype=np.uint8))
    (folder / "noisy").mkdir()
    np.save(folder / "noisy" / "labels.npy", np.tile(labels, SEVERITIES))
    noise = [
        images[:, 0] + random.normal(0, 15 * severity, images[:, 0].shape) for severity in range(1, SEVERITIES + 1)
    ]
    np.save(folder / "noisy" / "noise.npy", np.clip(np.concatenate(noise), 0, 255).astype(np.uint8))
    counts = random.multinomial(20, np.full(10, 0.1), 1397)
    np.savez(folder / "people.npz", counts=counts)
    rows = "\n".join(f"{'even' if row % 2 == 0 else 'odd'}" for row in range(1397))
    (folder / "halves.csv").write_text(f"half\n{rows}\n")
    sets = {"shift": ["again.npz", "noisy"], "new": ["unseen.npz"], "humans": ["people.npz"], "groups": ["halves.csv"]}
    return tuple(f"{kind}={folder / name}" for kind, names in sets.items() for name in names)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The folder of a task whose runs were evaluated as they ended, and what they were evaluated on."""
    folder = tmp_path_factory.mktemp("evaluated")
    sets = write_sets(folder)
    common = ("--datasets", folder / "tiny.toml", "--methods", *LABELS, "--reference", "sr", "--seeds", 1)
    result = run_here(*common, "--evaluate", *sets, "--results", folder / "results", "--keep-weights")
    assert result.returncode == 0, result.stderr
    return folder, sets


def runs_of(results: Path, name: str) -> dict[str, tuple[Path, Record]]:
    """Return folder and record of the run of each column of a table."""
    store = Store(results)
    manifest = next(each for each in store.manifests() if each.task == name)
    found = {}
    for entry in manifest.entries:
        for seed in entry.seeds:
            folder = folder_of(name, entry.method, entry.job, seed)
            record = store.read_record(folder)
            assert record is not None
            found[name_at(entry.label, entry.coverage)] = folder, record
    return found


COLUMNS = {"SR", "SR+SWA", "SAT", "MC-dropout", "Deep ensemble", "Temperature scaling", "SELE", "SelectiveNet@90",
           "SelectiveNet@80"}  # fmt: skip


def test_every_kind_of_method_predicts_the_same_images_as_it_did_before(whole: Whole) -> None:
    """The test images once more are predicted by the same network, to the bit: it is the right one."""
    results = whole[0] / "results"
    own, again = runs_of(results, "tiny"), runs_of(results, "tiny-again")
    assert own.keys() == again.keys() == COLUMNS
    store = Store(results)
    for column, (folder, record) in again.items():
        before = store.read_prediction(own[column][0], PREDICTION)
        now = store.read_prediction(folder, of_part("shifted"))
        assert np.array_equal(before.labels, now.labels), column
        assert before.prediction.logits.tobytes() == now.prediction.logits.tobytes(), column
        assert before.prediction.aux.keys() == now.prediction.aux.keys()
        for name, values in before.prediction.aux.items():
            assert np.array_equal(values, now.prediction.aux[name]), (column, name)
        assert record.evaluation is not None
        for score, measures in own[column][1].measures.scores.items():
            assert record.measures.scores[score].risk == measures.risk
            assert record.evaluation.parts[score][CLEAN].risk == measures.risk
            assert record.evaluation.parts[score][CLEAN].aurc == measures.aurc


def test_costs_by_chows_rule_are_known_without_logits(whole: Whole) -> None:
    """Of groups and people they are those of the test images, which a set without a change has, too."""
    results = whole[0] / "results"
    before = {column: record.measures.classifier.chow_cost for column, (_, record) in runs_of(results, "tiny").items()}
    for name in ("tiny-again", "tiny-humans", "tiny-groups"):
        for column, (_, record) in runs_of(results, name).items():
            assert record.measures.classifier.chow_cost == pytest.approx(before[column]), (name, column)


def top_probability(evidence: Evidence) -> NDArray[np.float64]:
    return softmax(evidence.prediction.logits.astype(float), axis=1).max(axis=1)


def test_parts_are_measured_by_the_thresholds_of_the_clean_validation_images(whole: Whole) -> None:
    results, store = whole[0] / "results", Store(whole[0] / "results")
    folder, record = runs_of(results, "tiny-noisy")["SR"]
    confidence = np.sort(top_probability(store.read_prediction(runs_of(results, "tiny")["SR"][0], PREDICTION_VAL)))
    assert record.evaluation is not None
    parts = record.evaluation.parts["SR"]
    assert [part.severity for part in parts.values() if part.kind == "noise"] == [1, 2, 3, 4, 5]
    for coverage in (100, 90, 80):
        threshold = confidence[len(confidence) - int(np.ceil(coverage / 100 * len(confidence)))]
        assert expit(record.evaluation.thresholds["SR"][f"{coverage}"]) == pytest.approx(threshold)
        for severity in range(1, SEVERITIES + 1):
            noisy = store.read_prediction(folder, of_part(f"noise-{severity}"))
            top, wrong = top_probability(noisy), noisy.prediction.logits.argmax(axis=1) != noisy.labels
            measured = parts[f"noise-{severity}"]
            assert measured.kept[f"{coverage}"].coverage == pytest.approx((top >= threshold - 1e-12).mean())
            assert measured.kept[f"{coverage}"].risk == pytest.approx(wrong[top >= threshold - 1e-12].mean())
            assert measured.aurc == pytest.approx(aurc(top, wrong.astype(float)))


def test_logits_are_not_stored_in_half_precision_as_that_would_change_the_ranking(whole: Whole) -> None:
    results = whole[0] / "results"
    changed = 0
    for folder, _ in runs_of(results, "tiny-noisy").values():
        for severity in range(1, SEVERITIES + 1):
            logits = Store(results).read_prediction(folder, of_part(f"noise-{severity}")).prediction.logits
            assert logits.dtype == np.float32
            exact, half = (
                softmax(each.astype(float), axis=1).max(axis=1) for each in (logits, logits.astype(np.float16))
            )
            changed += not np.array_equal(rankdata(exact), rankdata(half))
    assert changed == SEVERITIES * len(COLUMNS)


def test_what_people_say_is_the_expected_risk_and_its_floor_the_largest_share(whole: Whole) -> None:
    folder, _ = whole
    results, counts = folder / "results", np.load(folder / "people.npz")["counts"]
    run, (_, record) = runs_of(results, "tiny")["SR"], runs_of(results, "tiny-humans")["SR"]
    found = Store(results).read_prediction(run[0], PREDICTION)
    predicted = found.prediction.logits.argmax(axis=1)
    shares = counts[found.ids] / counts[found.ids].sum(axis=1, keepdims=True)
    expected, oracle = record.measures.scores["SR"].expected_risk, record.measures.oracle
    assert expected is not None
    assert expected[-1] == pytest.approx(1 - shares[np.arange(200), predicted].mean())
    assert oracle is not None
    assert oracle.expected_risk is not None
    assert oracle.expected_risk[-1] == pytest.approx(1 - shares.max(axis=1).mean())
    assert oracle.expected_risk[100] == pytest.approx(1 - np.sort(shares.max(axis=1))[100:].mean())


def test_groups_are_those_of_the_rows_of_their_file(whole: Whole) -> None:
    results = whole[0] / "results"
    run, (_, record) = runs_of(results, "tiny")["SR"], runs_of(results, "tiny-groups")["SR"]
    found = Store(results).read_prediction(run[0], PREDICTION)
    wrong = found.prediction.logits.argmax(axis=1) != found.labels
    assert record.evaluation is not None
    is_odd = np.asarray(found.ids) % 2 == 1
    assert record.evaluation.parts["SR"]["half = odd"].error == wrong[is_odd].mean()
    assert record.evaluation.parts["SR"]["half = even"].error == wrong[~is_odd].mean()


def evaluate(results: Path, sets: Sequence[object], *more: object) -> subprocess.CompletedProcess[str]:
    task = results.parent / "tiny.toml"
    return run_here("evaluate", "--datasets", task, "--evaluate", *sets, "--results", results, "--workers", 0, *more)


@pytest.fixture
def trained(whole: Whole, tmp_path: Path) -> Path:
    """A results folder with the same runs, none of them evaluated."""
    shutil.copy(whole[0] / "tiny.toml", tmp_path)
    shutil.copytree(whole[0] / "results", tmp_path / "results")
    for path in (tmp_path / "results").glob("tiny-*"):
        shutil.rmtree(path)
    for path in (tmp_path / "results" / "manifests").glob("tiny-*"):
        path.unlink()
    return tmp_path / "results"


def of_sets(results: Path) -> dict[str, object]:
    """Return what is stored of the evaluation sets, without what tells of the time."""
    return {name: value for name, value in contents(results).items() if name.startswith(("tiny-", "tables/tiny-"))}


def test_evaluated_afterwards_they_are_the_same_to_the_byte(whole: Whole, trained: Path) -> None:
    result = evaluate(trained, whole[1])
    assert result.returncode == 0, result.stderr
    assert of_sets(trained) == of_sets(whole[0] / "results")
    again = evaluate(trained, whole[1])
    assert again.returncode == 0
    assert "48 jobs, 48 done already" in again.stderr, "five sets of nine columns, and a second member on three of them"


def predictions(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.npz")}


def test_a_job_that_is_stopped_goes_on_with_the_part_that_is_missing(
    whole: Whole, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicted, predict = [], Predictor.predict

    def two_and_no_more(self: Predictor, index: int, part: Part) -> Evidence:
        if len(predicted) == 2:
            raise KeyboardInterrupt
        predicted.append(part.name)
        return predict(self, index, part)

    noisy = [each for each in whole[1] if each.endswith("noisy")]
    monkeypatch.setattr(Predictor, "predict", two_and_no_more)
    assert evaluate(trained, noisy, "--methods", "sr").returncode == 130
    monkeypatch.setattr(Predictor, "predict", lambda *args: predicted.append(args[2].name) or predict(*args))
    (folder,) = (path.parent for path in trained.rglob("prediction-noise-2.npz"))
    (folder / "prediction-noise-1.npz").write_bytes(b"damaged")
    result = evaluate(trained, noisy, "--methods", "sr")
    assert result.returncode == 0, result.stderr
    assert predicted == ["noise-1", "noise-2", "noise-1", "noise-3", "noise-4", "noise-5"]
    same = {
        name: value for name, value in of_sets(whole[0] / "results").items() if str(folder.relative_to(trained)) in name
    }
    assert {name: value for name, value in of_sets(trained).items() if name in same} == same


def test_without_weights_one_line_says_how_to_keep_them(whole: Whole, trained: Path) -> None:
    for path in trained.rglob("checkpoint.pt"):
        path.unlink()
    before = contents(trained)
    result = evaluate(trained, whole[1][:1])
    assert result.returncode == 2
    assert "weights were not kept; train it with --keep-weights" in result.stderr.splitlines()[-1]
    assert contents(trained) == before
    by_prediction = evaluate(trained, [each for each in whole[1] if each.startswith(("humans", "groups"))])
    assert by_prediction.returncode == 0, "these need the stored predictions alone"


def test_without_its_predictions_nothing_can_be_said_of_a_run(whole: Whole, trained: Path) -> None:
    for path in trained.rglob("prediction.npz"):
        path.unlink()
    before = contents(trained)
    for each in whole[1]:
        result = evaluate(trained, [each])
        assert result.returncode == 2
        assert GONE in result.stderr.splitlines()[-1]
    assert contents(trained) == before


def test_a_method_that_combines_epochs_has_a_reason(tmp_path: Path) -> None:
    sets = write_sets(tmp_path)
    common = ("--datasets", tmp_path / "tiny.toml", "--methods", "sr", "snapshot-ensemble", "--seeds", 1)
    result = run_here(*common, "--reference", "sr", "--evaluate", sets[0], "--results", tmp_path / "results")
    assert result.returncode == 0, result.stderr
    assert f"tiny-again Snapshot ensemble: {OF_EPOCHS}; its column stays empty" in result.stderr
    assert runs_of(tmp_path / "results", "tiny-again").keys() == {"SR"}
    assert not list((tmp_path / "results").rglob("checkpoint.pt")), "weights that were kept for the evaluation are gone"
    before = contents(tmp_path / "results")
    again = run_here(*common, "--reference", "sr", "--evaluate", sets[0], "--results", tmp_path / "results")
    assert again.returncode == 0, again.stderr
    assert "left out" not in again.stderr, "what is evaluated needs no weights any more"
    assert contents(tmp_path / "results") == before
    words = ("--datasets", tmp_path / "tiny.toml", "--methods", "snapshot-ensemble", "sr", "--reference", "sr")
    neither = run_here("evaluate", *words, "--results", tmp_path / "results", "--evaluate", sets[1])
    assert neither.returncode == 2
    assert all(reason in neither.stderr.splitlines()[-1] for reason in ("none of 2 methods", OF_EPOCHS, NOT_KEPT))


def test_classes_left_out_are_new_classes(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY.replace("val = 0.1", "val = 0.1\nleave_out = [3, 5]"))
    common = ("--datasets", tmp_path / "tiny.toml", "--methods", "sr", "--reference", "sr", "--seeds", 1)
    result = run_here(*common, "--evaluate", "new", "--results", tmp_path / "results")
    assert result.returncode == 0, result.stderr
    folder, record = runs_of(tmp_path / "results", "tiny-new")["SR"]
    assert record.evaluation is not None
    parts = record.evaluation.parts["SR"]
    assert parts["new"].error == 1
    assert 0.5 < parts["new"].auroc_right < 1
    assert parts["clean + new"].num_images == 2 * 200
    whole, _ = load(load_task(str(tmp_path / "tiny.toml"), ["data.leave_out=[]", "data.test_images=0"]).data, NOWHERE)
    new = Store(tmp_path / "results").read_prediction(folder, of_part("new"))
    assert new.num_samples == np.isin(whole.test.labels, [3, 5]).sum()
    assert parts["new"].num_images == 200, "as many as there are test images"
    assert set(new.labels.tolist()) == {8}
    assert new.prediction.logits.shape[1] == 8
    assert set(np.asarray(whole.test.labels).tolist()) == set(range(10))


def test_the_plan_says_what_evaluations_take(whole: Whole, trained: Path) -> None:
    result = evaluate(trained, whole[1], "--dry-run", "--json")
    assert result.returncode == 0, result.stderr
    tasks = {task["task"]: task for task in json.loads(result.stdout)["tasks"]}
    assert {task["epochs"] for task in tasks.values()} == {0}
    assert {job["state"] for task in tasks.values() for job in task["jobs"]} == {"new"}
    for name, task in tasks.items():
        taken = sum(path.stat().st_size for path in (whole[0] / "results" / name).rglob("*") if path.is_file())
        assert 0.4 < taken / task["disk_bytes"] < 1.5, name


def test_a_plan_tells_the_time_of_trainings_without_evaluations_that_nobody_has_timed(whole: Whole) -> None:
    folder, sets = whole
    common = ("--datasets", folder / "tiny.toml", "--methods", "sr", "--results", folder / "results", "--seeds", 2)
    text = run_here(*common, "--evaluate", sets[0], "corruptions", "--dry-run", "--cluster", "2xcpu").stdout
    assert "device-minutes, without tiny-corruptions" in text
    assert "not scheduled: tiny-corruptions: no run was evaluated on it" in text
    assert "tiny-again: no run" not in text


# The last test of the file: the lock that it takes is held until the end of the file.
@pytest.mark.usefixtures("alone")
def test_two_workers_give_the_same_bytes(whole: Whole, trained: Path) -> None:
    common = ("--datasets", trained.parent / "tiny.toml", "--results", trained, "--methods", "sr", "deep-ensemble")
    result = run_all("evaluate", *common, "--evaluate", whole[1][1], "--workers", 2)
    assert result.returncode == 0, result.stderr
    made, before = (predictions(results / "tiny-noisy") for results in (trained, whole[0] / "results"))
    assert len(made) == 3 * 6
    assert made == {name: before[name] for name in made}
