"""Jobs that need others: ensembles, taken-over weights, one training per coverage; on a tiny task, end to end."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax

from benchmark.base.errors import UserError
from benchmark.config.load import load_task
from benchmark.data.devices import DEFAULTS
from benchmark.data.sources import describe
from benchmark.jobs.plan import plan
from benchmark.jobs.suite import Entry, Suite
from benchmark.measure.evaluate import measure
from benchmark.measure.labels import name_at
from benchmark.store.manifest import Manifest, TableSettings
from benchmark.store.prediction_file import at_epoch
from benchmark.store.store import Store, folder_of
from benchmark.train.context import Context
from benchmark.train.run_job import run_job
from methods import Registry
from tests.conftest import NOWHERE, PLENTY, TINY, data_hash, run_all, run_here, tables_of
from tests.launch.test_grid import files, predictions_and_tables

pytestmark = pytest.mark.usefixtures("alone")

CPU = torch.device("cpu")
LABELS = ["sr", "mc-dropout", "deep-ensemble", "snapshot-ensemble", "temperature-scaling", "selectivenet"]
TRAININGS = 2 * (1 + 1 + 1 + 2)
"""Per seed: SR, a second member, the cyclic run, two coverages."""
DERIVED = 2 * 4


def entries_of(tiny: Path, registry: Registry, *labels: str, overrides: tuple[str, ...] = ()) -> dict[str, Entry]:
    task = load_task(str(tiny), overrides, DEFAULTS["cpu"])
    return {
        name_at(entry.label, entry.coverage): entry for entry in plan(task, labels, [0, 1], registry, data_hash(task))
    }


def test_members_are_the_grids_own_runs_and_further_seeds(tiny: Path, registry: Registry) -> None:
    entries = entries_of(tiny, registry, "SR", "Deep ensemble")
    sr, ensemble = entries["SR"].jobs, entries["Deep ensemble"].jobs
    assert [job.needs[0].folder for job in ensemble] == [job.folder for job in sr]
    further = [need.seed for job in ensemble for need in job.needs[1:]]
    assert len(set(further)) == 2
    assert not set(further) & {0, 1}
    suite = Suite(
        sr[0].task, tuple(entries.values()), (100.0,), "SR", TableSettings(), "hash", describe(sr[0].task.data)
    )
    folders = [job.folder for job in suite.jobs()]
    assert len(folders) == len(set(folders)) == 2 + 2 + 2
    for job in suite.jobs():
        assert all(folders.index(need.folder) < folders.index(job.folder) for need in job.needs)


def test_a_recipe_override_makes_another_job_and_leaves_the_grids_alone(tiny: Path, registry: Registry) -> None:
    entries = entries_of(tiny, registry, "SR", "Snapshot ensemble")
    job = entries["Snapshot ensemble"].jobs[0]
    assert {need.id for need in job.needs} != {entries["SR"].jobs[0].id}
    assert len({need.id for need in job.needs}) == 1
    need = job.needs[0]
    assert (need.task.schedule.name, need.task.schedule.cycles) == ("cyclic", 2)
    assert need.task.evaluate_at == (2, 4)
    assert job.task.schedule.name == "constant"
    faster = entries_of(tiny, registry, "Snapshot ensemble", overrides=("method.snapshot_ensemble.lr=0.3",))
    assert faster["Snapshot ensemble"].jobs[0].needs[0].task.optimizer.lr == 0.3
    assert faster["Snapshot ensemble"].jobs[0].id != job.id


def test_one_job_for_each_coverage(tiny: Path, registry: Registry) -> None:
    entries = entries_of(tiny, registry, "SelectiveNet")
    assert list(entries) == ["SelectiveNet@90", "SelectiveNet@80"]
    assert [entry.jobs[0].config["coverage"] for entry in entries.values()] == [0.9, 0.8]


def test_what_needs_validation_images_has_a_reason_without_them(tiny: Path, registry: Registry) -> None:
    entries = entries_of(tiny, registry, "SR", "AdaFocal", "Temperature scaling", overrides=("data.val=0",))
    assert entries["SR"].jobs
    for name in ("AdaFocal", "Temperature scaling"):
        assert not entries[name].jobs
        assert "validation" in entries[name].reason


def test_a_recipe_that_cannot_be_is_refused_in_one_line(tiny: Path, registry: Registry) -> None:
    from benchmark.jobs.members import changed_recipe

    task = load_task(str(tiny))
    with pytest.raises(UserError, match="recipe of X"):
        changed_recipe(task, {"evaluate_at": [99]}, "X")
    with pytest.raises(UserError, match="nonsense"):
        changed_recipe(task, {"nonsense": 1}, "X")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("derived")
    task = folder / "tiny.toml"
    task.write_text(TINY)
    common = ("--datasets", task, "--methods", *LABELS, "--results", folder / "results")
    result = run_all(*common, "--workers", 1, "--keep-features", "--reference", "sr")
    assert result.returncode == 0, result.stderr
    assert f"{TRAININGS + DERIVED} jobs, 0 done already" in result.stderr
    return task, folder / "results"


def manifest_of(results: Path) -> Manifest:
    return Store(results).manifests()[0]


def folders(results: Path, label: str) -> list[Path]:
    entry = next(entry for entry in manifest_of(results).entries if entry.label == label)
    return [folder_of("tiny", entry.method, entry.job, seed) for seed in entry.seeds]


def test_two_workers_respect_the_needs_and_give_the_same_bits(whole: tuple[Path, Path], tmp_path: Path) -> None:
    task, results = whole
    result = run_all("--datasets", task, "--methods", *LABELS, "--results", tmp_path, "--workers", 2,
                     "--keep-features", "--reference", "sr")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert predictions_and_tables(tmp_path) == predictions_and_tables(results)
    assert not files(tmp_path, "checkpoint.pt"), "weights that others started from are gone"


def test_extra_members_enter_no_column(whole: tuple[Path, Path]) -> None:
    _, results = whole
    sr = next(entry for entry in manifest_of(results).entries if entry.label == "SR")
    assert sr.seeds == (0, 1)
    trained = sorted(path.parent.name for path in (results / "tiny" / "cross_entropy" / sr.job).rglob("record.json"))
    assert len(trained) == 4


def test_deep_ensemble_is_the_mean_probability_of_its_members(whole: tuple[Path, Path]) -> None:
    _, results = whole
    store = Store(results)
    folder = folders(results, "Deep ensemble")[1]
    sr = folders(results, "SR")[1]
    members = [sr, sr.parent / "seed-1001001-data-1"]
    p = np.mean([softmax(store.read_prediction(m).prediction.logits.astype(float), axis=1) for m in members], axis=0)
    made = store.read_prediction(folder)
    np.testing.assert_allclose(softmax(made.prediction.logits.astype(float), axis=1), p, atol=1e-6)
    assert (made.labels == store.read_prediction(sr).labels).all()
    record = store.read_record(folder)
    assert record.measures.num_images == 200
    seconds = [store.read_record(m).provenance.seconds for m in members]
    assert record.provenance.seconds == pytest.approx(sum(seconds)), "costs as much as its members"


def test_members_are_validated_on_the_same_images(whole: tuple[Path, Path]) -> None:
    _, results = whole
    store = Store(results)
    sr = folders(results, "SR")[0]
    labels = [store.read_prediction(folder, "prediction-val.npz").labels for folder in (
        sr, sr.parent / "seed-1000001-data-0", folders(results, "Deep ensemble")[0])]  # fmt: skip
    assert (labels[0] == labels[1]).all()
    assert (labels[0] == labels[2]).all()
    assert not (labels[0] == store.read_prediction(folders(results, "SR")[1], "prediction-val.npz").labels).all()


def test_a_record_is_what_its_stored_prediction_gives(whole: tuple[Path, Path]) -> None:
    _, results = whole
    for label, name in {"Deep ensemble": "deep_ensemble", "Temperature scaling": "temperature_scaling"}.items():
        stored = Store(results).read_prediction(folders(results, label)[0])
        again = measure(stored, Registry().get(name).scores(stored.prediction))
        record = Store(results).read_record(folders(results, label)[0])
        assert again.classifier == record.measures.classifier
        assert again.scores == record.measures.scores


def test_an_ensemble_holds_the_same_test_images_out(tiny: Path, tmp_path: Path) -> None:
    result = run_here("--datasets", tiny, "--methods", "deep-ensemble", "--set", "data.test_holdout=50",
                     "--results", tmp_path, "--seeds", 1)  # fmt: skip
    assert result.returncode == 0, result.stderr
    labels = [Store(path.parent).read_prediction(Path()).labels for path in tmp_path.rglob("prediction.npz")]
    assert len(labels) == 3
    assert all((labels[0] == other).all() for other in labels)


def test_snapshots_are_stored_at_the_cycle_ends_and_averaged(whole: tuple[Path, Path]) -> None:
    _, results = whole
    store = Store(results)
    cyclic = next(path.parent for path in (results / "tiny").rglob("prediction-2.npz")).relative_to(results)
    record = store.read_record(cyclic)
    assert record.identity["schedule"]["name"] == "cyclic"
    assert set(record.checksums) >= {"prediction-2.npz", "prediction-4.npz", "prediction-val-2.npz"}
    seed = record.seed
    states = [store.read_prediction(cyclic, at_epoch("prediction.npz", epoch)).prediction.logits for epoch in (2, 4)]
    assert (states[1] == store.read_prediction(cyclic).prediction.logits).all(), "the last snapshot is the final state"
    assert not (states[0] == states[1]).all()
    p = np.mean([softmax(u.astype(float), axis=1) for u in states], axis=0)
    made = store.read_prediction(folders(results, "Snapshot ensemble")[seed]).prediction.logits
    np.testing.assert_allclose(softmax(made.astype(float), axis=1), p, atol=1e-6)


def test_taken_over_weights_are_those_of_the_run_itself(
    whole: tuple[Path, Path], tiny: Path, tmp_path: Path, registry: Registry
) -> None:
    """Without kept weights the job trains them again, to the same bits."""
    _, results = whole
    job = entries_of(tiny, registry, "MC-dropout")["MC-dropout"].jobs[0]
    context = Context(tmp_path / "r", NOWHERE, registry)
    epochs: list[float] = []
    run_job(job.needs[0], context, CPU, lambda values: None)
    run_job(job, context, CPU, lambda values: epochs.append(values["epochs_done"]))
    assert epochs == [1, 2, 3, 4]
    again = context.store.read_prediction(job.folder).prediction
    before = Store(results).read_prediction(folders(results, "MC-dropout")[0]).prediction
    assert (again.logits == before.logits).all()
    assert (again.aux["variance"] == before.aux["variance"]).all()
    assert again.aux["variance"].max() > 0, "dropout was on"


@pytest.mark.parametrize("checkpoint_seconds", [0, 1000])
def test_with_kept_weights_nothing_is_trained(
    tiny: Path, tmp_path: Path, registry: Registry, checkpoint_seconds: int
) -> None:
    tiny.write_text(TINY.replace("checkpoint_seconds = 0", f"checkpoint_seconds = {checkpoint_seconds}"))
    job = entries_of(tiny, registry, "MC-dropout")["MC-dropout"].jobs[0]
    context = Context(tmp_path / "r", NOWHERE, registry, awaited=frozenset([job.needs[0].folder]))
    run_job(job.needs[0], context, CPU, lambda values: None)
    epochs: list[float] = []
    run_job(job, context, CPU, lambda values: epochs.append(values["epochs_done"]))
    assert epochs == []
    assert context.store.state(job.folder) == "done"


def test_each_coverage_fills_its_own_row(whole: tuple[Path, Path]) -> None:
    _, results = whole
    risk, measures = tables_of(manifest_of(results), Store(results))
    assert ("100", "SelectiveNet") not in risk.cells
    store = Store(results)
    for row in ("90", "80"):
        entry = next(entry for entry in manifest_of(results).entries if entry.coverage == float(row))
        records = [store.read_record(folder_of("tiny", entry.method, entry.job, seed)) for seed in (0, 1)]
        values = [100 * record.score("selection").risk[round(2 * float(row))] for record in records]
        assert risk.cells[row, "SelectiveNet"].values == pytest.approx(values)
    place = risk.columns.index("SelectiveNet")
    assert risk.summary["avg. rank"][place] == "–"
    assert {"SelectiveNet@90", "SelectiveNet@80", "SelectiveNet+SR@90"} <= set(measures.columns)
    assert "SelectiveNet" not in measures.columns


def test_tables_bear_a_coverage_without_a_result(whole: tuple[Path, Path], tmp_path: Path) -> None:
    _, results = whole
    copy = tmp_path / "copy"
    shutil.copytree(results, copy)
    entry = next(entry for entry in manifest_of(copy).entries if entry.coverage == 90)
    shutil.rmtree(copy / "tiny" / "selective_net" / entry.job)
    risk, measures = tables_of(manifest_of(copy), Store(copy))
    assert risk.cells["90", "SelectiveNet"].missing == "(0/2)"
    assert ("80", "SelectiveNet") in risk.cells
    assert ("AURC ×10³", "SelectiveNet@80") in measures.cells
    assert any("coverages 90, 80; other rows have no model" in note for note in risk.notes)
    by_selection = tables_of(replace(manifest_of(copy), reference="SelectiveNet"), Store(copy))[1]
    assert any("no comparison" in note for note in by_selection.notes)


def test_a_score_that_only_some_runs_have(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "--results", tmp_path)
    assert run_here(*common, "--seeds", 1, "--keep-features").returncode == 0
    assert run_here(*common, "--seeds", 2, "--scores", "knn").returncode == 0
    shown = run_here("tables", "--results", tmp_path, "--scores", "knn").stdout
    assert "(1/2)" in shown
    assert "SR+kNN: it needs features" in shown


def test_temperature_reports_itself_below_the_table(whole: tuple[Path, Path]) -> None:
    _, results = whole
    notes = tables_of(manifest_of(results), Store(results))[0].notes
    assert any(n.startswith("Temperature scaling: temperature ") and "pairs reordered" in n for n in notes)


def test_scores_are_read_off_finished_runs(whole: tuple[Path, Path]) -> None:
    _, results = whole
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*.npz")}
    names = ["margin", "entropy", "max-logit", "energy", "doctor", "pnorm", "knn", "mahalanobis"]
    result = run_here("tables", "--results", results, "--scores", *names, "--methods", "sr", "deep-ensemble")
    assert result.returncode == 0, result.stderr
    csv = (results / "tables" / "tiny.csv").read_text()
    for name in ("margin", "entropy", "max logit", "energy", "DOCTOR", "pNorm", "kNN", "Mahalanobis"):
        assert f"risk,90,SR+{name}," in csv
    assert "risk,90,Deep ensemble+kNN," not in csv
    assert "Deep ensemble+kNN, Deep ensemble+Mahalanobis: it needs features, which" in result.stdout
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*.npz")} == before
    run_here("tables", "--results", results)


def test_a_score_that_needs_validation_has_its_reason_without(tiny: Path, tmp_path: Path) -> None:
    result = run_here("--datasets", tiny, "--methods", "sr", "adafocal", "--set", "data.val=0", "--results", tmp_path,
                     "--scores", "pnorm", "--seeds", 1)  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "SR+pNorm: it needs validation images" in result.stdout
    assert "AdaFocal: needs validation images, and data.val is 0; its column stays empty" in result.stderr
    assert "AdaFocal: needs validation images, and data.val is 0." in result.stdout


def test_nothing_that_can_run_is_bad_input(tiny: Path, tmp_path: Path) -> None:
    result = run_here("--datasets", tiny, "--methods", "adafocal", "--set", "data.val=0", "--results", tmp_path / "r")
    assert result.returncode == 2
    assert "none of AdaFocal can run here" in result.stderr
    assert not (tmp_path / "r").exists()


def test_killed_between_its_cycles_it_ends_with_the_same_bits(
    whole: tuple[Path, Path], tiny: Path, tmp_path: Path, registry: Registry
) -> None:
    _, results = whole
    job = entries_of(tiny, registry, "Snapshot ensemble")["Snapshot ensemble"].jobs[0]
    context = Context(tmp_path / "r", NOWHERE, registry, keep_features=True)

    def stop(values: dict[str, Any]) -> None:
        if values["epochs_done"] == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(job.needs[0], context, CPU, stop)
    run_job(job.needs[0], context, CPU, lambda values: None)
    unbroken = next(results.rglob("seed-0/prediction-2.npz")).parent
    for name in ("prediction-2.npz", "prediction.npz"):
        assert (tmp_path / "r" / job.needs[0].folder / name).read_bytes() == (unbroken / name).read_bytes()
    stores = ((context.store, job.needs[0].folder), (Store(results), unbroken.relative_to(results)))
    records = [store.read_record(folder) for store, folder in stores]
    assert records[0].checksums == records[1].checksums


OVER = """
from benchmark.interface import Method
class Over(Method):
    title, reference, labels = "over", "nobody 2026", {"Over": {}}
    starts_from = "cross_entropy"
    def predict(self, images):
        FAULT
        return super().predict(images)
