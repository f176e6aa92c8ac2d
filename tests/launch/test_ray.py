"""A real Ray: a cluster of several nodes on this machine, jobs over both, one of them lost in the middle."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from benchmark.base.errors import Unreachable
from benchmark.launch.on_ray.attempts import ATTEMPTS, OPEN, Attempts, workplace
from benchmark.launch.on_ray.pool import RayPool, Running, code_of, run_attempt
from benchmark.store.mirror import Mirror, local_copy, make_folder, open_remote
from benchmark.store.store import Store
from benchmark.train.context import Context
from benchmark.train.run_job import run_job
from tests.conftest import NOWHERE, ROOT, TINY, run_all, run_here
from tests.launch.test_crash import Stage, expected, finish, nothing_left, without_ids
from tests.launch.test_grid import FAILING
from tests.store.test_damage import CPU, REGISTRY, contents, make_jobs, stopped_after, trained
from tests.train.test_evaluation import write_sets

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


def test_no_worker_takes_a_module_from_where_one_stands(tiny: Path, tmp_path: Path, hostile: Path) -> None:
    words = ["--datasets", tiny, "--methods", "sr", "--seeds", 1, "--max-steps", 1, "--results", tmp_path / "ray"]
    result = run_all(*words, "--ray", "--workers", 1, cwd=hostile)
    assert result.returncode == 0, result.stderr


def test_a_job_on_several_ranks(tiny: Path, tmp_path: Path) -> None:
    (again, *_) = write_sets(tmp_path)
    words = ["--datasets", tiny, "--methods", "sr", "--seeds", 1, "--gpus-per-job", 2, "--device", "cpu"]
    words += ["--evaluate", again]
    result = run_all(*words, "--results", tmp_path / "ray", "--ray", "--workers", 1)
    assert result.returncode == 0, result.stderr
    assert run_all(*words, "--results", tmp_path / "local", "--workers", 1).returncode == 0
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
    (record,) = Store(tmp_path / "ray").records("tiny")
    assert record.provenance.ranks == 2
    (evaluated,) = Store(tmp_path / "ray").records("tiny-again")
    assert evaluated.measures.classifier.accuracy == pytest.approx(record.measures.classifier.accuracy)


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


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of results at a server of this machine that speaks S3; worker processes find it by the environment."""
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "copies"))
    s3fs.S3FileSystem.clear_instance_cache()
    name = f"bucket-{tmp_path.name.replace('_', '-')}"  # all servers of a process share theirs
    s3fs.S3FileSystem().mkdir(name)
    yield f"s3://{name}/run"
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def test_results_at_a_url(tiny: Path, tmp_path: Path, bucket: str) -> None:
    sets = write_sets(tmp_path)
    words = ["--datasets", tiny, "--methods", "sr", "sat", "deep_ensemble", "--evaluate", *sets[1:3]]
    result = run_all(*words, "--results", bucket, "--ray", "--workers", 2)
    assert result.returncode == 0, result.stderr
    assert run_here(*words, "--results", tmp_path / "local").returncode == 0
    fetched = Mirror(bucket, tmp_path / "fetched")
    fetched.pull()
    assert contents(fetched.local) == contents(local_copy(bucket)) == contents(tmp_path / "local")
    (record,) = local_copy(bucket).glob("tiny/cross_entropy/*/seed-1/record.json")
    record.write_bytes(record.read_bytes()[:-9])
    result = run_all(*words, "--results", bucket, "--ray", "--workers", 2)
    assert result.returncode == 0, result.stderr
    assert "is damaged" in result.stderr
    assert contents(local_copy(bucket)) == contents(tmp_path / "local")
    system, root = open_remote(bucket)
    assert not [path for path in system.find(root) if path.endswith((".pt", ".txt")) or ATTEMPTS in path]


def files_of(attempts: Attempts) -> dict[str, Any]:
    system, root = attempts.remote
    system.invalidate_cache()
    return {path.removeprefix(root): (system.modified(path), system.cat_file(path)) for path in system.find(root)}


@pytest.fixture(params=["folder", "url"])
def results(tmp_path: Path, request: pytest.FixtureRequest) -> Attempts:
    store = Store(tmp_path / "results")
    url = request.getfixturevalue("bucket") if request.param == "url" else ""
    return Attempts(store, Mirror(url, store.root) if url else None)


