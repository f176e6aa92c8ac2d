"""Splits and batches: what a job sees depends on the seed alone, and not on where its images lie."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from benchmark.base.errors import UserError
from benchmark.config.load import load_task
from benchmark.config.task import DataConfig
from benchmark.config.training import AugmentConfig
from benchmark.data import streams
from benchmark.data.cache import Folders
from benchmark.data.dataset import DataSet, batch_bounds, facts_of, load, prepare
from benchmark.data.devices import choose_devices, data_budget
from benchmark.data.images import Images, Loaded
from benchmark.data.residency import Resident, Streamed
from benchmark.train.trainer import Trainer
from tests.conftest import NOWHERE, PLENTY
from tests.image_sets import WNIDS, write_celeba, write_imagenet

CPU = torch.device("cpu")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
RGB = {"mean": (0.5,) * 3, "std": (0.2,) * 3}


def digits(val: float = 0.1, seed: int = 0, **changes: object) -> DataSet:
    config = replace(DataConfig("digits", (0.3,), (0.3,), val), **changes)  # type: ignore[arg-type]
    return prepare(config, NOWHERE, seed, CPU, PLENTY)


def shown(data: DataSet, split: str) -> torch.Tensor:
    return torch.cat(list(data.eval_batches(getattr(data, split), 50)))


def as_bytes(images: torch.Tensor) -> list[bytes]:
    return sorted(map(bytes, images.flatten(1).numpy()))


def test_labels_out_of_range_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmark.data.sources import digits as source

    images = Images.of(np.zeros((4, 1, 8, 8), np.uint8), np.array([0, 1, 2, 10]))
    monkeypatch.setattr(source, "load", lambda config, data_dir: Loaded(images, images))
    with pytest.raises(UserError, match="label 10"):
        load(DataConfig("digits", (0.111,), (0.3,)), NOWHERE)


def test_a_plan_downloads_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmark.train.preflight import ABSENT, find_data

    def download(*arguments: object, **options: object) -> None:
        raise AssertionError("a download was tried")

    monkeypatch.setattr("torchvision.datasets.cifar.download_and_extract_archive", download)
    monkeypatch.setattr("torchvision.datasets.svhn.download_url", download)
    folders = Folders(tmp_path, tmp_path / "cache")
    for name in ("cifar10", "svhn", "celeba", "imagenet"):
        found = find_data(load_task(name), folders, required=False)
        assert found.state == ABSENT
        assert (found.sha256 == ABSENT) == (name != "cifar10"), "the same on every machine"
        assert bool(found.facts.download_bytes) == (name != "imagenet")
        assert found.facts.num_train > 50_000 or name == "cifar10"
    write_celeba(tmp_path)
    found = find_data(load_task("celeba"), folders, required=False)
    assert (found.sha256, found.state) == (ABSENT, "not cached")
    assert [path.name for path in tmp_path.iterdir()] == ["celeba"]


def test_validation_split_is_a_disjoint_part_that_depends_on_the_seed_alone() -> None:
    a, b, other = digits(), digits(), digits(seed=1)
    assert (len(a.train), len(a.val)) == (360, 40)
    assert torch.equal(shown(a, "val"), shown(b, "val"))
    assert not torch.equal(shown(a, "val"), shown(other, "val"))
    together = torch.cat([shown(a, "train"), shown(a, "val")])
    assert as_bytes(together) == as_bytes(shown(digits(val=0.0), "train"))


def test_no_validation_split_means_that_everything_is_trained_on() -> None:
    whole = digits(val=0.0)
    assert whole.val is None
    assert len(whole.train) == 400


def test_the_tuning_split_of_the_paper_is_a_fifth_of_the_training_images() -> None:
    data = digits(val=0.2)
    assert (len(data.train), len(data.val)) == (320, 80)


class TestOfficialSplits:
    @pytest.fixture
    def folders(self, tmp_path: Path) -> Folders:
        write_celeba(tmp_path)
        return Folders(tmp_path, tmp_path / "cache")

    def sizes(self, folders: Folders, **changes: object) -> tuple[int, int | None, int]:
        config = replace(DataConfig("celeba", **RGB, image_size=16), **changes)  # type: ignore[arg-type]
        data = prepare(config, folders, 0, CPU, PLENTY)
        return len(data.train), None if data.val is None else len(data.val), len(data.test)

    def test_official_validation(self, folders: Folders) -> None:
        assert self.sizes(folders, official_val=True) == (12, 4, 6)
        assert self.sizes(folders, official_val=True, val_images=3, train_images=10, test_images=5) == (10, 3, 5)

    def test_the_official_validation_images_are_left_alone_unless_asked_for(self, folders: Folders) -> None:
        assert self.sizes(folders) == (12, None, 6)
        assert self.sizes(folders, val=0.25) == (9, 3, 6)

    def test_facts_are_counted_where_the_images_are_there(self, folders: Folders) -> None:
        config = DataConfig("celeba", **RGB, image_size=16, test_holdout=2)
        assert facts_of(config, None).num_train == 162_770
        counted = facts_of(config, load(config, folders)[0])
        assert (counted.num_train, counted.num_test) == (12, 4)


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
    assert torch.equal(plain.images, shown(data, "train")[plain.indices])


def test_crops_and_flips_are_those_of_earlier_versions() -> None:
    """Results made before there were other augmentations keep their bits."""
    data = digits()
    batch = next(data.batches(32, 0, 0, AugmentConfig(2, True), 1))
    draws = streams.generator(0, "augmentation", 0, 0)
    offsets = torch.randint(0, 5, (2, 32, 1), generator=draws)
    mirrored = torch.rand(32, 1, generator=draws) < 0.5
    black = -0.3 / 0.3
    for index in range(32):
        original = shown(data, "train")[batch.indices[index]]
        padded = torch.nn.functional.pad(original, (2,) * 4, value=black)
        top, left = offsets[:, index, 0]
        expected = padded[:, top : top + 8, left : left + 8]
        assert torch.equal(batch.images[index], expected.flip(2) if mirrored[index] else expected)


@pytest.mark.parametrize(
    ("count", "bounds"), [(10, [(0, 4), (4, 8), (8, 10)]), (9, [(0, 4), (4, 9)]), (1, [(0, 1)]), (4, [(0, 4)])]
)
def test_a_last_batch_of_one_joins_the_one_before(count: int, bounds: list[tuple[int, int]]) -> None:
    assert batch_bounds(count, 4) == bounds


SETS = {
    "8-bit": DataConfig("digits", (0.3,), (0.3,), 0.1, test_holdout=100),
    "floats": DataConfig("gaussians", (0.0,), (7.0,), 0.1, train_images=700, test_images=400),
    "mapped": DataConfig("celeba", **RGB, image_size=16, official_val=True),
    "mapped, part": DataConfig("celeba", **RGB, image_size=16, val=0.25, train_images=10),
    "mapped, different sizes": DataConfig("imagenet", **RGB, image_size=20, cache_size=24, folders=WNIDS),
    "mapped, different sizes, part": DataConfig(
        "imagenet", **RGB, image_size=20, cache_size=24, folders=WNIDS, val=0.3, train_images=15
    ),
}
AUGMENTATIONS = [AugmentConfig(), AugmentConfig(2, True), AugmentConfig(1, True, True, 0.4)]


@pytest.fixture(scope="module")
def image_folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    root = tmp_path_factory.mktemp("data")
    write_celeba(root)
    write_imagenet(root)
    return Folders(root, root / "cache")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("augmentation", AUGMENTATIONS, ids=["plain", "crop", "everything"])
@pytest.mark.parametrize("config", SETS.values(), ids=SETS)
def test_resident_and_streamed_batches_are_equal_to_the_bit(
    config: DataConfig, augmentation: AugmentConfig, device: str, image_folders: Folders
) -> None:
    if config.source == "gaussians" and augmentation.color_jitter:
        augmentation = replace(augmentation, color_jitter=0.0)
    where = torch.device(device)
    resident, streamed = (prepare(config, image_folders, 3, where, budget) for budget in (PLENTY, 0))
    for split in ("train", "val", "test"):
        if getattr(resident, split) is not None:
            assert isinstance(getattr(resident, split).pixels, Resident)
            assert isinstance(getattr(streamed, split).pixels, Streamed)
            assert torch.equal(*(shown(data, split) for data in (resident, streamed)))
    for epoch in (0, 1):
        pairs = zip(*(data.batches(5, 3, epoch, augmentation, 2) for data in (resident, streamed)), strict=True)
        for ours, theirs in pairs:
            assert torch.equal(ours.indices, theirs.indices)
            assert torch.equal(ours.labels, theirs.labels)
            assert all(torch.equal(*views) for views in zip(ours.views, theirs.views, strict=True))


def test_the_budget_is_spent_on_the_training_images_first(image_folders: Folders) -> None:
    config = SETS["mapped"]
    image = 3 * 16 * 16
    for budget, expected in ((22 * image, "RRR"), (16 * image, "RRS"), (12 * image, "RSS"), (9 * image, "SRS")):
        data = prepare(config, image_folders, 0, CPU, budget)
        kinds = "".join(type(split.pixels).__name__[0] for split in (data.train, data.val, data.test))
        assert kinds == expected


def test_a_mapped_set_stays_where_it_lies_on_the_cpu(image_folders: Folders) -> None:
    """So worker processes share its pages."""
    data = prepare(SETS["mapped"], image_folders, 0, CPU, PLENTY)
    loaded, _ = load(SETS["mapped"], image_folders, True)
    assert data.train.pixels.tensor.data_ptr() == np.asarray(loaded.train.pictures).ctypes.data


def test_a_stream_uses_one_thread_and_no_process_and_leaves_none(image_folders: Folders) -> None:
    data = prepare(SETS["mapped"], image_folders, 0, CPU, 0)
    before, children = threading.active_count(), psutil.Process().children()
    batches = data.batches(4, 0, 0, AugmentConfig(), 1)
    next(batches)
    assert threading.active_count() == before + 1
    assert psutil.Process().children() == children
    batches.close()
    assert threading.active_count() == before


def test_a_stream_reads_no_more_than_two_batches_ahead(image_folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmark.data.residency import Stacked

    data = prepare(SETS["mapped"], image_folders, 0, CPU, 0)
    filled: list[int] = []
    fill = Stacked.fill
    monkeypatch.setattr(Stacked, "fill", lambda self, rows, out: (filled.append(len(rows)), fill(self, rows, out)))
    batches = data.batches(2, 0, 0, AugmentConfig(), 1)
    for taken in range(1, 7):
        next(batches)
        assert len(filled) <= taken + 2


def test_an_error_while_reading_ahead_reaches_the_reader(
    image_folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmark.data.residency import Stacked

    def fails(self: Stacked, rows: np.ndarray, out: np.ndarray) -> None:
        raise OSError("the disk is gone")

    data = prepare(SETS["mapped"], image_folders, 0, CPU, 0)
    monkeypatch.setattr(Stacked, "fill", fails)
    with pytest.raises(OSError, match="the disk is gone"):
        list(data.batches(4, 0, 0, AugmentConfig(), 1))


def test_the_default_budget_is_a_share_of_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = type("Memory", (), {"available": 1000})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    assert data_budget(CPU, 1) == 500
    assert data_budget(CPU, 4) == 125
    assert choose_devices("cpu", 3, 1) == ["cpu"] * 3


def test_test_labels_are_read_only_by_the_final_evaluation(tiny: Path, tmp_path: Path) -> None:
    """A whole training with test labels that cannot be touched; the last step needs them."""
    from benchmark.store.store import Store
    from benchmark.train.outcome.predict import Outputs, empty_record
    from methods import Registry
    from tests.train.test_trainer import make_job

    class Forbidden:
        def __len__(self) -> int:
            return 200

        def __getattr__(self, name: str) -> None:
            raise AssertionError("test labels were read")

        def __getitem__(self, key: object) -> None:
            raise AssertionError("test labels were read")

    registry = Registry()
    job = make_job(tiny, "SAT", registry, "checkpoint=best")
    data = prepare(job.task.data, NOWHERE, 0, CPU, PLENTY)
    sealed = replace(data, test=replace(data.test, labels=Forbidden()))
    trainer = Trainer(job, registry, sealed, CPU)
    state = trainer.start()
    while state.epoch < job.task.epochs:
        state = trainer.run_epoch(state)
    method = trainer.tested_method(state)
    assert len(trainer.predict(method, sealed.test).logits) == 200
    with pytest.raises(AssertionError, match="test labels were read"):
        Outputs(trainer, Store(tmp_path), Path("x")).measured(method, empty_record(job))


def test_streams_depend_on_every_part_of_the_key() -> None:
    keys = [(0, "order", 0, 0), (1, "order", 0, 0), (0, "split", 0, 0), (0, "order", 1, 0), (0, "order", 0, 1)]
    assert len({streams.stream_seed(*key) for key in keys}) == len(keys)  # type: ignore[arg-type]
    assert streams.stream_seed(3, "order", 2, 1) == streams.stream_seed(3, "order", 2, 1)
