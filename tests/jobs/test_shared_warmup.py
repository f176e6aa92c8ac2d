"""Shared warm-ups: the same bits for less work, whatever happens on the way."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmark.config.load import load_task
from benchmark.jobs.job import Job
from benchmark.jobs.plan import plan
from benchmark.jobs.shared_warmup import share_warmups
from benchmark.launch.queue import Event, Waiting
from benchmark.store.store import CHECKPOINT, Store, snapshot_name
from benchmark.train.context import Context
from benchmark.train.run_job import run_job
from methods import Registry
from tests.conftest import NOWHERE, data_hash, run_here

CPU = torch.device("cpu")
REGISTRY = Registry()
WARMED_UP = [
    label
    for name in REGISTRY.names()
    for label in REGISTRY.get(name).labels
    if getattr(REGISTRY.get(name), "warmup", None)
]


def results_of(folder: Path) -> dict[str, Any]:
    """Predictions and learning curves byte by byte; records but for where they come from."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("seed-*/*")):
        name = str(path.relative_to(folder))
        if path.name == "record.json":
            record = json.loads(path.read_text())
            record.pop("provenance")
            found[name] = record
        else:
            found[name] = path.read_bytes()
    return found


def make_jobs(tiny: Path, labels: list[str], *overrides: str, **options: Any) -> list[Job]:
    task = load_task(str(tiny), overrides)
    return [entry.jobs[0] for entry in plan(task, labels, [0], REGISTRY, data_hash(task), **options)]


def test_every_method_with_a_warmup_is_known_here() -> None:
    assert {"CCL-SC", "CCL-SC2", "CCL-SC3", "CCL-SC+SupCon", "CCL-SC+SAT+EM", "SAT", "SAT+EM", "DG"} <= set(WARMED_UP)


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("checkpoint=best", "optimizer.name=adam", "optimizer.momentum=0", "optimizer.lr=0.01"),
        ("schedule.name=cosine", "checkpoint_seconds=60"),
    ],
    ids=["last epoch", "best epoch, adam", "cosine"],
)
def test_branched_equals_unbranched_for_every_method(tiny: Path, tmp_path: Path, settings: tuple[str, ...]) -> None:
    common = ["--datasets", tiny, "--methods", "sr", *WARMED_UP, "--seeds", 1]
    common += [word for setting in settings for word in ("--set", setting)]
    assert run_here(*common, "--results", tmp_path / "alone", "--no-shared-warmup").returncode == 0
    assert run_here(*common, "--results", tmp_path / "shared").returncode == 0
    alone, shared = results_of(tmp_path / "alone"), results_of(tmp_path / "shared")
    assert alone.keys() == shared.keys()
    assert [name for name in alone if alone[name] != shared[name]] == []
    origins = [
        json.loads(path.read_text())["provenance"].get("branched_off")
        for path in (tmp_path / "shared").rglob("record.json")
    ]
    assert sum(origin is not None for origin in origins) == len(WARMED_UP)
    assert not list((tmp_path / "shared").rglob("*trunk*"))


def test_without_the_warmup_itself_a_trunk_goes_only_as_far_as_needed(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sat", "sat+em", "ccl-sc", "--seeds", 2)
    planned = json.loads(run_here(*common, "--results", tmp_path / "shared", "--dry-run", "--json").stdout)
    labels = [(job["label"], job["epochs"], job["branches"]) for job in planned["tasks"][0]["jobs"]]
    assert labels[:2] == [("warm-up (SR)", 2, False)] * 2
    assert (planned["epochs"], planned["epochs_naive"]) == (2 * (2 + 3 + 2 + 2), 2 * 3 * 4)
    assert run_here(*common, "--results", tmp_path / "shared").returncode == 0
    assert run_here(*common, "--results", tmp_path / "alone", "--no-shared-warmup").returncode == 0
    assert results_of(tmp_path / "alone") == results_of(tmp_path / "shared")
    assert not (tmp_path / "shared" / "tiny" / "cross_entropy").exists() or not list(
        (tmp_path / "shared" / "tiny" / "cross_entropy").rglob("*.*")
    )


def test_a_single_job_trains_its_own_warmup(tiny: Path, tmp_path: Path) -> None:
    jobs = make_jobs(tiny, ["SAT"])
    assert share_warmups(jobs, Store(tmp_path)) == jobs


def test_what_is_not_shared(tiny: Path, tmp_path: Path) -> None:
    """Trials of a few steps, predictions from inside the warm-up, jobs that have begun by themselves."""
    store = Store(tmp_path)
    for jobs in (
        make_jobs(tiny, ["SR", "SAT", "DG"], max_steps=1),
        make_jobs(tiny, ["SR", "SAT", "DG"], "evaluate_at=1"),
    ):
        assert share_warmups(jobs, store) == jobs
    sat, dg, sr = make_jobs(tiny, ["SAT", "DG", "SR"])
    store.write_checkpoint(dg.folder, b"x")
    assert [job.branches for job in share_warmups([sat, dg, sr], store)] == [True, False, False]
    after = make_jobs(tiny, ["SAT", "DG", "SR"], "evaluate_at=3")
    assert [job.branches for job in share_warmups(after, store)] == [True, True, False]


def test_snapshots_are_kept_on_request_and_used_by_the_next_command(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--results", tmp_path, "--seeds", 1)
    assert run_here(*common, "--methods", "sr", "dg", "--keep-trunks").returncode == 0
    snapshots = list(tmp_path.rglob(snapshot_name(2)))
    assert len(snapshots) == 1
    planned = json.loads(run_here(*common, "--methods", "sat", "--dry-run", "--json").stdout)
    assert (planned["epochs"], planned["epochs_naive"]) == (2, 4)
    assert run_here(*common, "--methods", "sat").returncode == 0
    assert not list(tmp_path.rglob("*trunk*"))


def test_children_start_when_their_snapshot_is_there_and_it_goes_with_the_last(tiny: Path, tmp_path: Path) -> None:
    jobs = make_jobs(tiny, ["CCL-SC", "SAT", "DG", "SR"])
    shared = share_warmups(jobs, Store(tmp_path))
    released: list[int] = []
    waiting = Waiting(list(shared), lambda event: None, lambda folder, epoch: released.append(epoch))
    ccl_sc, sat, dg, sr = shared
    assert sr.snapshots == (1, 2)
    assert waiting.take() == sr
    assert waiting.take() is None
    waiting.handle(Event("epoch", sr, {"epochs_done": 1}))
    assert waiting.take() == ccl_sc
    assert waiting.take() is None
    waiting.handle(Event("epoch", sr, {"epochs_done": 2}))
    assert [waiting.take(), waiting.take()] == [sat, dg]
    waiting.handle(Event("done", ccl_sc))
    assert released == [1]
    waiting.handle(Event("done", sat))
    assert released == [1]
    waiting.handle(Event("diverged", dg))
    assert released == [1, 2]


def test_a_trunk_that_fails_lets_its_children_go_alone(tiny: Path, tmp_path: Path) -> None:
    shared = share_warmups(make_jobs(tiny, ["SAT", "DG", "SR"]), Store(tmp_path))
    released: list[int] = []
    waiting = Waiting(list(shared), lambda event: None, lambda folder, epoch: released.append(epoch))
    sr = waiting.take()
    assert sr == shared[2]
    waiting.handle(Event("failed", sr, {"reason": "x"}))
    assert [waiting.take(), waiting.take()] == shared[:2]
    waiting.handle(Event("failed", shared[0], {"reason": "x"}))
    waiting.handle(Event("done", shared[1]))
    assert released == [], "the failed one will want it again"


def run(job: Job, context: Context) -> list[int]:
    """The epochs that it trains."""
    epochs: list[int] = []
    run_job(job, context, CPU, lambda values: epochs.append(int(values["epoch"])))
    return epochs


@pytest.mark.parametrize("damage", ["flipped", "gone"])
def test_a_damaged_snapshot_costs_only_time(tiny: Path, tmp_path: Path, damage: str) -> None:
    whole, broken = (Context(tmp_path / name, NOWHERE, REGISTRY) for name in ("whole", "broken"))
    sat, sr = share_warmups(make_jobs(tiny, ["SAT", "SR"]), whole.store)
    run(sr, whole)
    assert run(sat, whole) == [2, 3]
    run(sr, broken)
    path = broken.results / sr.snapshot_folder / snapshot_name(2)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    if damage == "flipped":
        path.write_bytes(content)
    assert run(sat, broken) == [0, 1, 2, 3]
    assert results_of(whole.results / sat.folder.parent) == results_of(broken.results / sat.folder.parent)


def test_a_killed_trunk_resumes(tiny: Path, tmp_path: Path) -> None:
    context = Context(tmp_path, NOWHERE, REGISTRY)
    trunk, sat, dg = share_warmups(make_jobs(tiny, ["SAT", "DG"]), context.store)
    assert trunk.until == 2

    class Killed(Exception):
        pass

    def kill(values: dict[str, Any]) -> None:
        if values["epoch"] == 1:
            raise Killed

    with pytest.raises(Killed):
        run_job(trunk, context, CPU, kill)
    assert context.store.has_checkpoint(trunk.folder)
    again = share_warmups([replace(job, branches=False) for job in (sat, dg)], context.store)
    assert [job.label for job in again] == ["SAT", "DG"], "the snapshot was written before the epoch was reported"
    for name in (snapshot_name(2), CHECKPOINT):
        (tmp_path / trunk.folder / name).unlink()
    assert run(trunk, context) == [1], "from the checkpoint before"
    assert not context.store.has_checkpoint(trunk.folder)
    assert run(sat, context) == [2, 3]
    assert not context.store.read_record(trunk.folder)


def test_a_diverged_trunk_is_no_failure_of_its_own(tiny: Path, tmp_path: Path) -> None:
    result = run_here("--datasets", tiny, "--results", tmp_path, "--methods", "sat", "dg", "--seeds", 1,
                      "--set", "optimizer.lr=1e9")  # fmt: skip
    assert result.returncode == 1
    assert [line.split(":")[1].strip() for line in result.stderr.splitlines() if line.startswith("failed")] == [
        "tiny SAT seed 0",
        "tiny DG seed 0",
    ]


def test_the_warmups_settings_are_part_of_the_identity(tiny: Path, tmp_path: Path) -> None:
    """Cross-entropy has none, so that all ids stand; a plugin's warm-up may have some."""
    job = make_jobs(tiny, ["SAT"])[0]
    assert "warmup" not in job.identity()
    assert job.trunk is not None
    changed = replace(job, trunk=replace(job.trunk, config={"smoothing": 0.1}))
    assert changed.identity()["warmup"] == {"smoothing": 0.1}
    assert changed.id != job.id


def test_paper_scale_saving() -> None:
    """300 + 150 + 3 × 100 epochs per seed of the main CIFAR-100 table in place of 1,500."""
    planned = json.loads(run_here("--datasets", "cifar100", "--seeds", 1, "--dry-run", "--json").stdout)
    assert (planned["epochs"], planned["epochs_naive"]) == (750, 1500)
    assert planned["tasks"][0]["snapshot_bytes"] == 2 * 2 * 4 * 15_038_116
