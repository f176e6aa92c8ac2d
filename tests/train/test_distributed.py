"""One job on several processes: the same mathematics as on one, the same files, and no process left behind."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from benchmark.base.errors import UserError
from benchmark.config.ingredients import AveragingConfig
from benchmark.data.dataset import prepare
from benchmark.data.devices import choose_devices
from benchmark.launch.torchrun import leave_group, run_on_ranks
from benchmark.store.store import Store
from benchmark.train import trainer as trainer_module
from benchmark.train.context import Context
from benchmark.train.distributed import ALONE, Ranks, Team, each_tensor, parts_of
from benchmark.train.networks import Network
from benchmark.train.pulse import Interrupted
from benchmark.train.run_job import run_job
from benchmark.train.trainer import Trainer
from tests.conftest import NOWHERE, PLENTY, TINY, pretend_gpus, run_all, run_here
from tests.launch.test_crash import Stage, finish
from tests.store.test_damage import CPU, REGISTRY, make_jobs, trained

pytestmark = pytest.mark.usefixtures("alone")

LABELS = ["SR", "SAT", "CCL-SC"]
MIXED = {
    "SR+CutMix+F-SAM": ("SR", {"mixing.name": "cutmix", "optimizer.sharpness": "f-sam"}),
    "SAT+RegMixup+SAM": ("SAT", {"mixing.name": "regmixup", "optimizer.sharpness": "sam"}),
    "CCL-SC+ASAM": ("CCL-SC", {"optimizer.sharpness": "asam"}),
}
"""Labels with ingredients, and the settings of these."""
EXACT = {"epochs": "6", "eval_batch_size": "70"}
"""153 images in batches of 32, so that the last has 25: 30 steps."""


class Exact(Network):
    """Without BatchNorm and dropout, in double precision."""

    def __init__(self) -> None:
        body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten())
        super().__init__(body, nn.Linear(128, 10))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(images)
        logits = self.head(features)
        return logits if self.extra is None else torch.cat([logits, self.extra(features)], 1), features


def trained_states(task: Path, ranks: Ranks) -> dict[str, Any]:
    """Each method after 30 steps, its history, and what it predicts."""
    torch.set_num_threads(1)
    before, build = torch.get_default_dtype(), trainer_module.build_network
    torch.set_default_dtype(torch.float64)
    trainer_module.build_network = lambda *_: Exact()
    try:
        found: dict[str, Any] = {}
        jobs = make_jobs(task, LABELS, seeds=1, **EXACT)
        for label, settings in MIXED.values():
            jobs += make_jobs(task, [label], seeds=1, **EXACT, **settings)
        for job in jobs:
            job = replace(job, averages=(AveragingConfig("swa"), AveragingConfig("ema", decay=0.9, ramp=7)))
            trainer = Trainer(job, REGISTRY, prepare(job.task.data, NOWHERE, 0, CPU, PLENTY), CPU, ranks)
            state = trainer.start()
            while state.epoch < job.task.epochs:
                state = trainer.run_epoch(state)
            logits = trainer.predict(state.method, trainer.data.test).logits
            final = {name: value.clone() for name, value in state.method.state_dict().items()}
            averages = {config.name: state.averages.of(config).weights for config in job.averages}
            averaged = trainer.averaged_method(state, job.averages[0])
            found[job.label] = {
                "state": final,
                "history": state.history,
                "logits": logits,
                "averages": averages,
                "averaged": trainer.predict(averaged, trainer.data.test).logits,
            }
        return found
    finally:
        torch.set_default_dtype(before)
        trainer_module.build_network = build


def be_one_of_two(rank: int, task: Path, folder: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    team = Team(rank, 2)
    found = trained_states(task, team)
    uneven = torch.arange(3 + rank, dtype=torch.float32)[:, None] + 10 * rank
    found["gathered"] = team.gather_rows(uneven, [3, 4]), team.gather_rows(uneven > 1, [2, 0])
    found["broadcast"] = team.broadcast(f"rank {rank}")
    torch.save(found, folder / f"{rank}.pt")
    leave_group()


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What one process finds, and each of two."""
    folder = tmp_path_factory.mktemp("ranks")
    task = folder / "tiny.toml"
    task.write_text(TINY)
    torch.multiprocessing.spawn(be_one_of_two, (task, folder), nprocs=2)  # type: ignore[no-untyped-call]
    return [trained_states(task, ALONE), *(torch.load(folder / f"{rank}.pt") for rank in range(2))]


