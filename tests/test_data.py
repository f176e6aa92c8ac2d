"""Sources, splits, batches and augmentations."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torchvision.transforms.functional import crop, hflip, pad

from benchmark import rng
from benchmark.augment import augment, normalise
from benchmark.config import AugmentConfig, DataConfig, load_task
from benchmark.data import DataSet, batch_bounds, load, prepare
from benchmark.errors import UserError
from benchmark.sources import Images, Loaded, describe, gaussians, get_source

CPU = torch.device("cpu")


def digits(val: float = 0.1, seed: int = 0) -> DataSet:
    return prepare(DataConfig("digits", (0.3,), (0.3,), val), Path("data"), seed, CPU)


@pytest.mark.parametrize("name", ["digits", "gaussians"])
def test_embedded_sources_are_what_they_say(name: str) -> None:
    config = load_task(name).data
    loaded, facts = load(config, Path("data")), describe(config)
    assert len(loaded.train.labels) == facts.num_train
    assert len(loaded.test.labels) == facts.num_test
    assert loaded.train.images.shape[1:] == facts.shape
    assert set(loaded.test.labels) == set(range(facts.num_classes))
    assert loaded.sha256() == get_source(name).load(config, Path("data"), download=False).sha256()


def test_digits_train_and_test_are_disjoint_parts_of_the_set() -> None:
    loaded = load(load_task("digits").data, Path("data"))
    images = np.concatenate([loaded.train.images, loaded.test.images]).reshape(1797, -1)
    from sklearn.datasets import load_digits

    ours, original = (sorted(map(bytes, x.astype(np.uint8))) for x in (images, load_digits().data * 15))
    assert ours == original


class TestGaussians:
    loaded = gaussians.load(DataConfig("gaussians", (0.0,), (1.0,)), Path("data"), download=False)

    def test_posterior_by_hand_for_one_image(self) -> None:
        """Sum the ten class densities over the four noise levels with plain scipy."""
        from scipy.stats import multivariate_normal

        random = np.random.Generator(np.random.PCG64(gaussians.SEED))
        prototypes = gaussians.draw_prototypes(random)
        loud = np.flatnonzero(self.loaded.test.images.std(axis=(1, 2, 3)) > 8)[0]
        for index in (0, loud):
            x = self.loaded.test.images[index].reshape(-1).astype(float)
            log_density = np.array(
                [
                    [multivariate_normal(mu.reshape(-1), s**2).logpdf(x) for s in gaussians.NOISE_LEVELS]
                    for mu in prototypes
                ]
            )
            density = np.exp(log_density - log_density.max()).sum(axis=1)
            assert self.loaded.posterior[index] == pytest.approx(density / density.sum(), abs=1e-9)

    def test_posterior_is_calibrated(self) -> None:
        """The Bayes error that the posterior promises is the one the labels show."""
        posterior, labels = self.loaded.posterior, self.loaded.test.labels
        promised, seen = 1 - posterior.max(1).mean(), (posterior.argmax(1) != labels).mean()
        assert promised == pytest.approx(seen, abs=4 * np.sqrt(0.2 * 0.8 / len(labels)))
        assert 0.15 < seen < 0.25

    def test_subsets_keep_image_and_posterior_together(self) -> None:
        part = self.loaded.subset(100, 300)
        assert len(part.train.labels) == 100
        index = next(i for i, x in enumerate(self.loaded.test.images) if (x == part.test.images[7]).all())
        assert (part.posterior[7] == self.loaded.posterior[index]).all()


def write_cifar(folder: Path, label_bytes: int, files: dict[str, int]) -> np.ndarray:
    """Small files in the exact official layout; the label repeats in the first pixel."""
    folder.mkdir(parents=True)
    random, rows = np.random.Generator(np.random.PCG64(0)), []
    for name, count in files.items():
        part = random.integers(0, 256, (count, label_bytes + 3072), dtype=np.uint8)
        part[:, label_bytes - 1] = np.arange(count) % 10
        part[:, label_bytes] = part[:, label_bytes - 1]
        part.tofile(folder / name)
        rows.append(part)
    return np.concatenate(rows)


@pytest.mark.parametrize(("source", "label_bytes"), [("cifar10", 1), ("cifar100", 2)])
def test_cifar_binary(tmp_path: Path, source: str, label_bytes: int) -> None:
    files = {f"data_batch_{i}.bin": 6 for i in range(1, 6)} if source == "cifar10" else {"train.bin": 30}
    test = "test_batch.bin" if source == "cifar10" else "test.bin"
    folder = tmp_path / ("cifar-10-batches-bin" if source == "cifar10" else "cifar-100-binary")
    rows = write_cifar(folder, label_bytes, {**files, test: 12})
    loaded = get_source(source).load(DataConfig(source, (0.5,) * 3, (0.2,) * 3), tmp_path, download=True)
    assert loaded.train.images.shape == (30, 3, 32, 32)
    assert loaded.test.images.shape == (12, 3, 32, 32)
    assert (loaded.train.images[:, 0, 0, 0] == loaded.train.labels).all()
    assert (loaded.train.images[3, 2, 31, 31] == rows[3, -1]).all()
    (folder / test).write_bytes(b"short")
    with pytest.raises(UserError, match="cut short"):
        get_source(source).load(DataConfig(source, (0.5,) * 3, (0.2,) * 3), tmp_path, download=True)


@pytest.mark.parametrize("source", ["cifar10", "cifar100"])
def test_cifar_python_version_gives_the_same_arrays(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torchvision's class reads its own files; here it is handed ones we wrote, with its checksums switched off."""
    import pickle

    from torchvision import datasets

    cls = {"cifar10": datasets.CIFAR10, "cifar100": datasets.CIFAR100}[source]
    monkeypatch.setattr(cls, "_check_integrity", lambda self: True)
    random = np.random.Generator(np.random.PCG64(0))
    key = "labels" if source == "cifar10" else "fine_labels"
    folder = tmp_path / cls.base_folder
    folder.mkdir()
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *a: True)
    pixels = {}
    for name, _ in cls.train_list + cls.test_list:
        pixels[name] = random.integers(0, 256, (4, 3072), dtype=np.uint8)
        (folder / name).write_bytes(pickle.dumps({"data": pixels[name], key: [0, 1, 2, 3]}))
    (folder / cls.meta["filename"]).write_bytes(pickle.dumps({cls.meta["key"]: [str(i) for i in range(10)]}))
    loaded = get_source(source).load(DataConfig(source, (0.5,) * 3, (0.2,) * 3), tmp_path, download=True)
    expected = np.concatenate([pixels[name] for name, _ in cls.train_list]).reshape(-1, 3, 32, 32)
    assert (loaded.train.images == expected).all()
    assert loaded.test.labels.tolist() == [0, 1, 2, 3]


