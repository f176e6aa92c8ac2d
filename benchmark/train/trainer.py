"""Train any method with one loop. It knows no method: phases, streams and state follow from what methods declare."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer

from benchmark.base.schema import build
from benchmark.config.ingredients import AveragingConfig, MixingConfig
from benchmark.config.task import TaskConfig
from benchmark.config.training import OptimizerConfig, ScheduleConfig
from benchmark.data import streams
from benchmark.data.dataset import DataSet, Split
from benchmark.data.devices import has_streams
from benchmark.interface import Batch, Method, Progress, Task, Validation
from benchmark.jobs.job import Job, Methods
from benchmark.measure.prediction import Prediction
from benchmark.train.distributed import ALONE, Ranks, Sums
from benchmark.train.networks import Network, build_network
from benchmark.train.pulse import Pulse
from benchmark.train.steps.averaging import Averages, fresh_statistics, load_average
from benchmark.train.steps.mixing import prepared, rows_of
from benchmark.train.steps.optimizers import OPTIMIZERS, set_rates, with_rates
from benchmark.train.steps.sharpness import Sharpness, make_sharpness
from benchmark.train.steps.step import accumulate, take_step


class Diverged(Exception):
    """Raised where a training has failed for good: its loss or its predictions are useless."""


@dataclass
class State:
    """Everything a checkpoint holds. `epoch` counts the finished epochs, `step` the finished steps of the next one."""

    method: Method
    optimizer: Optimizer
    scaler: GradScaler | None = None
    epoch: int = 0
    step: int = 0
    sums: Sums = field(default_factory=dict)
    """Sums and counts of loss and logs in the running epoch; they stay on the device until it ends."""
    history: list[dict[str, float]] = field(default_factory=list)
    averages: Averages = field(default_factory=lambda: Averages([], 0, 0))
    """Averages of the weights that other jobs wait for. They do not change the training."""
    sharpness: Sharpness | None = None
    """Where steps are sharpness-aware."""
    best: dict[str, Any] | None = None
    """Number of right validation images, epoch and weights of the best epoch so far, where the task tests that one."""


@dataclass(frozen=True)
class Trainer:
    """Trains one job on one data set."""

    job: Job
    methods: Methods
    data: DataSet
    device: torch.device
    ranks: Ranks = ALONE
    pulse: Pulse = field(default_factory=Pulse)
    """Called after each step, and after each batch that is predicted. It may raise: the state can be saved then."""

    def start(self) -> State:
        """Return the state before the first epoch. All methods of a seed start from the same network."""
        streams.reseed(self.job.seed, "initialisation")
        task = self.job.task
        network = build_network(task.network, self.data.num_classes, self.data.shape).to(self.device)
        if task.sync_batchnorm:
            self.ranks.synchronise_batchnorm(network)
        network.set_speed(channels_last=task.channels_last, amp=task.amp, compiled=task.compile)
        return self.begin_phase(network, warmup=self.job.warmup_epochs > 0)

    def begin_phase(self, network: Network, *, warmup: bool) -> State:
        """Return the state of the warm-up method, or of the job's own, around `network` with a fresh optimiser."""
        method_class, settings = trainable(self.methods, self.job.method), self.job.config
        first = method_class.starts_from if self.job.stage_epochs else method_class.warmup
        if warmup and first is not None:
            settings = self.job.trunk.config if self.job.trunk else {}
            method_class = trainable(self.methods, first)
        method = self.make_method(network, method_class, settings)
        # Gradients of fp16, whose exponent is short, need a loss that is scaled up.
        scaler = GradScaler(self.device.type) if self.job.task.amp == "fp16" else None
        if method.second_stage:
            return State(method, self.optimizer(method), scaler)
        sharpness = make_sharpness(self.job.task.optimizer, method)
        return State(method, self.optimizer(method), scaler, averages=averages_of(self.job), sharpness=sharpness)

    def optimizer(self, method: Method) -> Optimizer:
        """Return the optimiser; on a GPU the fused one, with one kernel for all parameters.

        That one also skips a step with infinite gradients by itself, where others would wait for the device first.
        """
        task = self.task_for(method)
        fused = has_streams(self.device) or task.amp == "fp16"
        groups = with_rates(trained_parameters(method), network_of(method).body.parameters(), task.optimizer)
        optimizer = OPTIMIZERS[task.optimizer.name](groups, task.optimizer, fused=fused or None)
        if fused and task.optimizer.momentum:
            for parameter in trained_parameters(method):
                # Else the first step makes it without values, and leaves it so where the step is skipped.
                optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        return optimizer

    def task_for(self, method: Method) -> TaskConfig:
        """Return the task as it is trained: a second stage has an optimiser of its own, and no ingredients."""
        task = self.job.task
        if not method.second_stage:
            return task.trained if self.job.stage_epochs else task
        adam = OptimizerConfig("adam", method.config.lr)
        return replace(task, optimizer=adam, schedule=ScheduleConfig(), mixing=MixingConfig(), checkpoint="last")

    def data_at(self, epoch: int) -> DataSet:
        """Return the data with the images that an epoch trains on as its training images."""
        in_stage = self.job.stage_epochs and epoch >= self.job.warmup_epochs
        if not in_stage or self.job.config["images"] == "train":
            return self.data
        if self.data.val is None:
            raise ValueError("its second stage trains on validation images, and there are none; set data.val")
        return replace(self.data, train=self.data.val)

    def make_method(self, network: Network, method_class: type[Method], settings: Mapping[str, Any]) -> Method:
        """Return a method around a network, with its outputs and state drawn from their own random streams."""
        if method_class.extra_outputs:
            streams.reseed(self.job.seed, "extra outputs")
            network.add_outputs(method_class.extra_outputs, zero=self.job.warmup_epochs > 0)
        streams.reseed(self.job.seed, "method state")
        task = Task(self.data.num_classes, len(self.data.train), network.feature_dim)
        return method_class(network, task, build(method_class.Config, settings, self.job.method)).to(self.device)

    def branch(self, state: State) -> State:
        """Return the state after the warm-up: same network, same optimiser state, the method's own loss.

        A second stage begins with the network as it would be tested, or with its average.
        """
        if self.job.stage_epochs:
            self.final_method(state, self.job.task.averaging)
            new = self.begin_phase(network_of(state.method), warmup=False)
            new.epoch, new.history = state.epoch, state.history
            return new
        old, new = state.optimizer.state, self.begin_phase(network_of(state.method), warmup=False)
        new.optimizer.state.update({each: old[each] for each in trained_parameters(new.method) if each in old})
        new.scaler, new.epoch, new.history, new.best = state.scaler, state.epoch, state.history, state.best
        if new.sharpness and state.sharpness:
            new.sharpness.means = state.sharpness.means
        return new

    def in_phase(self, state: State) -> State:
        """Return the state in the phase of its epoch: when the warm-up is over, the method takes its place."""
        due = 0 < state.epoch == self.job.warmup_epochs
        is_own = type(state.method) is trainable(self.methods, self.job.method)
        return self.branch(state) if due and not is_own else state

    def run_epoch(self, state: State) -> State:
        """Train one epoch, or the rest of it, in its phase. Raise Diverged where the loss is not finite."""
        state = self.in_phase(state)
        self.train_epoch(state)
        means = {name: total / count for name, (total, count) in self.ranks.means(state.sums).items()}
        means |= state.method.health()
        row = {"epoch": float(state.epoch), **{name: float(mean) for name, mean in means.items()}}
        state.history.append(row)
        if not math.isfinite(row["loss"]):
            raise Diverged(f"the loss is {row['loss']} in epoch {state.epoch}")
        state.epoch, state.step, state.sums = self.epoch_after(state.epoch), 0, {}
        return state

    def epoch_after(self, epoch: int) -> int:
        """Return the number of the next epoch. A try of a few steps visits one epoch of each phase."""
        if not self.job.max_steps:
            return epoch + 1
        return self.job.warmup_epochs if epoch < self.job.warmup_epochs else self.job.last_epoch

    def train_epoch(self, state: State) -> None:
        """Train the steps that are left of an epoch, and end it."""
        method, seed, epoch = state.method, self.job.seed, state.epoch
        task, num_epochs = self.task_for(method), self.job.last_epoch if method.second_stage else self.job.task.epochs
        sizes = self.data_at(epoch).batch_sizes(task.batch_size)
        num_steps, first = min(len(sizes), self.job.max_steps or len(sizes)), state.step
        method.train()
        steps, parameters = self.ranks.steps(method, seed, sizes, task.mixing), trained_parameters(method)
        state.averages.begin_epoch(epoch, parameters)
        for step_index, batch in zip(range(first, num_steps), self.batches(method, epoch, first), strict=False):
            progress = Progress(epoch, num_epochs, step_index, num_steps)
            fraction = step_index / num_steps
            set_rates(state.optimizer, task.optimizer.lr, task.schedule, epoch, fraction, num_epochs)
            step = take_step(steps, state.optimizer, batch, seed, progress, state.scaler, state.sharpness)
            accumulate(state.sums, step)
            state.averages.after_step(parameters)
            state.step = step_index + 1
            self.pulse(state.step, num_steps, epoch)
        self.ranks.sync_buffers(method)
        self.end_epoch(state, Progress(epoch, num_epochs, num_steps - 1, num_steps))
        state.averages.after_epoch(parameters)  # last: a stop before it does the end of the epoch again

    def batches(self, method: Method, epoch: int, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch that this rank trains on, from the `first` on, mixed where the task says so.

        Partners may be in another rank's part: where images are mixed, each rank makes the whole batch first.
        """
        task, seed, rows = self.task_for(method), self.job.seed, self.ranks.rows
        make = partial(
            self.data_at(epoch).batches,
            task.batch_size,
            seed,
            epoch,
            task.augment,
            method.num_views,
            first=first,
            outliers=method.needs_outliers,
        )
        if not task.mixing.is_on:
            yield from make(rows)
            return
        for step, batch in enumerate(make(), first):
            yield rows_of(prepared(batch, task.mixing, seed, epoch, step), rows(len(batch.labels)))

    def validates(self, method: Method) -> bool:
        """Return whether validation images, where there are some, are predicted after each epoch."""
        return method.needs_validation or self.task_for(method).checkpoint == "best"

    def end_epoch(self, state: State, progress: Progress) -> None:
        """Predict the validation images if needed, call `after_epoch`, and keep the best epoch so far."""
        method, task = state.method, self.task_for(state.method)
        validation = None
        if self.data.val is not None and self.validates(method):
            prediction = self.predict(method, self.data.val)
            validation = Validation(prediction, self.data.val.labels[: len(prediction.logits)])
        with torch.no_grad():
            method.after_epoch(progress, validation if method.needs_validation else None)
        counts = self.job.stage_epochs or state.epoch >= self.job.warmup_epochs
        if task.checkpoint == "best" and validation is not None and counts:
            right = int((validation.prediction.logits.argmax(1) == validation.labels).sum())
            if state.best is None or right > state.best["right"]:
                weights = {name: value.clone() for name, value in method.state_dict().items()}
                state.best = {"right": right, "epoch": state.epoch, "method": weights}

    def tested_method(self, state: State) -> Method:
        """Return the trained method at the epoch that the task tests."""
        if state.best is not None:
            state.method.load_state_dict(state.best["method"])
        return state.method

    def final_method(self, state: State, config: AveragingConfig) -> Method:
        """Return the method at the epoch that the task tests, or with the average of its weights."""
        return self.averaged_method(state, config) if config.is_on else self.tested_method(state)

    def averaged_method(self, state: State, config: AveragingConfig) -> Method:
        """Return the method with the average of its weights, and with statistics of BatchNorm that fit them.

        These come from one pass over the training images, augmented as in training, with dropout on. Every rank makes
        the whole pass.
        """
        method, task, seed = state.method, self.job.task, self.job.seed
        load_average(state.averages.of(config), trained_parameters(method))
        method.train()
        sizes = self.data.batch_sizes(task.batch_size)[: self.job.max_steps or None]
        batches = self.data.batches(
            task.batch_size, seed, task.epochs, task.augment, method.num_views, outliers=method.needs_outliers
        )
        with torch.no_grad(), fresh_statistics(method) as statistics:
            for step, (batch, _) in enumerate(zip(batches, sizes, strict=False)):
                streams.reseed(seed, "model noise", task.epochs, step)
                method.training_step(batch, Progress(task.epochs - 1, task.epochs, step, len(sizes)))
                statistics.add_batch()
                self.pulse(step + 1, len(sizes))
        return method

    def predict(self, method: Method, split: Split, *, features: bool = False) -> Prediction[Tensor]:
        """Predict every image of a split once, in evaluation mode, in batches of the task's fixed size."""
        method.eval()
        size, parts = self.job.task.eval_batch_size, []
        bounds = [(start, min(start + size, len(split))) for start in range(0, len(split), size)]
        bounds = bounds[: self.job.max_steps or None]
        mine = self.ranks.my_batches(len(bounds))
        with torch.no_grad():
            for index, images in zip(mine, self.data.eval_batches(split, size, mine), strict=True):
                streams.reseed(self.job.seed, "evaluation noise", 0, index)
                part = method.predict(images)
                parts.append(part if features else Prediction(part.logits, None, part.aux))
                self.pulse(len(parts), len(mine))
        aux = {name: torch.cat([part.aux[name] for part in parts]) for name in parts[0].aux}
        kept = [part.features for part in parts if part.features is not None]
        prediction = Prediction(torch.cat([part.logits for part in parts]), torch.cat(kept) if kept else None, aux)
        return self.ranks.gather(prediction, bounds)


def averages_of(job: Job) -> Averages:
    """Return the averages that a job takes beside its training, none of them begun."""
    return Averages.wanted(job.averages, 0 if job.stage_epochs else job.warmup_epochs, job.task.epochs)


def trainable(methods: Methods, name: str) -> type[Method]:
    """Return the class of a method that trains. Raise TypeError for one that combines predictions."""
    method = methods.get(name)
    if not issubclass(method, Method):
        raise TypeError(f"'{name}' combines predictions and cannot be trained")
    return method


def network_of(method: Method) -> Network:
    if not isinstance(method.network, Network):
        raise TypeError("a method must not replace its network")
    return method.network


def trained_parameters(method: Method) -> list[nn.Parameter]:
    return [parameter for parameter in method.parameters() if parameter.requires_grad]


def trained_names(method: Method) -> list[str]:
    return [name for name, parameter in method.named_parameters() if parameter.requires_grad]
