"""Where images come from: every source reads its official layout, and says in one line what is wrong with it."""

import hashlib
import os
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat
from torchvision.datasets import CelebA, ImageFolder
from torchvision.transforms import CenterCrop, Compose, Resize

from benchmark.base.errors import MissingData, UserError
from benchmark.config.load import load_task
from benchmark.config.task import DataConfig
from benchmark.data.cache import Folders
from benchmark.data.cache_build import open_cache
from benchmark.data.images import Images, Loaded
from benchmark.data.sources import check_labels, describe, fashion_mnist, gaussians, get_source
from benchmark.data.sources import cifar as cifar_source
from tests.image_sets import (
    WNIDS,
    picture,
    write_celeba,
    write_cifar,
    write_class_folders,
    write_fashion_mnist,
    write_imagenet,
)

RGB = {"mean": (0.5,) * 3, "std": (0.2,) * 3}


def load(config: DataConfig, data_dir: Path = Path("nowhere")) -> Loaded:
    return get_source(config).load(config, data_dir)


def array(images: Images) -> np.ndarray:
    return np.stack([np.asarray(images.pictures[row]) for row in images.rows])


@pytest.mark.parametrize("name", ["digits", "gaussians"])
def test_embedded_sources_are_what_they_say(name: str) -> None:
    config = load_task(name).data
    loaded, facts = load(config), describe(config)
    assert len(loaded.train) == facts.num_train
    assert len(loaded.test) == facts.num_test
    assert array(loaded.train).shape[1:] == facts.shape
    assert facts.floats == (array(loaded.train).dtype != np.uint8)
    assert set(loaded.test.labels) == set(range(facts.num_classes))
    assert loaded.sha256() == load(config).sha256()


def test_the_hash_of_digits_stands() -> None:
    """It is in the id of every result that was ever made of them."""
    assert load(load_task("digits").data).sha256().startswith("6e69720a0bceecd3")


def test_digits_train_and_test_are_disjoint_parts_of_the_set() -> None:
    from sklearn.datasets import load_digits

    loaded = load(load_task("digits").data)
    images = np.concatenate([array(loaded.train), array(loaded.test)]).reshape(1797, -1)
    ours, original = (sorted(map(bytes, x.astype(np.uint8))) for x in (images, load_digits().data * 15))
    assert ours == original


class TestGaussians:
    loaded = gaussians.load(DataConfig("gaussians", (0.0,), (1.0,)), Path("data"))

    def test_posterior_by_hand_for_one_image(self) -> None:
        """Sum the ten class densities over the four noise levels with plain scipy."""
        from scipy.stats import multivariate_normal

        random = np.random.Generator(np.random.PCG64(gaussians.SEED))
        prototypes, images = gaussians.draw_prototypes(random), array(self.loaded.test)
        loud = np.flatnonzero(images.std(axis=(1, 2, 3)) > 8)[0]
        for index in (0, loud):
            x = images[index].reshape(-1).astype(float)
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
        part, whole = self.loaded.subset(100, 300), array(self.loaded.test)
        assert len(part.train) == 100
        index = next(i for i, x in enumerate(whole) if (x == array(part.test)[7]).all())
        assert (part.posterior[7] == self.loaded.posterior[index]).all()


