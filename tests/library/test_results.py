"""Results as data frames, tables and a report: the numbers are those of the records and of the written tables."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import pytest

import benchmark as sb
from benchmark.library.results import Results
from benchmark.store import mirror
from benchmark.store.store import Store
from tests.conftest import ROOT, plain_content
from tests.tables.test_build import MANIFEST, many_columns

REFERENCE = ROOT / "results" / "reference"
COLUMNS = ["task", "method", "label", "score", "seed", "set", "measure", "value"]
CURVES = ["task", "method", "label", "score", "seed", "set", "coverage"]


@pytest.fixture(scope="module")
def first_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of links to some tasks of the recorded runs: to read all of them takes long."""
    folder = tmp_path_factory.mktemp("reference")
    (folder / "manifests").mkdir()
    for task in ("cifar10-cpu-tuned", "cifar100-cpu-tuned", "digits", "gaussians"):
        for name in (task, f"manifests/{task}.json"):
            (folder / name).symlink_to(REFERENCE / name)
    return folder


@pytest.fixture(scope="module")
def reference(first_runs: Path) -> Results:
    return sb.load_results(first_runs)


@pytest.fixture
def toy(tmp_path: Path) -> Results:
    """Runs that are there, that diverged and that are missing, and an oracle."""
    manifest, store = many_columns(tmp_path / "toy")
    store.write_manifest(manifest)
    return sb.load_results(str(store.root))


def test_the_frame_has_the_lines_of_the_written_files(reference: Results) -> None:
    frame = reference.to_frame()
    assert list(frame.columns) == COLUMNS
    assert (frame.set == "test").all()
    assert (frame.value.dtype, frame.seed.dtype) == (np.float64, np.int64)
    for task in reference.tasks:
        with (REFERENCE / "tables" / f"{task}-runs.csv").open() as file:
            rows = list(csv.DictReader(file))
        part = frame[frame.task == task]
        assert len(rows) == len(part) > 1000
        for name in ("method", "label", "score", "measure"):
            assert part[name].tolist() == [row[name] for row in rows]
        assert part.seed.tolist() == [int(row["seed"]) for row in rows]
        assert part.value.tolist() == [float(row["value"]) for row in rows]


def test_values_and_curves_are_those_of_the_records(reference: Results) -> None:
    frame, curves = reference.to_frame(), reference.curves()
    assert list(curves.columns) == [*CURVES, "risk", "expected_risk"]
    paths = sorted(REFERENCE.glob("gaussians/cross_entropy/*/seed-3/record.json.gz"))
    record = plain_content(paths[0])
    run = (curves.task == "gaussians") & (curves.label == "SR") & (curves.score == "SR") & (curves.seed == 3)
    assert len(curves[run]) == 201
    assert curves[run].coverage.tolist() == pytest.approx([k / 200 for k in range(201)])
    for name in ("risk", "expected_risk"):
        assert curves[run][name].tolist() == record["scores"]["SR"][name]
    assert curves[curves.task == "digits"].expected_risk.isna().all(), "the truth is not known"
    lines = frame[(frame.task == "gaussians") & (frame.label == "SR") & (frame.seed == 3)].set_index("measure").value
    assert lines["aurc"] == record["scores"]["SR"]["aurc"]
    assert lines["nll"] == record["classifier"]["nll"]
    assert lines["risk@90"] == record["scores"]["SR"]["risk"][180]
    assert len(curves) == 201 * len(frame[frame.measure == "aurc"])


def test_a_method_with_a_training_for_each_coverage_is_named_by_it(reference: Results) -> None:
    labels = set(reference.to_frame().query("task == 'digits' and method == 'selective_net'").label)
    assert labels == {"SelectiveNet@90", "SelectiveNet@80", "SelectiveNet@70"}


def test_runs_that_diverged_are_there_and_the_oracle_is_no_run(toy: Results) -> None:
    frame = toy.to_frame()
    assert frame[frame.measure == "diverged"].values.tolist() == [
        ["toy", "theirs", "Theirs", "", 4, "test", "diverged", 1.0]
    ]
    assert set(frame.label) == {"Ours", "Theirs"}
    assert set(frame.score) == {"SR", "head", ""}
    assert toy.curves().groupby(["label", "score"]).seed.nunique().to_dict() == {
        ("Ours", "SR"): 5,
        ("Theirs", "SR"): 4,
        ("Theirs", "head"): 4,
    }


def test_frames_without_a_run_have_their_columns(tmp_path: Path) -> None:
    Store(tmp_path).write_manifest(MANIFEST)
    empty = sb.load_results(tmp_path)
    assert list(empty.to_frame().columns) == COLUMNS
    assert list(empty.curves().columns) == [*CURVES, "risk"]
    assert len(empty.to_frame()) == len(empty.curves()) == 0


