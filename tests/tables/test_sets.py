"""Tables of the parts of evaluation sets: known numbers in made records, against plain loops."""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmark.base.errors import UserError
from benchmark.config.evaluation import FAMILIES
from benchmark.library.results import load_results
from benchmark.measure.sets.parts import VERSION, Kept, PartMeasures, SetMeasures
from benchmark.report.tables import rows_html
from benchmark.store.manifest import Manifest
from benchmark.store.record import Record
from benchmark.store.store import Store, folder_of
from benchmark.tables import render
from benchmark.tables.assemble import all_tables, assemble
from benchmark.tables.columns import load_columns
from benchmark.tables.diff import compare_folders
from benchmark.tables.explain import explain
from benchmark.tables.model import Table
from benchmark.tables.render import latex
from benchmark.tables.render.runs_csv import runs_csv
from tests.conftest import run_here
from tests.tables.test_build import LATE, MANIFEST, diverged, fill, record
from tests.tables.test_latex import compile_latex

SET = replace(MANIFEST, set_of="toy-task")
KINDS = ("fog", "jpeg", "pixelate")
SEEDS = range(5)
Make = Callable[[np.random.Generator], dict[str, PartMeasures]]


def part(random: np.random.Generator, kind: str = "", severity: int | None = None, images: int = 200) -> PartMeasures:
    """Measures of a part, all of them drawn; the thresholds were set for 100 % and 50 %."""
    kept = {c: Kept(*random.uniform(size=2).tolist()) for c in ("100", "50")}
    curve = random.uniform(size=201).tolist()
    error, aurc, augrc, auroc = random.uniform(size=4).tolist()
    return PartMeasures(images, error, aurc, augrc, auroc, curve, kept, kind, severity)


def shift_parts(random: np.random.Generator, kinds: tuple[str, ...] = KINDS) -> dict[str, PartMeasures]:
    found = {"clean": part(random, severity=0)}
    found |= {f"severity {severity}": part(random, severity=severity, images=600) for severity in (1, 2)}
    found |= {f"{kind}-{severity}": part(random, kind, severity) for kind in kinds for severity in (1, 2)}
    return {**found, "shifted": part(random, images=1200), "clean + shifted": part(random, images=1800)}


def plain_shift(random: np.random.Generator) -> dict[str, PartMeasures]:
    return {name: part(random) for name in ("clean", "shifted", "clean + shifted")}


def new_parts(random: np.random.Generator) -> dict[str, PartMeasures]:
    told = replace(part(random, images=100), auroc_right=random.uniform(), auroc_wrong=random.uniform())
    return {"clean": part(random), "new": told, "clean + new": part(random, images=250)}


def group_parts(random: np.random.Generator) -> dict[str, PartMeasures]:
    columns = (("sex", "f"), ("sex", "m"), ("age", "old"), ("age", "young"))
    groups = {f"{column} = {value}": part(random, column, images=50) for column, value in columns}
    return {"clean": part(random), **groups, "balanced": part(random)}


def evaluated(seed: int, kind: str, make: Make, shift: float = 0.0, **changes: object) -> Record:
    """A run on an evaluation set; its score also has another that is worse."""
    random = np.random.default_rng([seed, round(1000 * shift)])
    parts = {name: replace(each, aurc=each.aurc + shift) for name, each in make(random).items()}
    measured = SetMeasures(kind, {"SR": parts}, ("fog-1", "fog-2") if kind == "shift" else (), **changes)  # type: ignore[arg-type]
    return record(seed, {"SR": (0.1 + shift, 0.05 + shift)}, evaluation=measured)


def store_of(folder: Path, kind: str, make: Make, **changes: object) -> Store:
    """Two methods with five runs each: the reference is far better by AURC."""
    store = Store(folder)
    fill(store, "ours", [evaluated(seed, kind, make, **changes) for seed in SEEDS])
    fill(store, "theirs", [evaluated(seed, kind, make, 7.0, **changes) for seed in SEEDS])
    store.write_manifest(SET)
    return store