def test_missing_cifar_says_where_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*arguments: object, **options: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("torchvision.datasets.cifar.download_and_extract_archive", no_network)
    with pytest.raises(UserError, match=r"cifar-100-binary.*--data-dir"):
        get_source("cifar100").load(DataConfig("cifar100", (0.5,) * 3, (0.2,) * 3), tmp_path, download=True)


def test_a_plan_downloads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmark.planning import ABSENT, hash_of_data

    def download(*arguments: object, **options: object) -> None:
        raise AssertionError("a download was tried")

    monkeypatch.setattr("torchvision.datasets.cifar.download_and_extract_archive", download)
    assert hash_of_data(load_task("cifar10"), tmp_path, required=False) == ABSENT
    assert list(tmp_path.iterdir()) == []


def test_labels_out_of_range_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmark.sources import digits as source

    images = Images(np.zeros((4, 1, 8, 8), np.uint8), np.array([0, 1, 2, 10]))
    monkeypatch.setattr(source, "load", lambda config, data_dir, download: Loaded(images, images))
    with pytest.raises(UserError, match="label 10"):
        load(DataConfig("digits", (0.111,), (0.3,)), Path("data"))


def test_validation_split_is_a_disjoint_part_that_depends_on_the_seed_alone() -> None:
    a, b, other = digits(), digits(), digits(seed=1)
    assert (len(a.train), len(a.val)) == (360, 40)
    assert torch.equal(a.val.images, b.val.images)
    assert not torch.equal(a.val.images, other.val.images)
    together = torch.cat([a.train.images, a.val.images]).flatten(1)
    whole = digits(val=0.0).train.images.flatten(1)
    assert sorted(map(bytes, together.numpy())) == sorted(map(bytes, whole.numpy()))
    assert digits(val=0.0).val is None


