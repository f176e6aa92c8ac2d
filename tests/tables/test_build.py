"""Tables from hand-made records: cells, markers, ranks, what is missing, and every rendering."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmark.base.errors import UserError
from benchmark.base.files import BLANK, write_sealed
from benchmark.library.selection import select
from benchmark.measure.measures import ClassifierMeasures, Measures, ScoreMeasures
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.store.measuring import made_by_now
from benchmark.store.provenance import Provenance
from benchmark.store.record import Record
from benchmark.store.store import RECORD, Store, folder_of
from benchmark.tables import render
from benchmark.tables.columns import load_columns
from benchmark.tables.costs import cost_tables
from benchmark.tables.render import latex
from tests.conftest import tables_of

LATE = ManifestEntry("Late", "late", "id", (0,))
"""A method without runs."""


def record(
    seed: int, risks: dict[str, tuple[float, float]], oracle: ScoreMeasures | None = None, **extra: Any
) -> Record:
    """Selective risk (at 100 %, at 50 %) by score; the rest of the curve is filled with junk."""
    scores = {}
    for name, (full, half) in risks.items():
        curve = [9.9] * 201
        curve[200], curve[100] = full, half
        scores[name] = ScoreMeasures(
            curve, aurc=half, e_aurc=0.0, augrc=0.0, auroc=0.9, top_ties=0.0, naurc=0.125, fpr95=0.3, aupr=0.4,
            coverage_at_risk_1=0.0, coverage_at_risk_2=0.5, coverage_at_risk_5=0.8125, cost=costs_below(0.1),
        )  # fmt: skip
    classifier = ClassifierMeasures(0.9, 0.5, 0.2, 0.1, costs_below(0.15))
    measures = Measures(classifier, scores, num_images=1000, oracle=oracle)
    made = Record("toy", "ours", "id", seed, {}, measures=measures, provenance=Provenance(environments=("here",)))
    return replace(made, made_by=made_by_now(made), **extra)


def costs_below(most: float) -> list[float]:
    """Costs that rise with that of a rejection up to a bound."""
    return [min(0.9 * i / 200, most) for i in range(101)]


def with_score(run: Record, name: str, **changes: Any) -> Record:
    """The record with other measures of one score."""
    scores = {**run.measures.scores, name: replace(run.score(name), **changes)}
    return replace(run, measures=replace(run.measures, scores=scores))


def diverged(seed: int, why: str) -> Record:
    return Record("toy", "ours", "id", seed, {}, diverged=why)


def fill(store: Store, method: str, runs: list[Record]) -> None:
    for run in runs:
        store.write_record(folder_of("toy", method, "id", run.seed), replace(run, method=method))


def write_plain(store: Store, folder: Path, plain: dict[str, Any]) -> None:
    """Write the content of a record as another version of the code would, with its seal."""
    provenance = {**plain["provenance"], "seal": BLANK}
    write_sealed(store.root / folder / RECORD, {**plain, "provenance": provenance}, folder.as_posix())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Ours: clearly lower at 50 %. Theirs: two scores; the own head is worse, the other ties with ours at 100 %."""
    store = Store(tmp_path)
    ours = [(0.100, 0.010), (0.102, 0.011), (0.104, 0.012), (0.106, 0.013), (0.108, 0.014)]
    theirs = [(0.101, 0.020), (0.103, 0.021), (0.105, 0.022), (0.107, 0.023), (0.104, 0.024)]
    fill(store, "ours", [record(s, {"SR": pair}) for s, pair in enumerate(ours)])
    fill(store, "theirs", [record(s, {"head": (a, 2 * b), "SR": (a, b)}) for s, (a, b) in enumerate(theirs)])
    return store


MANIFEST = Manifest(
    name="toy",
    task="toy",
    title="toy_data",
    coverages=(100, 50),
    reference="Ours",
    entries=(
        ManifestEntry("Ours", "ours", "id", (0, 1, 2, 3, 4)),
        ManifestEntry("Theirs", "theirs", "id", (0, 1, 2, 3, 4)),
    ),
)


def many_columns(folder: Path) -> tuple[Manifest, Store]:
    """Runs with every mark a table can have: missing, diverged, an oracle, notes, odd names."""
    store = Store(folder)
    curve = [0.0] * 201
    oracle = ScoreMeasures(curve, expected_risk=curve, expected_cost=costs_below(0.05))
    fill(store, "ours", [record(seed, {"SR": (0.1 + seed / 1000, 0.01)}, oracle=oracle) for seed in range(5)])
    scores = [{"head": (0.2, 0.2 + seed / 100), "SR": (0.1, 0.1)} for seed in range(4)]
    fill(store, "theirs", [record(seed, each, notes=["100% & more_ #1"]) for seed, each in enumerate(scores)])
    fill(store, "theirs", [diverged(4, "loss is nan")])
    entries = (*MANIFEST.entries, replace(LATE, label="A_b & c% #1~^x"))
    return replace(MANIFEST, title="toy_data (8×8) < 50%", entries=entries, baseline="Ours"), store


