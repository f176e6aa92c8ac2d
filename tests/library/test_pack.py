"""A small copy of a results folder: what is in it, that nothing is lost from it, and that it can always be read."""

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmark.base import files
from benchmark.base.files import BLANK, write_sealed
from benchmark.library.folder_options import PackOptions
from benchmark.library.pack import Packed, pack_results
from benchmark.store.manifest import with_every_run
from benchmark.store.store import PREDICTION, Store, folder_of
from benchmark.tune.ledger import Trial, add_to_ledger
from tests.conftest import run_here
from tests.report.test_report import made_record, made_results, write_run


def pack(results: Path, to: Path) -> Packed:
    return pack_results(PackOptions(results=str(results), to=str(to)))


def texts(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two methods with two seeds, tables, a figure, a ledger, and what a copy leaves out."""
    root = tmp_path / "results"
    made_results(root, methods=2, seeds=2)
    assert run_here("tables", "--results", root).returncode == 0
    for name in ("figures/made-ranks.png", "figures/made-ranks.pdf", "figures/own.txt", "tune/made-tuned.toml"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(b"drawn")
    write_ledger(root, 0.1)
    run = root / folder_of("made", "m0", "id", 0)
    for name in (PREDICTION, "checkpoint.pt", "log.txt", "error.txt"):
        (run / name).write_bytes(b"large")
    (run.parent / ".seed-0.lock").touch()
    return root


def write_ledger(root: Path, *weights: float) -> None:
    ledger: dict[str, Any] = {"task": "made"}
    trials = [Trial({"weight": weight}, f"id{weight}", {"0": weight}) for weight in weights]
    ledger = add_to_ledger(ledger, "Ours", [], trials, [0])
    write_sealed(root / "tune" / "made.json", {**ledger, "seal": BLANK}, "tune/made.json")
    (root / "tune" / "made.md").write_text(f"{weights}")


def test_what_is_in_it(results: Path, tmp_path: Path) -> None:
    packed = pack(results, tmp_path / "small")
    names = sorted(texts(tmp_path / "small"))
    runs = [folder_of("made", method, "id", seed).as_posix() for method in ("m0", "m1") for seed in (0, 1)]
    tables = [f"tables/made{kind}.{end}" for kind in ("", "-costs", "-statistics") for end in ("csv", "md", "tex")]
    curves = [f"{run}/history.csv" for run in runs]
    assert names == sorted([
        *(f"{run}/record.json.gz" for run in runs), *curves, "manifests/made.json", "figures/made-ranks.png",
        "tables/made-runs.csv", *tables, "tune/made.json", "tune/made.md",
    ]), "a curve of three lines is not smaller when compressed"  # fmt: skip
    assert dict(packed.written) == {
        "record": 4, "learning curve": 4, "manifest": 1, "ledger file": 2, "table or figure": 11
    }  # fmt: skip
    said = packed.text()
    assert (
        "4 records, 4 learning curves, 1 manifest, 2 ledger files, 11 tables and figures written; 22 files of" in said
    )
    whole = run_here("tables", "--results", results, "--out", tmp_path / "a")
    again = run_here("tables", "--results", tmp_path / "small", "--out", tmp_path / "b")
    assert again.stdout == whole.stdout
    assert texts(tmp_path / "a") == texts(tmp_path / "b")


def test_again_writes_only_what_is_new(results: Path, tmp_path: Path) -> None:
    pack(results, tmp_path / "small")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "small").rglob("*")}
    assert "nothing new written" in pack(results, tmp_path / "small").text()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "small").rglob("*")} == before
    made_results(results, methods=2, seeds=3)
    packed = pack(results, tmp_path / "small")
    assert dict(+packed.written) == {"record": 2, "learning curve": 2, "manifest": 1}
    assert len(Store(tmp_path / "small").finished()) == 6


def test_a_copy_that_lay_there_as_it_is_becomes_small(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path / "small")
    assert pack(results, tmp_path / "small").written["record"] == 4
    assert not list((tmp_path / "small").rglob("record.json"))
    assert (tmp_path / "small" / folder_of("made", "m0", "id", 0) / PREDICTION).is_file(), "nothing is removed"


def test_nothing_that_is_there_is_lost(results: Path, tmp_path: Path) -> None:
    """Neither runs and labels that the new results lack, nor a run that says something else."""
    small, store = tmp_path / "small", Store(tmp_path / "small")
    made_results(tmp_path / "more", methods=3, seeds=3)
    made_results(tmp_path / "more", methods=1, seeds=1, task="other")
    write_run(Store(tmp_path / "more"), "made", "m0", made_record(0, 0.7))
    pack(tmp_path / "more", small)
    (small / "tune").mkdir()
    write_ledger(small, 0.1, 0.2)
    before = texts(small)
    made = run_here("pack", results, "--to", small)
    assert made.returncode == 1
    run = folder_of("made", "m0", "id", 0)
    assert made.stdout.splitlines()[1:] == [
        f"not copied: {results / run}: '{small / run}/record.json.gz' says something else, and stays",
        f"not copied: {results}/tune/made.json: '{small}/tune/made.json' has other trials, and stays",
    ]
    kept = texts(small)
    assert before.keys() <= kept.keys()
    changed = {name for name in before if before[name] != kept[name]}
    assert changed == {"manifests/made.json"}, "the record of another level, the ledger and the other task stay"
    manifest = next(each for each in store.manifests() if each.task == "made")
    assert [entry.label for entry in manifest.entries] == ["M0", "M1"], "tables show what the new results show"
    every = {entry.label: entry.seeds for entry in with_every_run(manifest).entries}
    assert every == {"M0": (0, 1, 2), "M1": (0, 1, 2), "M2": (0, 1, 2)}
    pack(results, small)
    assert texts(small) == kept


def test_measures_that_were_added_later_are_copied(results: Path, tmp_path: Path) -> None:
    pack(results, tmp_path / "small")
    store, folder = Store(results), folder_of("made", "m1", "id", 1)
    record = store.read_record(folder)
    assert record is not None
    further = {"margin": record.score("SR")}
    store.write_record(folder, replace(record, measures=replace(record.measures, further=further)))
    assert pack(results, tmp_path / "small").written["record"] == 1
    assert Store(tmp_path / "small").read_record(folder) == store.read_record(folder)
    store.write_record(folder, record)
    assert len(pack(results, tmp_path / "small").left) == 1, "nor are they lost again"


def test_what_is_damaged_is_not_copied(results: Path, tmp_path: Path) -> None:
    path = results / folder_of("made", "m1", "id", 1) / "record.json"
    path.write_text(path.read_text().replace("1", "2"))
    made = run_here("pack", results, "--to", tmp_path / "small")
    assert made.returncode == 1
    assert f"not copied: {path.parent}: its checksum is wrong" in made.stdout
    assert len(Store(tmp_path / "small").finished()) == 3


class Killed(BaseException):
    pass


def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Before each file that is put in its place, and before each that is removed, as if the process were killed."""
    left = [0]

    def counting(act: Any) -> Any:
        def step(*arguments: Any, **more: Any) -> Any:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return act(*arguments, **more)

        return step

    for name in ("replace", "unlink"):
        monkeypatch.setattr(Path, name, counting(getattr(Path, name)))
    for count in range(1000):
        left[0] = count
        yield left


def test_killed_at_any_moment_it_can_be_read_and_goes_on(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into a folder where older runs lie as they are."""
    for shown in ("tables", "figures"):
        shutil.rmtree(results / shown)
    old, small, whole = tmp_path / "old", tmp_path / "small", tmp_path / "whole"
    made_results(old, methods=1, seeds=1)
    shutil.copytree(old, whole)
    pack(results, whole)
    monkeypatch.setattr(files, "sync", lambda path: None)
    for moments in ends(monkeypatch):
        shutil.copytree(old, small)
        with suppress(Killed):
            pack(results, small)
            break
        moments[0] = 1000
        store = Store(small)
        assert store.finished() and not any(store.damage(folder) for folder in store.finished())
        assert [manifest.task for manifest in store.manifests()] == ["made"]
        pack(results, small)
        assert texts(small) == texts(whole)
        shutil.rmtree(small)
    assert texts(small) == texts(whole)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("{results}", "--to", "{results}"), "--to {results}: these are the results themselves; name another folder"),
        (("{results}", "--to", "s3://bucket/x"), "--to s3://bucket/x: expected a folder on this machine, got a URL"),
        (("{results}",), "the following arguments are required: --to (see: "),
        (("{results}/nothing", "--to", "{results}/x"), "no results in '{results}/nothing'; make some with: "),
        (
            ("{results}", "--to", "{results}/tune/made.md"),
            "cannot write to '{results}/tune/made.md': File exists; name",
        ),
    ],
)
def test_bad_input_is_said_in_one_line(results: Path, words: tuple[str, ...], message: str) -> None:
    made = run_here("pack", *(word.format(results=results) for word in words))
    assert made.returncode == 2
    assert made.stderr.startswith(f"error: {message.format(results=results)}")
    assert len(made.stderr.splitlines()) == 1


def test_the_ledger_of_the_copy_is_whole(results: Path, tmp_path: Path) -> None:
    pack(results, tmp_path / "small")
    write_ledger(results, 0.1, 0.3)
    assert pack(results, tmp_path / "small").written["ledger file"] == 2
    trials = json.loads((tmp_path / "small" / "tune" / "made.json").read_text())["methods"]["Ours"]["trials"]
    assert len(trials) == 2
