"""Evaluation sets: every layout gives each image the number that its class has in the task, and nothing else."""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from benchmark.base.errors import MissingData, UserError
from benchmark.base.files import file_sha256
from benchmark.base.schema import build
from benchmark.config.evaluation import EvaluationConfig
from benchmark.config.load import load_task
from benchmark.config.task import DataConfig, TaskConfig
from benchmark.data import dataset
from benchmark.data.cache import Folders
from benchmark.data.dataset import facts_of, load, prepare
from benchmark.data.evaluation import sets, splits
from benchmark.data.evaluation.annotations import Annotations, annotations
from benchmark.data.evaluation.parts import EvaluationSet
from benchmark.data.evaluation.sets import open_set
from benchmark.data.images import Facts, Images
from benchmark.data.sources import describe
from benchmark.data.sources._files import ImageFiles
from tests.conftest import NOWHERE, PLENTY, run_here
from tests.image_sets import picture, write_arrays, write_celeba, write_corrupted_arrays, write_levels

RGB = {"mean": (0.0,) * 3, "std": (1.0,) * 3}
DIGITS = load_task("digits")
CPU = torch.device("cpu")
OWN_TASK = 'extends = "cifar10-cpu"\n[data]\nsource = "arrays"\npath = "{}"\nimage_size = 0\n'


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """What one test opened is not what the next one sees."""
    yield
    forget_opened()


def forget_opened() -> None:
    sets.opened.cache_clear()
    dataset.load_as_of.cache_clear()


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "data", tmp_path / "cache")


def task_on(source: str, **data: Any) -> TaskConfig:
    return replace(DIGITS, data=DataConfig(source, **RGB, **data))


def own_arrays(tmp_path: Path, labels: Sequence[int] = (0, 1, 2, 3, 2, 1, 0), **data: Any) -> TaskConfig:
    """A task of four classes on a user's own arrays."""
    path = tmp_path / "own.npz"
    if not path.exists():
        write_arrays(path, (0, 1, 2, 3, 3), labels)
    return task_on("arrays", path=str(path), **data)


def opened(task: TaskConfig, folders: Folders, kind: str, **fields: Any) -> EvaluationSet:
    forget_opened()
    return open_set(build(EvaluationConfig, {"kind": kind, **fields}, "set"), task, folders)


def pixels(images: Images | None) -> np.ndarray:
    assert images is not None
    return np.stack([np.asarray(images.pictures[row]) for row in images.rows])


def levels(images: Images | None) -> list[int]:
    """The grey level of each image, which is the same everywhere in it."""
    assert images is not None
    shown = [np.unique(images.pictures[row]).tolist() for row in images.rows]
    assert all(len(each) == 1 for each in shown)
    return [each[0] for each in shown]


def by_level(images: Images | None) -> dict[int, int]:
    assert images is not None
    return dict(zip(levels(images), images.labels.tolist(), strict=True))


class TestAnotherTask:
    """Its test images are shifted ones, or new ones."""

    other = (3, 0, 1, 1, 2)

    @pytest.fixture
    def file(self, tmp_path: Path) -> str:
        write_arrays(tmp_path / "other.npz", (0, 1, 2, 3), self.other, seed=1)
        (tmp_path / "other.toml").write_text(OWN_TASK.format("other.npz"))
        return str(tmp_path / "other.toml")

    def test_shift(self, tmp_path: Path, folders: Folders, file: str) -> None:
        (part,) = opened(own_arrays(tmp_path), folders, "shift", images=file).parts
        with np.load(tmp_path / "other.npz") as stored:
            assert (pixels(part.images) == stored["test_images"].transpose(0, 3, 1, 2)).all()
        assert part.images is not None
        assert part.images.labels.tolist() == [*self.other]
        assert (part.name, part.kind, part.severity) == ("shifted", "", None)

    def test_shift_without_the_classes_left_out(self, tmp_path: Path, folders: Folders, file: str) -> None:
        (part,) = opened(own_arrays(tmp_path, leave_out=(1,)), folders, "shift", images=file).parts
        with np.load(tmp_path / "other.npz") as stored:
            assert (pixels(part.images) == stored["test_images"].transpose(0, 3, 1, 2)[[0, 1, 4]]).all()
        assert part.images is not None
        assert part.images.labels.tolist() == [2, 0, 1]

    def test_a_task_that_leaves_out_the_same_classes(self, tmp_path: Path, folders: Folders, file: str) -> None:
        Path(file).write_text(OWN_TASK.format("other.npz") + "leave_out = [1]\n")
        (part,) = opened(own_arrays(tmp_path, leave_out=(1,)), folders, "shift", images=file).parts
        assert part.images is not None
        assert part.images.labels.tolist() == [2, 0, 1]
        with pytest.raises(UserError, match=r"leave_out of '.*other.toml' is another than that of the task"):
            opened(own_arrays(tmp_path), folders, "shift", images=file)

    def test_new(self, tmp_path: Path, folders: Folders, file: str) -> None:
        (part,) = opened(own_arrays(tmp_path, leave_out=(1,)), folders, "new", images=file).parts
        assert part.images is not None
        assert part.images.labels.tolist() == [3] * 5, "the number behind the last class"
        with np.load(tmp_path / "other.npz") as stored:
            assert (pixels(part.images) == stored["test_images"].transpose(0, 3, 1, 2)).all()

    def test_the_task_itself_is_not_new(self, tmp_path: Path, folders: Folders) -> None:
        own_arrays(tmp_path)
        (tmp_path / "same.toml").write_text(OWN_TASK.format("own.npz"))
        with pytest.raises(UserError, match="has the images of the task itself, whose classes are not new"):
            opened(own_arrays(tmp_path), folders, "new", images=str(tmp_path / "same.toml"))

    def test_other_classes(self, tmp_path: Path, folders: Folders) -> None:
        write_arrays(tmp_path / "other.npz", (0, 1, 2), (0, 1))
        (tmp_path / "other.toml").write_text(OWN_TASK.format("other.npz"))
        with pytest.raises(UserError, match=r"class lists that do not match: '.*' has 3 classes, and the task 4"):
            opened(own_arrays(tmp_path), folders, "shift", images=str(tmp_path / "other.toml"))

    def test_classes_of_other_names(self, tmp_path: Path, folders: Folders) -> None:
        for name, animals in (("pets", ("cat", "dog")), ("birds", ("cat", "emu"))):
            for split in ("train", "test"):
                write_levels(tmp_path / name / split, dict.fromkeys(animals, 9))
        text = OWN_TASK.format("birds").replace('"arrays"', '"folder"').replace("image_size = 0", "image_size = 8")
        (tmp_path / "birds.toml").write_text(text)
        pets = task_on("folder", path=str(tmp_path / "pets"), image_size=8)
        with pytest.raises(UserError, match=r"'.*birds.toml' has a class 'emu' where the task has 'dog'"):
            opened(pets, folders, "shift", images=str(tmp_path / "birds.toml"))

    def test_files_of_another_task_are_decoded_as_those_of_this_one(self, tmp_path: Path, folders: Folders) -> None:
        write_celeba(folders.data)
        (part,) = opened(own_arrays(tmp_path), folders, "new", images="celeba").parts
        with Image.open(folders.data / "celeba" / "img_align_celeba" / "000017.jpg") as image:
            expected = np.asarray(image.resize((8, 8), Image.Resampling.BILINEAR))
        assert (pixels(part.images)[0] == expected.transpose(2, 0, 1)).all()
        assert len(pixels(part.images)) == 6

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("gaussians", "'gaussians' has images of 1×16×16 floats, and the task of 3×8×8 pixels; they must be alike"),
            ("digits", "'digits' has images of 1×8×8 pixels, and the task of 3×8×8 pixels"),
            ("svnh", "there is no file or folder 'svnh', and unknown task 'svnh': did you mean 'svhn'"),
            ("no/svhn", "'no/svhn' does not exist; a path in a task file is relative to it"),
            ("x" * 5000, "there is no file or folder 'x+'"),
        ],
    )
    @pytest.mark.parametrize("kind", ["shift", "new"])
    def test_images_that_do_not_fit(self, tmp_path: Path, folders: Folders, name: str, message: str, kind: str) -> None:
        with pytest.raises(UserError, match=message):
            opened(own_arrays(tmp_path), folders, kind, images=name)


