"""`paper` from command to tables, on tiny stand-ins for the published tasks."""

import csv
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmark.config.load import load_task
from benchmark.data.sources import cifar as cifar_source
from benchmark.measure.metrics import selective_risk
from benchmark.paper import table_files
from benchmark.paper.table_files import load_tables
from benchmark.store.manifest import ManifestEntry
from benchmark.store.store import Store, folder_of
from tests.conftest import ROOT, TINY, run_all, run_here
from tests.image_sets import write_celeba, write_cifar, write_class_folders
from tests.tables.test_build import diverged

TABLE = """
title = "stand-in"
task = "{task}"
published = "table_imagenet"
reference = "CCL-SC"
columns = ["CCL-SC", "SAT+EM+SR", "SAT", "CCL-SC*"]
shows = ["markers", "second", "w/t/l", "avg. rank"]
trials = 3
incomparable = {{ "SAT+EM+SR" = "copied", "SAT" = "copied" }}

[variants."CCL-SC*"]
method = "CCL-SC"
epoch = 3
"""
COMBINATION = """
title = "combined"
task = "{task}"
published = "combination_imagenet"
reference = "CCL-SC"
columns = ["CCL-SC", "CCL-SC+SAT+EM"]
shows = []
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables on one tiny task, and their results with two seeds."""
    root = tmp_path_factory.mktemp("paper")
    task = root / "tiny.toml"
    task.write_text(TINY.replace("epochs = 4\n", "epochs = 4\nevaluate_at = [3]\n", 1))
    (root / "tables").mkdir()
    (root / "tables" / "main.toml").write_text(TABLE.format(task=task))
    (root / "tables" / "combined.toml").write_text(COMBINATION.format(task=task))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_files, "TABLE_DIR", root / "tables")
        made = run_here("paper", "all", "--seeds", 2, "--results", root / "results", "--workers", 0)
    assert made.returncode == 0, made.stderr
    (root / "stdout").write_text(made.stdout)
    (root / "stderr").write_text(made.stderr)
    return root


def test_what_a_run_leaves(folder: Path) -> None:
    found = sorted(path.name for path in (folder / "results" / "paper").iterdir())
    ends = ["-published.csv", "-published.md", "-published.tex", "-statistics.csv", "-statistics.md",
            "-statistics.tex", ".csv", ".json", ".md", ".tex"]  # fmt: skip
    assert found == [f"{name}{end}" for name in ("combined", "main") for end in ends]
    assert not (folder / "results" / "manifests").exists(), "tables of the task itself are another command's"
    shown = (folder / "stdout").read_text()
    assert "## tiny digits, stand-in" in shown
    assert "Published and ours: 40 cells:" in shown
    assert "20 not comparable." in shown


def test_a_run_that_two_tables_name_is_trained_once(folder: Path) -> None:
    """CCL-SC is in both tables and CCL-SC* is the same training: four kinds of jobs, two seeds, one warm-up each."""
    records = list((folder / "results" / "tiny").glob("*/*/seed-*/record.json"))
    assert len(records) == 2 * 4
    assert "8 jobs, 0 done already" in (folder / "stderr").read_text()


def test_the_state_after_three_epochs_is_a_column(folder: Path) -> None:
    """Its risk is that of the stored prediction, by the definition of selective risk."""
    store = Store(folder / "results")
    with (folder / "results" / "paper" / "main.csv").open() as file:
        cells = {(line["column"], line["row"]): float(line["mean"]) for line in csv.DictReader(file)}
    for column, name in (("CCL-SC", "prediction.npz"), ("CCL-SC*", "prediction-3.npz")):
        risks = []
        for path in sorted((folder / "results" / "tiny" / "ccl_sc").glob("*/seed-*")):
            evidence = store.read_prediction(path.relative_to(store.root), name)
            logits = evidence.prediction.logits.astype(np.float64)
            top = logits.max(axis=1)
            rest = np.log(np.exp(np.where(logits == top[:, None], -np.inf, logits) - top[:, None]).sum(axis=1))
            risks.append(float(selective_risk(-rest, logits.argmax(axis=1) != evidence.labels, 0.8)))
        assert cells[column, "80"] == pytest.approx(100 * np.mean(risks))
    assert cells["CCL-SC", "100"] != cells["CCL-SC*", "100"]


