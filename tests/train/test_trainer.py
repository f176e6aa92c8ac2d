"""The loop: phases, streams, schedules, and resuming to the bit."""

import io
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmark.base.files import HOST
from benchmark.config.load import load_task
from benchmark.config.training import ScheduleConfig
from benchmark.data.dataset import prepare
from benchmark.interface import Batch, Method, Progress, Step, Validation
from benchmark.jobs.job import Job, Methods
from benchmark.jobs.plan import plan
from benchmark.measure.prediction import Prediction
from benchmark.store.provenance import Provenance
from benchmark.store.store import CHECKPOINT, CHECKPOINT_BEFORE, PREDICTION, Store
from benchmark.train.checkpoints import state_from_plain, state_to_plain
from benchmark.train.context import Context
from benchmark.train.run_job import run_job
from benchmark.train.steps.optimizers import learning_rate
from benchmark.train.trainer import Diverged, Trainer
from methods import Registry
from tests.conftest import NOWHERE, PLENTY, data_hash

CPU = torch.device("cpu")
LABELS = ["SR", "DG", "SAT", "SAT+EM", "CCL-SC"]


def make_job(tiny: Path, label: str, methods: Methods, *overrides: str, seed: int = 0) -> Job:
    task = load_task(str(tiny), overrides)
    return plan(task, [label], [seed], methods, data_hash(task))[0].jobs[0]


def make_trainer(job: Job, methods: Methods) -> Trainer:
    return Trainer(job, methods, prepare(job.task.data, NOWHERE, job.seed, CPU, PLENTY), CPU)


@dataclass(frozen=True)
class Listed:
    """A registry of classes made in a test."""

    classes: dict[str, type[Method]]

    def load(self) -> None:
        pass

    def names(self) -> list[str]:
        return list(self.classes)

    def get(self, name: str) -> type[Method]:
        return self.classes[name]

    def source_hash(self, name: str) -> str | None:
        return None

    def bytes_hash(self, name: str) -> str | None:
        return None

    def code_hash(self, name: str) -> str:
        return name


class Witness(Method):
    """Writes down what it sees; draws as many random numbers as it is told to."""

    title, reference, labels = "witness", "nobody 2000", {"witness": {}}
    draws: ClassVar[int] = 0
    seen: ClassVar[list[Any]] = []

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        torch.rand(self.draws)
        logits, features = self.network(batch.images)
        self.seen.append((batch.indices.clone(), batch.images.clone(), features.detach().clone(), progress))
        return Step(0 * cross_entropy(logits, batch.labels))

    def after_step(self, batch: Batch, carry: Any, progress: Progress) -> None:
        torch.rand(self.draws)


def test_methods_of_a_seed_share_start_batches_and_dropout(tiny: Path) -> None:
    quiet = type("Quiet", (Witness,), {"seen": [], "labels": {"quiet": {}}})
    noisy = type("Noisy", (Witness,), {"seen": [], "draws": 7, "labels": {"noisy": {}}, "extra_outputs": 1})
    methods = Listed({"quiet": quiet, "noisy": noisy})
    for name in ("quiet", "noisy"):
        task = replace(load_task(str(tiny)), method={})
        trainer = make_trainer(plan(task, [name], [0], methods, data_hash(task))[0].jobs[0], methods)
        trainer.run_epoch(trainer.start())
    assert len(quiet.seen) == len(noisy.seen) == 5
    for (i, x, f, p), (i2, x2, f2, p2) in zip(quiet.seen, noisy.seen, strict=True):
        assert torch.equal(i, i2)
        assert torch.equal(x, x2)
        assert torch.equal(f, f2)
        assert p == p2
    assert [p.step for *_, p in quiet.seen] == [0, 1, 2, 3, 4]


def test_dropout_of_the_network_comes_from_the_model_stream(tiny: Path) -> None:
    """What a method draws in after_step never shifts the next step's dropout."""

    class Dropped(Witness):
        seen: ClassVar[list[Any]] = []

        def training_step(self, batch: Batch, progress: Progress) -> Step:
            self.seen.append(self.network.dropout(torch.ones(50)))
            return super().training_step(batch, progress)

    other = type("Other", (Dropped,), {"seen": [], "draws": 3, "labels": {"other": {}}})
    methods = Listed({"dropped": Dropped, "other": other})
    task = replace(load_task(str(tiny)), method={})
    for label in ("witness", "other"):
        trainer = make_trainer(plan(task, [label], [0], methods, data_hash(task))[0].jobs[0], methods)
        trainer.run_epoch(trainer.start())
    masks = [[m for m in cls.seen if isinstance(m, Tensor)] for cls in (Dropped, other)]
    assert all(torch.equal(a, b) for a, b in zip(*masks, strict=True))
    assert not torch.equal(masks[0][0], masks[0][1])


