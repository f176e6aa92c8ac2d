"""What the data pipeline costs: `python -m tests.speed.data`. Ratios of things measured in turns, in one run.

The images are noise of the real shapes: how long a pixel takes does not depend on what it shows.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from tabulate import tabulate
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from benchmark.config import AugmentConfig, load_task
from benchmark.data import DataSet, Split
from benchmark.interface import Batch
from benchmark.jobs import plan
from benchmark.pixels import place
from benchmark.sources import Images, Pictures, Ragged
from benchmark.trainer import Trainer
from methods import Registry

CPU = torch.device("cpu")
CROP = AugmentConfig(4, True)
IMAGENET = AugmentConfig(0, True, True, 0.4)
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
PLENTY = 10**12


def noise(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)


def data_set(pictures: Pictures, rows: np.ndarray, shape: tuple[int, int, int], budget: int) -> DataSet:
    labels = np.arange(len(rows)) % 10
    pixels = place([Images(pictures, labels, rows)], CPU, budget)[0]
    split = Split(pixels, torch.from_numpy(labels))
    return DataSet(split, None, split, torch.tensor(MEAN), torch.tensor(STD), 10, shape, None, "")


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


class Pictured(Dataset[tuple[torch.Tensor, int]]):
    """As torchvision's CIFAR classes: PIL images through transforms, one by one."""

    def __init__(self, images: np.ndarray) -> None:
        self.images = images.transpose(0, 2, 3, 1)
        self.transform = transforms.Compose(
            [
                transforms.RandomCrop(32, 4),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize(MEAN, STD),
            ]
        )

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.transform(Image.fromarray(self.images[index])), index % 10


def augmenting(rounds: int, count: int) -> list[object]:
    """Images per second: our batches against a DataLoader with two workers."""
    images = noise(count)
    data = data_set(images, np.arange(count), (3, 32, 32), PLENTY)
    loader = DataLoader(Pictured(images), 64, shuffle=True, num_workers=2, persistent_workers=True)
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(count / seconds(lambda: [None for _ in loader]))
        ours.append(count / seconds(lambda: [None for _ in data.batches(64, 0, 0, CROP, 1)]))
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    remark = f"{statistics.median(ours):,.0f} against {statistics.median(theirs):,.0f} images/s, one thread against two"
    return [f"crop, flip, normalise of {count:,} images: ours ÷ DataLoader", f"{ratio:.1f}", "≥ 8", remark]


@dataclass(frozen=True)
class Premade(DataSet):
    """Batches that cost nothing."""

    made: tuple[Batch, ...] = ()

    def batches(self, *arguments: object) -> Iterator[Batch]:
        return iter(self.made)


def training(rounds: int, count: int) -> list[list[object]]:
    """One epoch of SR on the small network of cifar10-cpu: pre-made batches, resident images, a stream of a file."""
    task, registry = load_task("cifar10-cpu"), Registry()
    job = plan(task, ["SR"], [0], registry, "")[0].jobs[0]
    with tempfile.NamedTemporaryFile() as file:
        noise(count).tofile(file)
        file.flush()
        mapped = np.memmap(file.name, np.uint8, "c", shape=(count, 3, 32, 32)).view(np.ndarray)
        sets = {
            name: data_set(mapped, np.arange(count), (3, 32, 32), budget)
            for name, budget in (("resident", PLENTY), ("streamed", 0))
        }
        made = tuple(sets["resident"].batches(task.batch_size, 0, 0, task.augment, 1))
        sets["pre-made"] = Premade(**vars(sets["resident"]), made=made)
        trainers = {name: Trainer(job, registry, data, CPU) for name, data in sets.items()}
        states = {name: trainer.start() for name, trainer in trainers.items()}
        took: dict[str, list[float]] = {name: [] for name in sets}
        for _ in range(rounds + 1):
            for name, trainer in trainers.items():
                took[name].append(seconds(lambda name=name, trainer=trainer: trainer.train_epoch(states[name])))

    def ratio(name: str, base: str) -> float:
        return statistics.median(a / b for a, b in list(zip(took[name], took[base], strict=True))[1:])

    return [
        ["SR epoch: pipeline ÷ pre-made batches", f"{ratio('resident', 'pre-made'):.3f}", "≤ 1.05", ""],
        ["SR epoch: streamed from a warm file ÷ resident", f"{ratio('streamed', 'resident'):.3f}", "≤ 1.10", ""],
    ]


def anonymous_memory() -> float:
    """RssAnon of this process in GB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1e6


def stream_imagenet(length: int) -> float:
    """The largest RssAnon during a streamed epoch of `length` images with every augmentation, batches of 256."""
    random = np.random.default_rng(0)
    sizes = np.array([(256, int(width)) for width in random.integers(256, 480, 64)])
    sizes[::4] = sizes[::4, ::-1]
    with tempfile.NamedTemporaryFile() as file:
        random.integers(0, 256, int(3 * sizes.prod(axis=1).sum()), dtype=np.uint8).tofile(file)
        file.flush()
        flat = np.memmap(file.name, np.uint8, "c").view(np.ndarray)
        data = data_set(Ragged(flat, sizes, 3), np.arange(length) % 64, (3, 224, 224), 0)
        peak, done = [0.0], threading.Event()

        def watch() -> None:
            while not done.wait(0.005):
                peak[0] = max(peak[0], anonymous_memory())

        watcher = threading.Thread(target=watch)
        watcher.start()
        for _ in data.batches(256, 0, 0, IMAGENET, 1):
            pass
        done.set()
        watcher.join()
        return peak[0]


def streaming(lengths: tuple[int, ...]) -> list[object]:
    """Each length in a process of its own, so that none profits from another's memory."""
    command = [sys.executable, "-m", "tests.speed.data", "--stream"]
    peaks = [float(subprocess.check_output([*command, str(length)], text=True)) for length in lengths]
    told = ", ".join(f"{peak:.2f} GB for {length:,}" for peak, length in zip(peaks, lengths, strict=True))
    return ["ImageNet-shaped streamed epoch, batch 256: RssAnon", f"{max(peaks):.2f} GB", "< 2 GB", f"{told} images"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stream", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.stream:
        print(stream_imagenet(arguments.stream))
        return
    rows = [augmenting(max(1, arguments.rounds // 2), 50_000), *training(arguments.rounds, 3_200)]
    if Path("/proc/self/status").exists():
        rows.append(streaming((512, 2_560)))
    print(tabulate(rows, ["what", "measured", "bar", "remark"], tablefmt="pipe", disable_numparse=True))
    sys.exit(any(missed(str(row[1]), str(row[2])) for row in rows))


def missed(measured: str, bar: str) -> bool:
    number, limit = float(measured.split()[0]), float(bar.split()[1])
    return number < limit if bar.startswith("≥") else number > limit


if __name__ == "__main__":
    main()