def distance(ours: Tensor, theirs: Tensor) -> float:
    """Relative to the largest value."""
    if not theirs.is_floating_point():
        return 0.0 if torch.equal(ours, theirs) else 1.0
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1e-30))


@pytest.mark.parametrize("label", [*LABELS, *MIXED])
def test_two_ranks_compute_what_one_process_does(three: list[dict[str, Any]], label: str) -> None:
    alone, first, second = (found[label] for found in three)
    assert alone["state"].keys() == first["state"].keys()
    assert all(value.dtype == torch.float64 for value in alone["state"].values() if value.is_floating_point())
    assert max(distance(first["state"][name], value) for name, value in alone["state"].items()) < 1e-9
    assert distance(first["logits"], alone["logits"]) < 1e-9
    assert len(first["history"]) == 6
    for ours, theirs in zip(first["history"], alone["history"], strict=True):
        assert ours == pytest.approx(theirs, rel=1e-6), "accuracies are in single precision"
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-9)
    assert all(torch.equal(first["state"][name], value) for name, value in second["state"].items()), "queues, too"
    for name, weights in alone["averages"].items():
        assert max(distance(ours, theirs) for ours, theirs in zip(first["averages"][name], weights, strict=True)) < 1e-9
        assert all(map(torch.equal, first["averages"][name], second["averages"][name]))
    assert distance(first["averaged"], alone["averaged"]) < 1e-9
    assert distance(alone["averaged"], alone["logits"]) > 1e-3
    assert torch.equal(first["averaged"], second["averaged"])
    assert torch.equal(first["logits"], second["logits"])
    assert first["history"] == second["history"]


def test_the_comparison_means_something(three: list[dict[str, Any]]) -> None:
    """Targets have moved, queues are full, the contrastive loss is at work."""
    assert three[0]["SAT"]["state"]["target"].std() > 0.01
    assert three[0]["CCL-SC"]["history"][-1]["contrast_active"] > 0
    assert three[0]["CCL-SC"]["history"][-1]["contrast"] > 0


def test_gathered_rows_are_in_order_and_all_hear_the_first(three: list[dict[str, Any]]) -> None:
    for found in three[1:]:
        numbers, flags = found["gathered"]
        assert numbers[:, 0].tolist() == [0, 1, 2, 10, 11, 12, 13]
        assert flags[:, 0].tolist() == [False, False], "the second rank's do not count"
        assert flags.dtype == torch.bool
        assert found["broadcast"] == "rank 0"


@pytest.mark.parametrize("size", [2, 3, 8])
def test_each_row_of_a_batch_is_computed_once(size: int) -> None:
    for count in range(2, 40):
        parts = parts_of(count, size)
        assert [row for start, end in parts for row in range(start, end)] == list(range(count))
        assert len(parts) == size
        assert all(end - start != 1 for start, end in parts), "which BatchNorm refuses"
        computed = [len(range(count)[Team(rank, size).rows(count)]) for rank in range(size)]
        assert min(computed) >= 2, "a rank without rows of its own borrows some"


def test_parts_of_a_batch_are_cut_from_the_whole(tiny: Path) -> None:
    (job,) = make_jobs(tiny, ["SR"], seeds=1)
    data = prepare(job.task.data, NOWHERE, 0, CPU, PLENTY)
    arguments = (32, 0, 3, job.task.augment, 2)
    parts = zip(*(data.batches(*arguments, Team(rank, 3).rows) for rank in range(3)), strict=True)
    for whole, shared in zip(data.batches(*arguments), parts, strict=True):
        assert torch.equal(torch.cat([part.indices for part in shared]), whole.indices)
        assert torch.equal(torch.cat([part.labels for part in shared]), whole.labels)
        for view in range(2):
            assert torch.equal(torch.cat([part.views[view] for part in shared]), whole.views[view])