def test_golden_markdown(store: Store) -> None:
    table = render.markdown_table(tables_of(MANIFEST, store)[0])
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows]
    assert cells == [
        ["coverage", "Ours", "Theirs+SR", "Theirs"],
        [*cells[1]],
        ["100", "**10.40**±0.28", "**10.40**±0.20", "**10.40**±0.20"],
        ["50", "**1.20**±0.14", "<u>2.20</u>±0.14 •", "4.40±0.28 •"],
        ["w/t/l", "–", "1/1/0", "1/1/0"],
        ["avg. rank", "**1.00**", "1.50", "2.00"],
    ]
    assert table.startswith(
        "Selective risk (%) on toy_data: mean±std over 5 seeds (population std, ddof 0). Best bold, second "
        "underlined; •/◦: Ours is significantly better/worse (two-sided Wilcoxon rank-sum test, exact, level 0.05). "
        "Runs of one seed share initialisation, batches and warm-up across methods; the test ignores this, and with "
        "positive correlation it is conservative.\n\n|"
    )
    assert table.endswith("Smallest attainable p, 5 against 5: 0.0079.")


def test_golden_latex(store: Store) -> None:
    text = latex.document(tables_of(MANIFEST, store)[:1])
    assert r"100 & \textbf{10.40}$\pm$0.28 & \textbf{10.40}$\pm$0.20 & \textbf{10.40}$\pm$0.20 \\" in text
    assert r"50 & \textbf{1.20}$\pm$0.14 & \underline{2.20}$\pm$0.14\,$\bullet$ & 4.40$\pm$0.28\,$\bullet$ \\" in text
    assert r"w/t/l & -- & 1/1/0 & 1/1/0 \\" in text
    assert r"avg. rank & \textbf{1.00} & 1.50 & 2.00 \\" in text
    assert r"toy\_data" in text
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1


def test_csv_is_one_line_per_cell_unrounded(store: Store) -> None:
    rows = list(csv.DictReader(io.StringIO(render.csv(tables_of(MANIFEST, store)))))
    cell = next(r for r in rows if (r["table"], r["row"], r["column"]) == ("risk", "50", "Theirs"))
    assert float(cell["mean"]) == pytest.approx(4.4)
    assert float(cell["std"]) == pytest.approx(100 * np.std([0.040, 0.042, 0.044, 0.046, 0.048]))
    assert (cell["n"], cell["wanted"], cell["reference_is"]) == ("5", "5", "better")
    assert float(cell["p"]) == pytest.approx(2 / 252)


def test_a_missing_seed_shows_and_is_not_averaged_away(store: Store) -> None:
    entries = (MANIFEST.entries[0], replace(MANIFEST.entries[1], seeds=(0, 1, 2, 3, 4, 5)))
    table = tables_of(replace(MANIFEST, entries=entries), store)[0]
    assert table.cells["50", "Theirs"].missing == "(5/6)"
    text = render.markdown_table(table)
    assert "(5/6)" in text
    assert "only k of n seeds" in text
    assert "(5/6)" in latex.table_text(table)


def test_a_method_without_runs_is_a_column_of_dashes(store: Store) -> None:
    table = tables_of(replace(MANIFEST, entries=(*MANIFEST.entries, LATE)), store)[0]
    late = table.columns.index("Late")
    summary = table.summary
    assert summary["avg. rank (provisional)"][late] == summary["w/t/l (provisional)"][late] == "–"
    assert any(note.startswith("Provisional: not all runs are there") for note in table.notes)
    assert [row[late + 1] for row in render.texts(table, render.markdown_cell, str, str, turned=False).rows] == [
        "– (0/1)",
        "– (0/1)",
    ]
    assert table.summary["avg. rank (provisional)"][0] == "1.00"


def test_tables_show_what_the_manifest_names_not_what_lies_there(store: Store) -> None:
    fill(store, "ours", [record(9, {"SR": (0.9, 0.9)})])
    assert tables_of(MANIFEST, store)[0].cells["100", "Ours"].mean == "10.40"


def test_too_few_runs_draw_no_marker_and_say_so(store: Store) -> None:
    entries = tuple(replace(entry, seeds=(0, 1, 2)) for entry in MANIFEST.entries)
    for test in ("exact", "ranksums"):
        table = tables_of(replace(MANIFEST, entries=entries, test=test), store)[0]
        assert {cell.verdict for cell in table.cells.values()} == {"tie"}
        assert any("0.1000; no marker is possible before 4 seeds" in note for note in table.notes)


