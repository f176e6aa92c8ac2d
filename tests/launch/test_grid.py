"""Whole commands on a tiny task: workers, skipping, killing, failures, plans, plugins."""

import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark.config.load import load_task
from benchmark.data.dataset import load
from benchmark.jobs.plan import plan
from benchmark.store.store import Store
from benchmark.train.outcome.predict import empty_record
from methods import Registry
from tests.conftest import NOWHERE, ROOT, SR_LABELS, run_all, run_here

pytestmark = pytest.mark.usefixtures("alone")


def files(results: Path, *names: str) -> dict[str, bytes]:
    return {
        str(path.relative_to(results)): path.read_bytes() for path in sorted(results.rglob("*")) if path.name in names
    }


def predictions_and_tables(results: Path) -> dict[str, bytes]:
    return files(results, "prediction.npz", "prediction-val.npz", "history.csv", "tiny.md", "tiny.tex", "tiny.csv")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The task file and the results of an undisturbed run in one process."""
    from tests.conftest import TINY

    folder = tmp_path_factory.mktemp("unbroken")
    task = folder / "tiny.toml"
    task.write_text(TINY)
    result = run_all("--datasets", task, "--results", folder / "results", "--workers", 1)
    assert result.returncode == 0, result.stderr
    assert len(predictions_and_tables(folder / "results")) == 10 * 3 + 3
    return task, folder / "results"


@pytest.mark.parametrize(
    ("method", "columns"),
    [
        ("deep_gamblers", ["abstention_mass"]),
        ("self_adaptive", ["abstention_mass", "target_mean"]),
        ("ccl_sc", ["positive_fill", "negative_fill", "key_distance", "contrast_active"]),
    ],
)
def test_health_numbers_are_in_the_learning_curve(unbroken: tuple[Path, Path], method: str, columns: list[str]) -> None:
    path = next((unbroken[1] / "tiny" / method).rglob("history.csv"))
    rows = list(csv.DictReader(path.read_text().splitlines()))
    for column in columns:
        assert 0 <= float(rows[-1][column]) <= 1, column
        assert rows[0][column] == "", "nothing of it in the warm-up"


def test_output_names_tables_and_where_to_look(unbroken: tuple[Path, Path]) -> None:
    _, results = unbroken
    result = run_all("tables", "--results", results, "--coverages", 90, "--methods", "sat", "sr")
    assert result.returncode == 0
    assert "SAT+SR" in result.stdout
    assert "CCL-SC" not in result.stdout
    rebuilt = run_all("tables", "--results", results)
    assert rebuilt.returncode == 0
    for name in ("CCL-SC", "SAT+EM+SR", "SAT+EM", "SAT+SR", "SAT", "DG+SR", "DG", "SR"):
        assert name in rebuilt.stdout


def test_a_second_run_trains_nothing_and_changes_no_byte(unbroken: tuple[Path, Path]) -> None:
    task, results = unbroken
    before = {path: path.stat().st_mtime_ns for path in results.rglob("record.json")}
    tables = predictions_and_tables(results)
    result = run_all("--datasets", task, "--results", results)
    assert result.returncode == 0
    assert "10 jobs, 10 done already" in result.stderr
    assert f"Tables:\n  {results}" in result.stdout
    assert {path: path.stat().st_mtime_ns for path in results.rglob("record.json")} == before
    assert predictions_and_tables(results) == tables


def test_two_workers_give_the_same_bits(unbroken: tuple[Path, Path], tmp_path: Path) -> None:
    task, results = unbroken
    result = run_all("--datasets", task, "--results", tmp_path, "--workers", 2)
    assert result.returncode == 0, result.stderr
    assert predictions_and_tables(tmp_path) == predictions_and_tables(results)
    assert "[10/10]" in result.stderr


def test_killed_again_and_again_it_ends_with_the_same_bits(unbroken: tuple[Path, Path], tmp_path: Path) -> None:
    """SIGKILL to the whole process group while it works, then the same command to the end."""
    task, results = unbroken
    command = [sys.executable, str(ROOT / "run_all.py"), "--datasets", str(task), "--results", str(tmp_path)]
    kills = 0
    for jobs_before_the_kill in (0, 2, 5, 8):
        process = subprocess.Popen([*command, "--workers", "2"], start_new_session=True, stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)  # fmt: skip
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            done = len(list(tmp_path.rglob("record.json")))
            if done >= jobs_before_the_kill and any(tmp_path.rglob("checkpoint.pt")):
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.003)
        process.wait()
    assert kills >= 3
    result = run_all("--datasets", task, "--results", tmp_path, "--workers", 2)
    assert result.returncode == 0, result.stderr
    assert predictions_and_tables(tmp_path) == predictions_and_tables(results)
    assert not files(tmp_path, "checkpoint.pt")
    assert not list((tmp_path / "tiny").rglob("*.tmp"))


def test_plan(unbroken: tuple[Path, Path], tmp_path: Path) -> None:
    task, results = unbroken
    plan = json.loads(run_all("--datasets", task, "--results", results, "--dry-run", "--json", "--seeds", 3).stdout)
    jobs = plan["tasks"][0]["jobs"]
    assert [job["state"] for job in jobs].count("done") == 10
    assert [job["state"] for job in jobs].count("new") == 5
    assert plan["tasks"][0]["epochs_naive"] == plan["epochs_naive"] == 5 * 4
    assert plan["tasks"][0]["epochs"] == plan["epochs"] == 4 + 3 + 3 * 2
    assert [job["seed"] for job in jobs] == sorted(job["seed"] for job in jobs), "seeds outermost"
    text = run_all("--datasets", task, "--results", tmp_path / "none", "--dry-run").stdout
    assert "10 jobs: 0 done, 0 partial, 10 new; 26 epochs to train (40 without shared warm-ups)" in text
    assert not (tmp_path / "none").exists(), "a plan writes nothing"


def test_max_steps_tries_every_phase_and_is_never_tabulated(tiny: Path, tmp_path: Path) -> None:
    """With one seed, and as few evaluation batches as steps."""
    small = ("--set", "eval_batch_size=20")
    result = run_all("--datasets", tiny, "--results", tmp_path / "r", "--max-steps", 2, *small)
    assert result.returncode == 0, result.stderr
    records = files(tmp_path / "r", "record.json").values()
    assert [json.loads(content)["num_test"] for content in records] == [40] * 5
    assert not (tmp_path / "r" / "tables").exists()
    assert not (tmp_path / "r" / "manifests").exists()
    history = next((tmp_path / "r" / "tiny" / "ccl_sc").rglob("history.csv")).read_text().splitlines()
    assert [row.split(",")[0] for row in history] == ["epoch", "0", "1"]
    assert "contrast_active" in history[0]


FAILING = '''
"""A method that fails on one seed."""
import torch
from torch.nn.functional import cross_entropy
from benchmark.interface import Method, Step

class Failing(Method):
    title, reference, labels = "fails on request", "nobody 2026", {"Brittle": {}}

    def training_step(self, batch, progress):
        logits, _ = self.network(batch.images)
        if progress.epoch == 1 and batch.labels[0] >= 0:
            raise RuntimeError("as planned")
        return Step(cross_entropy(logits, batch.labels))

METHOD = Failing
'''


def test_a_failing_job_costs_only_itself(tiny: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "failing.py"
    plugin.write_text(FAILING)
    common = ("--datasets", tiny, "--plugin", plugin, "--methods", "Brittle", "sr", "--results", tmp_path / "r")
    result = run_all(*common, "--workers", 2)
    assert result.returncode == 1
    assert "as planned" in result.stderr
    assert "Traceback" not in result.stderr
    assert len(files(tmp_path / "r", "record.json")) == 2
    assert b"RuntimeError: as planned" in next(iter(files(tmp_path / "r", "error.txt").values()))
    assert "–" in result.stdout, "the failed method is a column of dashes"
    hasty = run_all(*common[:-1], tmp_path / "hasty", "--workers", 1, "--fail-fast")
    assert hasty.returncode == 1
    assert len(files(tmp_path / "hasty", "record.json")) == 1, "the second seed is never begun"


def test_a_worker_killed_before_its_job_costs_only_that_job(tiny: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "stillborn.py"
    text = FAILING.replace('raise RuntimeError("as planned")', "pass")
    plugin.write_text(text + "\nimport multiprocessing, os\nif multiprocessing.parent_process(): os._exit(3)\n")
    result = run_all("--datasets", tiny, "--plugin", plugin, "--methods", "Brittle", "sr", "--results", tmp_path / "r",
                     "--workers", 2, timeout=120)  # fmt: skip
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert result.stderr.count("FAILED: its worker process died (exit code 3)") == 2
    assert len(files(tmp_path / "r", "record.json")) == 2


def planned(tiny: Path, plugin: Path, results: Path) -> list[tuple[str, str]]:
    shown = run_here("--datasets", tiny, "--plugin", plugin, "--methods", "brittle", "--dry-run", "--json", "--results",
                     results)  # fmt: skip
    return [(job["job"], job["state"]) for job in json.loads(shown.stdout)["tasks"][0]["jobs"]]


def test_what_a_plugin_does_is_part_of_its_identity(tiny: Path, tmp_path: Path) -> None:
    """Its comments, docstrings and layout are not."""
    plugin, ids = tmp_path / "mine.py", []
    layout = FAILING.replace("METHOD = Failing", "# why\n\nMETHOD  = (\n    Failing\n)")
    for text in (FAILING, layout, '"""What it is for."""\n' + FAILING, FAILING + "\nCHANGED = True\n"):
        plugin.write_text(text)
        ids.append(planned(tiny, plugin, tmp_path / "r")[0][0])
    assert ids[0] == ids[1] == ids[2] != ids[3]


def test_older_results_of_a_plugin_keep_the_id_of_its_bytes(tiny: Path, tmp_path: Path) -> None:
    """Begun under the id that counted comments, a label goes on under it, with all its seeds."""
    plugin, store = tmp_path / "mine.py", Store(tmp_path / "r")
    plugin.write_text(FAILING)
    methods, config = Registry((plugin,)), load_task(str(tiny), ["channels_last=true"])
    (entry,) = plan(config, ["Brittle"], range(2), methods, load(config.data, NOWHERE)[1])
    old = replace(entry.jobs[0], source_sha256=hashlib.sha256(FAILING.encode()).hexdigest())
    assert planned(tiny, plugin, store.root) == [(entry.jobs[0].id, "new")] * 2
    store.write_record(old.folder, empty_record(old))
    assert old.id != entry.jobs[0].id
    assert planned(tiny, plugin, store.root) == [(old.id, "done"), (old.id, "new")]
    plugin.write_text(FAILING + "# other bytes\n")
    assert planned(tiny, plugin, store.root) == [(entry.jobs[0].id, "new")] * 2


def test_a_plugin_may_import_from_where_it_could_before(tiny: Path, tmp_path: Path) -> None:
    """To edit its imports would make it another program, with other ids."""
    plugin = tmp_path / "mine.py"
    former = "from benchmark.limits import Weight\nfrom benchmark.prediction import Stored\n"
    former += "from benchmark.schema import check\nimport benchmark.scores\nbenchmark.scores.softmax_response\n"
    source = (ROOT / "methods" / "cross_entropy.py").read_text().replace(SR_LABELS, 'labels = {"Mine": {}}')
    plugin.write_text(former + source)
    result = run_all("--datasets", tiny, "--plugin", plugin, "--methods", "mine", "--seeds", 1, "--results", tmp_path)
    assert result.returncode == 0, result.stderr
    assert len(files(tmp_path, "record.json")) == 1


def test_list() -> None:
    listing = json.loads(run_all("list", "--json").stdout)
    assert {m["label"] for m in listing["methods"]} >= {"SR", "DG", "SAT", "SAT+EM", "CCL-SC"}
    assert {t["task"] for t in listing["tasks"]} >= {"digits", "gaussians", "cifar10", "cifar100", "celeba", "imagenet"}
    assert {s["score"] for s in listing["scores"]} >= {"SR", "abstention"}
    assert {e["evaluate"] for e in listing["evaluation sets"]} == {"corruptions", "shift", "new", "humans", "groups"}
    text = run_here("list").stdout
    assert "Deep Gamblers" in text
    assert "[negatives=sc2]" in text
    assert max(map(len, text.splitlines())) <= 100


def test_tables_do_without_torch(unbroken: tuple[Path, Path]) -> None:
    script = (
        "import sys, runpy; sys.argv = ['run_all.py', 'tables', '--results', sys.argv[1]]\n"
        "try: runpy.run_path('run_all.py', run_name='__main__')\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "sys.exit('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script, str(unbroken[1])], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_no_time_host_or_path_in_a_table(unbroken: tuple[Path, Path]) -> None:
    import socket

    for content in files(unbroken[1], "tiny.md", "tiny.tex", "tiny.csv").values():
        text = content.decode()
        assert str(unbroken[1]) not in text
        assert socket.gethostname() not in text
        assert not any(f"{year}-" in text for year in (2025, 2026, 2027))
