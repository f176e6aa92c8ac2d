"""A real Ray: a cluster of several nodes on this machine, jobs over both, one of them lost in the middle."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmark.attempts import ATTEMPTS, Attempts, new_attempt, workplace
from benchmark.runner import Context, run_job
from benchmark.store import Store
from tests.conftest import NOWHERE, ROOT, TINY, run_all, run_here
from tests.test_crash import Stage, expected, finish, nothing_left, without_ids
from tests.test_damage import CPU, REGISTRY, contents, make_jobs, stopped_after, trained

pytestmark = pytest.mark.ray


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two nodes with one core each."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    made.nodes = [made.add_node(num_cpus=1) for _ in range(2)]
    made.wait_for_nodes()
    try:
        yield made
    finally:
        made.shutdown()


def test_a_local_ray_gives_the_same_bits(tmp_path: Path) -> None:
    task = tmp_path / "tiny.toml"
    task.write_text(TINY)
    words = ["--datasets", str(task), "--results", str(tmp_path / "ray"), "--ray", "--workers", "2"]
    process = subprocess.Popen([sys.executable, str(ROOT / "run_all.py"), *words], text=True, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    stderr = finish(process)
    assert "[10/10]" in stderr
    assert run_here("--datasets", task, "--results", tmp_path / "local").returncode == 0
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
    assert not [path for path in (tmp_path / "ray").rglob("*") if path.suffix in (".pt", ".tmp", ".lock", ".txt")]
    assert not (tmp_path / "ray" / ATTEMPTS).exists()


def test_a_node_that_dies_costs_its_jobs_a_restart(tmp_path: Path, cluster: Any) -> None:
    stage = Stage(tmp_path / "stage").prepare("time.sleep(0.7)", count=4)
    process = stage.start("--ray", cluster.address)
    stage.wait_for(lambda: len({job for _, job, epoch in stage.seen() if epoch >= 1}) == 2, process)
    doomed = cluster.nodes[0]
    cluster.remove_node(doomed)
    stderr = finish(process)
    assert "its worker was lost" in stderr
    assert "trying again" in stderr
    assert without_ids(contents(stage.results)) == expected(tmp_path, 4)
    assert not (stage.results / ATTEMPTS).exists()


def snapshot_of(root: Path) -> dict[Path, tuple[int, bytes]]:
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in root.rglob("*") if path.is_file()}


def begun(job: Any, store: Store) -> tuple[str, Context]:
    attempt = new_attempt()
    with workplace(job, Context(store.root, NOWHERE, REGISTRY), attempt) as (context, _):
        return attempt, context


@pytest.mark.parametrize("successor_done", [False, True])
def test_a_ghost_touches_nothing_of_its_successor(tiny: Path, tmp_path: Path, successor_done: bool) -> None:
    """Given up after its second epoch, it goes on to the end, while another attempt takes its place."""
    (job,) = make_jobs(tiny, ["SAT"], seeds=1)
    whole, store = Context(tmp_path / "whole", NOWHERE, REGISTRY), Store(tmp_path / "results")
    run_job(job, whole, CPU, lambda values: None)
    ghost, of_ghost = begun(job, store)
    stopped_after(job, of_ghost, 2)
    attempts = Attempts(store)
    attempts.publish(ghost)
    successor, of_successor = begun(job, store)
    if successor_done:
        assert trained(job, of_successor) == [2, 3], "from the last checkpoint of the one before"
        attempts.publish(successor)
    else:
        stopped_after(job, of_successor, 3)
    before = snapshot_of(store.root)
    run_job(job, of_ghost, CPU, lambda values: None)
    after = snapshot_of(store.root)
    assert {path: after[path] for path in before} == before
    assert all(path.is_relative_to(store.root / ATTEMPTS / ghost) for path in after.keys() - before.keys())
    if not successor_done:
        assert trained(job, of_successor) == [3]
        attempts.publish(successor)
    published = snapshot_of(store.root / job.folder)
    attempts.recover()
    assert snapshot_of(store.root / job.folder) == published
    assert not (store.root / ATTEMPTS).exists()
    for name in ("prediction.npz", "history.csv"):
        assert (store.root / job.folder / name).read_bytes() == (whole.results / job.folder / name).read_bytes()


def test_a_driver_that_dies_can_be_started_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "stage").prepare("time.sleep(0.3)", count=4)
    process = stage.start("--ray", "--workers", 2)
    stage.wait_for(lambda: any(stage.results.rglob("record.json")), process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = stage.seen()
    finish(stage.start("--ray", "--workers", 2))
    again = [(job, epoch) for _, job, epoch in stage.seen()[len(before) :]]
    finished_before = {job for _, job, epoch in before if epoch == 3} - {job for job, _ in again}
    assert finished_before, "what was done stays done"
    assert without_ids(contents(stage.results)) == expected(tmp_path, 4)
    assert not (stage.results / ATTEMPTS).exists()


def test_ctrl_c_stops_and_leaves_no_process(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "stage").prepare("time.sleep(0.5)", count=3, checkpoint_seconds=1000)
    process = stage.start("--ray", "--workers", 2)
    stage.wait_for(lambda: len({job for _, job, _ in stage.seen()}) == 2, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert finish(process, 130).splitlines()[-1] == "interrupted; the same command continues from here"
    stopped = {job: epoch for _, job, epoch in stage.seen()}
    time.sleep(2)
    ours = [p for p in psutil.process_iter(["name", "cmdline"]) if "raylet" in (p.info["name"] or "")]
    assert not ours
    finish(stage.start("--ray", "--workers", 2))
    for job, epoch in stopped.items():
        assert [(j, e) for _, j, e in stage.seen()].count((job, epoch)) == 1, "saved where it stopped"
    nothing_left(stage)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "resources.cpus=64"], "no node of the cluster has 64 CPU, which a job of tiny takes"),
        (["--set", "resources.cpus=-1"], "cpus must not be negative"),
        (["--ray", "nowhere:1"], "no Ray cluster at 'nowhere:1'"),
        (["--ray", "auto"], "no Ray cluster at 'auto'"),
        (["--ray", "somewhere"], "--ray somewhere: expected nothing, auto, HOST:PORT or ray://HOST:PORT"),
        (["--ray", "--workers", "0"], "--workers: a cluster runs as many jobs as it can hold"),
        (["--ray", "auto", "--workers", "2"], "--workers: a cluster runs as many jobs as it can hold"),
        (["--device", "cuda:1"], "--device cuda:1: with --ray expected auto or cpu"),
        (["--jobs-per-device", "2"], "--set resources.gpus=0.5"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(tiny: Path, tmp_path: Path, words: list[str], message: str) -> None:
    words = words if "--ray" in words else ["--ray", "--workers", "2", *words]
    result = run_all("--datasets", tiny, "--results", tmp_path / "r", *words)
    assert result.returncode == 2
    assert message in result.stderr.splitlines()[-1]
