"""The page is put together from kept parts, and never shows one that something has changed for."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark.paper.assemble import MAKERS
from benchmark.report import parts
from benchmark.report.update import update_report
from benchmark.store.manifest import Manifest
from benchmark.store.store import ERROR, HISTORY, RECORD, Store, folder_of
from benchmark.tables.assemble import Assembled
from tests.conftest import run_here
from tests.report.test_report import made_record, made_results, write_run

RUN = folder_of("one", "m0", "id", 0)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the tasks whose records are read, as they are; files count as settled at once."""
    monkeypatch.setattr(parts, "SETTLED_NS", -(10**12))
    names: list[str] = []
    assemble = MAKERS["task"]

    def counting(manifest: Manifest, store: Store) -> Assembled:
        names.append(manifest.name)
        return assemble(manifest, store)

    monkeypatch.setitem(MAKERS, "task", counting)
    return names


def two_tasks(root: Path) -> Store:
    for task in ("one", "two"):
        store = made_results(root, methods=2, seeds=2, task=task)
    return store


def fresh_page(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Without anything kept."""
    with monkeypatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "other caches"))
        return update_report(store, MAKERS, folder=folder).read_text()


def rewrite(path: Path) -> None:
    path.write_bytes(path.read_bytes())


CHANGES: dict[str, Callable[[Store], object]] = {
    "a record of other numbers": lambda store: write_run(store, "one", "m0", made_record(0, 0.3)),
    "a record that is gone": lambda store: (store.root / RUN / RECORD).unlink(),
    "a damaged record": lambda store: (store.root / RUN / RECORD).write_text("{}"),
    "a curve": lambda store: (store.root / RUN / HISTORY).write_text("epoch,loss\n0,7.5\n"),
    "an error": lambda store: (store.root / RUN / ERROR).write_text("it broke"),
    "a manifest": lambda store: store.write_manifest(replace(store.manifests()[0], title="another title")),
    "the same bytes again": lambda store: rewrite(store.root / RUN / RECORD),
}


@pytest.mark.parametrize("change", CHANGES)
def test_only_what_changed_is_made_again(
    tmp_path: Path, made: list[str], change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = two_tasks(tmp_path / "results")
    update_report(store, MAKERS)
    assert made == ["one", "two"]
    made.clear()
    assert update_report(store, MAKERS).read_text() == fresh_page(store, tmp_path, monkeypatch)
    assert made == ["one", "two"], "by the fresh page alone"
    made.clear()
    CHANGES[change](store)
    page = update_report(store, MAKERS).read_text()
    assert made == ["one"]
    assert page == fresh_page(store, tmp_path, monkeypatch)


def test_other_code_or_a_damaged_part_makes_it_again(
    tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    store = two_tasks(tmp_path / "results")
    page = update_report(store, MAKERS).read_text()
    for path in (tmp_path / "caches").rglob("*.json"):
        path.write_text(path.read_text().replace("has the best", "has the worst"))
    assert update_report(store, MAKERS).read_text() == page
    assert made == ["one", "two"] * 2
    monkeypatch.setattr(parts, "code_version", lambda: "another")
    update_report(store, MAKERS)
    assert made == ["one", "two"] * 3


def test_what_was_just_written_is_not_kept(tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A second write within the same tick of the clock could not be told from the first."""
    monkeypatch.setattr(parts, "SETTLED_NS", 10**12)
    store = two_tasks(tmp_path)
    update_report(store, MAKERS)
    update_report(store, MAKERS)
    assert made == ["one", "two"] * 2


def test_one_task_reads_one_task(tmp_path: Path, made: list[str]) -> None:
    two_tasks(tmp_path)
    assert run_here("tables", "--results", tmp_path).returncode == 0
    made.clear()
    assert run_here("tables", "--results", tmp_path, "--datasets", "two").returncode == 0
    assert made == ["two"]
    assert 'id="task-one"' in (tmp_path / "report.html").read_text()


def test_no_place_to_keep_parts_is_no_error(tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "one data" in update_report(two_tasks(tmp_path / "results"), MAKERS).read_text()