@pytest.fixture
def any_checksum(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Makes the small files in a folder pass for the official ones."""

    def accept(folder: Path) -> None:
        for path in folder.iterdir():
            monkeypatch.setitem(cifar_source.MD5, path.name, hashlib.md5(path.read_bytes()).hexdigest())

    return accept


@pytest.mark.parametrize(("source", "label_bytes"), [("cifar10", 1), ("cifar100", 2)])
def test_cifar_binary(tmp_path: Path, source: str, label_bytes: int, any_checksum: Callable[[Path], None]) -> None:
    files = {f"data_batch_{i}.bin": 6 for i in range(1, 6)} if source == "cifar10" else {"train.bin": 30}
    test = "test_batch.bin" if source == "cifar10" else "test.bin"
    folder = tmp_path / ("cifar-10-batches-bin" if source == "cifar10" else "cifar-100-binary")
    rows = write_cifar(folder, label_bytes, {**files, test: 12})
    config = DataConfig(source, **RGB)
    with pytest.raises(UserError, match=r"batch_1.bin' is missing|train.bin' is missing, cut short or changed"):
        load(config, tmp_path)
    any_checksum(folder)
    loaded = load(config, tmp_path)
    train = array(loaded.train)
    assert train.shape == (30, 3, 32, 32)
    assert array(loaded.test).shape == (12, 3, 32, 32)
    assert (train[:, 0, 0, 0] == loaded.train.labels).all()
    assert (train[3, 2, 31, 31] == rows[3, -1]).all()
    (folder / test).write_bytes((folder / test).read_bytes()[:-1])
    with pytest.raises(UserError, match=f"{test}' is missing, cut short or changed"):
        load(config, tmp_path)


@pytest.mark.parametrize("source", ["cifar10", "cifar100"])
def test_cifar_python_version_gives_the_same_arrays(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torchvision's class reads its own files; here it is handed ones we wrote, with its checksums switched off."""
    cls = cifar_source.torchvision_class(source)
    monkeypatch.setattr(cls, "_check_integrity", lambda self: True)
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *a: True)
    random = np.random.Generator(np.random.PCG64(0))
    key = "labels" if source == "cifar10" else "fine_labels"
    folder = tmp_path / cls.base_folder
    folder.mkdir()
    pixels = {}
    for name, _ in cls.train_list + cls.test_list:
        pixels[name] = random.integers(0, 256, (4, 3072), dtype=np.uint8)
        (folder / name).write_bytes(pickle.dumps({"data": pixels[name], key: [0, 1, 2, 3]}))
    (folder / cls.meta["filename"]).write_bytes(pickle.dumps({cls.meta["key"]: [str(i) for i in range(10)]}))
    config = DataConfig(source, **RGB)
    loaded = load(config, tmp_path)
    expected = np.concatenate([pixels[name] for name, _ in cls.train_list]).reshape(-1, 3, 32, 32)
    assert (array(loaded.train) == expected).all()
    assert loaded.test.labels.tolist() == [0, 1, 2, 3]
    assert all(path.is_file() for path in get_source(config).files(config, tmp_path))


def test_svhn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matlab's layout: (32, 32, 3, N), and the digit 0 labelled 10."""
    random = np.random.default_rng(0)
    pixels = {
        name: random.integers(0, 256, (32, 32, 3, count), dtype=np.uint8) for name, count in (("train", 7), ("test", 4))
    }
    (tmp_path / "svhn").mkdir()
    for name, images in pixels.items():
        labels = np.array([[10], [1], [2], [9], [10], [5], [6]])[: images.shape[3]]
        savemat(tmp_path / "svhn" / f"{name}_32x32.mat", {"X": images, "y": labels})
    config = DataConfig("svhn", **RGB)
    monkeypatch.setattr("torchvision.datasets.svhn.SVHN.download", lambda self: None)
    with pytest.raises(MissingData, match=r"no complete SVHN .*housenumbers.*--data-dir"):
        load(config, tmp_path)
    monkeypatch.setattr("torchvision.datasets.svhn.SVHN._check_integrity", lambda self: True)
    loaded = load(config, tmp_path)
    assert loaded.train.labels.tolist() == [0, 1, 2, 9, 0, 5, 6]
    assert (array(loaded.train)[3] == pixels["train"][:, :, :, 3].transpose(2, 0, 1)).all()
    assert len(loaded.test) == 4


