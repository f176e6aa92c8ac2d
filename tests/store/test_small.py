"""Records and learning curves that lie compressed are read, checked, replaced and set aside as the others are."""

import shutil
from pathlib import Path

import pytest

from benchmark.base import files
from benchmark.base.files import COMPRESSED, Damaged, as_kept, compressed, read_content, small
from benchmark.store.mirror import records_last
from benchmark.store.store import HISTORY, RECORD, Store
from tests.conftest import TINY, run_here
from tests.store.test_damage import DAMAGES, contents


def shrink(results: Path) -> Path:
    """Compress what can be in a results folder."""
    for path in [*results.rglob(RECORD), *results.rglob(HISTORY)]:
        small(path).write_bytes(compressed(path.read_bytes()))
        path.unlink()
    return results


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("small")
    task = folder / "tiny.toml"
    task.write_text(TINY)
    made = run_here("--datasets", task, "--methods", "sr", "--results", folder / "results", "-q")
    assert made.returncode == 0, made.stderr
    return task, folder / "results"


@pytest.fixture
def results(finished: tuple[Path, Path], tmp_path: Path) -> Path:
    return shrink(Path(shutil.copytree(finished[1], tmp_path / "results")))


def test_all_is_read_as_it_was(finished: tuple[Path, Path], results: Path, tmp_path: Path) -> None:
    whole, packed = Store(finished[1]), Store(results)
    assert not list(results.rglob(RECORD))
    assert packed.finished() == whole.finished() != []
    assert [packed.read_record(folder) for folder in packed.finished()] == [*whole.records("tiny")]
    assert not any(packed.damage(folder) for folder in packed.finished())
    pages = []
    for place in (finished[1], results):
        shown = run_here("tables", "--results", place, "--out", tmp_path / "out")
        assert shown.returncode == 0
        pages.append((shown.stdout, (tmp_path / "out" / "report.html").read_bytes()))
    assert pages[0] == pages[1], "curves and health of the page, too"
    assert run_here("diff", finished[1], results).stdout.splitlines()[0] == (
        "2 of 2 runs of the same job are equal to the bit."
    )
    explained = run_here("explain", "tiny", "sr", 90, "--results", results).stdout
    assert explained.rstrip().endswith("/seed-<n>/record.json.gz")


def test_what_is_done_is_not_done_again(finished: tuple[Path, Path], results: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*.gz")}
    again = run_here("--datasets", finished[0], "--methods", "sr", "--results", results)
    assert "2 jobs, 2 done already" in again.stderr
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*.gz")} == before


def test_what_is_written_anew_takes_the_place_of_the_small_form(results: Path) -> None:
    made = run_here("measure", "--results", results, "--scores", "margin", "-q")
    assert "2 measured and kept" in made.stdout
    for folder in Store(results).finished():
        assert sorted(path.name for path in (results / folder).glob("[rh]*")) == [HISTORY + COMPRESSED, RECORD]
        assert "margin" in Store(results).read_record(folder).measures.further  # type: ignore[union-attr]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [RECORD, HISTORY])
def test_damage_is_found(results: Path, name: str, damage: str) -> None:
    path, other = (next(results.glob(f"tiny/*/*/seed-{seed}/{name}{COMPRESSED}")) for seed in (0, 1))
    path.write_bytes(DAMAGES[damage](path.read_bytes(), other.read_bytes()))
    store, folder = Store(results), path.parent.relative_to(results)
    assert list(store.damage(folder)) == [name]
    assert store.has_record(folder)


@pytest.mark.parametrize("name", [RECORD, HISTORY])
def test_what_is_damaged_is_made_again(finished: tuple[Path, Path], results: Path, name: str) -> None:
    path = next(results.glob(f"tiny/*/*/seed-0/{name}{COMPRESSED}"))
    path.write_bytes(b"nonsense")
    again = run_here("--datasets", finished[0], "--methods", "sr", "--results", results)
    assert f"'{path}' is damaged (it cannot be decompressed): moved aside" in again.stderr
    assert path.with_name(f"{path.name}.damaged").read_bytes() == b"nonsense"
    run = path.parent.relative_to(results).as_posix()
    ours, theirs = contents(results), contents(finished[1])
    assert ours[f"{run}/{RECORD}"] == theirs[f"{run}/{RECORD}"]
    assert (path.parent / HISTORY).read_bytes() == theirs[f"{run}/{HISTORY}"]
    assert not small(path.parent / RECORD).exists()


def test_what_other_code_made_is_set_aside_and_removed_in_the_end(results: Path) -> None:
    store = Store(results)
    folder = store.finished()[0]
    record = store.read_record(folder)
    store.set_stale_aside(folder)
    assert store.state(folder) == "new"
    assert (results / folder / "record.json.stale.gz").is_file()
    assert record is not None
    store.write_record(folder, record)
    assert store.tidy(folder)
    assert sorted(path.name for path in (results / folder).glob("record*")) == [RECORD]


def test_only_texts_have_a_small_form(tmp_path: Path) -> None:
    for name in ("checkpoint.pt", "prediction.npz"):
        small(tmp_path / name).write_bytes(compressed(b"x"))
        assert as_kept(tmp_path / name) == tmp_path / name
    assert not Store(tmp_path).has_checkpoint(Path())


def test_a_file_that_would_fill_the_memory_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "record.json.gz"
    path.write_bytes(compressed(b"0" * 1001))
    assert len(read_content(path) or b"") == 1001
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    with pytest.raises(Damaged, match="it does not end where it should"):
        read_content(path)


def test_equal_content_gives_equal_bytes_and_records_are_copied_last() -> None:
    assert compressed(b"content") == compressed(b"content")
    assert compressed(b"content")[4:8] == bytes(4), "no date"
    names = ["a/record.json.gz", "a/x", "b/record.json", "b/history.csv.gz"]
    assert records_last(names) == ["a/x", "b/history.csv.gz", "a/record.json.gz", "b/record.json"]