def test_notes_of_single_runs_become_footnotes(store: Store) -> None:
    moved = Provenance(environments=("here", "there"))
    noted = record(4, {"SR": (0.108, 0.014)}, notes=["something never started"], provenance=moved)
    fill(store, "ours", [with_score(noted, "SR", top_ties=0.25)])
    notes = "\n".join(tables_of(MANIFEST, store)[0].notes)
    assert "Ours, seed 4: something never started." in notes
    assert "Ours, seed 4: 25.0% of the test images tie for the highest confidence." in notes
    assert "not reproducible to the bit" in notes


def test_the_oracle_is_shown_but_takes_no_part(store: Store) -> None:
    curve = [0.0] * 201
    for seed in range(5):
        run = record(seed, {"SR": (0.1 + seed / 1000, 0.05)}, oracle=ScoreMeasures(curve, expected_risk=curve))
        fill(store, "ours", [with_score(run, "SR", expected_risk=[0.2] * 201)])
    tables = tables_of(MANIFEST, store)
    assert [table.name for table in tables] == ["risk", "expected_risk", "measures"]
    assert tables[0].columns[-1] == "oracle"
    assert not tables[0].cells["100", "oracle"].best
    assert tables[0].summary["avg. rank"][-1] == ""
    assert tables[1].cells["100", "Ours"].mean == "20.00"
    assert "oracle" not in tables[2].columns


def test_selection(store: Store) -> None:
    chosen = select(MANIFEST, ["theirs"], [50.0], None)
    table = tables_of(chosen, store)[0]
    assert table.columns == ("Theirs+SR", "Theirs")
    assert table.rows == ("50",)
    assert chosen.reference == "Theirs"
    twice = select(MANIFEST, ["theirs", "Theirs+SR", "all"], [50.0, 50.0], None)
    assert [entry.label for entry in twice.entries] == ["Ours", "Theirs"]
    assert twice.coverages == (50.0,)
    with pytest.raises(UserError, match="did you mean 'Theirs'"):
        select(MANIFEST, ["their"], None, None)
    with pytest.raises(UserError, match="not among the methods shown"):
        select(MANIFEST, ["theirs"], None, "ours")


def test_latex_special_characters() -> None:
    assert latex.escape("a_b & 5% #1 {x} ±") == r"a\_b \& 5\% \#1 \{x\} $\pm$"
    assert latex.escape("P(y|x) < 1") == r"P(y\textbar{}x) \textless{} 1"


def test_a_table_wider_than_a_page_is_turned(store: Store) -> None:
    """A row for each method; everything that stood in a column, summary included, stands in its row."""
    entries = tuple(replace(MANIFEST.entries[0], label=f"M{index}") for index in range(render.WIDEST + 1))
    risk = tables_of(replace(MANIFEST, entries=entries, reference="M3"), store)[0]
    text = render.markdown_table(risk)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == ["method \\ coverage", "100", "50", "w/t/l", "avg. rank"]
    assert [row[0] for row in rows[2:]] == [entry.label for entry in entries]
    assert rows[2] == ["M0", "**10.40**±0.28", "**1.20**±0.14", "0/2/0", "**1.00**"]
    text = latex.table_text(risk)
    assert r"method \textbackslash{} coverage & 100 & 50 & w/t/l & avg. rank \\" in text
    assert text.count(r"\midrule") == 1
    assert r"\begin{tabular}{@{}rllll@{}}" in text


def test_diverged_runs_are_shown_and_never_averaged(store: Store) -> None:
    fill(store, "ours", [diverged(4, "the loss is nan")])
    fill(store, "late", [diverged(0, "collapsed")])
    table = tables_of(replace(MANIFEST, entries=(*MANIFEST.entries, LATE)), store)[0]
    cell = table.cells["100", "Ours"]
    assert cell.values == pytest.approx((10.0, 10.2, 10.4, 10.6))
    assert cell.missing == "(4/5, 1 diverged)"
    rows = render.texts(table, render.markdown_cell, str, str, turned=False).rows
    assert [row[-1] for row in rows] == ["diverged", "diverged"]
    assert table.summary["avg. rank"][-1] == table.summary["w/t/l"][-1] == "–"
    assert "Ours, seed 4: diverged (the loss is nan)." in table.notes
    assert "risk,100,Late,,,0,1,1,,,,\n" in render.csv([table])


def test_a_table_says_whose_wins_it_counts(store: Store) -> None:
    risk, measures = tables_of(MANIFEST, store)
    said = "w/t/l: rows in which Ours is significantly better / not different / worse than the column's method."
    assert said in risk.notes
    assert said not in measures.notes


