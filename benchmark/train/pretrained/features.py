"""Compute what the body of a network makes of all images of a data set, in pieces, on all cores or GPUs."""

import hashlib
import json
import queue
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.prefetch import cores
from benchmark.base.schema import identity
from benchmark.config.task import DataConfig, TaskConfig
from benchmark.data.cache import Folders
from benchmark.data.dataset import DataSet, Split, facts_of, load
from benchmark.data.devices import enter
from benchmark.data.images import Facts, Loaded
from benchmark.data.residency import place_on_device
from benchmark.train.determinism import set_precision
from benchmark.train.networks import Network, build_network

VERSION = 1
PIECE = 512
"""Images whose features are written together; at most so many per worker are computed again after a kill."""
ON_CPU, ON_GPU = 16, 256
"""Images at a time. On the CPU each core has a batch of its own, whose maps should stay near it."""
PROBE_SECONDS = 3.0
PLENTY = 2**62


@dataclass(frozen=True)
class Wanted:
    """What is to be computed: the features of all images of a task's source, and in which form they are kept."""

    task: TaskConfig
    folders: Folders
    devices: tuple[str, ...]
    dtype: str = "float16"
    batch: int = 0
    """0: as suits the device."""

    @property
    def data(self) -> DataConfig:
        """Return the data with every image of the source, whatever part of it the task uses."""
        whole = replace(self.task.data.images_alone, train_images=0, test_images=0, val_images=0, leave_out=())
        return replace(whole, val=0.0, official_val=False, test_holdout=0)

    @property
    def batch_size(self) -> int:
        return self.batch or (ON_CPU if self.devices[0] == "cpu" else ON_GPU)

    @cached_property
    def loaded(self) -> tuple[Loaded, str]:
        return load(self.data, self.folders)

    @cached_property
    def facts(self) -> Facts:
        return facts_of(self.data, self.loaded[0])

    @cached_property
    def width(self) -> int:
        """Return how many numbers a vector has."""
        with torch.device("meta"):
            return build_network(self.task.network, self.facts.num_classes, self.facts.shape).feature_dim

    @property
    def num_images(self) -> int:
        return sum(self.counts.values())

    @property
    def row(self) -> int:
        """Return how many bytes a vector has."""
        return self.width * np.dtype(self.dtype).itemsize

    @property
    def bytes(self) -> int:
        return self.num_images * self.row

    @cached_property
    def counts(self) -> dict[str, int]:
        """Return the number of images of each split."""
        return {name: len(images) for name, images in self.loaded[0].splits().items()}

    def pieces(self) -> list[tuple[str, int]]:
        """Return all pieces: the split of each, and the position of its first image."""
        return [(name, first) for name, count in self.counts.items() for first in range(0, count, PIECE)]

    @property
    def scaling(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the mean and std that pixels are normalised with."""
        data, loaded = self.task.data, self.loaded[0]
        return data.mean or loaded.mean, data.std or loaded.std

    @property
    def folder(self) -> Path:
        """Return where the features lie: a folder for all that they depend on."""
        data, network = self.task.data, self.task.network
        described = [VERSION, self.loaded[1], data.image_size, self.scaling, identity(network.body)]
        described += [self.dtype, self.batch_size, self.task.channels_last]
        key = hashlib.sha256(json.dumps(described).encode()).hexdigest()[:12]
        return self.folders.cache / f"features-{data.source}-{plain_name(network.name)}-{key}"


def plain_name(network: str) -> str:
    """Return the name of a network without that of its library."""
    return network.rpartition(":")[2].replace("/", "-")


@dataclass(frozen=True)
class Worker:
    """A network on a device, or on one core, with the images it is to see."""

    network: Network
    data: DataSet
    splits: dict[str, Split]

    def features(self, split: str, first: int, batch: int, most: int) -> NDArray[np.float32]:
        """Return the features of a split's images from the `first` on, at most so many."""
        whole = self.splits[split]
        numbers = range(first // batch, -(-min(first + most, len(whole)) // batch))
        with torch.inference_mode():
            parts = [self.network(images)[1].cpu() for images in self.data.eval_batches(whole, batch, numbers)]
        return torch.cat(parts).numpy()


def make_worker(wanted: Wanted, device: torch.device) -> Worker:
    """Return a worker for a device. On the CPU the images stay in their mapped file."""
    task, (loaded, sha256), facts = wanted.task, wanted.loaded, wanted.facts
    set_precision(device, task.tf32)
    network = build_network(task.network, facts.num_classes, facts.shape).to(device).eval()
    network.set_speed(channels_last=task.channels_last, amp="off", compiled=False)
    named = loaded.splits()
    placed = place_on_device(named.values(), device, PLENTY if device.type == "cpu" else 0)
    splits = {
        name: Split(pixels, torch.zeros(len(images), dtype=torch.int64), images.rows.astype(np.int32))
        for (name, images), pixels in zip(named.items(), placed, strict=True)
    }
    mean, std = (torch.tensor(values, device=device) for values in wanted.scaling)
    data = DataSet(splits["train"], None, splits["test"], mean, std, facts.num_classes, facts.shape, None, sha256)
    return Worker(network, data, splits)


class Workers:
    """One worker for each GPU or, on the CPU, for each core: threads that never wait for each other."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        on_cpu = wanted.devices[0] == "cpu"
        devices = [torch.device(name) for name in wanted.devices]
        first = [make_worker(wanted, device) for device in devices]
        self.free: queue.SimpleQueue[tuple[torch.device, Worker]] = queue.SimpleQueue()
        self.count = cores() if on_cpu else len(devices)
        for index in range(self.count):
            self.free.put((devices[index % len(devices)], first[index % len(devices)]))

    def features(self, piece: tuple[str, int], most: int = PIECE) -> NDArray[Any]:
        """Return the features of a piece in the type that they are kept in, from whichever worker is free."""
        device, worker = self.free.get()
        try:
            torch.set_num_threads(1)  # of this thread: cores that share an operator wait for the slowest
            enter(device)
            with np.errstate(over="ignore"):  # what does not fit is refused below
                found = worker.features(*piece, self.wanted.batch_size, most).astype(self.wanted.dtype)
        finally:
            self.free.put((device, worker))
        if not np.isfinite(found).all():
            split, first = piece
            raise UserError(
                f"among the features of the {split} images {first} to {first + len(found) - 1} is a number that "
                f"{self.wanted.dtype} cannot hold; use --dtype float32, or other weights"
            )
        return found


def probe(wanted: Wanted) -> float:
    """Return the seconds that all images would take, from a few of them."""
    workers = Workers(wanted)
    split = max(wanted.counts, key=lambda name: wanted.counts[name])

    def rate(_: int) -> float:
        workers.features((split, 0), wanted.batch_size)  # the first takes longer
        done, begun = 0, time.monotonic()
        while time.monotonic() < begun + PROBE_SECONDS:
            done += len(workers.features((split, 0), wanted.batch_size))
        return done / (time.monotonic() - begun)

    with ThreadPoolExecutor(workers.count) as threads:
        return wanted.num_images / sum(threads.map(rate, range(workers.count)))