class TestFashionMnist:
    config = DataConfig("fashion-mnist", (0.3,), (0.3,))

    @pytest.fixture(autouse=True)
    def no_debian(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "debian")

    @pytest.mark.parametrize(
        ("place", "packed"), [("FashionMNIST/raw", False), ("FashionMNIST/raw", True), ("debian", True)]
    )
    def test_each_place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, packed: bool) -> None:
        contents = write_fashion_mnist(tmp_path / place, packed)
        with pytest.raises(UserError, match=r"train-images-idx3-ubyte(\.gz)?' is not the official file"):
            load(self.config, tmp_path)
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        monkeypatch.setattr(fashion_mnist, "SHA256", hashes)
        loaded = load(self.config, tmp_path)
        assert array(loaded.train).shape == (12, 1, 28, 28)
        assert array(loaded.train)[3].tobytes() == contents["train-images-idx3-ubyte"][16:][3 * 784 : 4 * 784]
        assert loaded.test.labels.tolist() == [0, 1, 2, 3, 4]

    def test_cut_short(self, tmp_path: Path) -> None:
        write_fashion_mnist(tmp_path / "debian", packed=True)
        path = tmp_path / "debian" / "train-images-idx3-ubyte.gz"
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(UserError, match=f"{path.name}' cannot be read"):
            load(self.config, tmp_path)

    def test_missing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_network(*arguments: object, **options: object) -> None:
            raise OSError("no network")

        monkeypatch.setattr("torchvision.datasets.mnist.download_and_extract_archive", no_network)
        with pytest.raises(MissingData, match="dataset-fashion-mnist"):
            load(self.config, tmp_path)

    def test_the_debian_package_where_it_is_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        if not fashion_mnist.DEBIAN.is_dir():
            pytest.skip("Debian's dataset-fashion-mnist is not installed; the form is tested with small files above")
        loaded = load(self.config)
        assert (len(loaded.train), len(loaded.test)) == (60_000, 10_000)
        assert np.bincount(loaded.train.labels).tolist() == [6000] * 10


