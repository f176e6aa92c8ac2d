"""The command `measure`: finished runs are measured again where that is due, and nothing is trained."""

import json
import shutil
from pathlib import Path

import pytest

from benchmark.store.record import Record
from benchmark.store.store import PREDICTION, Store
from tests.conftest import ROOT, TINY, run_here
from tests.tables.test_other_code import made_by_other_code


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    (folder / "tiny.toml").write_text(TINY)
    made = run_here(
        "--datasets", folder / "tiny.toml", "--methods", "sr", "--seeds", 2, "--results", folder / "r", "-q"
    )
    assert made.returncode == 0, made.stderr
    return folder / "r"


@pytest.fixture
def store(finished: Path, tmp_path: Path) -> Store:
    shutil.copytree(finished, tmp_path / "r")
    return Store(tmp_path / "r")


def by_other_code(store: Store, folder: Path) -> Record:
    """Make a record as if other code had made its AURC; return it as it was."""
    record = store.read_record(folder)
    assert record is not None
    store.write_record(folder, made_by_other_code(record, "aurc"))
    return record


def test_a_folder_is_brought_up_to_date(store: Store) -> None:
    before = [by_other_code(store, folder) for folder in store.finished()]
    (store.root / store.finished()[1] / PREDICTION).unlink()
    made = run_here("measure", "--results", store.root)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.splitlines() == [
        "2 runs: 1 measured and kept, 1 unchanged; nothing was trained",
        "aurc: not known of 1 run: its predictions were not kept",
    ]
    assert store.read_record(store.finished()[0]) == before[0]


def test_further_scores(store: Store) -> None:
    made = run_here("measure", "--results", store.root, "--scores", "Energy", "knn", "-q")
    assert made.returncode == 0
    assert (
        "2 runs: 2 measured and kept, 0 unchanged" in made.stdout
        and "kNN: not known of 2 runs: it needs features" in made.stdout
    )
    for folder in store.finished():
        plain = json.loads((store.root / folder / "record.json").read_text())
        assert list(plain["further"]) == ["energy"]


@pytest.mark.parametrize(("words", "message"), [
    (["--scores", "enrgy"], "unknown score 'enrgy': did you mean 'energy'?"),
    (["--results", "nowhere"], "no results in 'nowhere'; make some with: "),
    (["--results", ROOT / "results" / "reference"], "is under version control, so its records stay as they are"),
])  # fmt: skip
def test_bad_input(words: list[object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = run_here("measure", *words)
    assert made.returncode == 2
    assert message in made.stderr and made.stderr.count("\n") == 1
