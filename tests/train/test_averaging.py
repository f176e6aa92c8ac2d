"""Averaged weights: by hand, beside torch's own, shared with the training, resumed and branched to the bit."""

import copy
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

from benchmark.base.errors import UserError
from benchmark.config.ingredients import AveragingConfig
from benchmark.config.load import load_task
from benchmark.interface import Method
from benchmark.jobs.job import Job
from benchmark.jobs.plan import plan
from benchmark.jobs.shared_warmup import share_averages
from benchmark.store.store import PREDICTION, Store
from benchmark.train.checkpoints import state_from_plain, state_to_plain
from benchmark.train.context import Context
from benchmark.train.pulse import Interrupted
from benchmark.train.run_job import run_job
from benchmark.train.steps.averaging import Average, Averages, ema_decay, fresh_statistics
from benchmark.train.steps.optimizers import learning_rate
from benchmark.train.trainer import Trainer, trained_parameters
from methods import Registry
from tests.conftest import NOWHERE, data_hash, run_here
from tests.jobs.test_shared_warmup import results_of
from tests.train.test_speed_settings import assert_resumes
from tests.train.test_trainer import make_trainer

CPU = torch.device("cpu")
REGISTRY = Registry()
SWA, EMA = AveragingConfig("swa"), AveragingConfig("ema", decay=0.9, ramp=7)


def small_network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).double()


def jobs_of(tiny: Path, label: str, *overrides: str) -> list[Job]:
    """The training as it is, then the job that takes over its average."""
    task = load_task(str(tiny), overrides)
    return [entry.jobs[0] for entry in plan(task, [label], [0], REGISTRY, data_hash(task))]


def test_ema_rises_to_its_decay() -> None:
    assert ema_decay(1, 0.9998, 2000) == pytest.approx(0.9998 * (1 - math.exp(-1 / 2000)), abs=1e-15)
    assert ema_decay(2000, 1.0, 2000) == pytest.approx(0.6321205588285577)
    assert ema_decay(5, 0.9, 0) == 0.9


@pytest.mark.parametrize("decay", [0.9, 0.5])
def test_averages_equal_those_by_hand_and_of_torch(decay: float) -> None:
    """In double precision: a trajectory of weights, its mean, and its moving mean."""
    network, random = small_network(), torch.Generator().manual_seed(1)
    configs = [SWA, AveragingConfig("ema", decay=decay, ramp=0), AveragingConfig("ema", decay=decay, ramp=4)]
    averages = Averages([Average(config) for config in configs], 0, 1)
    parameters = list(network.parameters())
    averages.begin_epoch(0, parameters)
    theirs = [AveragedModel(network), AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(decay))]
    theirs[1].update_parameters(network)  # torch begins with a copy, too, at its first update
    saved, by_hand = [], [p.detach().clone() for p in parameters]
    for step in range(1, 9):
        with torch.no_grad():
            for parameter in parameters:
                parameter.add_(torch.randn(parameter.shape, generator=random, dtype=torch.float64))
        averages.after_step(parameters)
        averages.after_epoch(parameters)
        theirs[0].update_parameters(network)
        theirs[1].update_parameters(network)
        saved.append([p.detach().clone() for p in parameters])
        d = decay * (1 - math.exp(-step / 4))
        by_hand = [d * old + (1 - d) * p.detach() for old, p in zip(by_hand, parameters, strict=True)]
    means = [torch.stack(each).sum(0) / len(saved) for each in zip(*saved, strict=True)]
    for ours, expected in (
        (averages.each[0], means),
        (averages.each[0], theirs[0].module.parameters()),
        (averages.each[1], theirs[1].module.parameters()),
        (averages.each[2], by_hand),
    ):
        for mine, other in zip(ours.weights, expected, strict=True):
            assert torch.allclose(mine, other.detach(), rtol=0, atol=1e-12)


def test_statistics_are_those_of_torch() -> None:
    network, random = small_network(), torch.Generator().manual_seed(2)
    network[1].running_mean.fill_(99.0)
    batches = [torch.randn(n, 3, generator=random, dtype=torch.float64) for n in (8, 8, 5)]
    expected = copy.deepcopy(network)
    update_bn(batches, expected)
    network.train()
    with torch.no_grad(), fresh_statistics(network) as statistics:
        for batch in batches:
            network(batch)
            statistics.add_batch()
    for mine, other in zip(network[1].buffers(), expected[1].buffers(), strict=True):
        assert torch.allclose(mine.double(), other.double(), rtol=0, atol=1e-12) or mine.dtype == torch.int64
    assert network[1].momentum == 0.1


