"""One job on several processes, called ranks: each computes its part of every batch, and all end with the same state.

Every collective operation of the suite is here. A process that computes by itself is `ALONE`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from benchmark import rng
from benchmark.interface import Batch, Method, Progress, Step
from benchmark.prediction import Prediction

T = TypeVar("T")
Sums = dict[str, tuple[Tensor, int]]
Bounds = Sequence[tuple[int, int]]
LEAST_ROWS = 2
"""Of a batch on one rank: BatchNorm refuses a single image."""


class Steps(Protocol):
    """What a step asks of a method, or of one that several ranks train."""

    def training_step(self, batch: Batch, progress: Progress) -> Step: ...
    def after_step(self, batch: Batch, carry: Any, progress: Progress) -> None: ...


def parts_of(count: int, size: int) -> list[tuple[int, int]]:
    """The rows of a batch by rank, in order; with too few rows for all, the last ranks have none."""
    active = max(1, min(size, count // LEAST_ROWS))
    bounds = [rank * count // active for rank in range(active + 1)]
    return [*pairwise(bounds), *[(count, count)] * (size - active)]


@dataclass(frozen=True)
class Ranks:
    """The ranks of a job as one of them sees them. This one is by itself, and has nobody to ask or to tell."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whoever is first writes, and speaks for all."""
        return self.rank == 0

    def rows(self, count: int) -> slice:
        """Which of so many rows of a batch are computed here."""
        return slice(count)

    def steps(self, method: Method, seed: int, batch_sizes: Sequence[int]) -> Steps:
        """How an epoch of batches of these sizes is trained."""
        return method

    def agree(self, method: Method) -> None:
        """The statistics of BatchNorm become those of the first rank, which are saved and tested."""

    def means(self, sums: Sums) -> Sums:
        return sums

    def told(self, value: T) -> T:
        """What the first rank says."""
        return value

    def dealt(self, count: int) -> range:
        """Which of so many batches are predicted here."""
        return range(count)

    def collected(self, prediction: Prediction[Tensor], bounds: Bounds) -> Prediction[Tensor]:
        """The predictions of all ranks, in order, from those of the batches that were dealt to this one."""
        return prediction

    def synchronise_batchnorm(self, network: nn.Module) -> None:
        """Have BatchNorm normalise with the statistics of the whole batch."""


ALONE = Ranks()


class Team(Ranks):
    """Several ranks in a process group of torch.distributed."""

    def rows(self, count: int) -> slice:
        """A rank without rows of its own computes the first ones too, and they weigh nothing."""
        start, end = parts_of(count, self.size)[self.rank]
        return slice(start, end) if end > start else slice(LEAST_ROWS)

    def steps(self, method: Method, seed: int, batch_sizes: Sequence[int]) -> Steps:
        together = DistributedDataParallel(TrainingStep(method), broadcast_buffers=False)
        return SharedSteps(method, self, seed, batch_sizes, together)

    def agree(self, method: Method) -> None:
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
        return {
            name: (total / self.size, count) for (name, (_, count)), total in zip(sums.items(), totals, strict=True)
        }

    def told(self, value: T) -> T:
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def dealt(self, count: int) -> range:
        """A rank that gets none predicts the first one too, and it does not count."""
        return range(self.rank, count, self.size) or range(1)

    def collected(self, prediction: Prediction[Tensor], bounds: Bounds) -> Prediction[Tensor]:
        dealt = [bounds[rank :: self.size] for rank in range(self.size)]
        counts = [sum(end - start for start, end in theirs) for theirs in dealt]
        rows = [torch.arange(start, end) for theirs in dealt for start, end in theirs]
        order = torch.cat(rows).argsort().to(prediction.logits.device)

        def whole(mine: Tensor) -> Tensor:
            return self.gather(mine, counts).index_select(0, order)

        features = None if prediction.features is None else whole(prediction.features)
        aux = {name: whole(value) for name, value in prediction.aux.items()}
        return Prediction(whole(prediction.logits), features, aux)

    def gather(self, mine: Tensor, counts: Sequence[int]) -> Tensor:
        """The rows of all ranks in order, the first so many of each."""
        if mine.dtype == torch.bool:
            return self.gather(mine.view(torch.uint8), counts).view(torch.bool)
        padded = mine.new_zeros(max(counts), *mine.shape[1:])
        padded[: counts[self.rank]] = mine[: counts[self.rank]]
        theirs = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(theirs, padded)
        return torch.cat([rows[:count] for rows, count in zip(theirs, counts, strict=True)])

    def synchronise_batchnorm(self, network: nn.Module) -> None:
        nn.SyncBatchNorm.convert_sync_batchnorm(network)  # type: ignore[no-untyped-call]


class TrainingStep(nn.Module):
    """The form in which torch's DDP takes what it is to differentiate."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method

    def forward(self, batch: Batch, progress: Progress) -> Step:
        return self.method.training_step(batch, progress)


@dataclass(frozen=True)
class SharedSteps:
    """The steps of a method that several ranks train. The method sees a batch, and nothing of ranks."""

    method: Method
    team: Team
    seed: int
    batch_sizes: Sequence[int]
    together: DistributedDataParallel

    def counts(self, progress: Progress) -> list[int]:
        parts = parts_of(self.batch_sizes[progress.step], self.team.size)
        return [end - start for start, end in parts]

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        """Of this rank's part, weighted so that the mean over ranks is that over samples; each has its own noise."""
        rng.reseed(self.seed, "model noise", progress.epoch, progress.step, self.team.rank)
        step: Step = self.together(batch, progress)
        counts = self.counts(progress)
        weight = counts[self.team.rank] * self.team.size / sum(counts)
        return Step(weight * step.loss, step.carry, {name: weight * value for name, value in step.logs.items()})

    def after_step(self, batch: Batch, carry: Any, progress: Progress) -> None:
        """With the whole batch and carry on every rank, so that all write the same state."""
        if type(self.method).after_step is Method.after_step:
            return
        counts = self.counts(progress)

        def whole(rows: Tensor) -> Tensor:
            return self.team.gather(rows.detach(), counts)

        gathered = Batch(tuple(map(whole, batch.views)), whole(batch.labels), whole(batch.indices))
        self.team.agree(self.method)
        self.method.after_step(gathered, each_tensor(carry, len(batch.labels), whole), progress)


def each_tensor(carry: Any, count: int, change: Callable[[Tensor], Tensor]) -> Any:
    """A carry with each of its tensors changed. Raises TypeError where one has no row for each of `count` samples."""
    if carry is None:
        return None
    if isinstance(carry, Tensor):
        if carry.ndim == 0 or len(carry) != count:
            raise TypeError(f"Step.carry has a tensor of shape {tuple(carry.shape)} for {count} samples: {CARRY_RULE}")
        return change(carry)
    if isinstance(carry, Mapping):
        return {name: each_tensor(value, count, change) for name, value in carry.items()}
    if isinstance(carry, (tuple, list)):
        return rebuilt(carry, (each_tensor(value, count, change) for value in carry))
    raise TypeError(f"Step.carry has a {type(carry).__name__}: {CARRY_RULE}")


CARRY_RULE = "it may hold tensors with a row per sample, in tuples, lists or dicts, so that ranks can put it together"


def rebuilt(old: Any, values: Iterable[Any]) -> Any:
    """The same kind of sequence; a named tuple takes its values one by one."""
    return type(old)(*values) if hasattr(old, "_fields") else type(old)(values)
