"""The command `summary`: which tasks, methods and rows it shows, what it writes, and what it refuses."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark.library.folder_options import SummaryOptions
from benchmark.library.summary import SummaryTables, summarise
from benchmark.store.manifest import with_earlier
from benchmark.store.store import Store
from tests.conftest import ROOT, run_here
from tests.tables.test_summary import make, noisy


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two tasks, of which the second lacks a method, and an evaluation set."""
    store = Store(tmp_path / "results")
    make(store, "one", noisy)
    make(store, "two", noisy, names=("Plain", "Better", "Alike"))
    store.write_manifest(replace(make(store, "one-far", noisy), set_of="one"))
    return store.root


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written, as only what would be matters."""
    monkeypatch.setattr("benchmark.library.summary.written", lambda *_: "")


def table(results: Path, **asked: object) -> SummaryTables:
    return summarise(SummaryOptions(results=str(results), out=results.parent / "out", **asked))  # type: ignore[arg-type]


def shape(found: SummaryTables) -> tuple[list[str], list[str]]:
    return [regime.title for regime in found.summary.regimes], [line.name for line in found.summary.lines]


def test_all_is_shown_where_nothing_is_named(results: Path, undrawn: None) -> None:
    assert shape(table(results)) == (["one data", "two data"], ["Better", "Worse", "Alike"])


def test_columns_and_rows_stand_in_the_order_asked_for(results: Path, undrawn: None) -> None:
    found = table(results, tasks=("two", "one=Short one", "one-far"), rows=("alike", "BETTER"))
    assert shape(found) == (["two data", "Short one", "one-far data"], ["Alike", "Better"])


def test_a_method_that_one_task_lacks_is_a_gap(results: Path, undrawn: None) -> None:
    found = table(results, methods=("worse", "alike"))
    assert shape(found) == (["one data", "two data"], ["Worse", "Alike"])
    assert [regime.base is not None for regime in found.summary.regimes] == [True, True], "which is not named"
    assert "not run on this task" in found.text()


def test_runs_of_earlier_commands_are_found(results: Path, undrawn: None) -> None:
    store = Store(results)
    before = next(each for each in store.manifests() if each.name == "one")
    last = replace(before, entries=before.entries[1:2])
    store.write_manifest(with_earlier(last, before))
    assert shape(table(results, tasks=("one",)))[1] == ["Better"]
    found = table(results, tasks=("one",), methods=("worse",))
    assert shape(found)[1] == ["Worse"]
    assert found.summary.regimes[0].compared["Worse"].n == 8, "also the baseline, which the last command did not name"


def test_what_is_written(results: Path, tmp_path: Path) -> None:
    made = run_here("summary", "--results", results, "--out", tmp_path / "out", "--name", "field")
    assert made.returncode == 0, made.stderr
    places = [f"tables/field.{end}" for end in ("md", "tex", "csv")] + [
        f"figures/field.{end}" for end in ("png", "pdf")
    ]
    assert made.stderr.splitlines() == ["Summary:", *(f"  {tmp_path / 'out' / place}" for place in places)]
    assert (tmp_path / "out" / "tables" / "field.md").read_text() == made.stdout
    again = {place: (tmp_path / "out" / place).read_bytes() for place in places}
    run_here("summary", "--results", results, "--out", tmp_path / "out", "--name", "field")
    assert {place: (tmp_path / "out" / place).read_bytes() for place in places} == again


def test_a_short_table_is_one_table(results: Path, undrawn: None) -> None:
    short = table(results, short=True).text()
    assert short.count("Worse") == 1
    assert len(short) < 0.6 * len(table(results).text())
    assert "Seeds that it would take" not in short


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tasks", "onne"), "unknown task in this results folder: 'onne': did you mean 'one'?"),
        (("--tasks", "one", "one=again"), "--tasks: each task can be one column; name it once"),
        (("--methods", "beter"), "unknown method in the results of one: 'beter': did you mean 'Better'?"),
        (("--rows", "plane"), "unknown row 'plane': known: Alike, Better, Worse"),
        (("--measure", "aurcc"), "unknown measure 'aurcc': did you mean 'aurc'?"),
        (("--name", "one"), "--name one: the tables of this task have that name; choose another"),
        (("--name", "../x"), "--name ../x: expected a file name without a folder, such as summary"),
        (("--test", "exat"), "argument --test: invalid choice: 'exat'"),
    ],
)
def test_bad_input_is_said_in_one_line(results: Path, words: tuple[str, ...], message: str) -> None:
    made = run_here("summary", "--results", results, *words)
    assert made.returncode == 2
    assert made.stderr.startswith(f"error: {message}")
    assert len(made.stderr.splitlines()) == 1


def test_a_short_table_of_many_tasks_is_refused(results: Path, undrawn: None) -> None:
    names = [make(Store(results), f"task{number}", seeds=[0], names=("Plain", "Better")).name for number in range(7)]
    made = run_here("summary", "--results", results, "--short", "--tasks", *names)
    assert (made.returncode, made.stdout) == (2, "")
    assert made.stderr.startswith(
        "error: --short: expected at most 8 columns, with those of the method and the time, got 9"
    )
    assert run_here("summary", "--results", results, "--short", "--tasks", *names[:6]).returncode == 0


def test_the_recorded_run(tmp_path: Path) -> None:
    """As its page says: 353.2 against 354.6, a paired difference of −1.5 ± 1.1."""
    words = ("--tasks", "cifar100-cpu-tuned", "--methods", "ccl-sc")
    made = run_here("summary", "--results", ROOT / "results" / "reference", "--out", tmp_path, *words)
    assert made.returncode == 0, made.stderr
    with (tmp_path / "tables" / "summary.csv").open() as file:
        lines = {line["row"]: line for line in csv.DictReader(file)}
    assert float(lines["SR"]["value"]) == pytest.approx(354.6, abs=0.05)
    assert float(lines["CCL-SC"]["change"]) == pytest.approx(100 * -1.5 / 354.6, abs=0.03)
    half_width = float(lines["CCL-SC"]["high"]) - float(lines["CCL-SC"]["change"])
    assert half_width == pytest.approx(100 * 1.1 / 354.6, abs=0.03)
    assert run_here("summary", "--results", ROOT / "results" / "reference", *words).stderr.startswith("'"), "left alone"