class TestLeaveOut:
    labels = (0, 1, 2, 3, 2, 1, 0, 3, 3)

    def test_the_others_are_renumbered_in_order(self, tmp_path: Path, folders: Folders) -> None:
        whole, _ = load(own_arrays(tmp_path, self.labels).data, folders)
        data = own_arrays(tmp_path, leave_out=(2, 0)).data
        loaded, _ = load(data, folders)
        for part, every in ((loaded.train, whole.train), (loaded.test, whole.test)):
            kept = np.flatnonzero(np.isin(every.labels, (1, 3)))
            assert (pixels(part) == pixels(every)[kept]).all()
            assert part.labels.tolist() == [{1: 0, 3: 1}[label] for label in every.labels[kept].tolist()]
            assert part.rows.tolist() == kept.tolist(), "numbers in the whole set"
        assert facts_of(data, loaded) == Facts(2, 3, 5, (3, 8, 8))

    def test_facts_before_there_are_images(self) -> None:
        left = facts_of(replace(DIGITS.data, leave_out=(3, 5)), None)
        assert left == replace(describe(DIGITS.data), num_classes=8, num_train=320, num_test=1118)

    def test_new_alone_means_exactly_the_test_images_left_out(self, tmp_path: Path, folders: Folders) -> None:
        """All of them, also where the task is tested on a part of its images."""
        whole, _ = load(own_arrays(tmp_path, self.labels).data, folders)
        for part_of_them in (0, 2):
            task = own_arrays(tmp_path, leave_out=(2, 0), test_images=part_of_them, train_images=2)
            (part,) = opened(task, folders, "new").parts
            assert part.images is not None
            assert part.images.rows.tolist() == [0, 2, 4, 6]
            assert (pixels(part.images) == pixels(whole.test)[[0, 2, 4, 6]]).all()
            assert part.images.labels.tolist() == [2] * 4

    @pytest.mark.parametrize(
        ("source", "classes", "message"),
        [
            ("digits", (10,), "data.leave_out: 10 is no class of 'digits'; its 10 classes are 0 to 9"),
            ("digits", tuple(range(9)), "data.leave_out leaves 1 class of 10, expected 2 or more"),
            ("gaussians", (1,), "the images of 'gaussians' come with the probability of every class"),
        ],
    )
    def test_what_cannot_be_left_out(self, source: str, classes: tuple[int, ...], message: str) -> None:
        task = load_task(source)
        with pytest.raises(UserError, match=message):
            load(replace(task.data, leave_out=classes), NOWHERE)

    @pytest.mark.parametrize(("classes", "message"), [([3, 3], "name each class once"), ([-1], "from 0 to")])
    def test_what_a_task_file_refuses(self, classes: list[int], message: str) -> None:
        with pytest.raises(UserError, match=message):
            load_task("digits", [f"data.leave_out={classes}"])

    def test_new_alone_where_none_are_left_out(self) -> None:
        with pytest.raises(
            UserError, match="a set of kind 'new' needs images; without, the task must leave out classes"
        ):
            opened(DIGITS, NOWHERE, "new")

    def test_classes_without_test_images(self, tmp_path: Path, folders: Folders) -> None:
        with pytest.raises(UserError, match=r"the classes of data\.leave_out have no test images"):
            opened(own_arrays(tmp_path, (0, 1, 2), leave_out=(3,)), folders, "new")


