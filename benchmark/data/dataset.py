"""Make the data set of a job: fixed splits, and batches that carry the indices of their images."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import repeat

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.base.errors import UserError
from benchmark.config.load import load_task
from benchmark.config.task import DataConfig
from benchmark.config.training import AugmentConfig
from benchmark.data import streams
from benchmark.data.augment import Draws, draw, normalise, perturb, view
from benchmark.data.cache import Folders
from benchmark.data.cache_build import open_cache
from benchmark.data.classes import facts_without, leave_out
from benchmark.data.crops import Raw, center_crop
from benchmark.data.images import Facts, Images, Loaded, Ragged
from benchmark.data.residency import Pixels, Rows, place_on_device
from benchmark.data.sources import check_labels, describe, get_source, source_version
from benchmark.data.sources._train_labels import relabelled
from benchmark.data.transfer import upload_together
from benchmark.interface import Batch


def load(config: DataConfig, folders: Folders, build: bool = True) -> tuple[Loaded, str]:
    """Return the subsets of images that a task uses, and the hash of the whole set. Kept for the next job."""
    return load_as_of(source_version(config.source), config, folders, build)


@lru_cache(maxsize=2)
def load_as_of(version: str, config: DataConfig, folders: Folders, build: bool) -> tuple[Loaded, str]:
    """Load once for each version of a user's own source."""
    source = get_source(config)
    if source.CACHED:
        loaded, sha256 = open_cache(config, folders, build=build)
    else:
        loaded = source.load(config, folders.data)
        check_labels(loaded, config)
        sha256 = loaded.sha256()
    if loaded.test_alone:
        raise UserError(f"data.source: '{config.source}' has nothing to train on; it is for evaluation sets")
    if config.train_labels:
        loaded = relabelled(loaded, config, folders.data)
    if config.leave_out:
        loaded = leave_out(loaded, config, loaded.num_classes or describe(config).num_classes)
    if config.official_val and loaded.val is None:
        raise UserError(f"data.official_val: '{config.source}' has no validation split of its own; set data.val")
    return loaded.subset(config.train_images, config.test_images, config.val_images), sha256


def facts_of(config: DataConfig, loaded: Loaded | None) -> Facts:
    """Return the facts of a task's images: counted if a cache has them, else as their source announces them."""
    if loaded is None or not loaded.num_classes:
        facts = facts_without(config, describe(config))
    else:  # a user's own files need not be read again
        pictures, side = loaded.train.pictures, config.image_size
        shape = (pictures.channels, side, side) if isinstance(pictures, Ragged) else np.shape(pictures[0])
        floats = pictures[0].dtype != np.uint8
        facts = Facts(loaded.num_classes, len(loaded.train), len(loaded.test), shape, floats)
    num_train = min(facts.num_train, config.train_images or facts.num_train)
    num_test = min(facts.num_test, config.test_images or facts.num_test) - config.test_holdout
    return replace(facts, num_train=num_train, num_test=num_test)