def test_latex_has_a_short_caption_a_label_and_the_meaning_as_a_note(store: Store) -> None:
    text = latex.document(tables_of(MANIFEST, store), "toy")
    assert r"\caption{Selective risk (\%) on toy\_data}\label{tab:toy-risk}" in text
    assert r"\caption{Further measures on toy\_data}\label{tab:toy-measures}" in text
    above, below = text.split(r"\end{tabular}", 1)
    assert "population std" not in above
    assert r"\noindent Mean$\pm$std over 5 seeds (population std, ddof 0)." in below
    assert "resizebox" not in text


def test_latex_of_many_methods_is_several_tables_that_fit(store: Store) -> None:
    entries = tuple(replace(MANIFEST.entries[0], label=f"Method {index}") for index in range(10))
    wide = replace(MANIFEST, entries=entries, reference="Method 3", coverages=(100, 50) * 7)
    (risk, _) = latex.with_labels(tables_of(wide, store), "toy")
    text = latex.table_text(risk)
    parts = text.count(r"\begin{table*}")
    assert parts > 1
    assert all(f"Method {index} " in text for index in range(10))
    assert text.count("Mean$") == 1
    assert re.findall(r"\\label{(.*?)}", text) == [
        "tab:toy-risk",
        *(f"tab:toy-risk-part-{n + 1}" for n in range(1, parts)),
    ]
    assert min(int(size) for size in re.findall(r"fontsize{(\d+)}", text)) >= 7
    (narrow, _) = tables_of(replace(MANIFEST, coverages=(100,)), store)
    assert r"\begin{table}[tp]" in latex.table_text(narrow)


def test_methods_as_rows_where_asked_for(store: Store) -> None:
    risk = tables_of(replace(MANIFEST, transpose=True), store)[0]
    assert r" method \ coverage |" in render.markdown_table(risk)
    assert r"Theirs & \textbf{10.40}$\pm$0.20 & 4.40$\pm$0.28\,$\bullet$ & 1/1/0 & 2.00 \\" in latex.table_text(risk)


def test_spread_and_decimals_as_asked_for(store: Store) -> None:
    risk, measures = tables_of(replace(MANIFEST, ddof=1, decimals=1), store)
    values = risk.cells["50", "Theirs"].values
    assert risk.cells["50", "Theirs"].std == f"{np.std(values, ddof=1):.1f}" == "0.3"
    assert "(sample std, ddof 1)" in risk.caption
    assert measures.cells["NLL", "Ours"].mean == "0.50"
    assert measures.cells["accuracy (%)", "Ours"].mean == "90.0"
    (line,) = [line for line in render.csv([risk]).splitlines() if line.startswith("risk,50,Theirs,")]
    assert float(line.split(",")[4]) == pytest.approx(np.std(values, ddof=1))


@pytest.mark.parametrize("width", [60, 79, 120])
def test_a_table_fits_the_terminal(width: int, store: Store) -> None:
    """What is too wide is turned; what is too wide both ways stands below each other. No cell is lost."""
    entries = tuple(replace(MANIFEST.entries[0], label=f"Method {index}") for index in range(9))
    coverages = (100, 50, 20, 10, 5, 30, 40, 60)
    wide = replace(MANIFEST, entries=entries, reference="Method 3", coverages=coverages)
    risk = tables_of(wide, store)[0]
    lines = [line for line in render.markdown_table(risk, width).splitlines() if line.startswith("|")]
    assert max(map(len, lines)) <= width
    assert sum(line.count("±") for line in lines) == 9 * 8
    few = tables_of(replace(wide, coverages=(100, 50)), store)[0]
    pages = [line for line in render.markdown_table(few, 90).splitlines() if line.startswith("|-")]
    assert len(pages) == 1


def test_costs_are_read_at_their_ratios(tmp_path: Path) -> None:
    """A table for what was measured, and one for what is expected; rows that nobody has a value for are left out."""
    manifest, store = many_columns(tmp_path)
    costs, expected = cost_tables(manifest, load_columns(manifest, store))
    assert costs.rows == tuple(f"{c}{rule}" for c in (1, 2, 5, 10, 20, 50) for rule in ("", " Chow"))
    assert [costs.cells[row, "Ours"].values[0] for row in ("2", "20", "50 Chow")] == pytest.approx([1.8, 10, 15])
    assert "oracle" not in costs.columns and "Chow's rule" in costs.caption
    assert [expected.cells[row, "oracle"].values[0] for row in ("2", "50")] == pytest.approx([1.8, 5])
    assert cost_tables(replace(manifest, entries=(LATE,)), []) == []