@pytest.mark.parametrize("task", ["digits", "cifar10-cpu-tuned"])
def test_a_table_reads_as_the_written_one(reference: Results, task: str) -> None:
    written = (REFERENCE / "tables" / f"{task}.md").read_text()
    risk, measures = reference.table(task), reference.table(task, "measures")
    assert f"{risk}\n\n{measures}\n" == written
    assert repr(risk) == str(risk)


def test_the_numbers_of_a_table(reference: Results) -> None:
    frame, cells = reference.to_frame(), reference.table("digits").to_frame()
    lines = frame[(frame.task == "digits") & (frame.measure == "risk@90") & (frame.score == "SR")]
    ours, theirs = (100 * lines[lines.label == label].value for label in ("CCL-SC", "DG"))
    cell = cells[(cells.row == "90") & (cells.column == "DG+SR")].iloc[0]
    assert (cell["mean"], cell["std"], cell["n"]) == pytest.approx((theirs.mean(), theirs.std(ddof=0), 5))
    assert cell["p"] == sb.compare(ours, theirs).p < 1


def test_other_rows_and_columns_of_a_table(reference: Results) -> None:
    table = reference.table("Digits", coverages=[100, 90], methods=["sr", "dg"], reference="SR")
    rows = [line.split("|")[1].strip() for line in str(table).splitlines() if line.startswith("|")]
    assert rows[0] == "coverage"
    assert rows[2:] == ["100", "90", "w/t/l", "avg. rank"]
    assert set(table.to_frame().column) == {"SR", "DG", "DG+SR"}


def test_a_notebook_shows_a_table(toy: Results) -> None:
    html = toy.table("toy")._repr_html_()
    methods = ["Ours", "Theirs+SR", "Theirs", "A_b &amp; c% #1~^x", "oracle"]
    assert re.findall(r'<th scope="row">([^<]*)</th>', html) == methods
    assert "Selective risk (%) on toy_data (8×8) &lt; 50%" in html
    assert "<script" not in html and "<button" not in html


@pytest.mark.parametrize("name", ["page.html", "folder"])
def test_the_report(toy: Results, tmp_path: Path, name: str) -> None:
    before = sorted(path for path in toy.store.root.rglob("*"))
    path = toy.report(tmp_path / "new" / name)
    assert path == tmp_path / "new" / (name if name.endswith(".html") else f"{name}/report.html")
    assert "Theirs" in path.read_text()
    assert sorted(path for path in toy.store.root.rglob("*")) == before, "the results are only read"


def test_a_report_that_cannot_be_written(toy: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(sb.UserError, match="cannot write to"):
        toy.report(tmp_path / "file" / "page.html")


@pytest.fixture
def url(toy: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where the same results lie in a bucket."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(mirror, "PAUSES", (0.0, 0.0))
    mirror.Mirror("memory://bucket/toy", toy.store.root).push()
    yield "memory://bucket/toy"
    fsspec.filesystem("memory").store.clear()


def test_results_at_a_url(toy: Results, url: str) -> None:
    there = sb.load_results(url)
    assert there.store.root != toy.store.root
    pd.testing.assert_frame_equal(there.to_frame(), toy.to_frame())
    fsspec.filesystem("memory").store.clear()
    with pytest.raises(sb.UserError, match="no results are left at 'memory://bucket/toy'"):
        sb.load_results(url)


def test_a_url_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    def fails(*_: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(mirror.Mirror, "pull_folder", fails)
    with pytest.raises(sb.UserError, match=r"cannot reach 'memory://bucket/toy' .*no route.*; check the address"):
        sb.load_results(url)


def test_a_folder_without_results_says_how_to_make_some(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(
            sb.UserError, match=r"no results in '.*'; make some with benchmark\.run\('digits', results="
        ):
            sb.load_results(folder)
    assert not (tmp_path / "missing").exists()


def test_published_tables_alone_are_no_task(tmp_path: Path) -> None:
    Store(tmp_path).write_manifest(MANIFEST, "paper")
    with pytest.raises(sb.UserError, match="published tables alone"):
        sb.load_results(tmp_path)


def test_names_that_mean_nothing(reference: Results) -> None:
    with pytest.raises(sb.UserError, match="unknown task in these results: 'digit': did you mean 'digits'"):
        reference.table("digit")
    with pytest.raises(sb.UserError, match="unknown table of digits: 'risks': did you mean 'risk'"):
        reference.table("digits", "risks")
    with pytest.raises(sb.UserError, match="unknown method"):
        reference.table("digits", methods=["svm"])
    with pytest.raises(sb.UserError, match="per cent"):
        reference.table("digits", coverages=[0.9])


def test_what_it_prints(reference: Results, first_runs: Path) -> None:
    assert repr(reference) == f"<results in '{first_runs}': cifar10-cpu-tuned, cifar100-cpu-tuned, digits, gaussians>"
