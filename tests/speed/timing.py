"""Measuring, and data to measure with: noise of the real shapes. What a pixel shows does not change what it costs."""

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmark.data.dataset import DataSet, Split
from benchmark.data.images import Images, Pictures
from benchmark.data.residency import place_on_device
from benchmark.interface import Batch

CPU = torch.device("cpu")
PLENTY = 10**12
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
Row = list[str]


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def in_turns(rounds: int, **works: Callable[[], object]) -> dict[str, list[float]]:
    """Seconds of each, round by round after one to warm up, so that a slow moment of the machine meets all."""
    took: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            took[name].append(seconds(work))
    return {name: each[1:] for name, each in took.items()}


def median_ratio(above: list[float], *below: list[float]) -> float:
    return statistics.median(a / sum(parts) for a, *parts in zip(above, *below, strict=True))


def anonymous_memory() -> float:
    """RssAnon of this process in GB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1e6


def peak_memory(work: Callable[[], object]) -> float:
    """The largest RssAnon while something is done, looked at all the time by another thread."""
    peak, done = [anonymous_memory()], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            peak[0] = max(peak[0], anonymous_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return peak[0]


def missed(row: Row) -> bool:
    """Whether what was measured (second) is on the wrong side of its bar (third), if there is one."""
    if not row[2]:
        return False
    number, limit = float(row[1].split()[0]), float(row[2].split()[1])
    return number < limit if row[2].startswith("≥") else number > limit


def noise(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)


def data_set(pictures: Pictures, rows: np.ndarray, shape: tuple[int, int, int], budget: int) -> DataSet:
    labels = np.arange(len(rows)) % 10
    pixels = place_on_device([Images(pictures, labels, rows)], CPU, budget)[0]
    split = Split(pixels, torch.from_numpy(labels), np.arange(len(labels), dtype=np.int32))
    return DataSet(split, None, split, torch.tensor(MEAN), torch.tensor(STD), 10, shape, None, "")


@dataclass(frozen=True)
class Premade(DataSet):
    """Batches that cost nothing."""

    made: tuple[Batch, ...] = ()

    def batches(self, *arguments: object, **named: object) -> Iterator[Batch]:
        return iter(self.made)
