"""What commands show of finished results, a program gets as values; at a URL as in a folder."""

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from benchmark.base.errors import Unreachable, UserError
from benchmark.library.audit import audit_paper
from benchmark.library.check import check_method
from benchmark.library.diff import compare_results
from benchmark.library.explain import explain_cell
from benchmark.library.figures import draw_figures
from benchmark.library.listing import list_names
from benchmark.library.options import (
    CheckOptions,
    DiffOptions,
    ExplainOptions,
    FiguresOptions,
    PrepareOptions,
    TablesOptions,
)
from benchmark.library.prepare import prepare_data
from benchmark.library.tables import make_tables
from benchmark.store import mirror
from benchmark.store.mirror import Mirror, local_copy
from benchmark.store.store import Store
from tests.conftest import run_here
from tests.report.test_report import made_results

URL = "memory://bucket/read"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A task with two methods."""
    return made_results(tmp_path / "results", methods=2, seeds=3, task="one").root


@pytest.fixture
def url(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The same results at a URL, of which this machine has no copy yet."""
    Mirror(URL, results).push()
    (results / mirror.NOTES).unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(mirror, "PAUSES", (0.0, 0.0))
    yield URL
    fsspec.filesystem("memory").store.clear()


def first_label(results: Path) -> str:
    return str(Store(results).manifests()[0].entries[0].label)


def test_tables_are_returned_and_written(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = make_tables(TablesOptions(results=str(results), out=tmp_path / "out"))
    assert capsys.readouterr() == ("", "")
    assert (tmp_path / "out" / "tables" / "one.md").read_text() in tables.text()
    assert tables.remark == f"Report: {tmp_path / 'out' / 'report.html'}"
    said = run_here("tables", "--results", results, "--out", tmp_path / "again")
    assert (said.stdout, said.stderr) == (tables.text(), f"Report: {tmp_path / 'again' / 'report.html'}\n")


def test_tables_at_a_url_are_written_there(url: str, results: Path) -> None:
    tables = make_tables(TablesOptions(results=url))
    assert tables.text() == make_tables(TablesOptions(results=str(results))).text()
    assert fsspec.filesystem("memory").exists("/bucket/read/tables/one.md")


def test_tables_of_a_url_where_nothing_can_be_written_are_shown_all_the_same(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Mirror, name: str) -> None:
        raise PermissionError("read only")

    monkeypatch.setattr(Mirror, "upload", refuse)
    with pytest.raises(Unreachable, match="read only") as caught:
        make_tables(TablesOptions(results=url))
    assert "## one" in caught.value.outcome.text()
    said = run_here("tables", "--results", url)
    assert said.returncode == 1
    assert said.stdout == caught.value.outcome.text()
    assert "read only" in said.stderr.splitlines()[-1]


def test_a_cell_is_explained(url: str, results: Path) -> None:
    label = first_label(results)
    text = explain_cell(ExplainOptions(task="one", method=label, row="90", results=url))
    assert f"{text}\n" == run_here("explain", "one", label, 90, "--results", url).stdout
    here = explain_cell(ExplainOptions(task="one", method=label, row="90", results=str(results)))
    assert here == text.replace(str(local_copy(url)), str(results))


def test_results_are_compared(url: str, results: Path) -> None:
    found = compare_results(DiffOptions(old=url, new=str(results)))
    assert (found.moved, found.equal, found.changed, found.cells) == ((), 6, 0, 0)
    assert run_here("diff", url, results).stdout == f"{found.text()}\n"
    with pytest.raises(UserError, match="no results in 'nowhere'"):
        compare_results(DiffOptions(old=str(results), new="nowhere"))


def test_figures_are_drawn_one_by_one(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = draw_figures(FiguresOptions(results=str(results), out=tmp_path / "out"))
    first = next(drawn)
    assert first.name == "one-risk-coverage"
    assert all(path.exists() for path in first.paths)
    assert not list((tmp_path / "out" / "figures").glob("one-cost*")), "not before somebody asks for it"
    assert [each for each in drawn if not each.paths and not each.reason] == []
    assert capsys.readouterr() == ("", "")


def test_names_are_listed() -> None:
    found = list_names()
    assert [*found] == [
        *("methods", "ingredients", "tasks", "evaluation sets", "published tables", "scores", "networks", "sources")
    ]
    assert {"label": "SR", "file": "cross_entropy"}.items() <= next(
        row for row in found["methods"] if row["label"] == "SR"
    ).items()


def test_published_tables_are_audited() -> None:
    found = audit_paper()
    assert f"{len(found.findings)} inconsistencies:" in found.text()
    assert found.findings[0].what in found.text()


def test_a_task_that_lacks_its_data_does_not_keep_others_from_theirs(tmp_path: Path) -> None:
    task = tmp_path / "own.toml"
    task.write_text('extends = "digits"\n[data]\nsource = "folder"\npath = "nowhere"\n')
    options = PrepareOptions(tasks=(str(task), "gaussians"), data_dir=tmp_path, cache_dir=tmp_path / "cache")
    found = {each.task: each for each in prepare_data(options)}
    assert found["gaussians"].text == "gaussians: made in memory, nothing to prepare"
    assert isinstance(found["own"].error, UserError)


def test_a_method_is_checked_rule_by_rule() -> None:
    examined = check_method(CheckOptions(method="focal", set=("gamma=2",)))
    first = next(examined)
    assert (first.label, first.finding.check, first.finding.holds) == ("Focal", "can be planned", True)
    with pytest.raises(UserError, match="expected FIELD=VALUE"):
        next(check_method(CheckOptions(method="focal", set=("gamma",))))
