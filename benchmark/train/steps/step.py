"""Take one step of a training."""

import torch
from torch.amp import GradScaler
from torch.optim import Optimizer

from benchmark.data import streams
from benchmark.interface import Batch, Progress, Step
from benchmark.train.distributed import Steps, Sums
from benchmark.train.steps.sharpness import Sharpness


def take_step(
    steps: Steps,
    optimizer: Optimizer,
    batch: Batch,
    seed: int,
    progress: Progress,
    scaler: GradScaler | None = None,
    sharpness: Sharpness | None = None,
) -> Step:
    """Train one step. What `after_step` draws never shifts the next step's dropout: each has its own stream.

    A sharpness-aware step takes its gradient in a second pass with the same batch and the same noise; all else that it
    returns, and hands to `after_step`, is that of the first.
    """

    def gradients() -> Step:
        streams.reseed(seed, "model noise", progress.epoch, progress.step)
        step = steps.training_step(batch, progress)
        optimizer.zero_grad(set_to_none=True)
        loss = step.loss if scaler is None else scaler.scale(step.loss)
        loss.backward()  # type: ignore[no-untyped-call]
        return step

    step = gradients()
    if sharpness is not None:
        with sharpness.climbed(scaler):
            gradients()
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()
    streams.reseed(seed, "method noise", progress.epoch, progress.step)
    with torch.no_grad():
        steps.after_step(batch, step.carry, progress)
    return step


def accumulate(sums: Sums, step: Step) -> None:
    for name, value in {"loss": step.loss, **step.logs}.items():
        total, count = sums.get(name, (torch.zeros_like(value.detach()), 0))
        sums[name] = (total + value.detach(), count + 1)