def tables(store: Store, manifest: Manifest = SET) -> dict[str, Table]:
    return {table.name: table for table in all_tables(manifest, load_columns(manifest, store))}


def runs_of(store: Store, method: str) -> list[dict[str, PartMeasures]]:
    found = [store.read_record(folder_of("toy", method, "id", seed)) for seed in SEEDS]
    return [dict(run.evaluation.parts["SR"]) for run in found if run is not None and run.evaluation is not None]


@pytest.fixture
def shifted(tmp_path: Path) -> Store:
    return store_of(tmp_path / "shifted", "shift", shift_parts)


def test_aurc_by_severity_kind_and_family(shifted: Store) -> None:
    table = tables(shifted)["severity"]
    assert table.rows == (
        *("clean", "severity 1", "severity 2", "digital family", "fog", "jpeg", "pixelate"),
        *("mean over kinds", "shifted", "clean + shifted"),
    )
    runs = runs_of(shifted, "ours")

    def of_kind(run: dict[str, PartMeasures], kind: str) -> float:
        return (run[f"{kind}-1"].aurc + run[f"{kind}-2"].aurc) / 2

    expected = {
        "severity 2": [1000 * run["severity 2"].aurc for run in runs],
        "jpeg": [1000 * of_kind(run, "jpeg") for run in runs],
        "digital family": [1000 * (of_kind(run, "jpeg") + of_kind(run, "pixelate")) / 2 for run in runs],
        "mean over kinds": [1000 * sum(of_kind(run, kind) for kind in KINDS) / 3 for run in runs],
        "clean + shifted": [1000 * run["clean + shifted"].aurc for run in runs],
    }
    for row, values in expected.items():
        cell = table.cells[row, "Ours"]
        assert cell.values == pytest.approx(values)
        assert (cell.mean, cell.std) == (f"{np.mean(values):.2f}", f"{np.std(values):.2f}")


def test_parts_are_compared_as_all_rows_are(shifted: Store) -> None:
    table = tables(shifted)["severity"]
    cell = table.cells["severity 1", "Theirs"]
    assert (cell.verdict, cell.p) == ("better", pytest.approx(2 / 252))
    assert table.cells["severity 1", "Ours"].best
    assert table.summary == {"w/t/l": ("–", "10/0/0"), "avg. rank": ("1.00", "2.00")}
    corrected = tables(shifted, replace(SET, holm="table"))["severity"]
    assert corrected.cells["severity 1", "Theirs"].corrected_p == pytest.approx(10 * 2 / 252)
    assert corrected.cells["severity 1", "Theirs"].verdict == "tie"
    paired = tables(shifted, replace(SET, test="paired"))["severity"]
    assert paired.cells["severity 1", "Theirs"].p == pytest.approx(2 / 32)


def test_risk_at_the_coverages_of_the_task(shifted: Store) -> None:
    table = tables(shifted)["severity-risk"]
    names = ("clean", "severity 1", "severity 2", "shifted", "clean + shifted")
    assert table.rows == tuple(f"{name} at {coverage}" for coverage in (100, 50) for name in names)
    curves = [run["severity 2"].risk for run in runs_of(shifted, "ours")]
    expected = [100 * curve[100] for curve in curves if curve is not None]
    assert table.cells["severity 2 at 50", "Ours"].values == pytest.approx(expected)


def test_families_are_those_of_sets_that_the_suite_makes(tmp_path: Path) -> None:
    every = tuple(kind for kinds in FAMILIES.values() for kind in kinds)
    made = store_of(tmp_path / "made", "corruptions", lambda random: shift_parts(random, every))
    assert [row for row in tables(made)["severity"].rows if "family" in row] == [f"{name} family" for name in FAMILIES]
    official = store_of(tmp_path / "official", "shift", lambda random: shift_parts(random, (*every, "frost")))
    rows = tables(official)["severity"].rows
    assert "frost" in rows
    assert not [row for row in rows if "family" in row]