class TestArrays:
    def write(self, tmp_path: Path, **changes: Any) -> str:
        random = np.random.default_rng(3)
        arrays = {"images": random.integers(0, 256, (5, 8, 8, 3), dtype=np.uint8), "labels": np.array([3, 2, 1, 1, 0])}
        chosen = {name: array for name, array in (arrays | changes).items() if array is not None}
        np.savez(tmp_path / "set.npz", **chosen)
        return str(tmp_path / "set.npz")

    @pytest.mark.parametrize("prefix", ["", "test_"])
    @pytest.mark.parametrize("form", ["npz", "npy files"])
    def test_shift(self, tmp_path: Path, folders: Folders, prefix: str, form: str) -> None:
        with np.load(self.write(tmp_path)) as arrays:
            stored = dict(arrays)
        (tmp_path / "set").mkdir()
        for name, array in stored.items():
            np.save(tmp_path / "set" / f"{prefix}{name}.npy", array)
        np.savez(tmp_path / "named.npz", **{f"{prefix}{name}": array for name, array in stored.items()})
        place = tmp_path / ("named.npz" if form == "npz" else "set")
        (part,) = opened(own_arrays(tmp_path, leave_out=(2,)), folders, "shift", images=str(place)).parts
        assert part.images is not None
        assert part.images.labels.tolist() == [2, 1, 1, 0]
        assert (pixels(part.images) == stored["images"].transpose(0, 3, 1, 2)[[0, 2, 3, 4]]).all()

    def test_new_images_need_no_labels(self, tmp_path: Path, folders: Folders) -> None:
        (part,) = opened(own_arrays(tmp_path), folders, "new", images=self.write(tmp_path, labels=None)).parts
        assert part.images is not None
        assert part.images.labels.tolist() == [4] * 5
        with np.load(tmp_path / "set.npz") as arrays:
            assert (pixels(part.images) == arrays["images"].transpose(0, 3, 1, 2)).all()

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"images": np.zeros((5, 8, 9, 3), np.uint8)}, "has images of 3×8×9 pixels, and the task of 3×8×8 pixels"),
            ({"images": np.zeros((5, 8, 8), np.uint8)}, "has images of 1×8×8 pixels"),
            ({"images": np.zeros((5, 8, 8, 3))}, "images must be uint8"),
            ({"images": np.zeros((0, 8, 8, 3), np.uint8), "labels": np.zeros(0, int)}, "has no test images"),
            ({"images": None}, "has no array 'images'; it has labels"),
            ({"labels": None}, "has no array 'labels'; it has images"),
            ({"labels": np.arange(4)}, "one whole number per image"),
            ({"labels": np.array([1, 1, 2, 3, 4])}, "class lists that do not match: '.*' has labels 1 to 4, and the"),
            ({"labels": np.array([0, 1, 2, 3, -1])}, "has a label -1"),
            (
                {"labels": np.array([0, 1, 2, 3, 10**12])},
                r"labels must be numbers of classes, .* got 1,000,000,",
            ),
            ({"labels": np.full(5, 2)}, "class lists that do not match: '.*' has no image of the task's classes"),
        ],
    )
    def test_what_is_wrong_with_them(
        self, tmp_path: Path, folders: Folders, changes: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(UserError, match=message):
            opened(own_arrays(tmp_path, leave_out=(2,)), folders, "shift", images=self.write(tmp_path, **changes))

    def test_floats_are_not_the_test_images_of_anything_else(self, tmp_path: Path, folders: Folders) -> None:
        with pytest.raises(UserError, match="has images of 3×8×8 pixels, and the task of 1×16×16 floats"):
            opened(load_task("gaussians"), folders, "shift", images=self.write(tmp_path))
        with pytest.raises(UserError, match="corruptions are made of 8-bit images"):
            opened(load_task("gaussians"), folders, "corruptions")


class TestCorruptedArrays:
    """CIFAR-10-C and CIFAR-100-C."""

    labels = np.array([0, 3, 1, 2])

    def test_severities_in_order(self, tmp_path: Path, folders: Folders) -> None:
        write_corrupted_arrays(tmp_path / "c", self.labels)
        found = opened(own_arrays(tmp_path, leave_out=(3,)), folders, "shift", images=str(tmp_path / "c"))
        assert [part.name for part in found.parts] == [
            f"{name}-{severity}" for name in ("fog", "jpeg_compression") for severity in (1, 2, 3, 4, 5)
        ]
        for part in found.parts:
            stored = np.load(tmp_path / "c" / f"{part.name[:-2]}.npy").reshape(5, 4, 8, 8, 3)
            assert part.severity == int(part.name[-1])
            kept = stored[part.severity - 1][[0, 2, 3]]
            assert (pixels(part.images) == kept.transpose(0, 3, 1, 2)).all()
            assert part.images is not None
            assert part.images.labels.tolist() == [0, 1, 2]
        assert {part.kind for part in found.parts} == {"fog", "jpeg compression"}

    def test_they_reach_the_network_as_they_are_stored(self, tmp_path: Path, folders: Folders) -> None:
        write_corrupted_arrays(tmp_path / "c", self.labels)
        task = own_arrays(tmp_path)
        part = opened(task, folders, "shift", images=str(tmp_path / "c")).parts[3]
        data = prepare(task.data, folders, 0, CPU, PLENTY)
        for budget in (0, PLENTY):
            split = splits.split_of(part, data, CPU, budget)
            seen = torch.cat(list(data.eval_batches(split, 3)))
            assert torch.equal(seen, torch.from_numpy(pixels(part.images)) / 255)
            assert split.labels.tolist() == [0, 3, 1, 2]

    @pytest.mark.parametrize(
        ("name", "array", "message"),
        [
            ("labels", np.arange(19) % 4, r"labels.npy': expected whole numbers, as many for each of 5 severities"),
            ("labels", np.arange(20) / 4, "expected whole numbers"),
            ("labels", np.zeros((20, 1), int), "expected whole numbers"),
            ("labels", np.tile(np.arange(4) + 1, 5), "has labels 1 to 4, and the task's 4 classes are 0 to 3"),
            ("labels", np.arange(4).repeat(5), "expected the same labels for each of 5 severities, one severity after"),
            ("labels", np.arange(20) % 4 - 1, "has labels -1 to 2, and the task's 4 classes"),
            ("labels", np.tile([0, 1, 2, 1], 5), "has 3 classes, and the task 4"),
            ("fog", np.zeros((16, 8, 8, 3), np.uint8), r"fog.npy' has 16 images, expected 20, one for each label"),
            ("fog", np.zeros((20, 9, 9, 3), np.uint8), r"c/fog.npy' has images of 3×9×9 pixels, and the task"),
            ("fog", np.zeros((20, 8, 8, 3)), "must be uint8"),
            ("fog\n", np.zeros((20, 8, 8, 3), np.uint8), r"a corruption 'fog\\n'; rename it"),
        ],
    )
    def test_what_is_wrong_with_them(
        self, tmp_path: Path, folders: Folders, name: str, array: np.ndarray, message: str
    ) -> None:
        write_corrupted_arrays(tmp_path / "c", self.labels)
        np.save(tmp_path / "c" / f"{name}.npy", array)
        with pytest.raises(UserError, match=message):
            opened(own_arrays(tmp_path), folders, "shift", images=str(tmp_path / "c"))

    @pytest.mark.parametrize("content", [b"no array", None])
    def test_a_file_that_is_none(self, tmp_path: Path, folders: Folders, content: bytes | None) -> None:
        """A pipe is not waited for."""
        write_corrupted_arrays(tmp_path / "c", self.labels, ("fog",))
        path = tmp_path / "c" / "snow.npy"
        os.mkfifo(path) if content is None else path.write_bytes(content)
        with pytest.raises(UserError, match=r"snow.npy' cannot be read as an npy file"):
            opened(own_arrays(tmp_path), folders, "shift", images=str(tmp_path / "c"))

    def test_labels_alone(self, tmp_path: Path, folders: Folders) -> None:
        write_corrupted_arrays(tmp_path / "c", self.labels, ())
        with pytest.raises(UserError, match=r"has labels\.npy, but no images"):
            opened(own_arrays(tmp_path), folders, "shift", images=str(tmp_path / "c"))


WNIDS = tuple(f"n{number:08}" for number in range(100, 112))
"""Of twelve training classes: sorted as text, the folders 0 to 11 of ImageNet-V2 are in another order."""
LEVELS = {name: 20 * number for number, name in enumerate(WNIDS)}
USED = (7, 2, 10, 5, 0)
"""Those that the task uses, in its own order."""


class TestImageNet:
    @pytest.fixture(params=[(), (1, 4)], ids=["all classes", "some left out"])
    def task(self, request: pytest.FixtureRequest, folders: Folders) -> TaskConfig:
        for split in ("train", "val"):
            write_levels(folders.data / "imagenet" / split, LEVELS, sizes=((9, 8),))
        names = tuple(WNIDS[number] for number in USED)
        return task_on("imagenet", folders=names, image_size=8, leave_out=request.param)

    def expected(self, task: TaskConfig, there: Sequence[int] = range(12), plus: int = 0) -> dict[int, int]:
        """By grey level the number of each class that is there, counted by hand."""
        kept = [number for place, number in enumerate(USED) if place not in task.data.leave_out]
        return {20 * number + plus: kept.index(number) for number in there if number in kept}

    def test_the_task_itself(self, task: TaskConfig, folders: Folders) -> None:
        assert by_level(load(task.data, folders)[0].test) == self.expected(task)

    def test_some_of_the_classes_by_wordnet_id(self, task: TaskConfig, folders: Folders, tmp_path: Path) -> None:
        """ImageNet-R, -A and -Sketch."""
        there = (11, 10, 7, 3, 2, 0)
        write_levels(tmp_path / "r", {WNIDS[number]: 20 * number for number in there} | {"n99999999": 255})
        found = opened(task, folders, "shift", images=str(tmp_path / "r"))
        (part,) = found.parts
        assert by_level(part.images) == self.expected(task, there)
        left = len(self.expected(task, there))
        assert found.remark == (
            f"{7 - left} of 7 classes of the set are not the task's and left out; it has images of {left} of the "
            f"{5 - len(task.data.leave_out)} classes of the task"
        )

    def test_folders_by_number(self, task: TaskConfig, folders: Folders, tmp_path: Path) -> None:
        """ImageNet-V2: 10 is the class after 9, not the one after 1."""
        write_levels(tmp_path / "v2", {str(number): 20 * number for number in range(12)})
        (part,) = opened(task, folders, "shift", images=str(tmp_path / "v2")).parts
        assert by_level(part.images) == self.expected(task)

    @pytest.mark.parametrize("deeper", [False, True], ids=["fog/3/WNID", "weather/fog/3/WNID"])
    def test_corruptions_by_severity(self, task: TaskConfig, folders: Folders, tmp_path: Path, deeper: bool) -> None:
        """ImageNet-C."""
        for added, (family, kind, severity) in enumerate(
            (("weather", "fog", 1), ("weather", "fog", 3), ("blur", "zoom_blur", 3)), start=1
        ):
            root = tmp_path / "c" / (family if deeper else "") / kind / str(severity)
            write_levels(root, {name: level + added for name, level in LEVELS.items()})
        found = opened(task, folders, "shift", images=str(tmp_path / "c"))
        parts = {part.name: part for part in found.parts}
        assert {name: (part.kind, part.severity) for name, part in parts.items()} == {
            "fog-1": ("fog", 1),
            "fog-3": ("fog", 3),
            "zoom_blur-3": ("zoom blur", 3),
        }
        for added, name in enumerate(("fog-1", "fog-3", "zoom_blur-3"), start=1):
            assert by_level(parts[name].images) == self.expected(task, plus=added)

    def test_all_images_of_a_folder_are_new(self, task: TaskConfig, folders: Folders, tmp_path: Path) -> None:
        write_levels(tmp_path / "o" / "deep", {"3": 60, "x": 80}, sizes=((9, 9),))
        write_levels(tmp_path / "o", {"y": 100}, sizes=((9, 9),))
        Image.new("RGB", (9, 9), (7, 7, 7)).save(tmp_path / "o" / "0.png")
        (part,) = opened(task, folders, "new", images=str(tmp_path / "o")).parts
        assert sorted(by_level(part.images).items()) == [
            (level, 5 - len(task.data.leave_out)) for level in (7, 60, 80, 100)
        ]
        Image.new("RGB", (9, 9), (9, 9, 9)).save(tmp_path / "o" / "0.png")
        (part,) = opened(task, folders, "new", images=str(tmp_path / "o")).parts
        assert sorted(levels(part.images)) == [9, 60, 80, 100], "also images beside the folders are looked at again"

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (("cat", "dog"), "has class folders such as 'cat', and the task such as 'n00000107'; none of either"),
            (tuple(map(str, range(10))), "class folders 0 to 9, and the training images 12 classes"),
            ((), "has no class folders; expected one folder per class, an npz file or npy files"),
            ((WNIDS[1],), "has class folders such as|has no image of the task's classes"),
            (("fog/3/x", "fog/6/x"), "has class folders such as"),
            (("fog/3/x", "snow/x"), "has corruptions such as 'fog', and beside them 'snow' without folders of sev"),
            (("a/fog/3/x", "b/fog/3/x"), "has two folders of the corruption 'fog'; move one elsewhere"),
            ((f"fog!/3/{WNIDS[7]}",), r"a corruption 'fog!'; rename it"),
            ((f"fog/3/{WNIDS[7]}", f"fog/4/{WNIDS[1]}"), "has no image of the task's classes in fog-4"),
        ],
    )
    def test_folders_that_do_not_fit(
        self, task: TaskConfig, folders: Folders, tmp_path: Path, names: tuple[str, ...], message: str
    ) -> None:
        (tmp_path / "x").mkdir()
        write_levels(tmp_path / "x", dict.fromkeys(names, 10), sizes=((9, 9),))
        with pytest.raises(UserError, match=message):
            opened(task, folders, "shift", images=str(tmp_path / "x"))

    def test_folders_without_images(self, task: TaskConfig, folders: Folders, tmp_path: Path) -> None:
        (tmp_path / "x" / WNIDS[7]).mkdir(parents=True)
        for kind in ("shift", "new"):
            with pytest.raises(UserError, match=r"x' has no images; expected some in its folders"):
                opened(task, folders, kind, images=str(tmp_path / "x"))


