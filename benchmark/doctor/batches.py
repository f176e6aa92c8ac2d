"""Compare batches, kept on the device or streamed to it, with those of the CPU, while the device is busy."""

import math
import time
from contextlib import nullcontext
from itertools import product

import torch

from benchmark.config.training import AugmentConfig
from benchmark.data.dataset import DataSet
from benchmark.data.devices import has_streams, wait_for
from benchmark.data.images import Facts
from benchmark.data.residency import Streamed
from benchmark.data.transfer import on_stream
from benchmark.doctor.examination import Patient, Result, Trouble
from benchmark.doctor.made_up import PLENTY, noise
from benchmark.interface import Batch

FACTS = Facts(num_classes=10, num_train=400, num_test=400, shape=(3, 32, 32))
AUGMENTED = AugmentConfig(crop_padding=4, flip=True)
BATCH_SIZE, NUM_VIEWS = 64, 2
ROUNDING = 1e-6
"""GPUs divide by a number as they multiply by its inverse. A pixel that differs by one level does so by 0.004."""
BUSY_SIDE, BUSY_SECONDS = 1024, 0.02
"""Products of such matrices keep the device busy for so long, before each batch: many times as long as it is copied."""


def batches(patient: Patient) -> Result:
    """Notice a batch that is used before it has arrived, or overwritten before it has left."""
    expected = epoch(noise(FACTS.num_train, FACTS, torch.device("cpu")))
    busy_with = ("nothing", "computing", "copying") if has_streams(patient.device) else ("nothing",)
    products = products_to_be_busy(patient.device) if has_streams(patient.device) else 0
    first: list[Batch] = []
    for (kept, budget), busy in product((("resident", PLENTY), ("streamed", 0)), busy_with):
        found = epoch(noise(FACTS.num_train, FACTS, patient.device, budget), busy, products)
        first = first or found
        where = f"{kept} batches, while the device is busy with {busy},"
        refuse_difference(where, "the CPU's", found, expected, ROUNDING)
        refuse_difference(where, "the first resident ones", found, first, 0.0)
    return Result(f"streamed = resident = the CPU's, while the device is busy with {', '.join(busy_with)}")


def refuse_difference(what: str, other: str, found: list[Batch], expected: list[Batch], tolerance: float) -> None:
    wrong = sum(differs(*pair, tolerance) for pair in zip(found, expected, strict=True))
    if wrong:
        raise Trouble(f"{wrong} of {len(expected)} {what} differ from {other}")


def epoch(data: DataSet, busy: str = "nothing", products: int = 0) -> list[Batch]:
    """Return all batches of an epoch; nobody waits for the device before the last one."""
    found = []
    made = data.batches(BATCH_SIZE, 0, 0, AUGMENTED, NUM_VIEWS)
    for _ in data.batch_sizes(BATCH_SIZE):
        if busy != "nothing":
            pixels = data.train.pixels
            stream = pixels.sender.stream if busy == "copying" and isinstance(pixels, Streamed) else None
            with on_stream(stream) if stream is not None else nullcontext():
                multiply(data.mean.device, products)
        found.append(next(made))
    return found


def multiply(device: torch.device, times: int) -> None:
    matrix = torch.ones(BUSY_SIDE, BUSY_SIDE, device=device)
    for _ in range(times):
        matrix = matrix @ matrix


def products_to_be_busy(device: torch.device) -> int:
    """Return how many products take the device as long as it is to be busy."""
    multiply(device, 1)
    wait_for(device)
    started = time.perf_counter()
    multiply(device, 4)
    wait_for(device)
    return math.ceil(4 * BUSY_SECONDS / (time.perf_counter() - started))


def differs(found: Batch, expected: Batch, tolerance: float) -> bool:
    ours, theirs = ((*batch.views, batch.labels, batch.indices) for batch in (found, expected))
    return not all(float((a.cpu() - b.cpu()).abs().max()) <= tolerance for a, b in zip(ours, theirs, strict=True))