METHOD = Over
"""


def test_weights_stay_until_what_takes_them_over_is_done(tiny: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "over.py"
    flag = tmp_path / "mended"
    plugin.write_text(OVER.replace("FAULT", f"import pathlib; assert pathlib.Path({str(flag)!r}).exists(), 'not yet'"))
    common = ("--datasets", tiny, "--plugin", plugin, "--methods", "over", "--results", tmp_path / "r", "--seeds", 1)
    assert run_here(*common).returncode == 1
    assert len(files(tmp_path / "r", "checkpoint.pt")) == 1
    planned = json.loads(run_here(*common, "--dry-run", "--json").stdout)["tasks"][0]
    assert planned["epochs"] == 0
    assert [job["label"] for job in planned["jobs"]] == ["SR", "Over"]
    flag.touch()
    done = run_here(*common, "-v")
    assert done.returncode == 0
    assert "epoch 1/4" not in done.stderr, "nothing is trained again"
    assert not files(tmp_path / "r", "checkpoint.pt")


def test_a_plan_counts_what_must_be_trained_again(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--results", tmp_path, "--seeds", 1)
    assert run_here(*common, "--methods", "sr").returncode == 0
    planned = json.loads(run_here(*common, "--methods", "mc-dropout", "--dry-run", "--json").stdout)
    assert planned["tasks"][0]["epochs"] == 4


def test_held_out_test_images_are_drawn_by_the_seed(tiny: Path, tmp_path: Path, registry: Registry) -> None:
    from benchmark.data.dataset import prepare

    task = load_task(str(tiny), ["data.test_holdout=50"])
    sets = [prepare(task.data, NOWHERE, seed, CPU, PLENTY) for seed in (0, 0, 1)]
    images = [next(data.eval_batches(data.test, 200)) for data in sets]
    assert [len(data.test) for data in sets] == [150, 150, 150]
    assert torch.equal(images[0], images[1])
    assert not torch.equal(images[0], images[2])
    result = run_here("--datasets", tiny, "--set", "data.test_holdout=200", "--results", tmp_path / "r")
    assert result.returncode == 2
    assert "leaves no test image" in result.stderr


def test_the_percentile_rule_is_a_table_option(whole: tuple[Path, Path]) -> None:
    _, results = whole
    result = run_here("tables", "--results", results, "--threshold", "percentile", "--methods", "sr", "--coverages", 90)
    assert "at or above a percentile" in result.stdout
    store = Store(results)
    records = [store.read_record(folder) for folder in folders(results, "SR")]
    expected = np.mean([100 * record.score("SR").percentile_risk[180] for record in records])
    assert f"{expected:.2f}" in result.stdout
    kept = [record.score("SR").percentile_coverage[180] for record in records]
    assert all(0.9 <= share <= 1 for share in kept)
    assert f"| {100 * np.mean(kept):.2f}±" in result.stdout.split("Coverage really kept (%)")[1].split("Further")[0]
    run_here("tables", "--results", results)
