"""Batches, kept on the device or streamed to it, against those of the CPU, while the device is busy elsewhere."""

from contextlib import nullcontext

import torch

from benchmark.config import AugmentConfig
from benchmark.data import DataSet
from benchmark.devices import has_streams
from benchmark.doctor.examination import Patient, Result, Trouble
from benchmark.doctor.made_up import PLENTY, noise
from benchmark.interface import Batch
from benchmark.pixels import Streamed
from benchmark.sources import Facts
from benchmark.transfer import on_stream

FACTS = Facts(num_classes=10, num_train=400, num_test=400, shape=(3, 32, 32))
AUGMENTED = AugmentConfig(crop_padding=4, flip=True)
BATCH_SIZE, NUM_VIEWS = 64, 2
BUSY_SIDE, BUSY_PRODUCTS = 1024, 4
"""A product of such matrices takes a GPU longer than to copy a batch."""


def batches(patient: Patient) -> Result:
    """Bit by bit. A batch that is used before it has arrived, or overwritten before it has left, shows."""
    expected = epoch(noise(FACTS.num_train, FACTS, torch.device("cpu")))
    busy_with = ("nothing", "computing", "copying") if has_streams(patient.device) else ("nothing",)
    for kept, budget in (("resident", PLENTY), ("streamed", 0)):
        for busy in busy_with:
            found = epoch(noise(FACTS.num_train, FACTS, patient.device, budget), busy)
            wrong = sum(differs(*pair) for pair in zip(found, expected, strict=True))
            if wrong:
                where = f"{wrong} of {len(expected)} {kept} batches differ from the CPU's"
                raise Trouble(f"{where} while the device is busy with {busy}")
    return Result(f"streamed = resident = CPU, bit by bit, while the device is busy with {', '.join(busy_with)}")


def epoch(data: DataSet, busy: str = "nothing") -> list[Batch]:
    """All batches of an epoch; nobody waits for the device before the last one."""
    found = []
    made = data.batches(BATCH_SIZE, 0, 0, AUGMENTED, NUM_VIEWS)
    for _ in data.batch_sizes(BATCH_SIZE):
        if busy != "nothing":
            keep_busy(data, busy)
        found.append(next(made))
    return found


def keep_busy(data: DataSet, busy: str) -> None:
    pixels, device = data.train.pixels, data.mean.device
    stream = pixels.sender.stream if busy == "copying" and isinstance(pixels, Streamed) else None
    with on_stream(stream) if stream is not None else nullcontext():
        product = torch.ones(BUSY_SIDE, BUSY_SIDE, device=device)
        for _ in range(BUSY_PRODUCTS):
            product = product @ product


def differs(found: Batch, expected: Batch) -> bool:
    pairs = zip(
        (*found.views, found.labels, found.indices), (*expected.views, expected.labels, expected.indices), strict=True
    )
    return not all(torch.equal(ours.cpu(), theirs) for ours, theirs in pairs)