def trained_in_double(job: Job, monkeypatch: pytest.MonkeyPatch) -> tuple[Trainer, Any, list[list[Tensor]]]:
    """Train a job in double precision; also return the trained weights after each step."""
    trainer = make_trainer(job, REGISTRY)
    trainer = replace(trainer, data=replace(trainer.data, mean=trainer.data.mean.double()))
    seen: list[list[Tensor]] = []
    build = type(trainer).make_method

    def in_double(self: Trainer, *arguments: Any) -> Method:
        return build(self, *arguments).double()

    def note(*_: Any) -> None:
        seen.append([p.detach().clone() for p in trained_parameters(state.method)])

    monkeypatch.setattr(Trainer, "make_method", in_double)
    trainer = replace(trainer, pulse=note)  # type: ignore[arg-type]
    state = trainer.start()
    note()
    while state.epoch < job.task.epochs:
        state = trainer.in_phase(state)
        trainer.run_epoch(state)
    return trainer, state, seen


def test_a_training_averages_the_states_that_one_would_save(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = jobs_of(tiny, "SR", "averaging.name=none")
    job = replace(job, averages=(SWA, EMA))
    trainer, state, seen = trained_in_double(job, monkeypatch)
    steps = (len(seen) - 1) // 4
    ends = [seen[steps * epoch] for epoch in (3, 4)]  # 0.6 of 4 epochs is 2
    swa = [torch.stack(each).mean(0) for each in zip(*ends, strict=True)]
    ema = seen[0]
    for step, weights in enumerate(seen[1:], 1):
        d = 0.9 * (1 - math.exp(-step / 7))
        ema = [d * old + (1 - d) * new for old, new in zip(ema, weights, strict=True)]
    for config, expected in ((SWA, swa), (EMA, ema)):
        found = state.averages.of(config).weights
        assert all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(found, expected, strict=True))
    method = trainer.averaged_method(state, SWA)
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(trained_parameters(method), swa, strict=True))


def test_the_statistics_of_an_averaged_network_are_those_that_torch_gives_it(tiny: Path) -> None:
    """From a pass over the training images, which are augmented as in an epoch that follows the last."""
    (job,) = jobs_of(tiny, "SR", "averaging.name=none", "epochs=3")
    trainer = make_trainer(replace(job, averages=(SWA,)), REGISTRY)
    state, task = trainer.start(), job.task
    while state.epoch < task.epochs:
        state = trainer.run_epoch(state)
    before = [value.clone() for value in statistics_of(state.method)]
    method = trainer.averaged_method(state, SWA)
    theirs = copy.deepcopy(method.network)
    for layer in norms(theirs):
        layer.num_batches_tracked = torch.tensor(0)  # type: ignore[assignment]  # torch's average counts them
    batches = trainer.data.batches(task.batch_size, job.seed, task.epochs, task.augment, 1)
    update_bn((batch.images for batch in batches), theirs)
    for old, mine, other in zip(before, statistics_of(method), statistics_of(theirs), strict=True):
        torch.testing.assert_close(mine, other)
        assert not torch.allclose(old, mine)


def norms(module: nn.Module) -> list[nn.BatchNorm2d]:
    return [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]


def statistics_of(module: nn.Module) -> list[Tensor]:
    return [each for layer in norms(module) for each in (layer.running_mean, layer.running_var) if each is not None]


def test_the_training_stays_as_it_is(tiny: Path, tmp_path: Path) -> None:
    """The last weights are those of a training without averages, to the bit, and it trains once."""
    alone, both = tmp_path / "alone", tmp_path / "both"
    common = ("--datasets", tiny, "--methods", "sr", "sat", "--seeds", 1)
    assert run_here(*common, "--results", alone).returncode == 0
    plan = run_here(*common, "--with", "swa", "--results", both, "--dry-run").stdout
    assert "6 epochs to train (16 without shared trainings)" in plan
    result = run_here(*common, "--with", "swa", "--results", both)
    assert result.returncode == 0, result.stderr
    before, after = results_of(alone), results_of(both)
    assert before.items() <= after.items()
    assert len(after) == 2 * len(before)
    table = (both / "tables" / f"{tiny.stem}.md").read_text()
    assert [name for name in ("SAT+SWA", "SR+SWA") if name not in table] == []
    assert "(modified)" not in table
    assert not list(both.rglob("checkpoint*")), "weights wait for the average, and no longer"