class TestClassFolders:
    """Of tasks on a user's own images, and of those whose classes are numbers."""

    def task(self, tmp_path: Path, names: Sequence[str], **data: Any) -> TaskConfig:
        for split in ("train", "test"):
            write_levels(tmp_path / "own" / split, {name: 20 * place for place, name in enumerate(names)})
        return task_on("folder", path=str(tmp_path / "own"), image_size=8, **data)

    def test_by_name(self, tmp_path: Path, folders: Folders) -> None:
        task = self.task(tmp_path, ("ant", "bee", "cat"), folders=("cat", "ant"))
        write_levels(tmp_path / "x", {"bee": 10, "cat": 20, "ant": 30})
        (part,) = opened(task, folders, "shift", images=str(tmp_path / "x")).parts
        assert by_level(part.images) == {20: 0, 30: 1}

    @pytest.mark.parametrize("used", [(), ("10", "2", "1")])
    def test_classes_that_are_called_by_numbers_go_by_their_names(
        self, tmp_path: Path, folders: Folders, used: tuple[str, ...]
    ) -> None:
        names = [str(number) for number in range(12)]
        task = self.task(tmp_path, names, folders=used)
        write_levels(tmp_path / "x", {name: 20 * int(name) for name in names})
        (part,) = opened(task, folders, "shift", images=str(tmp_path / "x")).parts
        order = list(used) or sorted(names)
        assert by_level(part.images) == {20 * int(name): number for number, name in enumerate(order)}

    @pytest.mark.parametrize("there", [range(4), (3, 1)])
    def test_arrays_have_numbers(self, tmp_path: Path, folders: Folders, there: Sequence[int]) -> None:
        write_levels(tmp_path / "x", {str(number): 50 * number for number in there})
        task = own_arrays(tmp_path, leave_out=(1,))
        (part,) = opened(task, folders, "shift", images=str(tmp_path / "x")).parts
        assert by_level(part.images) == {50 * number: {0: 0, 2: 1, 3: 2}[number] for number in there if number != 1}

    @pytest.mark.parametrize("cache_size", [0, 12])
    def test_files_are_decoded_as_those_of_the_task(self, tmp_path: Path, folders: Folders, cache_size: int) -> None:
        task = self.task(tmp_path, ("ant", "bee"), cache_size=cache_size)
        (tmp_path / "x" / "bee").mkdir(parents=True)
        original = picture(30, 20, 1)
        original.save(tmp_path / "x" / "bee" / "0.png")
        (part,) = opened(task, folders, "shift", images=str(tmp_path / "x")).parts
        expected = original.resize((18, 12) if cache_size else (8, 8), Image.Resampling.BILINEAR)
        assert (pixels(part.images)[0] == np.asarray(expected).transpose(2, 0, 1)).all()
        data = prepare(task.data, folders, 0, CPU, PLENTY)
        (seen,) = data.eval_batches(splits.split_of(part, data, CPU, PLENTY), 5)
        shown = expected.crop((5, 2, 13, 10)) if cache_size else expected
        assert (seen[0].mul(255).round().numpy() == np.asarray(shown).transpose(2, 0, 1)).all()

    def test_grey_as_the_task(self, tmp_path: Path, folders: Folders) -> None:
        (tmp_path / "x" / "7").mkdir(parents=True)
        original = picture(20, 20, 1)
        original.save(tmp_path / "x" / "7" / "0.png")
        (part,) = opened(DIGITS, folders, "shift", images=str(tmp_path / "x")).parts
        expected = np.asarray(original.convert("L").resize((8, 8), Image.Resampling.BILINEAR))
        assert (pixels(part.images) == expected).all()
        assert part.images is not None
        assert part.images.labels.tolist() == [7]