def test_an_epoch_shows_each_image_once_and_epochs_differ() -> None:
    data = digits()
    epochs = [torch.cat([b.indices for b in data.batches(32, 0, e, AugmentConfig(), 1)]) for e in (0, 0, 1)]
    assert sorted(epochs[0].tolist()) == list(range(360))
    assert torch.equal(epochs[0], epochs[1])
    assert not torch.equal(epochs[0], epochs[2])


def test_batches_carry_what_their_indices_say_and_views_differ() -> None:
    data = digits()
    batch = next(data.batches(32, 0, 0, AugmentConfig(crop_padding=2), 2))
    assert torch.equal(batch.labels, data.train.labels[batch.indices])
    assert len(batch.views) == 2
    assert not torch.equal(*batch.views)
    plain = next(data.batches(32, 0, 0, AugmentConfig(), 1))
    assert torch.equal(plain.images, data.normalise(data.train.images[plain.indices]))


@pytest.mark.parametrize(
    ("count", "bounds"), [(10, [(0, 4), (4, 8), (8, 10)]), (9, [(0, 4), (4, 9)]), (1, [(0, 1)]), (4, [(0, 4)])]
)
def test_a_last_batch_of_one_joins_the_one_before(count: int, bounds: list[tuple[int, int]]) -> None:
    assert batch_bounds(count, 4) == bounds


@pytest.mark.parametrize("config", [AugmentConfig(4, True), AugmentConfig(3, False), AugmentConfig(0, True)])
def test_augmentation_equals_torchvision_with_the_same_draws(config: AugmentConfig) -> None:
    g = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (64, 3, 12, 10), generator=g).to(torch.uint8)
    ours = augment(images, config, torch.Generator().manual_seed(5))
    draws = torch.Generator().manual_seed(5)
    offsets = torch.randint(0, 2 * config.crop_padding + 1, (2, 64), generator=draws)
    mirrored = torch.rand(64, generator=draws) < (0.5 if config.flip else 0)
    for i in range(64):
        expected = crop(pad(images[i], [config.crop_padding] * 4), int(offsets[0, i]), int(offsets[1, i]), 12, 10)
        assert torch.equal(ours[i], hflip(expected) if mirrored[i] else expected)


def test_augmentation_draws_are_uniform() -> None:
    """A single bright pixel shows the offset and the flip of each image."""
    images = torch.zeros(18_000, 1, 5, 5)
    images[:, :, 1, 1] = 1
    out = augment(images, AugmentConfig(1, True), torch.Generator().manual_seed(0))
    counts = out.sum((0, 1))
    assert counts.sum() == 18_000
    seen = counts[counts > 0]
    assert len(seen) == 3 * 5
    rows = counts.sum(1)[:3]
    assert (rows - 6000).abs().max() < 4 * (18_000 * 2 / 9) ** 0.5


def test_normalise() -> None:
    pixels = torch.tensor([[[[0, 255]]]], dtype=torch.uint8)
    assert normalise(pixels, torch.tensor([0.5]), torch.tensor([0.25])).flatten().tolist() == [-2.0, 2.0]
    floats = torch.tensor([[[[3.0]]]])
    assert normalise(floats, torch.tensor([1.0]), torch.tensor([2.0])).item() == 1.0


def test_streams_depend_on_every_part_of_the_key() -> None:
    keys = [(0, "order", 0, 0), (1, "order", 0, 0), (0, "split", 0, 0), (0, "order", 1, 0), (0, "order", 0, 1)]
    assert len({rng.stream(*key) for key in keys}) == len(keys)  # type: ignore[arg-type]
    assert rng.stream(3, "order", 2, 1) == rng.stream(3, "order", 2, 1)