def test_an_attempt_that_is_given_up_meanwhile_is_not_published(
    tiny: Path, results: Attempts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mark goes after it was listed, and before the job is claimed."""
    (job,) = make_jobs(tiny, ["SR"], seeds=1)
    attempt, claim = results.begin(job), Store.claim
    system, root = results.remote
    late = f"{root}/{ATTEMPTS}/{attempt}/{job.folder.as_posix()}/history.csv"
    make_folder(system, late)
    system.pipe_file(late, b"late")

    def give_up_first(store: Store, folder: Path) -> Any:
        system.rm(f"{root}/{ATTEMPTS}/{attempt}{OPEN}")
        return claim(store, folder)

    monkeypatch.setattr(Store, "claim", give_up_first)
    results.recover()
    assert not [path for path in files_of(results) if path.endswith("history.csv") and ATTEMPTS not in path]


@pytest.mark.parametrize("successor_done", [False, True])
def test_a_ghost_touches_nothing_of_its_successor(
    tiny: Path, tmp_path: Path, results: Attempts, successor_done: bool
) -> None:
    """Given up after its second epoch, it goes on to the end, while another attempt takes its place."""
    (job,) = make_jobs(tiny, ["SAT"], seeds=1)
    whole, store = Context(tmp_path / "whole", NOWHERE, REGISTRY), results.store
    run_job(job, whole, CPU, lambda values: None)
    shared = Context(store.root, NOWHERE, REGISTRY, url=results.mirror.url if results.mirror else "")
    ghost = results.begin(job)
    with ExitStack() as stack:
        of_ghost, send_of_ghost = stack.enter_context(workplace(job, shared, ghost))
        stopped_after(job, of_ghost, 2)
        send_of_ghost()
        results.publish(ghost)
        successor = results.begin(job)
        of_successor, send = stack.enter_context(workplace(job, shared, successor))
        if successor_done:
            assert trained(job, of_successor) == [2, 3], "from the last checkpoint of the one before"
            send()
            results.publish(successor)
        else:
            stopped_after(job, of_successor, 3)
            send()
        before = files_of(results)
        run_job(job, replace(of_ghost, base=None), CPU, lambda values: None)  # it has looked there long ago
        send_of_ghost()
        after = files_of(results)
        assert {path: after[path] for path in before} == before
        assert after.keys() - before.keys()
        assert all(path.startswith(f"/{ATTEMPTS}/{ghost}/") for path in after.keys() - before.keys())
        if not successor_done:
            results.publish(successor)
            results.recover()
            third = results.begin(job)
            of_third, send = stack.enter_context(workplace(job, shared, third))
            assert trained(job, of_third) == [3], "the successor's checkpoint stands"
            send()
            results.publish(third)
            send_of_ghost()
    published = {path: found for path, found in files_of(results).items() if ATTEMPTS not in path}
    results.recover()
    assert files_of(results) == published
    for name in ("prediction.npz", "history.csv"):
        assert (store.root / job.folder / name).read_bytes() == (whole.results / job.folder / name).read_bytes()


def test_what_a_dead_driver_had_not_published_is_recovered(tiny: Path, results: Attempts) -> None:
    (job,) = make_jobs(tiny, ["SR"], seeds=1)
    shared = Context(results.store.root, NOWHERE, REGISTRY, url=results.mirror.url if results.mirror else "")
    with workplace(job, shared, results.begin(job)) as (context, send):
        stopped_after(job, context, 2)
        send()
    with results.store.claim(job.folder):
        results.recover()
        assert results.left(), "its driver lives"
    results.recover()
    assert not results.left()
    assert trained(job, Context(results.store.root, NOWHERE, REGISTRY)) == [2, 3]


def test_a_place_out_of_reach_is_tried_again(capsys: pytest.CaptureFixture[str]) -> None:
    """What has ended stays to be published; nothing is stopped for it."""
    pool, published, heard = RayPool.__new__(RayPool), [], []

    def publish(attempt: str) -> None:
        published.append(attempt)
        if len(published) == 1:
            raise Unreachable("cannot reach 's3://somewhere'")

    job = SimpleNamespace(folder=Path("job"), until=0)
    event = SimpleNamespace(kind="diverged", job=job, values={})
    pool.attempts = SimpleNamespace(publish=publish)
    pool.context = SimpleNamespace(awaited=(), store=SimpleNamespace(tidy=lambda folder: True))
    pool.retry_policy = SimpleNamespace(handle=heard.append)
    pool.ended = [(Running(job, "first", ExitStack()), event)]
    pool.publish_ended()
    assert len(pool.ended) == 1
    assert not heard
    pool.publish_ended()
    assert not pool.ended
    assert heard == [event]
    assert capsys.readouterr().err == "cannot reach 's3://somewhere'; going on, and trying again later\n"


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


def raylets() -> set[int]:
    return {process.pid for process in psutil.process_iter(["name"]) if "raylet" in (process.info["name"] or "")}


def test_ctrl_c_stops_and_leaves_no_process(tmp_path: Path) -> None:
    before = raylets()
    stage = Stage(tmp_path / "stage").prepare("time.sleep(0.5)", count=3, checkpoint_seconds=1000)
    process = stage.start("--ray", "--workers", 2)
    stage.wait_for(lambda: len({job for _, job, _ in stage.seen()}) == 2, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert finish(process, 130).splitlines()[-1] == "interrupted; the same command continues from here"
    stopped = {job: epoch for _, job, epoch in stage.seen()}
    assert len(stopped) == 2, "the third had no room, and was not begun"
    time.sleep(2)
    assert raylets() == before
    finish(stage.start("--ray", "--workers", 2))
    for job, epoch in stopped.items():
        assert [(j, e) for _, j, e in stage.seen()].count((job, epoch)) == 1, "saved where it stopped"
    nothing_left(stage)


def test_failures_look_as_they_do_without_ray(tiny: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "failing.py"
    plugin.write_text(FAILING)
    words = ["--datasets", tiny, "--plugin", plugin, "--methods", "Brittle", "sr", "--seeds", 1, "--workers", 1]
    found = [run_all(*words, "--results", tmp_path / "r", *more) for more in (["--ray"], [])]
    assert [result.returncode for result in found] == [1, 1]
    on_ray, here = ([line for line in result.stderr.splitlines() if "ailed" in line] for result in found)
    assert on_ray == here
    (error,) = (tmp_path / "r").rglob("error.txt")
    assert "Traceback" in error.read_text()


def test_a_node_with_other_code_is_noticed(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = make_jobs(tiny, ["SR"], seeds=1)
    place = SimpleNamespace(get_assigned_resources=lambda: {"CPU": 1.0})
    monkeypatch.setattr("ray.get_runtime_context", lambda: place)
    answer = SimpleNamespace(future=lambda: SimpleNamespace(result=lambda: False))
    board = SimpleNamespace(tell=SimpleNamespace(remote=lambda *told: answer))
    context = Context(tmp_path, NOWHERE, REGISTRY)
    kind, values = run_attempt(job, context, "first", ["of yesterday", "of today"], board)
    assert kind == "failed"
    assert "has another version of the code" in values["reason"]
    assert run_attempt(job, context, "second", code_of(job, context), board)[0] == "done"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "resources.cpus=64"], "a job of tiny needs 64 CPU, and no node of the cluster has that"),
        (["--set", "resources.cpus=-1"], "cpus: expected a number from 0 to 4,096"),
        (["--ray", "nowhere:1"], "no Ray cluster at 'nowhere:1'"),
        (["--ray", "auto"], "no Ray cluster at 'auto'"),
        (["--ray", "somewhere"], "--ray somewhere: expected nothing, auto, HOST:PORT or ray://HOST:PORT"),
        (["--ray", "--workers", "0"], "--workers: a cluster runs as many jobs as fit"),
        (["--ray", "auto", "--workers", "2"], "--workers: a cluster runs as many jobs as fit"),
        (["--device", "cuda:1"], "--device cuda:1: with --ray expected auto or cpu"),
        (["--jobs-per-device", "2"], "--set resources.gpus=0.5"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(tiny: Path, tmp_path: Path, words: list[str], message: str) -> None:
    words = words if "--ray" in words else ["--ray", "--workers", "2", *words]
    result = run_all("--datasets", tiny, "--results", tmp_path / "r", *words)
    assert result.returncode == 2
    assert message in result.stderr.splitlines()[-1]