def test_tables_come_again_from_records_without_torch(folder: Path, tmp_path: Path) -> None:
    """The same bytes, also for one table, and with other tests; no import of torch."""
    results = tmp_path / "results"
    shutil.copytree(folder / "results", results)
    before = {path.name: path.read_bytes() for path in (results / "paper").iterdir()}
    for path in (results / "paper").glob("*.[!j]*"):
        path.unlink()
    assert run_here("tables", "--results", results).returncode == 0
    assert {path.name: path.read_bytes() for path in (results / "paper").iterdir()} == before
    shown = run_here("tables", "--results", results, "--paper", "main", "--test", "paired", "--holm", "table")
    assert "signed-rank test over seeds, exact, level 0.05, Holm-corrected over the whole table" in shown.stdout
    assert "combined" not in shown.stdout
    wrong = run_here("tables", "--results", results, "--paper", "mian")
    assert (wrong.returncode, "did you mean 'main'" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("command", [["tables"], ["audit"], ["explain", "paper/main", "SAT", "80"], ["diff", ".", "."]])
def test_reading_commands_do_without_torch(folder: Path, command: list[str]) -> None:
    script = (
        "import sys, runpy\n"
        "try: runpy.run_path(sys.argv.pop(1), run_name='__main__')\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "sys.exit('torch' in sys.modules)"
    )
    words = [*command, *(["--results", "."] if command[0] in ("tables", "explain") else [])]
    call = [sys.executable, "-c", script, str(ROOT / "run_all.py"), *words]
    result = subprocess.run(call, cwd=folder / "results", capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def entry_of(results: Path, label: str) -> ManifestEntry:
    """The runs of a label in the main table."""
    manifest = next(manifest for manifest in Store(results).paper_manifests() if manifest.name == "main")
    return next(entry for entry in manifest.entries if entry.label == label)


def test_a_running_grid_has_valid_tables(folder: Path, tmp_path: Path) -> None:
    """One seed of SAT+EM and all of SAT are still to come."""
    results = tmp_path / "results"
    shutil.copytree(folder / "results", results)
    half, none = entry_of(results, "SAT+EM"), entry_of(results, "SAT")
    shutil.rmtree(results / folder_of("tiny", half.method, half.job, 1))
    shutil.rmtree(results / folder_of("tiny", none.method, none.job, 0).parent)
    shown = run_here("tables", "--results", results, "--paper", "main").stdout
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in shown.splitlines() if line.startswith("|")]
    full = next(line for line in lines if line[0] == "100")
    assert full[2].endswith("(1/2)")
    assert full[3] == "– (0/2)"
    summary = next(line for line in lines if line[0] == "avg. rank (provisional)")
    assert summary[3] == "–"
    assert "Provisional: not all runs are there" in shown
    companion = (results / "paper" / "main-published.md").read_text()
    assert "10 no run" in companion
    assert "(1/2)" in companion


def test_a_column_whose_runs_all_diverged(folder: Path, tmp_path: Path) -> None:
    """Also where it is read with another score, which no run has: diverged, and nothing is still to come."""
    results = tmp_path / "results"
    shutil.copytree(folder / "results", results)
    entry = entry_of(results, "SAT+EM")
    for seed in (0, 1):
        job = folder_of("tiny", entry.method, entry.job, seed)
        Store(results).write_record(job, diverged(seed, "the loss is nan"))
    shown = run_here("tables", "--results", results, "--paper", "main").stdout
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in shown.splitlines() if line.startswith("|")]
    assert {line[2] for line in lines if line[0] in ("100", "50")} == {"diverged"}
    assert "rovisional" not in shown
    assert "10 diverged" in (results / "paper" / "main-published.md").read_text()


NARROWED = [("--coverages", "50"), ("--methods", "sr"), ("--reference", "sr"), ("--scores", "margin")]


@pytest.mark.parametrize("words", NARROWED)
def test_published_tables_have_their_own_rows_and_columns(folder: Path, words: tuple[str, str]) -> None:
    refused = run_here("tables", "--results", folder / "results", "--paper", "main", *words)
    assert (refused.returncode, f"{words[0]} is for tasks" in refused.stderr) == (2, True)


def test_no_published_tables_to_make_again(tiny: Path, tmp_path: Path) -> None:
    assert run_here("--datasets", tiny, "--methods", "sr", "--seeds", 1, "--results", tmp_path, "-q").returncode == 0
    refused = run_here("tables", "--results", tmp_path, "--paper", "all")
    assert (refused.returncode, "no published tables in" in refused.stderr) == (2, True)


def test_a_finished_grid_is_not_trained_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "TABLE_DIR", folder / "tables")
    again = run_here("paper", "main", "--seeds", 2, "--results", folder / "results", "-q")
    assert (again.returncode, again.stdout) == (0, "")


def test_an_epoch_that_the_task_does_not_keep_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "other").mkdir()
    text = TABLE.format(task=folder / "tiny.toml").replace("epoch = 3", "epoch = 2")
    (folder / "other" / "main.toml").write_text(text)
    monkeypatch.setattr(table_files, "TABLE_DIR", folder / "other")
    refused = run_here("paper", "main", "--dry-run")
    assert refused.returncode == 2
    assert "main: CCL-SC*: epoch 2 must be in evaluate_at of tiny" in refused.stderr


@pytest.fixture(scope="module")
def small_sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All four data sets of the paper in their own layouts, a few images each."""
    root = tmp_path_factory.mktemp("sets")
    batches = {f"data_batch_{i}.bin": 40 for i in range(1, 6)}
    write_cifar(root / "cifar-10-batches-bin", 1, {**batches, "test_batch.bin": 30})
    write_cifar(root / "cifar-100-binary", 2, {"train.bin": 200, "test.bin": 100}, classes=100)
    write_celeba(root, (150, 30, 30))
    folders = load_task("imagenet-cpu").data.folders
    for split, count in (("train", 16), ("val", 3)):
        write_class_folders(root / "imagenet" / split, count, folders)
    return root


def test_every_job_of_every_table_runs(small_sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in small_sets.glob("cifar*/*.bin"):
        monkeypatch.setitem(cifar_source.MD5, path.name, hashlib.md5(path.read_bytes()).hexdigest())
    common = ("paper", "all", "--scale", "cpu", "--seeds", 1, "--data-dir", small_sets, "--results", tmp_path)
    made = run_here(*common, "--max-steps", 2, "--workers", 0)
    assert made.returncode == 0, made.stderr
    planned = json.loads(run_here(*common, "--dry-run", "--json", "--max-steps", 2).stdout)
    states = [job["state"] for task in planned["tasks"] for job in task["jobs"]]
    assert set(states) == {"done"}
    assert len(states) == 33 + 5 + 5 + 4
    assert len(load_tables(["all"])) == 15
    assert not (tmp_path / "paper").exists(), "a trial is never tabulated"


def test_the_command_as_a_user_calls_it(tmp_path: Path) -> None:
    result = run_all("paper", "settings", cwd=tmp_path)
    assert result.returncode == 0
    assert "Settings of CCL-SC" in result.stdout