def test_warmup_is_the_declared_method_to_the_bit(tiny: Path, registry: Registry) -> None:
    """Until a method branches off, its network and optimiser are those of plain cross-entropy."""
    plain = make_trainer(make_job(tiny, "SR", registry), registry)
    expected = plain.start()
    for _ in range(2):
        expected = plain.run_epoch(expected)
    for label in ("DG", "SAT", "SAT+EM"):
        trainer = make_trainer(make_job(tiny, label, registry), registry)
        state = trainer.start()
        for _ in range(2):
            state = trainer.run_epoch(state)
        assert state.history == expected.history
        for name, value in expected.method.state_dict().items():
            assert torch.equal(state.method.state_dict()[name], value), (label, name)
        branched = trainer.branch(state)
        assert type(branched.method) is registry.get(trainer.job.method)
        weight = dict(branched.method.named_parameters())["network.head.weight"]
        momentum = branched.optimizer.state[weight]["momentum_buffer"]
        old = dict(expected.method.named_parameters())["network.head.weight"]
        assert torch.equal(momentum, expected.optimizer.state[old]["momentum_buffer"])
        assert (branched.method.network.extra.weight == 0).all()


def test_without_warmup_the_extra_output_starts_random_from_its_own_stream(tiny: Path, registry: Registry) -> None:
    jobs = [make_job(tiny, label, registry, f"method.{label}.warmup_epochs=0") for label in ("DG", "SAT")]
    dg, sat = (make_trainer(job, registry).start().method.network for job in jobs)
    sr = make_trainer(make_job(tiny, "SR", registry), registry).start().method.network
    assert torch.equal(dg.head.weight, sr.head.weight)
    assert torch.equal(dg.extra.weight, sat.extra.weight)
    assert dg.extra.weight.std() > 0


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_resumed_equals_unbroken_to_the_bit(
    tiny: Path, tmp_path: Path, registry: Registry, label: str, stop_after: int
) -> None:
    """Interrupted after any epoch, also between the phases, on a network with dropout and augmentation."""
    job = make_job(tiny, label, registry)
    whole, broken = (Context(tmp_path / name, NOWHERE, registry) for name in ("whole", "broken"))
    run_job(job, whole, CPU, lambda values: None)

    def stop(values: dict[str, Any]) -> None:
        if values["epochs_done"] == stop_after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(job, broken, CPU, stop)
    assert broken.store.state(job.folder) == "partial"
    epochs: list[float] = []
    run_job(job, broken, CPU, lambda values: epochs.append(values["epoch"]))
    assert epochs == list(range(stop_after, 4))
    files = sorted(p.name for p in (tmp_path / "whole" / job.folder).iterdir())
    assert files == ["classifier.npz", "history.csv", "prediction-val.npz", "prediction.npz", "record.json"]
    for name in files[:4]:
        assert (tmp_path / "whole" / job.folder / name).read_bytes() == (
            tmp_path / "broken" / job.folder / name
        ).read_bytes()
    records = [context.store.read_record(job.folder) for context in (whole, broken)]
    assert all(record.provenance != Provenance() for record in records)
    ours, theirs = (replace(record, provenance=Provenance()) for record in records)
    assert ours == theirs


def test_a_damaged_checkpoint_is_moved_aside_and_the_job_starts_again(
    tiny: Path, tmp_path: Path, registry: Registry
) -> None:
    job, context = make_job(tiny, "SR", registry), Context(tmp_path / "r", NOWHERE, registry)
    trainer = make_trainer(job, registry)
    buffer = io.BytesIO()
    torch.save({**state_to_plain(trainer.run_epoch(trainer.start())), "seconds": 1.0, "environments": []}, buffer)
    context.store.write_checkpoint(job.folder, buffer.getvalue())
    path = tmp_path / "r" / job.folder / CHECKPOINT
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    epochs: list[float] = []
    run_job(job, context, CPU, lambda values: epochs.append(values["epoch"]))
    assert epochs == [0, 1, 2, 3]
    assert path.with_name(f"{CHECKPOINT}.damaged").is_file()


def test_checkpoints_are_plain_and_load_without_running_code(tiny: Path, registry: Registry) -> None:
    trainer = make_trainer(make_job(tiny, "CCL-SC", registry), registry)
    state = trainer.start()
    for _ in range(2):
        state = trainer.run_epoch(state)
    buffer = io.BytesIO()
    torch.save(state_to_plain(state), buffer)
    plain = torch.load(io.BytesIO(buffer.getvalue()), weights_only=True)
    again = state_from_plain(trainer, plain)
    assert again.epoch == 2
    for name, value in state.method.state_dict().items():
        assert torch.equal(again.method.state_dict()[name], value), name