def test_a_shift_without_severities(tmp_path: Path) -> None:
    found = tables(store_of(tmp_path, "shift", plain_shift))
    assert found["shift"].rows == ("clean", "shifted", "clean + shifted")
    assert found["threshold-risk"].rows == ("clean at 100", "shifted at 100", "clean at 50", "shifted at 50")
    assert "severity" not in " ".join(table.caption for table in found.values())


def test_thresholds_carried_along(shifted: Store) -> None:
    found = tables(shifted)
    runs = runs_of(shifted, "theirs")
    coverage, risk = found["threshold-coverage"], found["threshold-risk"]
    assert coverage.rows == tuple(f"{n} at {c}" for c in (100, 50) for n in ("clean", "severity 1", "severity 2"))
    kept = [100 * run["severity 1"].kept["50"].coverage for run in runs]
    assert coverage.cells["severity 1 at 50", "Theirs"].values == pytest.approx(kept)
    risks = [100 * (run["severity 1"].kept["50"].risk or 0) for run in runs]
    assert risk.cells["severity 1 at 50", "Theirs"].values == pytest.approx(risks)
    assert "clean validation images" in coverage.caption
    assert not any(cell.best or cell.second or cell.p == cell.p for cell in coverage.cells.values())
    assert coverage.summary == {}
    assert any(cell.best for cell in risk.cells.values())


def test_coverages_without_a_threshold_are_named(shifted: Store) -> None:
    found = tables(shifted, replace(SET, coverages=(50, 30)))
    assert found["threshold-risk"].rows == ("clean at 50", "severity 1 at 50", "severity 2 at 50")
    assert "No threshold was set for 30: only for the coverages of the task." in found["threshold-risk"].notes
    assert "severity 1 at 30" in found["severity-risk"].rows


def test_no_thresholds_leave_a_note(tmp_path: Path) -> None:
    def without(random: np.random.Generator) -> dict[str, PartMeasures]:
        return {name: replace(each, kept={}) for name, each in shift_parts(random).items()}

    found = tables(store_of(tmp_path, "shift", without, no_thresholds="the run has no validation images"))
    assert "No thresholds carried along: the run has no validation images." in found["severity"].notes
    assert not [name for name in found if "threshold" in name]


def test_what_a_threshold_keeps_nothing_of_has_no_risk(tmp_path: Path) -> None:
    def nothing_kept(random: np.random.Generator) -> dict[str, PartMeasures]:
        parts = shift_parts(random)
        empty = random.uniform() < 0.5
        kept = {"50": Kept(0.0, None)} if empty else parts["severity 2"].kept
        return {**parts, "severity 2": replace(parts["severity 2"], kept=kept)}

    store = store_of(tmp_path, "shift", nothing_kept)
    found = tables(store)
    having = sum(run["severity 2"].kept["50"].risk is not None for run in runs_of(store, "ours"))
    assert 0 < having < 5
    cell = found["threshold-risk"].cells["severity 2 at 50", "Ours"]
    assert cell.missing == f"({having}/5)"
    assert found["threshold-coverage"].cells["severity 2 at 50", "Ours"].missing == ""


def test_new_classes(tmp_path: Path) -> None:
    store = store_of(tmp_path, "new", new_parts)
    found, runs = tables(store), runs_of(store, "ours")
    table = found["new"]
    assert table.cells["AURC ×10³, clean + new", "Ours"].values == pytest.approx(
        [1000 * run["clean + new"].aurc for run in runs]
    )
    for name, row in (("auroc_right", "AUROC right | new (%)"), ("auroc_wrong", "AUROC wrong | new (%)")):
        expected = [100 * getattr(run["new"], name) for run in runs]
        assert table.cells[row, "Ours"].values == pytest.approx(expected)
    best = {row: [c for c in table.columns if table.cells[row, c].best] for row in table.rows}
    means = {c: float(table.cells["AUROC right | new (%)", c].mean) for c in table.columns}
    assert best["AUROC right | new (%)"] == [max(means, key=lambda name: means[name])]
    assert best["AUROC wrong | new (%)"] == []
    assert "150 of them and 100 of classes that the classifier cannot know, a share of 40%" in table.caption
    assert "new at 50" in found["threshold-coverage"].rows
    assert found["threshold-risk"].rows == ("clean at 100", "clean + new at 100", "clean at 50", "clean + new at 50")


