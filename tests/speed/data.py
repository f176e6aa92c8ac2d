"""What the data pipeline costs: `python -m tests.speed.data`. Ratios of things measured in turns, in one run."""

import argparse
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from tabulate import tabulate
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from benchmark.config.load import load_task
from benchmark.config.training import AugmentConfig
from benchmark.data.images import Ragged
from benchmark.jobs.plan import plan
from benchmark.train.trainer import Trainer
from methods import Registry
from tests.speed.timing import (
    CPU,
    MEAN,
    PLENTY,
    STD,
    Premade,
    Row,
    data_set,
    in_turns,
    median_ratio,
    missed,
    noise,
    peak_memory,
)

CROP = AugmentConfig(4, True)
IMAGENET = AugmentConfig(0, True, True, 0.4)


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


def augmenting(rounds: int, count: int) -> Row:
    """Throughput of our batches against that of a DataLoader with two workers."""
    images = noise(count)
    data = data_set(images, np.arange(count), (3, 32, 32), PLENTY)
    loader = DataLoader(Pictured(images), 64, shuffle=True, num_workers=2, persistent_workers=True)
    took = in_turns(
        rounds,
        theirs=lambda: [None for _ in loader],
        ours=lambda: [None for _ in data.batches(64, 0, 0, CROP, 1)],
    )
    ratio = median_ratio(took["theirs"], took["ours"])
    ours, theirs = (f"{count / min(took[name]):,.0f}" for name in ("ours", "theirs"))
    remark = f"{ours} against {theirs} images/s, one thread against two"
    return [f"crop, flip, normalise of {count:,} images: ours ÷ DataLoader", f"{ratio:.1f}", "≥ 8", remark]


def training(rounds: int, count: int) -> list[Row]:
    """One epoch of SR on the small network of cifar10-cpu: pre-made batches, resident images, a stream of a file."""
    task, registry = load_task("cifar10-cpu", ["channels_last=true"]), Registry()
    job = plan(task, ["SR"], [0], registry, "")[0].jobs[0]
    with tempfile.NamedTemporaryFile() as file:
        noise(count).tofile(file)
        file.flush()
        mapped = np.memmap(file.name, np.uint8, "r", shape=(count, 3, 32, 32)).view(np.ndarray)
        resident, streamed = (data_set(mapped, np.arange(count), (3, 32, 32), budget) for budget in (PLENTY, 0))
        made = tuple(resident.batches(task.batch_size, 0, 0, task.augment, 1))
        works = {}
        for name, data in (
            ("premade", Premade(**vars(resident), made=made)),
            ("resident", resident),
            ("streamed", streamed),
        ):
            trainer = Trainer(job, registry, data, CPU)
            works[name] = partial(trainer.train_epoch, trainer.start())
        took = in_turns(rounds, **works)
    pipeline, stream = (
        median_ratio(took[above], took[below]) for above, below in (("resident", "premade"), ("streamed", "resident"))
    )
    return [
        ["SR epoch: pipeline ÷ pre-made batches", f"{pipeline:.3f}", "≤ 1.05", ""],
        ["SR epoch: streamed from a warm file ÷ resident", f"{stream:.3f}", "≤ 1.10", ""],
    ]


def stream_imagenet(length: int) -> float:
    """The largest RssAnon during a streamed epoch of `length` images with every augmentation, batches of 256."""
    random = np.random.default_rng(0)
    sizes = np.array([(256, int(width)) for width in random.integers(256, 480, 64)])
    sizes[::4] = sizes[::4, ::-1]
    with tempfile.NamedTemporaryFile() as file:
        random.integers(0, 256, int(3 * sizes.prod(axis=1).sum()), dtype=np.uint8).tofile(file)
        file.flush()
        flat = np.memmap(file.name, np.uint8, "r").view(np.ndarray)
        data = data_set(Ragged(flat, sizes, 3), np.arange(length) % 64, (3, 224, 224), 0)
        return peak_memory(lambda: [None for _ in data.batches(256, 0, 0, IMAGENET, 1)])


def streaming(lengths: tuple[int, ...]) -> Row:
    """Each length in a process of its own, so that none profits from another's memory."""
    command = [sys.executable, "-m", "tests.speed.data", "--stream"]
    peaks = [float(subprocess.check_output([*command, str(length)], text=True)) for length in lengths]
    told = ", ".join(f"{peak:.2f} GB for {length:,}" for peak, length in zip(peaks, lengths, strict=True))
    return ["ImageNet-shaped streamed epoch, batch 256: RssAnon", f"{max(peaks):.2f} GB", "< 2 GB", f"{told} images"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stream", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.stream:
        print(stream_imagenet(arguments.stream))
        return
    rows = [augmenting(max(1, arguments.rounds // 2), 50_000), *training(arguments.rounds, 3_200)]
    if Path("/proc/self/status").exists():
        rows.append(streaming((1_024, 3_072)))
    print(tabulate(rows, ["what", "measured", "bar", "remark"], tablefmt="pipe", disable_numparse=True))
    sys.exit(any(map(missed, rows)))


if __name__ == "__main__":
    main()
