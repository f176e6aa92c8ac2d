"""Runs that other code measured and whose predictions are gone: what is not known is a dash, with the reason."""

from dataclasses import replace

from benchmark.measure.versions import MadeBy
from benchmark.store.record import Record, plain_record
from benchmark.store.store import Store, folder_of
from benchmark.tables import render
from tests.conftest import tables_of
from tests.tables.test_build import MANIFEST, fill, record, store, with_score, write_plain  # noqa: F401


def made_by_other_code(run: Record, *names: str) -> Record:
    """The record as if other code had made these measures and scores."""
    other, now = dict.fromkeys(names, "other"), run.made_by
    measures = {name: other.get(name, version) for name, version in now.measures.items()}
    scores = {name: other.get(name, version) for name, version in now.scores.items()}
    return replace(run, made_by=MadeBy(measures, scores))


def test_what_other_code_measured_is_a_dash_with_a_reason(store: Store) -> None:  # noqa: F811
    """Without predictions nothing can measure it again; all else of these runs is shown."""
    before = tables_of(MANIFEST, store)
    runs = [record(seed, {"SR": (0.1 + seed / 500, 0.01 + seed / 1000)}) for seed in range(5)]
    fill(store, "ours", [made_by_other_code(run, "nll", "ece") for run in runs])
    risk, measures = tables_of(MANIFEST, store)
    assert render.markdown([risk]) == render.markdown(before[:1])
    assert measures.columns == before[1].columns
    lost = {key for key in before[1].cells if key not in measures.cells}
    assert lost == {("NLL", "Ours"), ("ECE (%)", "Ours")}
    said = "NLL, ECE (%) cannot be measured"
    assert f"Ours: {said}: its predictions were not kept." in measures.notes
    assert not any("other code" in note for table in (*before, risk) for note in table.notes)


def test_percentiles_of_older_runs_are_dashes(store: Store) -> None:  # noqa: F811
    """Those were of float64 scores, in which nothing ties; their records do not have the coverage really kept."""
    for run in (record(seed, {"SR": (0.1, 0.01)}) for seed in range(5)):
        plain = plain_record(with_score(run, "SR", percentile_risk=[0.5] * 201))
        del plain["version"], plain["measured_by"]
        write_plain(store, folder_of("toy", "ours", "id", run.seed), plain)
        new = with_score(run, "SR", percentile_risk=[0.25] * 201, percentile_coverage=[0.75] * 201)
        fill(store, "theirs", [new])
    risk, kept, measures = tables_of(replace(MANIFEST, threshold="percentile"), store)
    for table, value in ((risk, "25.00"), (kept, "75.00")):
        assert {column: cell.mean for (_, column), cell in table.cells.items()} == {"Theirs": value}
        said = "100, 50 cannot be measured"
        assert f"Ours: {said}: its predictions were not kept." in table.notes
    assert measures.cells["AURC ×10³", "Ours"].mean == "10.00", "other measures are those of today"


def test_a_score_that_other_code_computed_has_no_column_of_numbers(store: Store) -> None:  # noqa: F811
    runs = [record(seed, {"head": (0.1, 0.02), "SR": (0.1, 0.01)}) for seed in range(5)]
    fill(store, "theirs", [made_by_other_code(run, "SR") if run.seed else run for run in runs])
    table = tables_of(MANIFEST, store)[0]
    assert (table.cells["50", "Theirs"].missing, table.cells["50", "Theirs+SR"].missing) == ("", "(1/5)")
    assert "Theirs+SR: 100, 50 cannot be measured: its predictions were not kept." in table.notes
    fill(store, "theirs", [made_by_other_code(run, "risk") for run in runs])
    risk, measures = tables_of(MANIFEST, store)
    assert {column for _, column in risk.cells} == {"Ours"}
    assert "Theirs+SR, Theirs: 100, 50 cannot be measured: its predictions were not kept." in risk.notes
    assert {column for _, column in measures.cells} == {"Ours", "Theirs+SR", "Theirs"}, "all else is known"
