"""Results at a URL: two copies that are kept equal, whoever writes and whatever fails in between."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest

from benchmark.base.errors import Unreachable, UserError
from benchmark.store import mirror
from benchmark.store.mirror import Mirror, folder_or_url, local_copy, open_remote
from tests.conftest import run_here
from tests.store.test_damage import contents

URL = "memory://bucket/run"


@pytest.fixture(autouse=True)
def another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Copies lie in folders of their own, each of which stands for a machine."""

    def move(name: str) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))

    move("first")
    monkeypatch.setattr(mirror, "PAUSES", (0.0, 0.0))
    yield move
    fsspec.filesystem("memory").store.clear()


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_json", ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def texts(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != mirror.NOTES)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def mirrors(tmp_path: Path, url: str = URL) -> tuple[Mirror, Mirror]:
    return Mirror(url, tmp_path / "a"), Mirror(url, tmp_path / "b")


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_new_changed_and_removed_files_reach_the_other_side(tmp_path: Path, kind: str) -> None:
    here, there = mirrors(tmp_path, URL if kind == "memory" else f"file://{tmp_path}/store")
    write(here.local, x="1", job__record_json="2", job__log="3")
    here.push()
    there.pull()
    assert texts(there.local) == {"x": "1", "job/record.json": "2", "job/log": "3"}
    write(there.local, x="1 and more", y="4")
    (there.local / "job" / "log").unlink()
    there.push()
    here.pull()
    assert texts(here.local) == {"x": "1 and more", "job/record.json": "2", "y": "4"}


def test_what_was_not_brought_before_a_crash_is_brought_later(tmp_path: Path) -> None:
    here, there = mirrors(tmp_path)
    write(here.local, x="1")
    here.push()
    write(here.local, x="changed", y="new")
    here = Mirror(URL, here.local)
    here.pull()
    assert texts(here.local) == {"x": "changed", "y": "new"}, "nothing there is newer"
    here.push()
    there.pull()
    assert texts(there.local) == texts(here.local)


def test_locks_attempts_and_unfinished_files_stay(tmp_path: Path) -> None:
    here, there = mirrors(tmp_path)
    write(here.local, **{"job__.x.lock": "", ".attempts__1__x": "", ".x.tmp": "", "x": ""})
    here.push()
    there.pull()
    assert texts(there.local) == {"x": ""}


def test_a_place_that_is_suddenly_empty_empties_nothing(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/mounted"
    here, _ = mirrors(tmp_path, url)
    write(here.local, x="1")
    here.push()
    shutil.rmtree(tmp_path / "mounted")
    with pytest.raises(UserError, match="no results are left at"):
        here.pull()
    assert texts(here.local) == {"x": "1"}


def test_a_folder_alone(tmp_path: Path) -> None:
    here, there = mirrors(tmp_path)
    write(here.local, one__x="1", one_more__x="2")
    here.push()
    there.pull(Path("one"))
    assert texts(there.local) == {"one/x": "1"}
    there.pull(Path("absent"))
    (here.local / "one" / "x").unlink()
    here.push()
    there.pull(Path("one"))
    assert texts(there.local) == {}


def test_records_go_last_and_a_network_that_fails_for_a_moment_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = mirrors(tmp_path)
    write(here.local, a__record_json="1", b__log="2", b__record_json="3", z="4")
    system, _ = here.remote
    brought, real = [], type(system).pipe_file

    def flaky(self: object, path: str, content: bytes) -> None:
        brought.append(path)
        if len(brought) == 2:
            raise ConnectionResetError("for a moment")
        real(self, path, content)

    monkeypatch.setattr(type(system), "pipe_file", flaky)
    here.push()
    names = [path.removeprefix("/bucket/run/") for path in brought]
    assert names == ["b/log", "z", "z", "a/record.json", "b/record.json"]
    there.pull()
    assert texts(there.local) == texts(here.local)
    write(here.local, z="5")
    monkeypatch.setattr(type(system), "pipe_file", lambda *_: (_ for _ in ()).throw(OSError("gone for good")))
    with pytest.raises(Unreachable, match="gone for good"):
        here.push()


def test_a_grid_goes_on_at_another_machine(
    tiny: Path, tmp_path: Path, another_machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--datasets", tiny, "--methods", "sr", "sat", "deep_ensemble"]
    assert run_here(*words, "--results", tmp_path / "local").returncode == 0
    assert run_here(*words, "--results", f"{URL}/", "--seeds", 1).returncode == 0
    another_machine("second")
    result = run_here(*words, "--results", URL)
    assert result.returncode == 0
    assert "8 jobs, 4 done already" in result.stderr
    assert contents(local_copy(URL)) == contents(tmp_path / "local")
    another_machine("third")
    shown = run_here("tables", "--results", URL)
    assert shown.returncode == 0
    assert "## tiny digits" in shown.stdout
    assert run_here("diff", tmp_path / "local", URL).stdout.splitlines()[-1] == "nothing moved"


def test_an_end_without_network_keeps_everything_here(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_route(self: Mirror, name: str) -> None:
        raise ConnectionError("no route")

    words = ["--datasets", tiny, "--methods", "sr", "--seeds", 1, "--results", URL]
    with monkeypatch.context() as without:
        without.setattr(Mirror, "upload", no_route)
        result = run_here(*words)
    assert result.returncode == 1
    assert "no route" in result.stderr.splitlines()[-1]
    assert f"all results are kept in '{local_copy(URL)}'; run the same command again to upload them" in result.stderr
    assert "going on, and trying again later" in result.stderr
    assert "1 job, 1 done already" in run_here(*words).stderr
    assert any(path.endswith("record.json") for path in open_remote(URL)[0].find("/bucket"))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nosuch://x/y", "cannot keep results at 'nosuch://x/y'"),
        ("file:///proc/nowhere", "cannot write to 'file:///proc/nowhere'"),
    ],
)
def test_places_that_cannot_be(tiny: Path, url: str, message: str) -> None:
    result = run_here("--datasets", tiny, "--results", url)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr.splitlines()[-1]


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(url: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", absent)
    with pytest.raises(UserError, match="Install s3fs"):
        open_remote("s3://x")


def test_folders_and_urls() -> None:
    assert folder_or_url("s3://bucket/run/") == "s3://bucket/run"
    assert folder_or_url("runs/first") == Path("runs/first")
    assert local_copy("s3://a/b") != local_copy("s3://a-b")
    assert os.sep not in local_copy("s3://a/b").name