def test_resuming_elsewhere_is_allowed_and_recorded(
    tiny: Path, tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, context = make_job(tiny, "SR", registry), Context(tmp_path / "r", NOWHERE, registry)

    def stop(values: dict[str, Any]) -> None:
        if values["epochs_done"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(job, context, CPU, stop)
    monkeypatch.setattr("benchmark.train.accounting.environment", lambda *_: "another machine")
    run_job(job, context, CPU, lambda values: None)
    assert len(context.store.read_record(job.folder).provenance.environments) == 2


def test_keep_weights_keeps_a_checkpoint_that_predicts_the_same(tiny: Path, tmp_path: Path, registry: Registry) -> None:
    job, context = make_job(tiny, "SAT", registry), Context(tmp_path, NOWHERE, registry, keep_weights=True)
    run_job(job, context, CPU, lambda values: None)
    trainer = make_trainer(job, registry)
    state = state_from_plain(trainer, torch.load(tmp_path / job.folder / CHECKPOINT, weights_only=True))
    logits = trainer.predict(state.method, trainer.data.test).logits
    stored = Store(tmp_path).read_prediction(job.folder, PREDICTION)
    assert (logits.numpy() == stored.prediction.logits).all()
    context.store.tidy(job.folder)
    assert next(context.store.checkpoints(job.folder), None) is not None, "weights that were asked for stay"


def test_a_crash_between_record_and_clean_up_leaves_nothing_for_good(
    tiny: Path, tmp_path: Path, registry: Registry
) -> None:
    job, context = make_job(tiny, "SR", registry), Context(tmp_path, NOWHERE, registry)
    run_job(job, context, CPU, lambda values: None)
    for name in (CHECKPOINT, CHECKPOINT_BEFORE, "error.txt", "log.txt", f".record.json.{HOST}-{2**22 + 1}.tmp"):
        (tmp_path / job.folder / name).write_bytes(b"left over")
    context.store.tidy(job.folder)
    context.store.check_writable()
    names = sorted(path.name for path in (tmp_path / job.folder).iterdir())
    assert names == ["classifier.npz", "history.csv", "prediction-val.npz", "prediction.npz", "record.json"]


def test_a_loss_that_is_no_number_ends_the_job(tiny: Path, registry: Registry) -> None:
    trainer = make_trainer(make_job(tiny, "SR", registry, "optimizer.lr=1e9"), registry)
    state = trainer.start()
    with pytest.raises(Diverged, match="loss is"):
        for _ in range(4):
            state = trainer.run_epoch(state)


def test_best_checkpoint_is_the_earliest_with_the_best_validation_accuracy(tiny: Path, registry: Registry) -> None:
    trainer = make_trainer(make_job(tiny, "SR", registry, "checkpoint=best", "optimizer.lr=0.3"), registry)
    state, accuracies, states = trainer.start(), [], []
    for _ in range(4):
        state = trainer.run_epoch(state)
        logits = trainer.predict(state.method, trainer.data.val).logits
        accuracies.append((logits.argmax(1) == trainer.data.val.labels).double().mean().item())
        states.append({k: v.clone() for k, v in state.method.state_dict().items()})
    best = accuracies.index(max(accuracies))
    assert state.best["epoch"] == best
    chosen = trainer.tested_method(state).state_dict()
    assert all(torch.equal(chosen[name], states[best][name]) for name in chosen)


def test_of_equally_good_epochs_the_first_is_tested(
    tiny: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(make_job(tiny, "SR", registry, "checkpoint=best"), registry)
    same = Prediction(torch.eye(10)[torch.zeros(len(trainer.data.val), dtype=torch.long)])
    monkeypatch.setattr(Trainer, "predict", lambda self, method, split: same)
    state = trainer.start()
    for _ in range(3):
        state = trainer.run_epoch(state)
    assert state.best["epoch"] == 0


def test_a_network_that_overflows_in_its_last_step_is_no_result(tiny: Path, tmp_path: Path, registry: Registry) -> None:
    job, context = make_job(tiny, "SR", registry, "epochs=1", "batch_size=200"), Context(tmp_path, NOWHERE, registry)
    beyond_limits = replace(job.task.optimizer, lr=1e30)
    job = replace(job, task=replace(job.task, optimizer=beyond_limits))
    with pytest.raises(Diverged, match="not finite"):
        run_job(job, context, CPU, lambda values: None)
    assert context.store.state(job.folder) == "diverged"


def test_a_trial_of_a_few_steps_validates_on_a_few_batches(tiny: Path, registry: Registry) -> None:
    task = load_task(str(tiny), ["checkpoint=best", "eval_batch_size=5"])
    job = plan(task, ["SR"], [0], registry, data_hash(task), max_steps=1)[0].jobs[0]
    trainer = make_trainer(job, registry)
    assert trainer.run_epoch(trainer.start()).best is not None


def test_validation_reaches_a_method_that_asks_for_it(tiny: Path) -> None:
    class Asking(Witness):
        needs_validation = True
        given: ClassVar[list[Validation | None]] = []

        def after_epoch(self, progress: Progress, validation: Validation | None) -> None:
            self.given.append(validation)

    task = replace(load_task(str(tiny)), method={})
    methods = Listed({"asking": Asking})
    trainer = make_trainer(plan(task, ["witness"], [0], methods, data_hash(task))[0].jobs[0], methods)
    trainer.run_epoch(trainer.start())
    assert Asking.given[0].prediction.logits.shape == (17, 10)
    assert Asking.given[0].labels.shape == (17,)


def test_learning_rates() -> None:
    step = ScheduleConfig("step", 0.5, 25)
    assert [learning_rate(0.1, step, e, 0.9, 300) for e in (0, 24, 25, 150, 299)] == [
        0.1, 0.1, 0.05, 0.0015625, 0.1 * 0.5**11
    ]  # fmt: skip
    cosine = ScheduleConfig("cosine")
    assert learning_rate(2.0, cosine, 0, 0.0, 10) == 2.0
    assert learning_rate(2.0, cosine, 5, 0.0, 10) == pytest.approx(1.0)
    assert learning_rate(2.0, cosine, 9, 0.5, 10) == pytest.approx(1 + math.cos(math.pi * 0.95))
    assert learning_rate(0.3, ScheduleConfig(), 7, 0.0, 10) == 0.3
    snapshots = ScheduleConfig("cyclic", cycles=5)
    rates = [learning_rate(0.2, snapshots, t - 1, 0.0, 200) for t in (1, 2, 20, 40, 41)]
    assert rates == pytest.approx([0.2, 0.19969173, 0.10784591, 0.00030827, 0.2], abs=1e-8)
    assert learning_rate(0.2, snapshots, 40, 0.5, 200) < 0.2, "per iteration"


@pytest.mark.parametrize("rise", [0.1, 0.25, 0.5])
def test_a_one_cycle_rate_is_that_of_torch(rise: float) -> None:
    """Its scheduler has one shape for both ways: the rise is that of `linear`, the fall that of `cos`."""
    schedule, steps = ScheduleConfig("one-cycle", rise=rise), 40
    expected = [torch_one_cycle(shape, rise, steps) for shape in ("linear", "cos")]
    for step in range(steps):
        found = learning_rate(0.4, schedule, step // 10, step % 10 / 10, 4)
        assert found == pytest.approx(expected[step >= rise * steps][step], abs=1e-6)


def torch_one_cycle(shape: Any, rise: float, steps: int) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    pace = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.4, total_steps=steps + 1, pct_start=(rise * steps + 1) / (steps + 1), anneal_strategy=shape,
        cycle_momentum=False, div_factor=10, final_div_factor=1e9,
    )  # fmt: skip
    rates = []
    for _ in range(steps):
        rates.append(pace.get_last_lr()[0])
        optimizer.step()
        pace.step()
    return rates


def test_a_contrastive_loss_that_never_started_is_noted(tiny: Path, tmp_path: Path, registry: Registry) -> None:
    job = make_job(tiny, "CCL-SC", registry, "method.ccl_sc.queue_size=5000")
    context = Context(tmp_path, NOWHERE, registry)
    run_job(job, context, CPU, lambda values: None)
    assert "never started" in context.store.read_record(job.folder).notes[0]


def test_a_warm_up_is_measured_by_the_score_that_it_has(tiny: Path, tmp_path: Path, registry: Registry) -> None:
    """An epoch of a warm-up belongs to another method, without the outputs of this one."""
    tiny.write_text(f"evaluate_at = [1, 3]\n{tiny.read_text()}")
    job, context = make_job(tiny, "SAT", registry), Context(tmp_path / "r", NOWHERE, registry)
    run_job(job, context, CPU, lambda values: None)
    record = context.store.read_record(job.folder)
    assert record is not None and job.warmup_epochs == 2
    assert list(record.at_epochs[1].scores) == ["SR"]
    assert list(record.at_epochs[3].scores) == ["abstention", "SR"]