@dataclass(frozen=True)
class Split:
    """A split of a data set: images wherever they are, labels on the device."""

    pixels: Pixels
    labels: Tensor
    ids: NDArray[np.int32]
    """The number of each image in its split of the whole data set, also where only a part is used."""
    change: Callable[[Tensor, slice], Tensor] | None = None
    """Changes images, given their positions in the split, before a network sees them."""

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class DataSet:
    """The data of a job. Only the final evaluation reads the test labels.

    In a trial of `tune`, `test` holds held-out training images.
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
    outliers: Split | None = None
    """Images of another task, for methods that need some. Nothing reads their labels."""
    outliers_sha256: str = ""
    labels_changed: float | None = None
    """The share of training labels from a file that differ from those of the source."""

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
        outliers: bool = False,
    ) -> Iterator[Batch]:
        """Yield the training batches of an epoch from the `first` on; they depend on (seed, epoch) alone.

        `rows_of` takes the size of a batch and returns the rows to make; they are equal to those of the whole batch.
        With `outliers`, each batch has as many of these beside its images.
        """
        order = torch.randperm(len(self.train), generator=streams.generator(seed, "order", epoch)).numpy()
        bounds = batch_bounds(len(order), batch_size)
        make = partial(self.views, augmentation, rows_of, first)
        images = make(self.train, order, bounds, partial(streams.generator, seed, "augmentation", epoch), num_views)
        beside: Iterable[Tensor | None] = repeat(None)
        if outliers and self.outliers is not None:
            others = cycled_order(len(self.outliers), len(order), seed, epoch)
            random = partial(streams.generator, seed, "outlier augmentation", epoch)
            beside = (views[0] for views, _ in make(self.outliers, others, bounds, random, 1))
        for step, ((views, indices), other) in enumerate(zip(images, beside, strict=False), first):
            stream = streams.stream_seed(seed, "batch", epoch, step)
            yield Batch(views, self.train.labels.index_select(0, indices), indices, outliers=other, stream=stream)

    def views(
        self,
        augmentation: AugmentConfig,
        rows_of: Callable[[int], slice],
        first: int,
        split: Split,
        order: Rows,
        bounds: Sequence[tuple[int, int]],
        random_of: Callable[[int], torch.Generator],
        num_views: int,
    ) -> Iterator[tuple[tuple[Tensor, ...], Tensor]]:
        """Yield the augmented views of each batch of a split in some order, and the positions of its images."""
        positions = [order[start:end] for start, end in bounds]
        mine = [batch[rows_of(len(batch))] for batch in positions]
        for step, take in enumerate(split.pixels.fetch(mine[first:]), first):
            sizes, random = split.pixels.sizes(positions[step]), random_of(step)
            drawn = (draw(augmentation, sizes, random, self.shape[0]) for _ in range(num_views))
            draws = [numbers.part(rows_of(len(sizes))) for numbers in drawn]
            arrays = (array for numbers in draws for array in numbers.arrays().values())
            indices, *uploaded = upload_together([mine[step], *arrays], self.mean.device)
            raw, arrived = take(indices), iter(uploaded)
            on_device = [numbers.uploaded(arrived) for numbers in draws]
            yield tuple(self.augmented(raw, augmentation, each) for each in on_device), indices

    def eval_batches(self, split: Split, batch_size: int, only: Iterable[int] | None = None) -> Iterator[Tensor]:
        """Yield every image of a split once, in order; or only the batches with the numbers in `only`."""
        return map(self.normalise, self.plain_batches(split, batch_size, only))

    def plain_batches(self, split: Split, batch_size: int, only: Iterable[int] | None = None) -> Iterator[Tensor]:
        """Yield the same images before they are normalised."""
        starts = range(0, len(split), batch_size)
        chosen = starts if only is None else (starts[index] for index in only)
        bounds = [(start, min(start + batch_size, len(split))) for start in chosen]
        takes = split.pixels.fetch(np.arange(*each) for each in bounds)
        for take, each in zip(takes, bounds, strict=True):
            images = center_crop(take(torch.arange(*each, device=self.mean.device)), self.shape[1:])
            yield images if split.change is None else split.change(images, slice(*each))

    def augmented(self, raw: Raw, augmentation: AugmentConfig, draws: Draws[Tensor]) -> Tensor:
        """Return one view of a batch, as a network sees it."""
        return perturb(self.normalise(view(raw, augmentation, draws, self.shape[1:])), augmentation, draws)

    def normalise(self, images: Tensor) -> Tensor:
        return normalise(images, self.mean, self.std)


def batch_bounds(count: int, batch_size: int) -> list[tuple[int, int]]:
    """Return start and end of each batch; a last batch of one image, which BatchNorm refuses, joins the one before."""
    starts = list(range(0, count, batch_size))
    if len(starts) > 1 and count - starts[-1] == 1:
        starts.pop()
    return list(zip(starts, [*starts[1:], count], strict=True))


def cycled_order(count: int, needed: int, seed: int, epoch: int) -> Rows:
    """Return the positions of the outliers of an epoch: another order each time through, until there are enough."""
    random = streams.generator(seed, "outlier order", epoch)
    orders = [torch.randperm(count, generator=random) for _ in range(-(-needed // count))]
    return torch.cat(orders)[:needed].numpy()


def prepare(
    config: DataConfig,
    folders: Folders,
    seed: int,
    device: torch.device,
    budget: int,
    build: bool = True,
    held_out: float = 0.0,
    with_outliers: bool = False,
) -> DataSet:
    """Return the data set of a job, with as much on the device as the budget in bytes allows."""
    loaded, sha256 = load(config, folders, build)
    facts = facts_of(config, loaded)
    train, val, test, posterior = divide(loaded, config, seed, held_out)
    outliers, outliers_sha256 = load_outliers(config, facts, folders, build) if with_outliers else (None, "")
    named = {"train": train, "val": val, "test": test, "outliers": outliers}
    splits = {name: images for name, images in named.items() if images is not None}
    placed = {
        name: Split(pixels, torch.from_numpy(images.labels).to(device), images.rows.astype(np.int32))
        for (name, images), pixels in zip(splits.items(), place_on_device(splits.values(), device, budget), strict=True)
    }
    return DataSet(
        train=placed["train"],
        val=placed.get("val"),
        test=placed["test"],
        mean=torch.tensor(config.mean or loaded.mean, device=device),
        std=torch.tensor(config.std or loaded.std, device=device),
        num_classes=facts.num_classes,
        shape=facts.shape,
        posterior=posterior,
        sha256=sha256,
        outliers=placed.get("outliers"),
        outliers_sha256=outliers_sha256,
        labels_changed=loaded.labels_changed,
    )


def load_outliers(config: DataConfig, facts: Facts, folders: Folders, build: bool) -> tuple[Images, str]:
    """Return the training images of the task that `data.outliers` names, and their hash."""
    other = load_task(config.outliers).data.images_alone
    loaded, sha256 = load(other, folders, build)
    check_outliers(config, facts, facts_of(other, loaded))
    return loaded.train, outliers_hash(other, sha256, len(loaded.train))


def outliers_hash(config: DataConfig, sha256: str, count: int) -> str:
    """Return the hash of the outliers, given that of their whole data set: a part of it is drawn by its size alone."""
    without = f" without {sorted(config.leave_out)}" if config.leave_out else ""
    return hashlib.sha256(f"{sha256} {count}{without}".encode()).hexdigest()


def check_outliers(config: DataConfig, facts: Facts, others: Facts) -> None:
    """Raise UserError where outliers cannot stand in a batch beside the images of a task."""
    if (others.shape, others.floats) != (facts.shape, facts.floats):
        raise UserError(
            f"data.outliers: '{config.outliers}' has images of {form_of(others)}, and the task of {form_of(facts)}; "
            "they must be alike (data.image_size in the file of the outliers)"
        )


def form_of(facts: Facts) -> str:
    return "×".join(map(str, facts.shape)) + (" floats" if facts.floats else " pixels")


def divide(
    loaded: Loaded, config: DataConfig, seed: int, held_out: float = 0.0
) -> tuple[Images, Images | None, Images, NDArray[np.float64] | None]:
    """Return the training, validation and test images of a seed, and the posterior of the test images.

    Validation images are the set's own split, or drawn from the training images; then the test hold-out is removed.
    `held_out` is a share of the training images: it is drawn first, and replaces the test images.
    """
    train, test, posterior = loaded.train, loaded.test, loaded.posterior
    val = loaded.val if config.official_val else None
    shuffled = torch.randperm(len(train), generator=streams.generator(seed, "split")).numpy()
    num_held_out = round(held_out * len(train))
    num_val = round(config.val * (len(train) - num_held_out))
    test_rows, val_rows, train_rows = map(np.sort, np.split(shuffled, [num_held_out, num_held_out + num_val]))
    if num_val:
        val = train.take(val_rows)
    if held_out:
        return train.take(train_rows), val, train.take(test_rows), None
    if num_val:
        train = train.take(train_rows)
    if config.test_holdout:
        shuffled = torch.randperm(len(test), generator=streams.generator(seed, "hold-out")).numpy()
        kept = np.sort(shuffled[config.test_holdout :])
        test, posterior = test.take(kept), None if posterior is None else posterior[kept]
    return train, val, test, posterior