def test_batches_to_predict_are_dealt_once() -> None:
    for count in range(1, 9):
        dealt = Counter(index for rank in range(3) for index in Team(rank, 3).my_batches(count))
        assert all(dealt[index] == 1 for index in range(1, count))
        assert dealt[0] == 1 + max(0, 3 - count), "by ranks that have none, and it does not count"


class Pair(NamedTuple):
    a: Tensor
    b: Tensor


def test_what_a_step_carries_is_put_together_or_refused() -> None:
    rows = torch.arange(4)
    doubled = each_tensor({"x": [rows, None], "y": Pair(rows, rows)}, 4, lambda rows: torch.cat([rows, rows]))
    assert len(doubled["x"][0]) == 8
    assert isinstance(doubled["y"], Pair)
    with pytest.raises(TypeError, match=r"shape \(3,\) for 4 samples: it may hold"):
        each_tensor((rows, rows[:3]), 4, lambda rows: rows)
    with pytest.raises(TypeError, match="has a float"):
        each_tensor({"x": 0.5}, 4, lambda rows: rows)
    with pytest.raises(TypeError, match="shape"):
        each_tensor(rows.sum(), 4, lambda rows: rows)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--methods", "sr", "mmce", "soft-ece"], "the loss of MMCE, Soft ECE couples the samples of a batch"),
        (["--set", "sync_batchnorm=true"], "sync_batchnorm of tiny needs GPUs"),
        (["--gpus-per-job", "0"], "--gpus-per-job: expected a whole number from 1 to 64"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    tiny: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    common = ("--datasets", tiny, "--results", tmp_path / "r", "--device", "cpu", "--gpus-per-job", 2)
    result = run_here(*common, *words)
    assert result.returncode == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "r").exists()


def test_workers_have_groups_of_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_gpus(monkeypatch, 8)
    assert choose_devices("auto", None, 1, gpus_per_job=4) == ["cuda:0", "cuda:4"]
    assert choose_devices("cuda", None, 1, gpus_per_job=3) == ["cuda:0", "cuda:3"]
    assert choose_devices("cuda", 1, 1, gpus_per_job=4) == ["cuda:0"]
    for wanted, number in (("cuda", 9), ("cuda:1", 2)):
        with pytest.raises(UserError, match=f"--gpus-per-job {number} is more than the . GPU"):
            choose_devices(wanted, None, 1, gpus_per_job=number)


def test_synchronising_batchnorm_is_part_of_the_id_and_changes_no_name(tiny: Path) -> None:
    (plain,), (same,), (other,) = (
        make_jobs(tiny, ["SR"], seeds=1, **changes)
        for changes in ({}, {"sync_batchnorm": "false"}, {"sync_batchnorm": "true"})
    )
    assert plain.id == same.id != other.id
    data = prepare(plain.task.data, NOWHERE, 0, CPU, PLENTY)
    alone, shared = (Trainer(other, REGISTRY, data, CPU, ranks).start().method for ranks in (ALONE, Team(0, 2)))
    assert any(isinstance(module, nn.SyncBatchNorm) for module in shared.modules())
    assert not any(isinstance(module, nn.SyncBatchNorm) for module in alone.modules())
    begun = shared.state_dict()
    assert all(torch.equal(value, begun[name]) for name, value in alone.state_dict().items())
    for ours, theirs in ((alone, shared), (shared, alone)):
        ours.load_state_dict({name: torch.ones_like(value) for name, value in theirs.state_dict().items()})
        assert all(value.min() == 1 for name, value in ours.state_dict().items() if "num_batches" not in name)


