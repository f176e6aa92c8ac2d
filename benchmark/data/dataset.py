"""What a job trains, validates and tests on: fixed splits, and batches that carry their indices."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark import cache, rng
from benchmark.augment import draw, normalise, view
from benchmark.cache import Folders
from benchmark.config import AugmentConfig, DataConfig
from benchmark.crops import crop
from benchmark.errors import UserError
from benchmark.interface import Batch
from benchmark.pixels import Pixels, place
from benchmark.sources import Facts, Images, Loaded, Ragged, check_labels, describe, get_source
from benchmark.transfer import upload_together


@lru_cache(maxsize=2)
def load(config: DataConfig, folders: Folders, build: bool = True) -> tuple[Loaded, str]:
    """The images of a task after its subsets are taken, and the hash of the whole set. Kept for the next job."""
    source = get_source(config)
    if source.CACHED:
        loaded, sha256 = cache.find(config, folders, build=build)
    else:
        loaded = source.load(config, folders.data)
        check_labels(loaded, config)
        sha256 = loaded.sha256()
    if config.official_val and loaded.val is None:
        raise UserError(f"data.official_val: '{config.source}' has no validation split of its own; set data.val")
    return loaded.subset(config.train_images, config.test_images, config.val_images), sha256


def facts_of(config: DataConfig, loaded: Loaded | None) -> Facts:
    """What is known of a task's images: counted where they are at hand, else as its source announces them."""
    if loaded is None:
        facts = describe(config)
        num_train = min(facts.num_train, config.train_images or facts.num_train)
        num_test = min(facts.num_test, config.test_images or facts.num_test)
    else:
        facts = counted_facts(config, loaded) if loaded.num_classes else describe(config)
        num_train, num_test = len(loaded.train), len(loaded.test)
    return replace(facts, num_train=num_train, num_test=num_test - config.test_holdout)


def counted_facts(config: DataConfig, loaded: Loaded) -> Facts:
    """From the cache, so that a user's own files are not looked at again."""
    pictures, side = loaded.train.pictures, config.image_size
    shape = (pictures.channels, side, side) if isinstance(pictures, Ragged) else np.shape(pictures[0])
    return Facts(loaded.num_classes, len(loaded.train), len(loaded.test), shape)


@dataclass(frozen=True)
class Split:
    """Images wherever they are, labels on the device."""

    pixels: Pixels
    labels: Tensor
    ids: NDArray[np.int32]
    """Where each image stands in its split of the whole data set, whatever part of it takes part."""

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class DataSet:
    """What a job trains, validates and tests on. The test labels are read only by the final evaluation.

    In a trial of `tune`, `test` are held-out training images.
    """

    train: Split
    val: Split | None
    test: Split
    mean: Tensor
    std: Tensor
    num_classes: int
    shape: tuple[int, int, int]
    posterior: NDArray[np.float64] | None
    sha256: str

    def batch_sizes(self, batch_size: int) -> list[int]:
        return [end - start for start, end in batch_bounds(len(self.train), batch_size)]

    def batches(
        self,
        batch_size: int,
        seed: int,
        epoch: int,
        augmentation: AugmentConfig,
        num_views: int,
        rows_of: Callable[[int], slice] = slice,
        first: int = 0,
    ) -> Iterator[Batch]:
        """The training batches of an epoch from the `first` on: order and augmentation depend on (seed, epoch) alone.

        `rows_of` says which rows of a batch with so many to make; they are those of the whole batch.
        """
        order = torch.randperm(len(self.train), generator=rng.generator(seed, "order", epoch)).numpy()
        positions = [order[start:end] for start, end in batch_bounds(len(order), batch_size)]
        rows = [rows_of(len(batch)) for batch in positions]
        wanted = [batch[some] for batch, some in zip(positions, rows, strict=True)]
        for step, take in enumerate(self.train.pixels.fetch(wanted[first:]), first):
            sizes = self.train.pixels.sizes(positions[step])
            random = rng.generator(seed, "augmentation", epoch, step)
            draws = [draw(augmentation, sizes, random).part(rows[step]) for _ in range(num_views)]
            arrays = [wanted[step], *(array for each in draws for array in each.arrays().values())]
            indices, *numbers = upload_together(arrays, self.mean.device)
            raw, arrived = take(indices), iter(numbers)
            there = [each.uploaded(arrived) for each in draws]
            views = tuple(self.normalise(view(raw, augmentation, each, self.shape[1:])) for each in there)
            yield Batch(views, self.train.labels.index_select(0, indices), indices)

    def eval_batches(self, split: Split, batch_size: int, only: Iterable[int] | None = None) -> Iterator[Tensor]:
        """Every image of a split once, in order; or only those of some of the batches."""
        starts = range(0, len(split), batch_size)
        chosen = starts if only is None else (starts[index] for index in only)
        bounds = [(start, min(start + batch_size, len(split))) for start in chosen]
        takes = split.pixels.fetch(np.arange(*each) for each in bounds)
        for take, each in zip(takes, bounds, strict=True):
            raw = take(torch.arange(*each, device=self.mean.device))
            yield self.normalise(crop(raw, self.shape[1:]))

    def normalise(self, images: Tensor) -> Tensor:
        return normalise(images, self.mean, self.std)