def test_groups_and_the_worst_of_each_run(tmp_path: Path) -> None:
    store = store_of(tmp_path, "groups", group_parts)
    found, runs = tables(store), runs_of(store, "ours")
    risk = found["groups-risk"]
    at_50 = ("all", "sex = f", "sex = m", "worst sex", "age = old", "age = young", "worst age", "balanced")
    assert risk.rows[len(at_50) :] == tuple(f"{name} at 50" for name in at_50)
    risks = [[100 * (run[f"sex = {value}"].kept["50"].risk or 0) for value in "fm"] for run in runs]
    worst = risk.cells["worst sex at 50", "Ours"]
    assert worst.values == pytest.approx([max(pair) for pair in risks])
    assert float(worst.mean) > max(np.mean(risks, axis=0)), "the worst group differs between runs"
    balanced = [100 * (run["balanced"].kept["50"].risk or 0) for run in runs]
    assert risk.cells["balanced at 50", "Ours"].values == pytest.approx(balanced)
    everyone = [100 * (run["clean"].kept["50"].risk or 0) for run in runs]
    assert risk.cells["all at 50", "Ours"].values == pytest.approx(everyone)
    aurc = found["groups"].cells["worst age", "Ours"].values
    assert aurc == pytest.approx([1000 * max(run["age = old"].aurc, run["age = young"].aurc) for run in runs])
    assert "Test images: 200; sex = f 50, sex = m 50, age = old 50, age = young 50." in risk.notes


def test_what_people_say_is_in_the_ordinary_tables(tmp_path: Path) -> None:
    store = store_of(tmp_path, "humans", lambda random: {"clean": part(random)})
    assert set(tables(store)) == {"risk", "measures"}
    with pytest.raises(UserError, match="has no rows with names; expected a coverage, such as 90, got 'severity 2'"):
        explain(SET, "ours", "severity 2", store)


def test_ordinary_tables_say_which_images_they_are_about(shifted: Store, tmp_path: Path) -> None:
    assert tables(shifted)["risk"].notes[-1].startswith("Images: all 1,200 shifted ones together, without the clean")
    new = store_of(tmp_path / "new", "new", new_parts)
    said = "Images: 150 test images and 100 of new classes (40%); to accept a new one is an error."
    assert tables(new)["measures"].notes[-1] == said


def test_missing_diverged_and_impossible_runs(shifted: Store) -> None:
    (shifted.root / folder_of("toy", "ours", "id", 3) / "record.json").unlink()
    fill(shifted, "theirs", [diverged(4, "loss is nan")])
    reason = "combines states of earlier epochs"
    late = replace(LATE, job="", seeds=(), reason=reason)
    found = tables(shifted, replace(SET, entries=(*SET.entries, late)))
    table = found["severity"]
    assert table.cells["fog", "Ours"].missing == "(4/5)"
    assert table.cells["fog", "Theirs"].missing == "(4/5, 1 diverged)"
    assert ("fog", "Late") not in table.cells
    assert f"Late: {reason}." in found["risk"].notes
    assert "avg. rank (provisional)" in table.summary
    assert any(note.startswith("Provisional") for note in table.notes)


def test_one_training_for_each_coverage(shifted: Store) -> None:
    base = replace(SET.entries[1], label="Split")
    apart = tuple(replace(base, coverage=c) for c in (100.0, 50.0))
    found = tables(shifted, replace(SET, entries=(SET.entries[0], *apart)))
    assert found["severity"].columns == ("Ours", "Split@100", "Split@50")
    assert found["severity-risk"].columns == ("Ours", "Split")
    assert found["severity-risk"].cells["clean at 50", "Split"].values


