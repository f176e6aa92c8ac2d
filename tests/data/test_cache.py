"""Images are decoded once, and whatever happens to the cache, only whole and undamaged ones are ever read from it."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from benchmark.base.errors import MissingData, UserError
from benchmark.base.files import HOST
from benchmark.config.task import DataConfig
from benchmark.data import cache, cache_build
from benchmark.data.cache import Folders, cache_name, chunk_bounds
from benchmark.data.cache_build import open_cache
from benchmark.data.cache_chunks import Originals
from benchmark.data.images import Loaded
from benchmark.data.sources import get_source
from tests.conftest import ROOT
from tests.image_sets import WNIDS, picture, write_celeba, write_class_folders, write_imagenet

RGB = {"mean": (0.5,) * 3, "std": (0.2,) * 3}
CELEBA = DataConfig("celeba", **RGB, image_size=20)
IMAGENET = DataConfig("imagenet", **RGB, image_size=20, cache_size=24, folders=WNIDS)
CONFIGS = {"one size": CELEBA, "different sizes": IMAGENET}
every_kind = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """CelebA and ImageNet in small, cached in chunks of a few images."""
    monkeypatch.setattr(cache, "CHUNK_BYTES", 5_000)
    write_celeba(tmp_path / "data")
    write_imagenet(tmp_path / "data")
    return Folders(tmp_path / "data", tmp_path / "cache")


def pixels(loaded: Loaded) -> list[bytes]:
    return [
        np.ascontiguousarray(images.pictures[row]).tobytes()
        for images in loaded.splits().values()
        for row in images.rows
    ]


def originals(config: DataConfig, folders: Folders) -> Loaded:
    return get_source(config).load(config, folders.data)


def folder_of(config: DataConfig, folders: Folders) -> Path:
    return folders.cache / cache_name(config)


def count_decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Images in each chunk that is decoded from now on."""
    seen: list[int] = []
    decode = cache_build.decode

    def counted(part: Originals) -> tuple[bytes, np.ndarray]:
        seen.append(len(part))
        return decode(part)

    monkeypatch.setattr(cache_build, "decode", counted)
    return seen