def batch_bounds(count: int, batch_size: int) -> list[tuple[int, int]]:
    """Consecutive ranges; a last batch of one image, which BatchNorm refuses, joins the one before."""
    starts = list(range(0, count, batch_size))
    if len(starts) > 1 and count - starts[-1] == 1:
        starts.pop()
    return list(zip(starts, [*starts[1:], count], strict=True))


def prepare(
    config: DataConfig,
    folders: Folders,
    seed: int,
    device: torch.device,
    budget: int,
    build: bool = True,
    held_out: float = 0.0,
) -> DataSet:
    """The data set of a job, on the device as far as the budget, in bytes, goes."""
    loaded, sha256 = load(config, folders, build)
    train, val, test, posterior = divide(loaded, config, seed, held_out)
    splits = [images for images in (train, val, test) if images is not None]
    placed = [
        Split(pixels, torch.from_numpy(images.labels).to(device), images.rows.astype(np.int32))
        for images, pixels in zip(splits, place(splits, device, budget), strict=True)
    ]
    facts = facts_of(config, loaded)
    return DataSet(
        train=placed[0],
        val=None if val is None else placed[1],
        test=placed[-1],
        mean=torch.tensor(config.mean or loaded.mean, device=device),
        std=torch.tensor(config.std or loaded.std, device=device),
        num_classes=facts.num_classes,
        shape=facts.shape,
        posterior=posterior,
        sha256=sha256,
    )


def divide(
    loaded: Loaded, config: DataConfig, seed: int, held_out: float = 0.0
) -> tuple[Images, Images | None, Images, NDArray[np.float64] | None]:
    """Validation is the set's own split, or a part of the training images drawn by the seed; then the test hold-out.

    A share of the training images that is held out is drawn first, and takes the place of the test images.
    """
    train, test, posterior = loaded.train, loaded.test, loaded.posterior
    val = loaded.val if config.official_val else None
    shuffled = torch.randperm(len(train), generator=rng.generator(seed, "split")).numpy()
    num_held_out = round(held_out * len(train))
    num_val = round(config.val * (len(train) - num_held_out))
    judged, validated, trained = map(np.sort, np.split(shuffled, [num_held_out, num_held_out + num_val]))
    if num_val:
        val = train.take(validated)
    if held_out:
        return train.take(trained), val, train.take(judged), None
    if num_val:
        train = train.take(trained)
    if config.test_holdout:
        tested = torch.randperm(len(test), generator=rng.generator(seed, "hold-out")).numpy()
        tested = np.sort(tested[config.test_holdout :])
        test, posterior = test.take(tested), None if posterior is None else posterior[tested]
    return train, val, test, posterior