class TestCelebA:
    config = DataConfig("celeba", **RGB, image_size=20, official_val=True)

    def test_split_labels_and_pixels_are_torchvisions(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root = write_celeba(tmp_path)
        loaded = load(self.config, tmp_path)
        for extra in ("identity_CelebA.txt", "list_bbox_celeba.txt", "list_landmarks_align_celeba.txt"):
            names = [line.split()[0] for line in (root / "list_eval_partition.txt").read_text().splitlines()]
            head = f"{len(names)}\na b c d\n" if "list" in extra else ""
            values = "1 1 1 1" if "list" in extra else "1"
            (root / extra).write_text(head + "".join(f"{name} {values}\n" for name in names))
        monkeypatch.setattr(CelebA, "_check_integrity", lambda self: True)
        for split, part in (("train", "train"), ("val", "valid"), ("test", "test")):
            theirs = CelebA(tmp_path, split=part, transform=Resize((20, 20)))
            ours = loaded.splits()[split]
            assert len(ours) == len(theirs)
            assert ours.labels.tolist() == [int(target[2]) for _, target in theirs]
            expected = np.stack([np.asarray(image).transpose(2, 0, 1) for image, _ in theirs])
            assert (array(ours) == expected).all()

    def test_any_attribute(self, tmp_path: Path) -> None:
        write_celeba(tmp_path)
        other = load(replace(self.config, attribute="5_o_clock_shadow"), tmp_path)
        assert other.train.labels.tolist() == [0, 1] * 6
        with pytest.raises(UserError, match="did you mean 'Attractive'"):
            load(replace(self.config, attribute="Atractive"), tmp_path)

    @pytest.mark.parametrize(
        ("name", "change", "message"),
        [
            ("list_attr_celeba.txt", lambda t: t.replace("000003.jpg", "000099.jpg"), "'000003.jpg' is only in one"),
            ("list_attr_celeba.txt", lambda t: t.replace("22\n", "23\n", 1), "says it lists 23 images, but lists 22"),
            ("list_attr_celeba.txt", lambda t: t.replace("000002.jpg  1", "000002.jpg"), "line 4: expected"),
            ("list_attr_celeba.txt", lambda t: "", "unknown attribute"),
            ("list_attr_celeba.txt", lambda t: t.replace("000004.jpg", "\n000004.jpg"), "line 6: expected"),
            ("list_attr_celeba.txt", lambda t: "\udcff" + t, "is not a text file"),
            ("list_eval_partition.txt", lambda t: t + "\n", "line 23: expected"),
            ("list_eval_partition.txt", lambda t: t.replace("000005.jpg 0", "000005.jpg 7"), "line 5: expected"),
            ("list_eval_partition.txt", lambda t: t[:200], "only in one of them|expected an image name"),
            ("img_align_celeba/000007.jpg", None, r"lists '000007.jpg', which is not in .*\(1 of 22"),
        ],
    )
    def test_lists_that_do_not_match(
        self, tmp_path: Path, name: str, change: Callable[[str], str] | None, message: str
    ) -> None:
        path = write_celeba(tmp_path) / name
        path.unlink() if change is None else path.write_bytes(
            change(path.read_text()).encode("utf-8", "surrogateescape")
        )
        with pytest.raises(UserError, match=message):
            load(self.config, tmp_path)

    def test_missing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_network(*arguments: object, **options: object) -> None:
            raise RuntimeError("this needs gdown")

        monkeypatch.setattr("torchvision.datasets.celeba.download_file_from_google_drive", no_network)
        with pytest.raises(MissingData, match=r"this needs gdown.*list_attr_celeba.txt.*mmlab.*--data-dir"):
            load(self.config, tmp_path)


class TestImageNet:
    config = DataConfig("imagenet", **RGB, image_size=20, cache_size=24, folders=WNIDS)

    def test_labels_and_evaluation_pixels_are_torchvisions(self, tmp_path: Path) -> None:
        root = write_imagenet(tmp_path)
        loaded = load(self.config, tmp_path)
        resize, crop = Resize(24), CenterCrop(20)
        for split, part in (("train", "train"), ("test", "val")):
            theirs = ImageFolder(root / part)
            ours = loaded.splits()[split]
            assert ours.labels.tolist() == theirs.targets
            for row, (image, _) in enumerate(theirs):
                cached = np.asarray(ours.pictures[row])
                assert (cached == np.asarray(resize(image)).transpose(2, 0, 1)).all()
                assert min(cached.shape[1:]) == 24
                shown = np.asarray(Compose([resize, crop])(image)).transpose(2, 0, 1)
                top, left = (round((side - 20) / 2) for side in cached.shape[1:])
                assert (cached[:, top : top + 20, left : left + 20] == shown).all()

    def test_sizes_are_known_from_the_headers(self, tmp_path: Path) -> None:
        write_imagenet(tmp_path)
        images = load(self.config, tmp_path).train
        measured = images.pictures.read_sizes()
        assert [tuple(size) for size in measured] == [np.shape(images.pictures[row])[1:] for row in images.rows]

    def test_some_classes_only(self, tmp_path: Path) -> None:
        write_imagenet(tmp_path)
        loaded = load(replace(self.config, folders=WNIDS[1:]), tmp_path)
        assert sorted(set(loaded.train.labels)) == [0, 1]
        assert all(WNIDS[0] not in path for path in loaded.train.pictures.paths)

    def test_wrong_number_of_classes(self, tmp_path: Path) -> None:
        write_imagenet(tmp_path)
        with pytest.raises(UserError, match=r"has 3 class folders, expected 1000"):
            load(replace(self.config, folders=()), tmp_path)

    def test_unsorted_validation_images(self, tmp_path: Path) -> None:
        root = write_imagenet(tmp_path)
        (root / "val").rename(root / "sorted")
        (root / "val").mkdir()
        picture(30, 30, 0).save(root / "val" / "ILSVRC2012_val_00000001.JPEG")
        with pytest.raises(UserError, match=r"val' has no class folders: sort"):
            load(self.config, tmp_path)

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(MissingData, match=r"imagenet/train'.*image-net.org.*--data-dir"):
            load(self.config, tmp_path)


class TestFolder:
    def config(self, root: Path, **changes: object) -> DataConfig:
        return replace(DataConfig("folder", **RGB, image_size=16, path=str(root)), **changes)  # type: ignore[arg-type]

    def test_train_val_test(self, tmp_path: Path) -> None:
        for split, count in (("train", 5), ("val", 2), ("test", 3)):
            write_class_folders(tmp_path / split, count, ("cat", "dog"), ".png")
        loaded = load(self.config(tmp_path))
        assert [len(images) for images in loaded.splits().values()] == [10, 6, 4]
        assert describe(self.config(tmp_path)).num_classes == 2
        assert array(loaded.train).shape == (10, 3, 16, 16)

    def test_val_is_the_test_split_where_there_is_no_other(self, tmp_path: Path) -> None:
        for split, count in (("train", 5), ("val", 2)):
            write_class_folders(tmp_path / split, count, ("cat", "dog"))
        loaded = load(self.config(tmp_path))
        assert (len(loaded.test), loaded.val) == (4, None)

    def test_class_folders_alone_are_divided_once_and_for_all(self, tmp_path: Path) -> None:
        write_class_folders(tmp_path, 10, ("cat", "dog"))
        with pytest.raises(UserError, match=r"set data\.test_share"):
            load(self.config(tmp_path))
        loaded = load(self.config(tmp_path, test_share=0.25))
        assert sorted([*loaded.train.rows, *loaded.test.rows]) == list(range(20))
        assert len(loaded.test) == 5
        assert (load(self.config(tmp_path, test_share=0.25)).test.rows == loaded.test.rows).all()

    def test_grey_images_where_mean_has_one_number(self, tmp_path: Path) -> None:
        write_class_folders(tmp_path, 3, ("cat", "dog"))
        config = replace(self.config(tmp_path, test_share=0.5), mean=(0.5,), std=(0.2,))
        assert array(load(config).train).shape[1:] == (1, 16, 16)

    def test_images_at_any_depth_as_torchvision_has_them(self, tmp_path: Path) -> None:
        """Also behind links."""
        write_class_folders(tmp_path / "real", 3, ("cat", "dog"))
        write_class_folders(tmp_path / "real" / "cat" / "more", 2, ("wild", "tame"))
        (tmp_path / "set").mkdir()
        (tmp_path / "set" / "a cat").symlink_to(tmp_path / "real" / "cat")
        (tmp_path / "set" / "høund").symlink_to(tmp_path / "real" / "dog")
        config = self.config(tmp_path / "set", test_share=0.5)
        loaded, theirs = load(config), ImageFolder(tmp_path / "set")
        assert list(loaded.train.pictures.paths) == [path for path, _ in theirs.samples]
        assert len(loaded.train) + len(loaded.test) == 10
        assert sorted(map(str, get_source(config).files(config, tmp_path))) == sorted(
            path for path, _ in theirs.samples
        )

    @pytest.mark.parametrize("links", [{"cat/up": "."}, {"cat/up": "cat"}, {"cat/to": "dog", "dog/fro": "cat"}])
    def test_links_in_a_circle_are_refused(self, tmp_path: Path, links: dict[str, str]) -> None:
        """Followed, they would show the same images again and again, those of other classes too."""
        write_class_folders(tmp_path, 3, ("cat", "dog"))
        for link, target in links.items():
            (tmp_path / link).symlink_to(tmp_path / target)
        with pytest.raises(UserError, match="leads back to a folder above it; remove the link"):
            load(self.config(tmp_path, test_share=0.5))

    def test_a_pipe_among_the_images_is_not_waited_for(self, tmp_path: Path) -> None:
        write_class_folders(tmp_path, 3, ("cat", "dog"))
        os.mkfifo(tmp_path / "cat" / "a.png")
        pictures = load(self.config(tmp_path, test_share=0.5)).train.pictures
        for read in (lambda: pictures[0], pictures.read_sizes):
            with pytest.raises(UserError, match=r"a\.png' cannot be read .*not a regular file"):
                read()

    def test_names_that_are_no_utf8(self, tmp_path: Path) -> None:
        write_class_folders(tmp_path / "pets", 3, ("cat", "dog"))
        (tmp_path / "pets" / "dog").rename(tmp_path / "pets" / os.fsdecode(b"d\xff"))
        (tmp_path / "pets" / "cat" / "cat_1.JPEG").rename(tmp_path / "pets" / "cat" / os.fsdecode(b"\xfe.jpeg"))
        config = self.config(tmp_path / "pets", test_share=0.5)
        loaded, _ = open_cache(config, Folders(tmp_path, tmp_path / "cache"))
        assert len(loaded.train) + len(loaded.test) == 6

    def test_deep_colours_are_refused(self, tmp_path: Path) -> None:
        write_class_folders(tmp_path, 3, ("cat", "dog"), ".png")
        deep = Image.fromarray(np.full((20, 20), 30_000, np.uint16))
        deep.save(tmp_path / "cat" / "cat_0.png")
        with pytest.raises(UserError, match=r"cat_0\.png' cannot .* more than 8 bits per channel"):
            load(self.config(tmp_path, test_share=0.5)).train.pictures[0]

    @pytest.mark.parametrize("mode", ["RGBA", "P", "CMYK", "L", "1"])
    def test_other_colour_models_become_rgb(self, tmp_path: Path, mode: str) -> None:
        write_class_folders(tmp_path, 3, ("cat", "dog"), ".png")
        suffix = "jpg" if mode == "CMYK" else "png"
        odd = picture(20, 20, 5).convert(mode)
        odd.save(tmp_path / "cat" / f"a.{suffix}")
        pixels = load(self.config(tmp_path, test_share=0.5)).train.pictures[0]
        with Image.open(tmp_path / "cat" / f"a.{suffix}") as stored:
            expected = stored.convert("RGB").resize((16, 16), Image.Resampling.BILINEAR)
        assert (pixels == np.asarray(expected).transpose(2, 0, 1)).all()

    def test_other_files_are_passed_over(self, tmp_path: Path) -> None:
        write_class_folders(tmp_path, 3, ("cat", "dog"))
        (tmp_path / "cat" / "Thumbs.db").write_bytes(b"x")
        (tmp_path / ".git").mkdir()
        (tmp_path / "notes.txt").write_text("x")
        loaded = load(self.config(tmp_path, test_share=0.5))
        assert len(loaded.train) + len(loaded.test) == 6

    @pytest.mark.parametrize(
        ("break_it", "changes", "message"),
        [
            (lambda root: (root / "train" / "emu").mkdir(), {}, "emu' has no image|no folder for class 'emu'"),
            (lambda root: (root / "test" / "emu").mkdir(), {}, "has a class folder 'emu' that the training"),
            (lambda root: None, {"classes": 3}, r"has 2 class folders, expected 3"),
            (lambda root: None, {"folders": ("cat", "emu")}, "no folder for class 'emu'"),
            (lambda root: None, {"image_size": 0}, "need a size"),
            (lambda root: None, {"path": ""}, "needs the path of your data"),
            (lambda root: None, {"path": "no/where"}, "'no/where' does not exist"),
            (lambda root: [p.unlink() for p in (root / "test" / "cat").iterdir()], {}, "cat' has no image"),
        ],
    )
    def test_bad_folders(
        self, tmp_path: Path, break_it: Callable[[Path], object], changes: dict[str, object], message: str
    ) -> None:
        for split in ("train", "test"):
            write_class_folders(tmp_path / split, 3, ("cat", "dog"))
        break_it(tmp_path)
        with pytest.raises(UserError, match=message):
            load(self.config(tmp_path, **changes))

    @pytest.mark.parametrize("damage", ["truncated", "empty", "text"])
    def test_a_bad_image_is_named(self, tmp_path: Path, damage: str) -> None:
        write_class_folders(tmp_path, 3, ("cat", "dog"))
        path = tmp_path / "dog" / "dog_1.JPEG"
        content = {"truncated": path.read_bytes()[:-200], "empty": b"", "text": b"not an image"}[damage]
        path.write_bytes(content)
        loaded = load(self.config(tmp_path, test_share=0.5))
        with pytest.raises(UserError, match=rf"{re.escape(str(path))}' cannot be read as an image"):
            [loaded.train.pictures[index] for index in range(6)]


class TestArrays:
    images = np.random.default_rng(0).integers(0, 256, (10, 8, 9, 3), dtype=np.uint8)
    labels = np.arange(10) % 3

    def config(self, path: Path, **changes: object) -> DataConfig:
        return replace(DataConfig("arrays", **RGB, path=str(path)), **changes)  # type: ignore[arg-type]

    def save(self, path: Path, **changes: object) -> Path:
        arrays = {
            f"{split}_{kind}": getattr(self, kind) for split in ("train", "test") for kind in ("images", "labels")
        }
        np.savez(path, **{name: value for name, value in (arrays | changes).items() if value is not None})  # type: ignore[arg-type]
        return path

    def test_one_file_with_a_validation_split(self, tmp_path: Path) -> None:
        path = self.save(tmp_path / "x.npz", val_images=self.images[:4], val_labels=self.labels[:4, None])
        loaded = load(self.config(path))
        assert (array(loaded.train) == self.images.transpose(0, 3, 1, 2)).all()
        assert loaded.val.labels.tolist() == [0, 1, 2, 0]
        assert describe(self.config(path)).num_classes == 3
        assert describe(self.config(path, classes=5)).num_classes == 5

    @pytest.mark.parametrize("name", ["x.npz", "x/images.npy"])
    def test_a_pipe_is_not_waited_for(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        os.mkfifo(tmp_path / name)
        with pytest.raises(UserError, match="not a regular file"):
            load(self.config(tmp_path / name.split("/")[0]))

    @pytest.mark.parametrize("form", ["channels last", "channels first", "grey"])
    def test_a_pair_of_npy_files(self, tmp_path: Path, form: str) -> None:
        stored = {
            "channels last": self.images,
            "channels first": self.images.transpose(0, 3, 1, 2),
            "grey": self.images[..., 0],
        }
        np.save(tmp_path / "images.npy", stored[form])
        np.save(tmp_path / "labels.npy", self.labels)
        loaded = load(self.config(tmp_path, test_share=0.3))
        assert (len(loaded.train), len(loaded.test)) == (7, 3)
        expected = self.images.transpose(0, 3, 1, 2)[loaded.test.rows]
        assert (array(loaded.test) == (expected[:, :1] if form == "grey" else expected)).all()
        assert (loaded.test.labels == self.labels[loaded.test.rows]).all()

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"test_labels": None}, "has no array 'test_labels'; it has test_images, train_images, train_labels"),
            ({"train_images": np.zeros((10, 8, 9, 3))}, r"train_images must be uint8 .* got float64"),
            ({"train_images": np.zeros((10, 8, 9, 5), np.uint8)}, "must have 1 or 3 channels"),
            ({"train_images": np.zeros(10, np.uint8)}, "must be uint8"),
            ({"train_labels": np.arange(9)}, "train_labels must be one whole number per image"),
            ({"train_labels": np.arange(10) / 2}, "train_labels must be one whole number per image"),
            ({"test_images": np.zeros((10, 8, 8, 3), np.uint8)}, "all splits need images of one shape"),
            ({"test_images": np.zeros((10, 8, 9), np.uint8)}, "all splits need images of one shape"),
        ],
    )
    def test_bad_arrays(self, tmp_path: Path, changes: dict[str, object], message: str) -> None:
        with pytest.raises(UserError, match=message):
            load(self.config(self.save(tmp_path / "x.npz", **changes)))

    def test_pickles_are_not_opened(self, tmp_path: Path) -> None:
        path = self.save(tmp_path / "x.npz", train_labels=np.array([{}] * 10, dtype=object))
        with pytest.raises(UserError, match="cannot be read as an npz"):
            load(self.config(path))
        (tmp_path / "y.npz").write_bytes(b"no zip")
        with pytest.raises(UserError, match="cannot be read as an npz"):
            load(self.config(tmp_path / "y.npz"))

    def test_labels_that_count_from_one(self, tmp_path: Path) -> None:
        config = self.config(self.save(tmp_path / "x.npz", train_labels=self.labels + 1, test_labels=self.labels + 1))
        with pytest.raises(UserError, match="no training image of class 0; labels count from 0"):
            check_labels(load(config), config)

    @pytest.mark.parametrize("label", [-1, 7])
    def test_labels_out_of_range(self, tmp_path: Path, label: int) -> None:
        labels = self.labels.copy()
        labels[4] = label
        config = self.config(self.save(tmp_path / "x.npz", test_labels=labels), classes=3)
        with pytest.raises(UserError, match=f"x.npz' has a label {label} among its test images; .* from 0 to 2"):
            check_labels(load(config), config)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("path", "x"),
        ("classes", 3),
        ("folders", ("a",)),
        ("attribute", "Bald"),
        ("cache_size", 40),
        ("test_share", 0.1),
    ],
)
def test_settings_of_other_sources_are_refused(setting: str, value: object) -> None:
    config = DataConfig("cifar10", **RGB, image_size=32, **{setting: value})  # type: ignore[arg-type]
    with pytest.raises(UserError, match=f"data.{setting} means nothing to source 'cifar10'"):
        describe(config)


def test_missing_cifar_says_where_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*arguments: object, **options: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("torchvision.datasets.cifar.download_and_extract_archive", no_network)
    with pytest.raises(MissingData, match=r"cifar-100-binary.*--data-dir"):
        load(DataConfig("cifar100", **RGB), tmp_path)