class TestCorruptions:
    def test_parts_are_made_later(self) -> None:
        found = opened(DIGITS, NOWHERE, "corruptions", kinds=["jpeg", "Gaussian_noise"], severities=[5, 2])
        assert [part.name for part in found.parts] == ["gaussian-noise-2", "gaussian-noise-5", "jpeg-2", "jpeg-5"]
        assert all(part.images is None for part in found.parts)
        assert len(opened(DIGITS, NOWHERE, "corruptions").parts) == 80

    def test_the_number_of_an_image_is_the_key_of_its_draws(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """So a part of the test images is corrupted as the same images are among all."""

        def with_key(images: Tensor, kind: str, severity: int, ids: Tensor) -> Tensor:
            assert (kind, severity, images.dtype) == ("gaussian noise", 4, torch.uint8)
            return ((images + ids[:, None, None, None]) % 256).to(torch.uint8)

        monkeypatch.setattr(splits, "corrupt", with_key)
        task = replace(DIGITS, data=replace(DIGITS.data, test_images=50))
        (part,) = opened(task, NOWHERE, "corruptions", kinds=["gaussian noise"], severities=[4]).parts
        data = prepare(task.data, NOWHERE, 0, CPU, PLENTY)
        test = load(task.data, NOWHERE)[0].test
        expected = (pixels(test).astype(int) + test.rows[:, None, None, None]) % 256
        for size in (7, 50):
            seen = torch.cat(list(data.eval_batches(splits.split_of(part, data, CPU, PLENTY), size)))
            assert ((seen * data.std + data.mean).mul(255).round().numpy() == expected).all()


class TestHashes:
    def shifted(self, task: TaskConfig, folders: Folders, place: Path) -> str:
        return opened(task, folders, "shift", images=str(place)).sha256

    @pytest.mark.parametrize("what", ["pixel", "label"])
    @pytest.mark.parametrize("layout", ["npz", "folders", "cifar-10-c"])
    def test_one_pixel_or_label_changes_it_and_another_place_does_not(
        self, tmp_path: Path, folders: Folders, layout: str, what: str
    ) -> None:
        task, place = own_arrays(tmp_path), tmp_path / "x"
        if layout == "npz":
            place = write_arrays(tmp_path / "x.npz", (0,), (3, 1, 2, 0))
        elif layout == "folders":
            write_levels(place, {str(number): 20 * number for number in range(4)})
        else:
            write_corrupted_arrays(place, np.arange(4))
        before = self.shifted(task, folders, place)
        assert self.shifted(task, folders, place) == before
        other = tmp_path / f"elsewhere{place.suffix}"
        (shutil.copytree if place.is_dir() else shutil.copy)(place, other)
        assert self.shifted(task, folders, other) == before
        self.change(place, what)
        assert self.shifted(task, folders, place) != before

    def change(self, place: Path, what: str) -> None:
        if (place / "3").is_dir() and what == "pixel":
            image = Image.new("RGB", (9, 9), (60, 60, 60))
            image.putpixel((4, 4), (200, 60, 60))
            image.save(place / "3" / "0.png")
        elif (place / "3").is_dir():
            (place / "3" / "0.png").rename(place / "2" / "9.png")
        elif place.is_dir():
            name = "labels" if what == "label" else "jpeg_compression"
            array = np.load(place / f"{name}.npy")
            self.alter(array)
            np.save(place / f"{name}.npy", array)
        else:
            with np.load(place) as stored:
                arrays = dict(stored)
            self.alter(arrays["test_labels" if what == "label" else "test_images"])
            np.savez(place, **arrays)

    def alter(self, array: np.ndarray) -> None:
        if array.ndim == 1:
            array[1::4] = 3 - array[1::4]
        else:
            array[1, 1, 1, 1] ^= 1

    def test_the_same_images_in_another_role_have_another(self, tmp_path: Path, folders: Folders) -> None:
        place = write_arrays(tmp_path / "x.npz", (0,), (3, 1, 2, 0))
        hashes = {
            opened(own_arrays(tmp_path, leave_out=left_out), folders, kind, images=str(place)).sha256
            for kind in ("shift", "new")
            for left_out in ((), (1,))
        }
        assert len(hashes) == 4

    def test_it_changes_with_the_classes_left_out(self, tmp_path: Path, folders: Folders) -> None:
        found = {opened(own_arrays(tmp_path, leave_out=(n,)), folders, "new").sha256 for n in range(4)}
        assert len(found) == 4

    def test_corruptions_have_one_for_each_choice(self) -> None:
        choices: list[dict[str, Any]] = [{}, {"kinds": ["fog"]}, {"kinds": ["jpeg"]}, {"severities": [1]}]
        assert len({opened(DIGITS, NOWHERE, "corruptions", **each).sha256 for each in choices}) == 4

    def test_a_large_file_is_read_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file, cache = tmp_path / "x", tmp_path / "cache"
        file.write_bytes(b"abc")
        known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        assert file_sha256(file, cache) == known
        status = file.stat()
        file.write_bytes(b"abd")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert file_sha256(file, cache) == known, "nothing shows that it has changed"
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        assert file_sha256(file, cache) != known
        next((cache / "hashes").iterdir()).write_text("no note")
        assert file_sha256(file, cache) != known


def test_the_second_time_nothing_is_decoded(tmp_path: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    write_levels(tmp_path / "x", {str(number): 20 * number for number in range(4)})
    first = opened(own_arrays(tmp_path), folders, "shift", images=str(tmp_path / "x"))

    def no_decoding(*_: object) -> None:
        raise AssertionError("an image was decoded again")

    monkeypatch.setattr(ImageFiles, "__getitem__", no_decoding)
    again = opened(own_arrays(tmp_path), folders, "shift", images=str(tmp_path / "x"))
    assert again.sha256 == first.sha256
    assert levels(again.parts[0].images) == levels(first.parts[0].images)


def test_a_plan_builds_no_cache(tmp_path: Path, folders: Folders) -> None:
    write_levels(tmp_path / "x", {"1": 0})
    with pytest.raises(MissingData, match="not cached yet"):
        open_set(EvaluationConfig("shift", images=str(tmp_path / "x")), own_arrays(tmp_path), folders, build=False)
    assert not folders.cache.exists()


def test_prepare_makes_the_sets_of_a_task(tmp_path: Path, folders: Folders) -> None:
    own_arrays(tmp_path)
    write_levels(tmp_path / "x", {str(number): 20 * number for number in (0, 1, 7)})
    np.savez(tmp_path / "people.npz", counts=np.ones((7, 4), int))
    (tmp_path / "groups.csv").write_text("light,place\n" + "dim,1\nday,2\n" * 3 + "dim,1\n")
    kinds = {"shift": 'images = "x"', "humans": 'file = "people.npz"', "groups": 'file = "groups.csv"', "new": ""}
    listed = "".join(f'[[evaluate]]\nkind = "{kind}"\n{text}\n' for kind, text in kinds.items())
    task = tmp_path / "mine.toml"
    task.write_text(OWN_TASK.format("own.npz") + f'leave_out = [3]\n{listed}[[evaluate]]\nkind = "corruptions"\n')
    result = run_here("prepare", task, "--data-dir", folders.data, "--cache-dir", folders.cache)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-5:] == [
        "  evaluation set 'x': 4 images in 1 part; 1 of 3 classes of the set is not the task's and left out; it has "
        "images of 2 of the 3 classes of the task",
        "  evaluation set 'humans': what people call them, for 6 test images",
        "  evaluation set 'groups': groups by light, place, for 6 test images",
        "  evaluation set 'new': 1 image in 1 part",
        "  evaluation set 'corruptions': made from the test images",
    ]


def known_of(task: TaskConfig, folders: Folders, kind: str, **fields: Any) -> Annotations:
    """What a file says of the test images of a task."""
    forget_opened()
    loaded, _ = load(task.data, folders)
    config = build(EvaluationConfig, {"kind": kind, **fields}, "set")
    ids = loaded.test.rows.astype(np.int32)
    return annotations(config, task, folders, ids, facts_of(task.data, loaded).num_classes)


class TestHumans:
    """Counts of four classes for seven test images, as `own_arrays` has."""

    counts = np.array(
        [[9, 1, 0, 0], [0, 8, 1, 1], [1, 1, 5, 3], [0, 0, 0, 2], [2, 2, 2, 2], [0, 3, 0, 7], [1, 0, 1, 0]]
    )

    def write(self, tmp_path: Path, name: str = "people.npz", **arrays: Any) -> str:
        if name.endswith(".csv"):
            rows = "".join(",".join(map(str, row)) + "\n" for row in self.counts.tolist())
            (tmp_path / name).write_text(f"ant,bee,cat,dog\n{rows}")
        elif name.endswith(".npy"):
            np.save(tmp_path / name, self.counts)
        else:
            np.savez(tmp_path / name, **(arrays or {"counts": self.counts}))
        return str(tmp_path / name)

    @pytest.mark.parametrize("name", ["people.npz", "people.npy", "people.csv"])
    def test_shares_of_people(self, tmp_path: Path, folders: Folders, name: str) -> None:
        found = known_of(own_arrays(tmp_path), folders, "humans", file=self.write(tmp_path, name))
        expected = [[count / sum(row) for count in row] for row in self.counts.tolist()]
        assert found.posterior is not None
        assert found.posterior.tolist() == expected
        assert found.groups == {}

    def test_over_the_classes_and_images_that_are_used(self, tmp_path: Path, folders: Folders) -> None:
        """The rows of images that the task does not test do not matter: nobody said anything of the fourth here."""
        counts = self.counts.copy()
        counts[4] = [0, 0, 0, 9]
        task = own_arrays(tmp_path, leave_out=(0, 3))
        found = known_of(task, folders, "humans", file=self.write(tmp_path, counts=self.counts))
        assert found.posterior is not None
        assert found.posterior.tolist() == [[8 / 9, 1 / 9], [1 / 6, 5 / 6], [0.5, 0.5], [1, 0]]
        with pytest.raises(UserError, match="nobody gave test image 4 a class of the task; every row needs people"):
            known_of(task, folders, "humans", file=self.write(tmp_path, counts=counts))

    def test_a_file_of_counts_and_probabilities(self, tmp_path: Path, folders: Folders) -> None:
        """As CIFAR-10H is handed on; other arrays are passed over."""
        task, shares = own_arrays(tmp_path), self.counts / self.counts.sum(1, keepdims=True)
        others = {"labels": np.arange(7), "votes": np.zeros((7, 9), int), "names": np.array(["a"] * 7)}
        both = known_of(task, folders, "humans", file=self.write(tmp_path, probs=shares, counts=self.counts, **others))
        alone = known_of(task, folders, "humans", file=self.write(tmp_path, probs=shares, **others))
        assert both.posterior is not None
        assert alone.posterior is not None
        assert both.posterior.tolist() == shares.tolist()
        assert np.allclose(alone.posterior, shares, atol=1e-15)

    def test_the_hash_is_that_of_the_counts(self, tmp_path: Path, folders: Folders) -> None:
        task = own_arrays(tmp_path)
        same = [self.write(tmp_path, counts=self.counts.astype(kind)) for kind in ("u1", "f4", "i8")]
        same += [self.write(tmp_path, "a.npy"), self.write(tmp_path, "b.csv")]
        assert len({known_of(task, folders, "humans", file=file).sha256 for file in same}) == 1
        other = self.counts.copy()
        other[6, 3] = 1
        changed = known_of(task, folders, "humans", file=self.write(tmp_path, counts=other))
        assert changed.sha256 != known_of(task, folders, "humans", file=self.write(tmp_path, "a.npy")).sha256

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"counts": counts[:, :3]}, "class lists that do not match: '.*' has counts of 3 classes, the task 4"),
            ({"counts": counts[:1]}, "has counts of 1 image, expected those of all 7 test images"),
            ({"counts": np.vstack([counts, counts])}, "has counts of 14 images, expected those of all 7"),
            ({"counts": counts * [1, 1, np.nan, 1]}, "the counts of image 0 must be numbers from 0 on"),
            ({"counts": np.where(counts == 3, -1, counts)}, "the counts of image 2 must be numbers from 0 on"),
            ({"counts": np.where(counts == 7, np.inf, counts)}, "the counts of image 5 must be numbers from 0 on"),
            ({"counts": np.where(counts == 2, 0, counts)}, "nobody gave test image 3 a class"),
            ({"a": counts, "b": counts}, r"needs one table of counts \(images, 4 classes\); it has a \(7, 4\), b"),
            ({"labels": np.arange(7)}, r"needs one table of counts .* it has labels \(7,\)"),
            ({"counts": np.array([{}] * 7)}, "cannot be read as an npz, npy or csv file .*pickle"),
        ],
    )
    def test_what_is_wrong_with_them(
        self, tmp_path: Path, folders: Folders, arrays: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(UserError, match=message):
            known_of(own_arrays(tmp_path), folders, "humans", file=self.write(tmp_path, **arrays))

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("none.npz", None, "none.npz' does not exist; a path in a task file is relative to it"),
            ("none.csv", None, "none.csv' does not exist"),
            ("x.npz", b"no zip", "cannot be read as an npz, npy or csv file"),
            ("x.npz", b"", "cannot be read as an npz, npy or csv file"),
            ("x.csv", b"\xff\xfe", "cannot be read as an npz, npy or csv file .*UnicodeDecodeError"),
            ("x.csv", b"", "must begin with a line that gives each column another name"),
            ("x.csv", b"a,b,c,d\n", "has counts of 0 images, expected those of all 7"),
            ("x.csv", b"a,b,c,d\n1,2,3,x\n", r"needs one table of counts .* it has columns \(1, 4\)"),
            ("x.csv", b"a,b,c\n1,2,3\n", "has counts of 3 classes, the task 4"),
        ],
    )
    def test_files_that_are_none(
        self, tmp_path: Path, folders: Folders, name: str, content: bytes | None, message: str
    ) -> None:
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=message):
            known_of(own_arrays(tmp_path), folders, "humans", file=str(tmp_path / name))

    def test_a_folder_or_a_pipe_is_no_file(self, tmp_path: Path, folders: Folders) -> None:
        os.mkfifo(tmp_path / "pipe.npz")
        for path in (tmp_path, tmp_path / "pipe.npz"):
            with pytest.raises(UserError, match="' is no regular file"):
                known_of(own_arrays(tmp_path), folders, "humans", file=str(path))