@pytest.mark.parametrize(("label", "changes"), [("SAT", {}), ("SR", {"evaluate_at": "[1]"})])
def test_a_job_is_stopped_and_resumed_with_another_number(
    tiny: Path, tmp_path: Path, label: str, changes: dict[str, str]
) -> None:
    """What was predicted before the stop is predicted again by no rank: one alone would wait for the others."""
    (job,) = make_jobs(tiny, [label], seeds=1, **changes)
    context = Context(tmp_path / "r", NOWHERE, REGISTRY, gpus_per_job=2)
    with pytest.raises(Interrupted):
        run_job(job, context, CPU, lambda values: values["epochs_done"] == 1)
    epochs: list[float] = []
    with pytest.raises(Interrupted):
        run_on_ranks(job, context, CPU, lambda values: epochs.append(values["epoch"]) or values["epochs_done"] == 3)
    assert epochs == [1, 2]
    assert trained(job, context) == [3]
    environments = context.store.read_record(job.folder).provenance.environments  # type: ignore[union-attr]
    assert [line.endswith(", 2 ranks") for line in environments] == [False, True]


def test_a_grid_on_two_ranks_each(tiny: Path, tmp_path: Path, hostile: Path) -> None:
    """What trains is trained by two, what trains nothing is computed by one; each test image is predicted once.

    Neither the worker, nor the process that starts the ranks, nor a rank takes a module from where one stands.
    """
    common = ("--datasets", tiny, "--methods", "sr", "mc-dropout", "--seeds", 1, "--reference", "sr")
    settings = ("--set", "eval_batch_size=70", "--set", "network.dropout=0.01")
    assert run_here(*common, *settings, "--results", tmp_path / "one").returncode == 0
    words = ("--results", tmp_path / "two", "--gpus-per-job", 2, "--device", "cpu", "--workers", 1)
    result = run_all(*common, *settings, *words, cwd=hostile)
    assert result.returncode == 0, result.stderr
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    folders = [path.parent.relative_to(two.root) for path in sorted(two.root.rglob("record.json"))]
    assert len(folders) == 2
    for folder in folders:
        ours, theirs = (store.read_record(folder) for store in (two, one))
        assert ours.measures.classifier.nll == pytest.approx(theirs.measures.classifier.nll, rel=0.1)
        assert ours.provenance.ranks == (2 if "cross_entropy" in str(folder) else 1)
        assert np.array_equal(two.read_prediction(folder).labels, one.read_prediction(folder).labels)
        assert len(two.read_prediction(folder).prediction.logits) == 200
    assert not [path for path in two.root.rglob("*") if path.suffix in (".pt", ".tmp", ".lock", ".txt")]


@pytest.mark.crash
def test_a_rank_that_dies_ends_the_job_and_the_next_run_continues(tmp_path: Path) -> None:
    deadly = "if epoch == 2 and os.environ['RANK'] == '1' and once(): os.kill(os.getpid(), signal.SIGKILL)"
    stage = Stage(tmp_path / "stage").prepare(deadly, count=1)
    words = ("--workers", 1, "--gpus-per-job", 2, "--device", "cpu")
    stderr = finish(stage.start(*words, "--retries", 0), 1)
    assert "rank 1 of 2 died (SIGKILL; perhaps for lack of memory)" in stderr.splitlines()[-1]
    ranks = {process for process, *_ in stage.seen()}
    assert len(ranks) == 2
    assert not any(psutil.pid_exists(rank) for rank in ranks)
    assert [epoch for *_, epoch in stage.seen()] == [0, 0, 1, 1, 2, 2]
    finish(stage.start(*words))
    assert [epoch for *_, epoch in stage.seen()][6:] == [2, 2, 3, 3], "from the checkpoint"
    assert not any(psutil.pid_exists(process) for process, *_ in stage.seen())
    assert not [path for path in stage.results.rglob("*") if path.suffix in (".pt", ".tmp", ".lock", ".txt")]