def test_parts_by_other_code_are_a_dash_with_its_reason(shifted: Store) -> None:
    fill(shifted, "theirs", [evaluated(seed, "shift", shift_parts, 7.0, version=VERSION - 1) for seed in SEEDS])
    found = tables(shifted)
    assert "w/t/l" in found["risk"].summary
    assert found["severity"].cells.get(("fog", "Theirs")) is None
    why = "Theirs: clean, severity 1, severity 2 and 7 more cannot be measured: its predictions were not kept."
    assert why in found["severity"].notes


def test_markdown_csv_and_latex(shifted: Store) -> None:
    shown = assemble(SET, shifted)
    lines = list(csv.DictReader(io.StringIO(render.csv(shown.tables))))
    (cell,) = [r for r in lines if (r["table"], r["row"], r["column"]) == ("severity", "jpeg", "Theirs")]
    assert float(cell["mean"]) == pytest.approx(
        np.mean([500 * (run["jpeg-1"].aurc + run["jpeg-2"].aurc) for run in runs_of(shifted, "theirs")])
    )
    assert (cell["n"], cell["reference_is"]) == ("5", "better")
    text = latex.document(shown.tables, "toy")
    for name in ("severity", "severity-risk", "threshold-coverage", "threshold-risk"):
        assert rf"\label{{tab:toy-{name}}}" in text
    turned = render.markdown(all_tables(replace(SET, transpose=True), shown.columns))
    assert re.search(r"\| +method \\ images \| +clean \| +severity 1 ", turned)


@pytest.mark.latex
@pytest.mark.parametrize(
    ("kind", "make"), [("shift", shift_parts), ("new", new_parts), ("groups", group_parts)], ids=lambda each: str(each)
)
def test_through_latex(kind: str, make: Make, tmp_path: Path) -> None:
    shown = assemble(SET, store_of(tmp_path / "results", kind, make))
    compile_latex(latex.document(shown.tables), tmp_path, "tables")


def test_a_table_of_many_rows_stands_upright_in_the_report(tmp_path: Path) -> None:
    every = tuple(kind for kinds in FAMILIES.values() for kind in kinds)
    table = tables(store_of(tmp_path, "corruptions", lambda random: shift_parts(random, every)))["severity"]
    html = str(rows_html(table))
    assert re.findall(r'<th scope="row">(.*?)</th>', html) == [*table.rows, "w/t/l", "avg. rank"]
    assert html.count("<td") == (len(table.rows) + 2) * len(table.columns)
    few = str(rows_html(replace(table, rows=table.rows[:3])))
    assert re.findall(r'<th scope="row">(.*?)</th>', few) == list(table.columns)


def test_every_part_is_in_the_csv_of_runs(shifted: Store) -> None:
    lines = list(csv.DictReader(io.StringIO(runs_csv(SET, load_columns(SET, shifted)))))
    run = runs_of(shifted, "ours")[2]
    found = {line["measure"]: float(line["value"]) for line in lines if (line["label"], line["seed"]) == ("Ours", "2")}
    for name, each in run.items():
        assert found[f"{name}: aurc"] == each.aurc
        assert found[f"{name}: error"] == each.error
        assert found[f"{name}: kept_coverage@50"] == each.kept["50"].coverage
        assert found[f"{name}: kept_risk@100"] == each.kept["100"].risk
        assert each.risk is not None
        assert found[f"{name}: risk@50"] == each.risk[100]
    assert found["aurc"] == 0.05


def test_frames_name_the_part_as_the_set(shifted: Store) -> None:
    results = load_results(shifted.root)
    frame = results.to_frame()
    row = frame[(frame.label == "Ours") & (frame.seed == 0) & (frame.set == "fog-1") & (frame.measure == "aurc")]
    assert row.value.tolist() == [runs_of(shifted, "ours")[0]["fog-1"].aurc]
    curves = results.curves()
    assert set(curves.set) == {"test", *runs_of(shifted, "ours")[0]}
    assert not [name for name in curves.columns if name.startswith("kept")]
    assert "severity 2" in str(results.table("toy", "severity"))


