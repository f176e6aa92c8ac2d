"""Stopped within an epoch: saved at the step, gone on to the same bits."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmark.config.load import load_task
from benchmark.jobs.job import Job
from benchmark.jobs.plan import plan
from benchmark.jobs.shared_warmup import share_warmups
from benchmark.store.store import CHECKPOINT, Store
from benchmark.train import pulse
from benchmark.train.context import Context
from benchmark.train.pulse import Interrupted, Pulse
from benchmark.train.run_job import run_job
from methods import Registry
from tests.conftest import NOWHERE, TINY, data_hash
from tests.jobs.test_shared_warmup import results_of

CPU = torch.device("cpu")
REGISTRY = Registry()
LABELS = ["SR", "DG", "SAT+EM", "CCL-SC", "CCL-SC frozen", "AdaFocal"]
"""Plain; warm-up and a further output; targets per image; queues and a second network; these at rest; validation."""
BUSY = ("checkpoint=best", "evaluate_at=2,3")
"""Validation after each epoch, predictions on the way."""


@pytest.fixture(autouse=True)
def always_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "BEAT_SECONDS", 0.0)


def make_jobs(folder: Path, labels: list[str], *overrides: str) -> list[Job]:
    path = folder / "tiny.toml"
    path.write_text(TINY)
    task = load_task(str(path), overrides)
    return [entry.jobs[0] for entry in plan(task, labels, [0], REGISTRY, data_hash(task))]


def beats(job: Job, context: Context, stop_at: int | None = None) -> int:
    """Run it until so many signs of life; returns how many there were."""
    count = 0

    def beat(values: dict[str, Any]) -> bool:
        nonlocal count
        count += 1
        return count == stop_at

    run_job(job, context, CPU, lambda values: None, beat=beat)
    return count


def weights(store: Store, job: Job) -> list[dict[str, Any]]:
    """What the final checkpoint holds, but for times."""
    plain = torch.load(store.root / job.folder / CHECKPOINT, weights_only=True)
    states = [plain["method"], *(plain["optimizer"][name] for name in sorted(plain["optimizer"]))]
    assert (plain["step"], plain["sums"]) == (0, {})
    return states


def same(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> bool:
    pairs = list(zip(ours, theirs, strict=True))
    assert all(a.keys() == b.keys() for a, b in pairs)
    return all(torch.equal(torch.as_tensor(a[name]), torch.as_tensor(b[name])) for a, b in pairs for name in a)


def without_checkpoints(folder: Path) -> dict[str, Any]:
    return {name: value for name, value in results_of(folder).items() if not name.endswith(".pt")}


def in_pieces(job: Job, context: Context, length: int) -> Iterator[int]:
    """Interrupted at every `length`-th sign of life until it is done."""
    while True:
        try:
            beats(job, context, length)
            return
        except Interrupted:
            yield context.store.state(job.folder) == "partial"


@pytest.mark.parametrize("label", LABELS)
def test_stopped_at_any_step_it_ends_with_the_same_bits(tmp_path: Path, label: str) -> None:
    """Record, predictions, learning curve, weights, optimiser; also when stopped while it predicts."""
    settings = BUSY if label in ("SR", "AdaFocal") else ()
    (job,) = make_jobs(tmp_path, [label], *settings)
    whole, broken = (Context(tmp_path / name, NOWHERE, REGISTRY, keep_weights=True) for name in ("whole", "broken"))
    count, length = beats(job, whole), 4
    stops = list(in_pieces(job, broken, length))
    assert len(stops) >= count // length - 1
    assert all(stops), "saved, and not finished"
    assert same(weights(whole.store, job), weights(broken.store, job))
    assert without_checkpoints(whole.results) == without_checkpoints(broken.results)


def test_a_shared_trunk_and_what_branches_off_it(tmp_path: Path) -> None:
    """Stopped within the warm-up, and within the first epoch of a branch, which then goes on by itself."""
    found = {}
    for name, length in (("whole", None), ("broken", 4)):
        context = Context(tmp_path / name, NOWHERE, REGISTRY)
        trunk, *branches = share_warmups(make_jobs(tmp_path, ["SAT", "DG"]), context.store)
        assert trunk.until == 2
        for job in (trunk, *branches):
            stops = list(in_pieces(job, context, length)) if length else beats(job, context)
            assert stops
        found[name] = without_checkpoints(context.results)
    assert found["whole"] == found["broken"]


def test_half_precision_and_adam(tmp_path: Path) -> None:
    settings = ("amp=fp16", "optimizer.name=adam", "optimizer.momentum=0", "optimizer.lr=0.01", "epochs=2")
    (job,) = make_jobs(tmp_path, ["SR"], *settings)
    whole, broken = (Context(tmp_path / name, NOWHERE, REGISTRY, keep_weights=True) for name in ("whole", "broken"))
    beats(job, whole)
    assert list(in_pieces(job, broken, 4))
    assert same(weights(whole.store, job), weights(broken.store, job))
    assert without_checkpoints(whole.results) == without_checkpoints(broken.results)


def test_a_checkpoint_of_before_there_were_steps_is_read(tmp_path: Path) -> None:
    """Nor did queues at rest say so."""
    (job,) = make_jobs(tmp_path, ["CCL-SC frozen"])
    whole, broken = (Context(tmp_path / name, NOWHERE, REGISTRY) for name in ("whole", "broken"))
    beats(job, whole)
    with pytest.raises(Interrupted):
        run_job(job, broken, CPU, lambda values: values["epochs_done"] == 3)
    (payload, *_) = broken.store.checkpoints(job.folder)
    plain = torch.load(io.BytesIO(payload), weights_only=True)
    del plain["step"], plain["sums"], plain["method"]["memory.at_rest"]
    buffer = io.BytesIO()
    torch.save(plain, buffer)
    broken.store.write_checkpoint(job.folder, buffer.getvalue())
    epochs: list[float] = []
    run_job(job, broken, CPU, lambda values: epochs.append(values["epoch"]))
    assert epochs == [3]
    assert results_of(whole.results) == results_of(broken.results)


def test_a_killed_process_loses_no_more_than_checkpoint_seconds_of_an_epoch(tmp_path: Path) -> None:
    """Which is 0 here, so that the first step is saved; later ones only as far as saving them costs little."""
    (job,) = make_jobs(tmp_path, ["SR"])
    context, done = Context(tmp_path / "r", NOWHERE, REGISTRY), []

    class Killed(Exception):
        pass

    def kill(values: dict[str, Any]) -> None:
        done.append(values["done"])
        if len(done) == 4:
            raise Killed

    with pytest.raises(Killed):
        run_job(job, context, CPU, lambda values: None, beat=kill)
    (payload, *_) = context.store.checkpoints(job.folder)
    plain = torch.load(io.BytesIO(payload), weights_only=True)
    assert plain["epoch"] == 0
    assert 1 <= plain["step"] < 4
    assert done == [1, 2, 3, 4]


def test_fast_steps_are_silent_and_slow_ones_tell_step_and_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(pulse, "BEAT_SECONDS", 2.0)
    monkeypatch.setattr("benchmark.train.pulse.time.monotonic", lambda: now[0])
    told: list[dict[str, Any]] = []
    slow = Pulse(told.append)
    for step in range(1, 101):
        now[0] += 0.001
        slow(step, 100, 0)
    assert not told
    for step in range(1, 4):
        now[0] += 1.5
        slow(step, 3, 1)
    assert told == [{"epoch": 1, "done": 2, "of": 3, "rate": pytest.approx(1 / 1.5)}]
    asked = Pulse(lambda values: True, can_stop=False)
    now[0] += 3
    asked(1, 3, 1)
    asked.can_stop = True
    asked(2, 3, 1)
    now[0] += 3
    with pytest.raises(Interrupted):
        asked(3, 3, 1)