@every_kind
def test_a_cache_holds_what_decoding_gives(
    config: DataConfig, folders: Folders, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded, sha256 = open_cache(config, folders)
    raw = originals(config, folders)
    assert pixels(loaded) == pixels(raw)
    for name, images in loaded.splits().items():
        assert images.labels.tolist() == raw.splits()[name].labels.tolist()
    manifest = json.loads((folder_of(config, folders) / "manifest.json").read_text())
    assert manifest["sha256"] == sha256
    assert manifest["source"] == config.source
    train = manifest["splits"]["train"]
    assert train["count"] == len(raw.train)
    assert train["per_class"] == np.bincount(raw.train.labels).tolist()
    assert train["bytes"] == (folder_of(config, folders) / "train.pixels").stat().st_size
    assert len(train["chunks"]) > 2
    assert (
        f"caching {config.source}: {sum(len(images) for images in raw.splits().values())} images"
        in capsys.readouterr().err
    )


@every_kind
def test_it_is_decoded_once(config: DataConfig, folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = count_decoded(monkeypatch)
    open_cache(config, folders)
    assert sum(seen) == sum(len(images) for images in originals(config, folders).splits().values())
    seen.clear()
    open_cache(config, folders, thorough=True)
    assert not seen


@every_kind
def test_the_hash_says_what_the_data_is_and_not_where_or_how_it_was_cached(
    config: DataConfig, folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine: other folders and dates, decoded by processes."""
    _, first = open_cache(config, folders)
    (write_celeba if config.source == "celeba" else write_imagenet)(tmp_path / "other machine")
    monkeypatch.setattr(cache_build, "WORTH_PROCESSES", 1)
    again, second = open_cache(config, Folders(tmp_path / "other machine", tmp_path / "other cache"))
    assert first == second
    assert pixels(again) == pixels(originals(config, Folders(tmp_path / "other machine", tmp_path)))
    other = replace(config, image_size=18)
    assert (
        (open_cache(other, folders)[1] == first) == (cache_name(other) == cache_name(config)) == (config.cache_size > 0)
    )


def test_each_way_to_read_a_source_has_a_cache_of_its_own() -> None:
    names = {
        cache_name(config)
        for config in (
            CELEBA,
            IMAGENET,
            replace(CELEBA, image_size=24),
            replace(CELEBA, attribute="Bald"),
            replace(IMAGENET, cache_size=30),
            replace(IMAGENET, folders=WNIDS[:2]),
            replace(IMAGENET, image_size=10),
        )
    }
    assert len(names) == 6, "the crop of images that keep their shape is cut when they are read"
    assert cache_name(CELEBA) == cache_name(replace(CELEBA, train_images=3, official_val=True, test_images=2))


DAMAGES = {
    "flipped bit": lambda content: content[:-7] + bytes([content[-7] ^ 1]) + content[-6:],
    "no digit any more": lambda content: content[:-7] + b"`" + content[-6:],
    "cut short": lambda content: content[: len(content) // 2],
    "longer": lambda content: content + b"x",
    "empty": lambda content: b"",
    "foreign": lambda content: b"PK\x03\x04" + os.urandom(len(content) - 4),
    "gone": lambda content: None,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "name", ["manifest.json", "train.pixels", "test.pixels", "train-labels.npy", "train-sizes.npy"]
)
def test_damage_is_found_and_mended(
    name: str, damage: str, folders: Folders, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded, sha256 = open_cache(IMAGENET, folders)
    path, before = folder_of(IMAGENET, folders) / name, pixels(loaded)
    status, content = path.stat(), DAMAGES[damage](path.read_bytes())
    path.unlink()
    if content is not None:
        path.write_bytes(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    capsys.readouterr()
    again, same = open_cache(IMAGENET, folders)
    assert same == sha256
    assert pixels(again) == before
    said = capsys.readouterr().err
    assert "is damaged" in said
    assert "building it again" in said
    names = ["CACHEDIR.TAG", cache_name(IMAGENET), f"{cache_name(IMAGENET)}.lock"]
    assert sorted(entry.name for entry in folders.cache.iterdir()) == names


def test_only_damaged_chunks_are_decoded_again(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    open_cache(IMAGENET, folders)
    path = folder_of(IMAGENET, folders) / "train.pixels"
    content = bytearray(path.read_bytes())
    content[6_000] ^= 255
    path.write_bytes(content)
    seen = count_decoded(monkeypatch)
    open_cache(IMAGENET, folders)
    assert len(seen) == 1


def test_large_caches_are_verified_when_a_date_has_changed(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cache, "ALWAYS_VERIFIED", 0)
    open_cache(CELEBA, folders)
    calls: list[str] = []
    verify = cache.verify
    monkeypatch.setattr(cache, "verify", lambda files, *rest: (calls.append(files.name), verify(files, *rest)))
    open_cache(CELEBA, folders)
    assert calls == []
    open_cache(CELEBA, folders, thorough=True)
    assert calls == ["train", "test", "val"]
    path = folder_of(CELEBA, folders) / "train.pixels"
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    capsys.readouterr()
    open_cache(CELEBA, folders)
    assert "train.pixels is wrong in 1 of" in capsys.readouterr().err


def own_images(tmp_path: Path) -> DataConfig:
    write_class_folders(tmp_path / "pets", 6, ("cat", "dog"))
    return DataConfig("folder", **RGB, image_size=16, test_share=0.25, path=str(tmp_path / "pets"))


@pytest.mark.parametrize("change", ["same size, new date", "another image", "moved to another class"])
def test_changes_of_own_images_are_noticed(tmp_path: Path, change: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also with a link in the folder that leads nowhere."""
    config, folders = own_images(tmp_path), Folders(tmp_path, tmp_path / "cache")
    (tmp_path / "pets" / "cat" / "gone.txt").symlink_to(tmp_path / "nowhere")
    _, first = open_cache(config, folders)
    path = tmp_path / "pets" / "cat" / "cat_1.JPEG"
    if change == "another image":
        picture(40, 30, 99).save(tmp_path / "pets" / "cat" / "new.png")
    elif change == "moved to another class":
        path.rename(tmp_path / "pets" / "dog" / "cat_1.JPEG")
    else:
        path.write_bytes(path.read_bytes())
    (tmp_path / "pets" / "notes.txt").write_text("no image, so nothing has changed by it")
    capsys.readouterr()
    loaded, second = open_cache(config, folders)
    assert "have changed since" in capsys.readouterr().err
    assert (second == first) == (change == "same size, new date")
    assert pixels(loaded) == pixels(originals(config, folders))


@pytest.mark.parametrize("cache_size", [0, 24], ids=["one size", "different sizes"])
def test_mean_and_std_are_those_of_the_training_pixels(
    tmp_path: Path, cache_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measured while decoding, and from what is there where a cache of an earlier version has none."""
    config = replace(own_images(tmp_path), mean=(), std=(), cache_size=cache_size)
    folders = Folders(tmp_path, tmp_path / "cache")
    loaded, sha256 = open_cache(config, folders)
    images = [loaded.train.pictures[row].reshape(3, -1) for row in loaded.train.rows]
    flat = np.concatenate(images, axis=1) / 255
    assert loaded.mean == pytest.approx(flat.mean(axis=1), abs=6e-5)
    assert loaded.std == pytest.approx(flat.std(axis=1), abs=6e-5)
    manifest = json.loads((folder_of(config, folders) / "manifest.json").read_text())
    older = {name: value for name, value in manifest.items() if name not in ("measured", "seal")}
    (folder_of(config, folders) / "manifest.json").write_text(json.dumps(older))
    named = replace(config, mean=(0.5,) * 3, std=(0.2,) * 3)
    assert open_cache(named, folders, build=False)[1] == sha256, "it is as good as ever to who names them"
    seen = count_decoded(monkeypatch)
    again, same = open_cache(config, folders)
    assert (again.mean, again.std, same) == (loaded.mean, loaded.std, sha256)
    assert seen == [], "nothing is decoded again"


def test_what_a_killed_build_left_goes_and_what_a_living_one_writes_stays(tmp_path: Path) -> None:
    config, folders = own_images(tmp_path), Folders(tmp_path, tmp_path / "cache")
    open_cache(config, folders)
    whole = folder_of(config, folders)
    partial = whole.with_name(f"{whole.name}.partial")
    partial.mkdir()
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    for folder in (whole, partial):
        for process in (int(dead.stdout), os.getppid()):
            (folder / f".train-labels.npy.{HOST}-{process}.tmp").touch()
    open_cache(config, folders)
    for folder in (whole, partial):
        assert [path.name for path in folder.glob(".*.tmp")] == [f".train-labels.npy.{HOST}-{os.getppid()}.tmp"]


def test_copies_of_an_official_set_share_a_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for copy in ("a", "b"):
        write_celeba(tmp_path / copy)
        for path in (tmp_path / copy).rglob("*"):
            os.utime(path, (1000 if path.is_dir() else len(copy), 1000 if path.is_dir() else ord(copy)))
    hashes = [open_cache(CELEBA, Folders(tmp_path / copy, tmp_path / "cache"))[1] for copy in ("a", "b", "a")]
    assert len(set(hashes)) == 1
    assert capsys.readouterr().err.count("caching") == 1


def test_own_images_beside_their_cache(tmp_path: Path) -> None:
    config = replace(own_images(tmp_path), path=str(tmp_path / "pets"))
    folders = Folders(tmp_path / "pets", tmp_path / "pets" / "cache")
    assert open_cache(config, folders)[1] == open_cache(config, folders)[1]


def test_an_image_that_changes_its_size_between_measuring_and_decoding(folders: Folders) -> None:
    path = sorted((folders.data / "imagenet" / "train" / WNIDS[0]).iterdir())[2]
    good = path.read_bytes()
    path.write_bytes(good[:-200])
    with pytest.raises(UserError, match="cannot be read as an image"):
        open_cache(IMAGENET, folders)
    folder_date = path.parent.stat()
    picture(200, 40, 3).save(path)
    os.utime(path.parent, ns=(folder_date.st_atime_ns, folder_date.st_mtime_ns))
    with pytest.raises(UserError, match="changed its size during the build; run the command again"):
        open_cache(IMAGENET, folders)
    loaded, _ = open_cache(IMAGENET, folders)
    assert pixels(loaded) == pixels(originals(IMAGENET, folders))


def test_a_set_larger_than_the_memory_can_be_mapped(tmp_path: Path) -> None:
    """A sparse file of one and a half times this machine's memory."""
    files, side = cache.SplitFiles(tmp_path, "train"), 2**15
    count = int(1.5 * (psutil.virtual_memory().total + psutil.swap_memory().total)) // side**2 + 1
    with files.pixels.open("wb") as file:
        file.truncate(count * side**2)
    entry = {"labels_sha256": cache_build.write_array(files.labels, np.zeros(count, np.int64)), "sizes_sha256": None}
    images = cache.map_split(files, {**entry, "bytes": count * side**2, "count": count, "shape": [1, side, side]})
    assert np.asarray(images.pictures[count - 1])[0, -1, -1] == 0


def test_a_process_that_waited_finds_the_work_done(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one has built it between the first look and the lock."""
    lock = cache_build.build_lock

    def late(folder: Path, tell: cache_build.Tell) -> object:
        monkeypatch.setattr(cache_build, "build_lock", lock)
        open_cache(CELEBA, folders)
        monkeypatch.setattr(cache_build.Builder, "build", lambda self: pytest.fail("built twice"))
        return lock(folder, tell)

    monkeypatch.setattr(cache_build, "build_lock", late)
    open_cache(CELEBA, folders)


def test_changed_originals_are_noticed(folders: Folders, capsys: pytest.CaptureFixture[str]) -> None:
    _, first = open_cache(IMAGENET, folders)
    picture(40, 30, 99).save(folders.data / "imagenet" / "train" / WNIDS[0] / "another.JPEG")
    loaded, second = open_cache(IMAGENET, folders)
    assert "have changed since" in capsys.readouterr().err
    assert second != first
    assert pixels(loaded) == pixels(originals(IMAGENET, folders))


def test_a_cache_serves_without_its_originals(folders: Folders, capsys: pytest.CaptureFixture[str]) -> None:
    loaded, _ = open_cache(CELEBA, folders)
    before = pixels(loaded)
    (folders.data / "celeba").rename(folders.data / "elsewhere")
    again, _ = open_cache(CELEBA, folders)
    assert pixels(again) == before
    (folder_of(CELEBA, folders) / "train.pixels").write_bytes(b"")
    with pytest.raises(MissingData, match="no CelebA in"):
        open_cache(CELEBA, folders)
    assert "is damaged" in capsys.readouterr().err


def test_nothing_half_built_is_read(folders: Folders) -> None:
    open_cache(CELEBA, folders)
    whole = folder_of(CELEBA, folders)
    (whole / "manifest.json").rename(folders.cache / "kept.json")
    with pytest.raises(MissingData, match="not cached yet"):
        open_cache(CELEBA, folders, build=False)
    whole.rename(whole.with_name(f"{whole.name}.partial"))
    with pytest.raises(MissingData, match="not cached yet"):
        open_cache(CELEBA, folders, build=False)


def test_a_bad_image_stops_the_build_and_a_good_one_lets_it_go_on(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also out of another process. What was decoded before is not decoded again."""
    paths = sorted((folders.data / "celeba" / "img_align_celeba").iterdir())
    good = paths[9].read_bytes()
    status = paths[9].stat()
    paths[9].write_bytes(good[:300])
    for least in (1, 1000):
        monkeypatch.setattr(cache_build, "WORTH_PROCESSES", least)
        with pytest.raises(UserError, match=f"{paths[9].name}' cannot be read as an image"):
            open_cache(CELEBA, folders)
        assert not folder_of(CELEBA, folders).exists()
    paths[9].write_bytes(good)
    os.utime(paths[9], ns=(status.st_atime_ns, status.st_mtime_ns))
    seen = count_decoded(monkeypatch)
    loaded, _ = open_cache(CELEBA, folders)
    assert 0 < sum(seen) < 22
    assert pixels(loaded) == pixels(originals(CELEBA, folders))


def test_no_room_is_said_before_anything_is_decoded(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = count_decoded(monkeypatch)
    usage = type("Usage", (), {"free": 1234})
    monkeypatch.setattr(cache_build.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UserError, match=r"needs 26\.4 kB, and only 1\.23 kB are free .*--cache-dir"):
        open_cache(CELEBA, folders)
    assert not seen


def test_a_cache_folder_that_cannot_be(folders: Folders, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write the cache '.*file/cache/celeba.*--cache-dir"):
        open_cache(CELEBA, Folders(folders.data, tmp_path / "file" / "cache"))


@pytest.mark.parametrize("sizes", [[7] * 20, [1000], [3, 900, 5, 5, 5, 400, 600], [100] * 7])
def test_chunks_follow_one_another_and_hold_every_image(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "CHUNK_BYTES", 100)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    bounds = chunk_bounds(starts)
    assert [first for first, _ in bounds] == [0, *(end for _, end in bounds[:-1])]
    assert bounds[-1][1] == len(sizes)
    assert all(end > first for first, end in bounds)
    assert all(sum(sizes[first : end - 1]) < 100 for first, end in bounds)


SLOW_BUILD = """
import os, sys, time
from pathlib import Path
from benchmark.data import cache, cache_build
from benchmark.data.cache import Folders
from benchmark.config.task import DataConfig
from benchmark.data.sources._files import ImageFiles

decode = ImageFiles.__getitem__

def slow(self, index):
    time.sleep(0.02)
    with open(os.environ["LOG"], "a") as log:
        log.write(f"{os.getpid()} {self.paths[index]}\\n")
    while Path(os.environ["LOG"] + ".hold").exists():
        time.sleep(0.01)
    return decode(self, index)

ImageFiles.__getitem__ = slow
cache.CHUNK_BYTES = 5_000
cache_build.WORTH_PROCESSES = int(sys.argv[2])

if __name__ == "__main__":
    root = Path(sys.argv[1])
    config = DataConfig("celeba", (0.5,) * 3, (0.2,) * 3, image_size=20)
    print(cache_build.open_cache(config, Folders(root / "data", root / "cache"))[1])
"""


def start_slow_build(tmp_path: Path, least: int = 1000) -> "subprocess.Popen[str]":
    script = tmp_path / "build.py"
    script.write_text(SLOW_BUILD)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LOG": str(tmp_path / "log")}
    command = [sys.executable, str(script), str(tmp_path), str(least)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition: object, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)


@pytest.mark.parametrize("least", [1000, 1], ids=["one process", "several"])
def test_a_killed_build_goes_on_where_it_stopped(tmp_path: Path, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "CHUNK_BYTES", 5_000)
    write_celeba(tmp_path / "data", (40, 4, 6))
    folders = Folders(tmp_path / "data", tmp_path / "cache")
    journal = folders.cache / f"{cache_name(CELEBA)}.partial" / "journal.txt"
    process = start_slow_build(tmp_path, least)
    wait_for(lambda: journal.is_file() and journal.read_text().count("\n") >= 3)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_for(lambda: not [child for child in children if child.is_running() and child.status() != "zombie"])
    done = journal.read_text().count("\n")
    assert not folder_of(CELEBA, folders).exists()
    seen = count_decoded(monkeypatch)
    loaded, sha256 = open_cache(CELEBA, folders)
    manifest = json.loads((folder_of(CELEBA, folders) / "manifest.json").read_text())
    assert len(seen) == sum(len(entry["chunks"]) for entry in manifest["splits"].values()) - done
    assert pixels(loaded) == pixels(originals(CELEBA, folders))
    assert open_cache(CELEBA, Folders(folders.data, tmp_path / "unbroken"))[1] == sha256


def test_a_journal_is_not_believed_blindly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut the journal may have been written and the pixels not."""
    monkeypatch.setattr(cache, "CHUNK_BYTES", 5_000)
    write_celeba(tmp_path / "data", (40, 4, 6))
    folders = Folders(tmp_path / "data", tmp_path / "cache")
    partial = folders.cache / f"{cache_name(CELEBA)}.partial"
    process = start_slow_build(tmp_path)
    wait_for(lambda: (partial / "journal.txt").is_file() and (partial / "journal.txt").read_text().count("\n") >= 4)
    process.kill()
    process.communicate()
    content = bytearray((partial / "train.pixels").read_bytes())
    content[5_500:9_000] = bytes(3_500)
    (partial / "train.pixels").write_bytes(content)
    with (partial / "journal.txt").open("a") as journal:
        journal.write("train 9")
    loaded, _ = open_cache(CELEBA, folders)
    assert pixels(loaded) == pixels(originals(CELEBA, folders))


def test_two_processes_build_once(tmp_path: Path) -> None:
    write_celeba(tmp_path / "data", (40, 4, 6))
    hold = tmp_path / "log.hold"
    hold.touch()
    first = start_slow_build(tmp_path)
    wait_for((tmp_path / "log").is_file)
    second = start_slow_build(tmp_path)
    assert second.stderr is not None
    assert "waiting for another process" in second.stderr.readline()
    hold.unlink()  # the first may not be done before the second waits, however slow the machine
    outputs = [process.communicate(timeout=60) for process in (first, second)]
    assert outputs[0][0] == outputs[1][0] != ""
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) == 50
    assert {line.split()[0] for line in lines} == {str(first.pid)}


def test_a_file_size_limit_ends_in_one_line_and_the_rest_can_follow(tmp_path: Path) -> None:
    """What a full disk does, without filling one."""
    import resource

    write_class_folders(tmp_path / "images", 20, ("cat", "dog"))
    task = tmp_path / "pets.toml"
    task.write_text(
        'extends = "cifar10-cpu"\n[data]\nsource = "folder"\npath = "images"\nimage_size = 64\ntest_share = 0.25\n'
    )
    command = [sys.executable, str(ROOT / "run_all.py"), "prepare", str(task), "--data-dir", str(tmp_path / "data")]
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))  # noqa: E731
    full = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
    assert full.returncode == 2
    assert "cannot write the cache" in full.stderr.splitlines()[-1]
    assert "Traceback" not in full.stderr
    assert "--cache-dir" in full.stderr
    assert not list((tmp_path / "data" / "cache").glob("*/manifest.json"))
    roomy = subprocess.run(command, capture_output=True, text=True)
    assert roomy.returncode == 0, roomy.stderr
    assert "30 train, 10 test images" in roomy.stdout