class TestGroups:
    light = np.array(["dim", "day", "dim", "day", "dim", "day", "night"])

    def write(self, tmp_path: Path, **arrays: Any) -> str:
        np.savez(tmp_path / "groups.npz", **arrays)
        return str(tmp_path / "groups.npz")

    def test_columns_of_a_file(self, tmp_path: Path, folders: Folders) -> None:
        file = self.write(tmp_path, light=self.light, place=np.arange(7, dtype=np.uint8), inside=np.arange(7) > 3)
        every = known_of(own_arrays(tmp_path), folders, "groups", file=file).groups
        assert {name: column.tolist() for name, column in every.items()} == {
            "light": self.light.tolist(),
            "place": [0, 1, 2, 3, 4, 5, 6],
            "inside": ["no"] * 4 + ["yes"] * 3,
        }
        some = known_of(own_arrays(tmp_path, leave_out=(1,)), folders, "groups", file=file, columns=["Place", "LIGHT"])
        assert {name: column.tolist() for name, column in some.groups.items()} == {
            "place": [0, 2, 3, 4, 6],
            "light": ["dim", "dim", "day", "dim", "night"],
        }

    def test_a_csv_file(self, tmp_path: Path, folders: Folders) -> None:
        """Whole numbers are numbers, and anything else is text, also a number with a zero before it."""
        rows = zip(self.light, range(-3, 4), ("01", "2", "3", "4", "5", "6", "7"), strict=True)
        text = '\ufefflight, "depth" ,code\n' + "".join(f" {a} ,{b},{c}\r\n" for a, b, c in rows)
        (tmp_path / "groups.csv").write_text(text, encoding="utf-8")
        found = known_of(own_arrays(tmp_path), folders, "groups", file=str(tmp_path / "groups.csv")).groups
        assert found["light"].tolist() == self.light.tolist()
        assert found['"depth"' if '"depth"' in found else "depth"].tolist() == [-3, -2, -1, 0, 1, 2, 3]
        assert found["code"].tolist() == ["01", "2", "3", "4", "5", "6", "7"]

    def test_attributes_of_celeba(self, folders: Folders) -> None:
        """Beside the one that is the class; of the test images, in their order."""
        write_celeba(folders.data)
        task = task_on("celeba", image_size=8)
        found = known_of(task, folders, "groups", columns=["attractive", "5_o_Clock_Shadow"])
        numbers = np.arange(16, 22)
        assert found.groups["Attractive"].tolist() == np.where(numbers % 3 == 0, "yes", "no").tolist()
        assert found.groups["5_o_Clock_Shadow"].tolist() == np.where(numbers % 2, "yes", "no").tolist()
        labels = load(task.data, folders)[0].test.labels
        assert (found.groups["Attractive"] == np.where(labels, "yes", "no")).all()
        part = replace(task, data=replace(task.data, test_images=3))
        rows = load(part.data, folders)[0].test.rows
        some = known_of(part, folders, "groups", columns=["Attractive"])
        assert some.groups["Attractive"].tolist() == found.groups["Attractive"][rows].tolist()
        one = known_of(task, folders, "groups", columns=["Attractive"])
        assert some.sha256 == one.sha256 != found.sha256

    def test_attributes_that_are_not_there(self, tmp_path: Path, folders: Folders) -> None:
        listed = write_celeba(folders.data) / "list_attr_celeba.txt"
        task = task_on("celeba", image_size=8)
        with pytest.raises(UserError, match=r"unknown attribute in .*: 'Attractiv': did you mean 'Attractive'"):
            known_of(task, folders, "groups", columns=["Attractiv"])
        listed.write_text(listed.read_text().replace("000020.jpg", "000090.jpg"))
        with pytest.raises(UserError, match=r"does not list '000020.jpg', which is in '.*partition.txt'"):
            known_of(task, folders, "groups", columns=["Attractive"])
        shutil.rmtree(listed.parent)
        with pytest.raises(MissingData, match=r"no '.*list_attr_celeba.txt' with .* beside it"):
            known_of(task, folders, "groups", columns=["Attractive"])
        with pytest.raises(UserError, match="columns without a file are attributes of celeba, and the task has images"):
            known_of(own_arrays(tmp_path), folders, "groups", columns=["Male"])

    def test_a_hundred_groups_are_enough(self, tmp_path: Path) -> None:
        count = len(load(DIGITS.data, NOWHERE)[0].test)
        hundred = known_of(DIGITS, NOWHERE, "groups", file=self.write(tmp_path, place=np.arange(count) % 100))
        assert len(np.unique(hundred.groups["place"])) == 100
        with pytest.raises(UserError, match="column 'place' has 101 values, expected at most 100; put some together"):
            known_of(DIGITS, NOWHERE, "groups", file=self.write(tmp_path, place=np.arange(count) % 101))

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"light": light[:6]}, r"column 'light' has the shape \(6,\), expected a value for each of the 7 test"),
            ({"light": light[:, None]}, r"column 'light' has the shape \(7, 1\)"),
            ({"light": np.linspace(0, 1, 7)}, "column 'light' must be text or whole numbers, got float64"),
            ({"light": np.where(light == "day", "", light)}, "has a value ''; write a word for it, such as 'unknown'"),
            ({"light": np.where(light == "day", "a\nb", light)}, r"has a value 'a\\nb'"),
            ({"light": np.where(light == "day", "x" * 101, light)}, "has a value 'x"),
            ({"a\tb": light}, r"a column is called 'a\\tb'; give it a name that a table can show"),
            ({}, "has no columns"),
            ({"Light": light}, "unknown column of .*: 'night': did you mean 'Light'"),
        ],
    )
    def test_what_is_wrong_with_them(
        self, tmp_path: Path, folders: Folders, arrays: dict[str, Any], message: str
    ) -> None:
        wanted = {"columns": ["night"]} if "Light" in arrays else {}
        with pytest.raises(UserError, match=message):
            known_of(own_arrays(tmp_path), folders, "groups", file=self.write(tmp_path, **arrays), **wanted)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a,a\n1,2\n", "must begin with a line that gives each column another name"),
            ("a,\n1,2\n", "must begin with a line that gives each column another name"),
            ("a,b\n1,2\n3\n", "groups.csv' line 3: expected 2, got 1 value"),
            ("a,b\n", r"column 'a' has the shape \(0,\)"),
            ("a\n" + "x" * 200_000, "cannot be read as an npz, npy or csv file .*field larger"),
        ],
    )
    def test_csv_files_that_are_wrong(self, tmp_path: Path, folders: Folders, text: str, message: str) -> None:
        (tmp_path / "groups.csv").write_text(text)
        with pytest.raises(UserError, match=message):
            known_of(own_arrays(tmp_path), folders, "groups", file=str(tmp_path / "groups.csv"))


def test_a_device_without_float64_has_the_images_made_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    images, ids = torch.arange(3 * 32 * 32).remainder(256).to(torch.uint8).view(1, 3, 32, 32), torch.tensor([7])
    made = splits.corrupted("defocus blur", 3, ids, images, slice(0, 1))
    monkeypatch.setattr(splits, "has_doubles", lambda device: False)
    assert torch.equal(splits.corrupted("defocus blur", 3, ids, images, slice(0, 1)), made)
    assert not torch.equal(made, images)
