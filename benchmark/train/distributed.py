"""Train one job on several processes, called ranks: each computes a part of every batch, all end with the same state.

Every collective operation of the suite is here. A process that computes by itself is `ALONE`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from benchmark.config.ingredients import MixingConfig
from benchmark.data import streams
from benchmark.interface import Batch, Method, Progress, Step
from benchmark.measure.prediction import Prediction
from benchmark.train.steps.mixing import training_step

T = TypeVar("T")
Sums = dict[str, tuple[Tensor, int]]
Bounds = Sequence[tuple[int, int]]
LEAST_ROWS = 2
"""The fewest rows of a batch that one rank computes: BatchNorm refuses a single image."""


class Steps(Protocol):
    """What a training step calls: a method, or the same method trained by several ranks."""

    def training_step(self, batch: Batch, progress: Progress) -> Step: ...
    def after_step(self, batch: Batch, carry: Any, progress: Progress) -> None: ...


def parts_of(count: int, size: int) -> list[tuple[int, int]]:
    """Return the bounds of each rank's rows of a batch. With too few rows for all, the last ranks get none."""
    active = max(1, min(size, count // LEAST_ROWS))
    bounds = [rank * count // active for rank in range(active + 1)]
    return [*pairwise(bounds), *[(count, count)] * (size - active)]


@dataclass(frozen=True)
class Ranks:
    """All ranks of a job, as seen by one of them. This base class is a single process, which exchanges nothing."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Return whether this is the first rank: only that one writes files and reports."""
        return self.rank == 0

    def rows(self, count: int) -> slice:
        """Return which of the `count` rows of a batch this rank computes."""
        return slice(count)

    def steps(self, method: Method, seed: int, batch_sizes: Sequence[int], mixing: MixingConfig) -> Steps:
        """Return what trains the steps of an epoch with batches of these sizes."""
        return OwnSteps(method, mixing)

    def sync_buffers(self, method: Method) -> None:
        """Copy the statistics of BatchNorm from the first rank to all: they are what is saved and tested."""

    def means(self, sums: Sums) -> Sums:
        """Return sums and counts with the mean of each sum over the ranks."""
        return sums

    def broadcast(self, value: T) -> T:
        """Return the value that the first rank passes."""
        return value

    def my_batches(self, count: int) -> range:
        """Return which of `count` batches this rank predicts."""
        return range(count)

    def gather(self, prediction: Prediction[Tensor], bounds: Bounds) -> Prediction[Tensor]:
        """Return the predictions of all ranks, in order, given this rank's own and the rows of each batch."""
        return prediction

    def synchronise_batchnorm(self, network: nn.Module) -> None:
        """Let BatchNorm normalise with the statistics of the whole batch."""


@dataclass(frozen=True)
class OwnSteps:
    """The steps of a method that one process trains."""

    method: Method
    mixing: MixingConfig

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        return training_step(self.method, batch, progress, self.mixing)

    def after_step(self, batch: Batch, carry: Any, progress: Progress) -> None:
        self.method.after_step(batch, carry, progress)


ALONE = Ranks()


class Team(Ranks):
    """Several ranks in a process group of torch.distributed."""

    def rows(self, count: int) -> slice:
        """Return the rows of this rank; if there are none for it, the first rows, which then get weight zero."""
        start, end = parts_of(count, self.size)[self.rank]
        return slice(start, end) if end > start else slice(LEAST_ROWS)

    def steps(self, method: Method, seed: int, batch_sizes: Sequence[int], mixing: MixingConfig) -> Steps:
        parallel = DistributedDataParallel(TrainingStep(method, mixing), broadcast_buffers=False)
        return SharedSteps(method, self, seed, batch_sizes, parallel)

    def sync_buffers(self, method: Method) -> None:
        buffers = [buffer for buffer in method.network.buffers() if buffer.is_floating_point()]
        if buffers:
            flat = torch.cat([buffer.flatten() for buffer in buffers])
            dist.broadcast(flat, src=0)
            parts = torch.split(flat, [buffer.numel() for buffer in buffers])
            for buffer, values in zip(buffers, parts, strict=True):
                buffer.copy_(values.view_as(buffer))

    def means(self, sums: Sums) -> Sums:
        totals = torch.stack([total.to(torch.float64) for total, _ in sums.values()])
        dist.all_reduce(totals)
        counts = [count for _, count in sums.values()]
        return {name: (total / self.size, count) for name, total, count in zip(sums, totals, counts, strict=True)}

    def broadcast(self, value: T) -> T:
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def my_batches(self, count: int) -> range:
        """Return the batches of this rank; if there are none for it, the first one, which is dropped later."""
        return range(self.rank, count, self.size) or range(1)

    def gather(self, prediction: Prediction[Tensor], bounds: Bounds) -> Prediction[Tensor]:
        by_rank = [bounds[rank :: self.size] for rank in range(self.size)]
        counts = [sum(end - start for start, end in batches) for batches in by_rank]
        rows = [torch.arange(start, end) for batches in by_rank for start, end in batches]
        order = torch.cat(rows).argsort().to(prediction.logits.device)

        def all_rows(mine: Tensor) -> Tensor:
            return self.gather_rows(mine, counts).index_select(0, order)

        features = None if prediction.features is None else all_rows(prediction.features)
        aux = {name: all_rows(value) for name, value in prediction.aux.items()}
        return Prediction(all_rows(prediction.logits), features, aux)

    def gather_rows(self, mine: Tensor, counts: Sequence[int]) -> Tensor:
        """Return the rows of all ranks, rank after rank: of each rank its first `counts[rank]` rows."""
        if mine.dtype == torch.bool:
            return self.gather_rows(mine.view(torch.uint8), counts).view(torch.bool)
        padded = mine.new_zeros(max(counts), *mine.shape[1:])
        padded[: counts[self.rank]] = mine[: counts[self.rank]]
        by_rank = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(by_rank, padded)
        return torch.cat([rows[:count] for rows, count in zip(by_rank, counts, strict=True)])

    def synchronise_batchnorm(self, network: nn.Module) -> None:
        nn.SyncBatchNorm.convert_sync_batchnorm(network)  # type: ignore[no-untyped-call]


class TrainingStep(nn.Module):
    """Wraps a method's training step as the module that torch's DDP expects."""

    def __init__(self, method: Method, mixing: MixingConfig) -> None:
        super().__init__()
        self.method, self.mixing = method, mixing

    def forward(self, batch: Batch, progress: Progress) -> Step:
        return training_step(self.method, batch, progress, self.mixing)


@dataclass(frozen=True)
class SharedSteps:
    """The steps of a method that several ranks train. The method sees a batch and knows nothing of ranks."""

    method: Method
    team: Team
    seed: int
    batch_sizes: Sequence[int]
    parallel: DistributedDataParallel

    def counts(self, progress: Progress) -> list[int]:
        """Return how many rows of the step's batch each rank has."""
        return [end - start for start, end in parts_of(self.batch_sizes[progress.step], self.team.size)]

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        """Return the step of this rank's part, weighted so that the mean over ranks is the mean over samples.

        Each rank has its own noise.
        """
        streams.reseed(self.seed, "model noise", progress.epoch, progress.step, self.team.rank)
        step: Step = self.parallel(batch, progress)
        counts = self.counts(progress)
        weight = counts[self.team.rank] * self.team.size / sum(counts)
        return Step(weight * step.loss, step.carry, {name: weight * value for name, value in step.logs.items()})

    def after_step(self, batch: Batch, carry: Any, progress: Progress) -> None:
        """Give the whole batch and carry to the method on every rank, so that all write the same state."""
        if type(self.method).after_step is Method.after_step:
            return
        counts = self.counts(progress)

        def all_rows(mine: Tensor) -> Tensor:
            return self.team.gather_rows(mine.detach(), counts)

        partners, outliers = (None if rows is None else all_rows(rows) for rows in (batch.partners, batch.outliers))
        views, labels = tuple(map(all_rows, batch.views)), all_rows(batch.labels)
        whole = Batch(
            views, labels, all_rows(batch.indices), partners, batch.share, outliers=outliers, stream=batch.stream
        )
        self.team.sync_buffers(self.method)
        self.method.after_step(whole, each_tensor(carry, len(batch.labels), all_rows), progress)


def each_tensor(carry: Any, count: int, change: Callable[[Tensor], Tensor]) -> Any:
    """Return a carry with each of its tensors changed. Raise TypeError where one has not a row for every sample."""
    if carry is None:
        return None
    if isinstance(carry, Tensor):
        if carry.ndim == 0 or len(carry) != count:
            raise TypeError(f"Step.carry has a tensor of shape {tuple(carry.shape)} for {count} samples: {CARRY_RULE}")
        return change(carry)
    if isinstance(carry, Mapping):
        return {name: each_tensor(value, count, change) for name, value in carry.items()}
    if isinstance(carry, (tuple, list)):
        values = [each_tensor(value, count, change) for value in carry]
        return type(carry)(*values) if hasattr(carry, "_fields") else type(carry)(values)  # a named tuple has fields
    raise TypeError(f"Step.carry has a {type(carry).__name__}: {CARRY_RULE}")


CARRY_RULE = "it may hold tensors with a row per sample, in tuples, lists or dicts, so that ranks can put it together"