def test_explain_finds_rows_by_their_names(shifted: Store) -> None:
    text = explain(SET, "theirs", "severity 2", shifted)
    cell = tables(shifted)["severity"].cells["severity 2", "Theirs"]
    assert f"Theirs read with SR: {cell.mean}±{cell.std}" in text
    assert f"4       {cell.by_seed[4]:.6f}" in text
    assert "AURC ×10³" in text
    assert "p = 0.007937" in text
    risk = tables(shifted)["threshold-risk"].cells["clean at 50", "Ours"]
    assert f"{risk.mean}±{risk.std}" in explain(SET, "ours", "threshold-risk: clean at 50", shifted)
    kept = explain(SET, "theirs", "threshold-coverage: clean at 50", shifted)
    assert "No value is better than another here" in kept
    assert "p =" not in kept
    with pytest.raises(UserError, match="did you mean 'severity 2'"):
        explain(SET, "ours", "severity2", shifted)


def test_the_command_explain(shifted: Store) -> None:
    shown = run_here("explain", "toy", "theirs", "severity 2", "--results", shifted.root)
    assert (shown.returncode, "by severity on toy_data" in shown.stdout) == (0, True)
    assert "at coverage 50" in run_here("explain", "toy", "theirs", "50", "--results", shifted.root).stdout
    shifted.write_manifest(MANIFEST)
    refused = run_here("explain", "toy", "theirs", "severity 2", "--results", shifted.root)
    assert (refused.returncode, "expected a number from 0 to 100, got 'severity 2'" in refused.stderr) == (2, True)


def test_diff_sees_a_part_that_moved_by_one_bit(shifted: Store, tmp_path: Path) -> None:
    other = store_of(tmp_path / "other", "shift", shift_parts)
    assert compare_folders(shifted, other).moved == []
    run = evaluated(1, "shift", shift_parts)
    assert run.evaluation is not None
    parts = dict(run.evaluation.parts["SR"])
    parts["jpeg-2"] = replace(parts["jpeg-2"], aurc=np.nextafter(parts["jpeg-2"].aurc, 1))
    fill(other, "ours", [replace(run, evaluation=replace(run.evaluation, parts={"SR": parts}))])
    assert compare_folders(shifted, other).moved == ["toy Ours seed 1: same job, other evaluation"]


def test_diff_compares_the_parts_of_other_jobs(tmp_path: Path) -> None:
    def steady(risk: float) -> Make:
        def make(random: np.random.Generator) -> dict[str, PartMeasures]:
            curve = [risk + random.uniform(0, 1e-3)] * 201
            return {name: replace(each, risk=curve, kept={}) for name, each in plain_shift(random).items()}

        return make

    folders = []
    for job, risk in (("before", 0.2), ("after", 0.3)):
        store = Store(tmp_path / job)
        for seed in SEEDS:
            run = replace(evaluated(seed, "shift", steady(risk)), method="ours", job=job)
            store.write_record(folder_of("toy", "ours", job, seed), run)
        store.write_manifest(replace(SET, entries=(replace(SET.entries[0], job=job),)))
        folders.append(store)
    moved = compare_folders(*folders).moved
    assert len(moved) == 6, "three parts at two coverages"
    assert moved[0].startswith("toy Ours shift-risk: clean at 100 %: 20.")


def test_images_that_repeat_are_not_resampled(tmp_path: Path) -> None:
    store = store_of(tmp_path, "shift", shift_parts)
    shown = assemble(replace(SET, intervals=True), store)
    notes = [note for table in shown.tables for note in table.notes]
    assert any("its images are the test images many times over" in note for note in notes)
    assert "variance" not in [sheet.name for sheet in shown.statistics]
    new = assemble(SET, store_of(tmp_path / "new", "new", new_parts))
    assert "variance" in [sheet.name for sheet in new.statistics]