def test_an_average_of_a_finished_run_trains_it_again_to_the_same_bits(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sat", "--seeds", 1)
    at_once, later = tmp_path / "at_once", tmp_path / "later"
    assert run_here(*common, "--with", "ema", "--results", at_once).returncode == 0
    assert run_here(*common, "--results", later).returncode == 0
    assert run_here(*common, "--with", "ema", "--results", later).returncode == 0
    assert results_of(at_once) == results_of(later)


def test_several_averages_are_taken_of_one_training(tiny: Path) -> None:
    swa, ema = (jobs_of(tiny, "SR", f"averaging.name={name}") for name in ("swa", "ema"))
    assert swa[0] == ema[0]
    shared = share_averages([swa[0], swa[1], ema[1]])
    assert [each.name for each in shared[0].averages] == ["swa", "ema"]
    assert shared[0].id == swa[0].id
    assert shared[1:] == [swa[1], ema[1]]


@pytest.mark.parametrize("name", ["swa", "ema"])
@pytest.mark.parametrize("label", ["SAT", "CCL-SC"])
def test_a_killed_training_resumes_its_averages(tiny: Path, tmp_path: Path, label: str, name: str) -> None:
    """The job that averages trains here by itself, as its training is long done."""
    trained, averaged = jobs_of(tiny, label, f"averaging.name={name}")
    for folder in ("whole", "broken"):
        run_job(trained, Context(tmp_path / folder, NOWHERE, REGISTRY), CPU, lambda values: None)
    assert_resumes(averaged, tmp_path, CPU)


def test_branched_equals_unbranched_with_averages(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "sat", "ccl-sc", "--with", "ema", "--seeds", 1)
    assert run_here(*common, "--results", tmp_path / "alone", "--no-shared-warmup").returncode == 0
    assert run_here(*common, "--results", tmp_path / "shared").returncode == 0
    assert results_of(tmp_path / "alone") == results_of(tmp_path / "shared")


def test_what_starts_from_a_network_or_combines_runs_gets_the_average(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "mc-dropout", "deep-ensemble", "--with", "swa", "--seeds", 1)
    result = run_here(*common, "--results", tmp_path)
    assert result.returncode == 0, result.stderr
    store, task = Store(tmp_path), load_task(str(tiny), ["averaging.name=swa", "channels_last=true"])
    entries = {e.label: e for e in plan(task, ["SR", "MC-dropout", "Deep ensemble"], [0], REGISTRY, data_hash(task))}
    assert {need.needs[0].label for need in entries["Deep ensemble+SWA"].jobs[0].needs} == {"SR"}
    assert entries["MC-dropout+SWA"].jobs[0].needs == entries["MC-dropout"].jobs[0].needs
    logits = {
        label: store.read_prediction(entry.jobs[0].folder, PREDICTION).prediction.logits
        for label, entry in entries.items()
    }
    for label in ("SR", "MC-dropout", "Deep ensemble"):
        assert (logits[label] != logits[f"{label}+SWA"]).any(), label


def test_a_held_rate_is_another_training(tiny: Path) -> None:
    plain, held = (jobs_of(tiny, "SR", "averaging.name=swa", f"averaging.rate={rate}")[0] for rate in (0, 0.5))
    assert plain.id != held.id
    rates = [learning_rate(0.2, held.task.schedule, epoch, 0.0, 4) for epoch in range(4)]
    assert rates == [0.2, 0.2, 0.1, 0.1]


def test_states_of_earlier_epochs_have_no_average(tiny: Path) -> None:
    _, averaged = plan_entries(tiny, "Snapshot ensemble", "averaging.name=swa")
    assert averaged.reason == "combines states of earlier epochs, and has no final weights to average"


def plan_entries(tiny: Path, label: str, *overrides: str) -> Any:
    task = load_task(str(tiny), overrides)
    return plan(task, [label], [0], REGISTRY, data_hash(task))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("averaging.decay=0.5", "decay belongs to name = ema, not to none"),
        ("averaging.start=1", "start must be at least 0 and below 1"),
        ("averaging.name=sva", "did you mean 'swa'"),
    ],
)
def test_settings_that_mean_nothing_are_refused(tiny: Path, override: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_task(str(tiny), [override])


def test_an_epoch_counts_once_where_its_validation_is_interrupted(tiny: Path) -> None:
    (job,) = jobs_of(tiny, "SR", "averaging.name=none", "checkpoint=best")
    job = replace(job, averages=(AveragingConfig("swa", start=0.0),))
    whole, broken = make_trainer(job, REGISTRY), make_trainer(job, REGISTRY)
    stops = [True]

    def stop(done: int, of: int, epoch: int | None = None) -> None:
        if epoch is None and stops:
            stops.clear()
            raise Interrupted

    broken = replace(broken, pulse=stop)  # type: ignore[arg-type]
    states = [whole.run_epoch(whole.start())]
    state = broken.start()
    with pytest.raises(Interrupted):
        broken.run_epoch(state)
    again = state_from_plain(broken, state_to_plain(state))
    states.append(broken.run_epoch(again))
    ours, theirs = (each.averages.each[0] for each in states)
    assert ours.count == theirs.count == 1
    assert all(map(torch.equal, ours.weights, theirs.weights))
