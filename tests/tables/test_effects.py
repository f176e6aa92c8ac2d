"""The sheets of a crossed grid, from hand-made records whose effects are known."""

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from benchmark.measure.measures import ClassifierMeasures
from benchmark.measure.metrics import augrc_of, split_gain
from benchmark.measure.statistics import holm
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.store.record import Record
from benchmark.store.store import RECORD, Store, folder_of
from benchmark.tables import render
from benchmark.tables.assemble import assemble
from benchmark.tables.effects.grid import find_grid
from benchmark.tables.effects.lines import Line, interactions, main_effects
from benchmark.tables.effects.sheets import effect_sheets
from benchmark.tables.model import Sheet
from benchmark.tables.modified import open_table
from benchmark.tables.render import latex
from tests.tables.test_build import diverged, record, with_score

FACTORS = (("averaging", ("Avg", "none")), ("mixing", ("Mix", "Cut", "none")))
METHODS = ("Plain", "Other")
Cell = tuple[str, ...]
Made = Callable[[Cell, int], dict[str, float]]
"""From a cell and a seed: its aurc, accuracy and auroc."""
STEPS = {"Avg": -0.010, "Mix": -0.004, "Cut": 0.002, "none": 0.0}


def exact(cell: Cell, seed: int) -> dict[str, float]:
    """Each ingredient adds its step; together Avg and Mix lose 0.003, and for Other Avg gains 0.002 more."""
    method, averaging, mixing = cell
    both = 0.003 * (averaging == "Avg" and mixing == "Mix")
    more = -0.002 * (method == "Other" and averaging == "Avg")
    luck = 0.001 * seed
    return {"aurc": 0.05 + luck + STEPS[averaging] + STEPS[mixing] + both + more, "accuracy": 0.9, "auroc": 0.8}


def noisy(cell: Cell, seed: int) -> dict[str, float]:
    random = np.random.default_rng([seed, *"".join(cell).encode()])
    values = exact(cell, seed)
    noise = random.normal(size=3)
    return {
        "aurc": values["aurc"] + 0.003 * noise[0],
        "accuracy": 0.9 + 0.01 * noise[1],
        "auroc": 0.8 + 0.02 * noise[2],
    }


def job_of(cell: Cell) -> str:
    return "-".join(cell).lower()


def run_of(values: Mapping[str, float | None], seed: int) -> Record:
    run = with_score(record(seed, {"SR": (0.1, 0.1)}), "SR", aurc=values["aurc"], auroc=values["auroc"])
    return replace(run, measures=replace(run.measures, classifier=ClassifierMeasures(values["accuracy"])))


def keep(store: Store, cell: Cell, run: Record) -> None:
    store.write_record(folder_of("toy", "m", job_of(cell), run.seed), replace(run, method="m", job=job_of(cell)))


def make(
    folder: Path, made: Made = exact, seeds: int = 6, methods: tuple[str, ...] = METHODS
) -> tuple[Manifest, Store]:
    store, entries = Store(folder), []
    for cell in product(methods, *(levels for _, levels in FACTORS)):
        for seed in range(seeds):
            keep(store, cell, run_of(made(cell, seed), seed))
        label = "+".join([cell[0], *(level for level in cell[1:] if level != "none")])
        entries.append(ManifestEntry(label, "m", job_of(cell), tuple(range(seeds)), base=cell[0], levels=cell[1:]))
    manifest = Manifest("toy", "toy", "toy data", (100, 50), "Plain", "Plain", entries=tuple(entries), factors=FACTORS)
    return manifest, store


def lines_of(manifest: Manifest, store: Store) -> dict[str, Line]:
    manifest, columns = open_table(manifest, store)
    grid = find_grid(manifest, columns)
    return {} if grid is None else {line.name: line for line in (*main_effects(grid), *interactions(grid))}


def sheets_of(manifest: Manifest, store: Store) -> dict[str, Sheet]:
    return {sheet.name: sheet for sheet in effect_sheets(*open_table(manifest, store))}


def remove(store: Store, cell: Cell, seed: int) -> None:
    (store.root / folder_of("toy", "m", job_of(cell), seed) / RECORD).unlink()


def test_effects_are_those_that_the_runs_were_made_with(tmp_path: Path) -> None:
    """×10³. The mean over three levels of mixing has a third of what Avg loses beside Mix."""
    means = {name: line.by_response["aurc"].mean for name, line in lines_of(*make(tmp_path)).items()}
    assert means == pytest.approx({
        "Plain: Avg": -9, "Plain: Mix": -2.5, "Plain: Cut": 2,
        "Other: Avg": -11, "Other: Mix": -2.5, "Other: Cut": 2,
        "all methods: Avg": -10, "all methods: Mix": -2.5, "all methods: Cut": 2,
        "Plain: Avg × Mix": 3, "Plain: Avg × Cut": 0, "Other: Avg × Mix": 3, "Other: Avg × Cut": 0,
        "all methods: Avg × Mix": 3, "all methods: Avg × Cut": 0,
        "Other: Avg (minus Plain)": -2, "Other: Mix (minus Plain)": 0, "Other: Cut (minus Plain)": 0,
    }, abs=1e-9)  # fmt: skip


def test_main_effects_look_so(tmp_path: Path) -> None:
    """With six seeds and nine lines no p can be small enough after Holm's correction: nine seeds can."""
    sheets = sheets_of(*make(tmp_path, seeds=6))
    assert list(sheets) == ["effects", "interactions"]
    effects = sheets["effects"]
    assert effects.heading == (
        "method: effect", "AURC ×10³", "AUGRC ×10³", "accuracy (points)", "ranking ×10³", "seeds", "p, AURC",
        "Holm p, AURC",
    )  # fmt: skip
    assert effects.rows[3] == (
        "Other: Avg", "-11.00±0.00", "+0.00±0.00", "+0.00±0.00", "+0.00±0.00", "6", "0.0312", "needs 9 seeds"
    )  # fmt: skip
    assert effects.notes == (
        "Factors: averaging (Avg, none); mixing (Mix, Cut, none). Effects are counted from none.",
        "The smallest p that flipping signs can give is 0.0312 with 6 seeds: below 6 seeds nothing can be significant; "
        "with Holm's correction over 9 lines, below 9.",
    )
    effects = sheets_of(*make(tmp_path, seeds=9))["effects"]
    assert effects.rows[3][1:3] == ("-11.00±0.00*", "+0.00±0.00")
    assert effects.rows[3][-3:] == ("9", "0.0039", f"{9 * 2 / 2**9:.4f}")


@pytest.mark.parametrize("seeds", [1, 2, 4, 5])
def test_below_six_seeds_nothing_is_significant(tmp_path: Path, seeds: int) -> None:
    """Whatever the values, and if there is one line only."""
    sheets = sheets_of(*make(tmp_path, seeds=seeds))
    texts = [text for sheet in sheets.values() for row in sheet.rows for text in row]
    assert not [text for text in texts if "*" in text]
    assert {row[-2] for sheet in sheets.values() for row in sheet.rows} == {"needs 6 seeds"}
    few = "From intervals of fewer than 5 seeds nothing is concluded."
    assert (few in sheets["effects"].notes) == (seeds < 5)
    assert ("±" in "".join(texts)) == (seeds > 1)
    manifest, store = make(tmp_path, seeds=seeds)
    alone = tuple(entry for entry in manifest.entries if entry.base == "Plain" and entry.levels[1] == "none")
    (sheet,) = sheets_of(replace(manifest, entries=alone), store).values()
    assert [row[-2:] for row in sheet.rows] == [("needs 6 seeds", "needs 6 seeds")]


def test_numbers_are_those_of_plain_loops(tmp_path: Path) -> None:
    """Each response of main effects, of noisy runs: mean, interval, p of all signs, and Holm's correction."""
    manifest, store = make(tmp_path, noisy, seeds=7)
    sheet = sheets_of(manifest, store)["effects"]
    responses: dict[str, Callable[[Cell, int], float]] = {
        "AURC ×10³": lambda cell, seed: 1000 * noisy(cell, seed)["aurc"],
        "accuracy (points)": lambda cell, seed: 100 * noisy(cell, seed)["accuracy"],
        "ranking ×10³": ranking,
    }
    for name, value in responses.items():
        numbers = {(line["column"], line["effect"]): line for line in sheet.numbers if line["row"] == name}
        assert len(numbers) == 9
        p_values = {}
        for (method, effect), line in numbers.items():
            d = np.array([loop(method, effect, value, seed) for seed in range(7)])
            half_width = t.ppf(0.975, 6) * d.std(ddof=1) / np.sqrt(7)
            signs = np.array(list(product((1, -1), repeat=7)))
            p = np.mean(np.abs(signs @ d) >= abs(d.sum()) - 1e-9)
            expected = {"mean": d.mean(), "low": d.mean() - half_width, "high": d.mean() + half_width, "p": p}
            assert {key: line[key] for key in expected} == pytest.approx(expected)
            assert (line["n"], line["smallest_p"]) == (7, 2 / 2**7)
            p_values[method, effect] = p
        assert {key: line["p_holm"] for key, line in numbers.items()} == pytest.approx(holm(p_values))


def ranking(cell: Cell, seed: int) -> float:
    base, own = (noisy(each, seed) for each in ((cell[0], "none", "none"), cell))
    return 1000 * split_gain(base["auroc"], base["accuracy"], own["auroc"], own["accuracy"])[0]


def loop(method: str, effect: str, value: Callable[[Cell, int], float], seed: int) -> float:
    methods = METHODS if method == "all methods" else (method,)
    found = []
    for each in methods:
        if effect == "Avg":
            found += [value((each, "Avg", m), seed) - value((each, "none", m), seed) for m in ("Mix", "Cut", "none")]
        else:
            found += [value((each, a, effect), seed) - value((each, a, "none"), seed) for a in ("Avg", "none")]
    return sum(found) / len(found)


def test_the_ranking_of_a_cell_is_counted_from_its_method_without_ingredients(tmp_path: Path) -> None:
    """Where the accuracy stays, all of the fall of the AUGRC is ranking."""

    def made(cell: Cell, seed: int) -> dict[str, float]:
        return {**exact(cell, seed), "auroc": 0.8 + 0.05 * (cell[1] == "Avg")}

    fall = 1000 * (augrc_of(0.8, 0.9) - augrc_of(0.85, 0.9))
    lines = lines_of(*make(tmp_path, made))
    assert lines["Plain: Avg"].by_response["ranking"].mean == pytest.approx(fall)
    assert lines["Plain: Mix"].by_response["ranking"].mean == pytest.approx(0)


def test_a_lost_run_takes_its_seed_out_of_the_lines_it_is_in(tmp_path: Path) -> None:
    """Of a main effect all cells of the method count; of an interaction only those of its levels."""
    manifest, store = make(tmp_path, seeds=8)
    keep(store, ("Other", "none", "Cut"), diverged(3, "the loss is nan"))
    sheets = sheets_of(manifest, store)
    seeds = {row[0]: row[5] for sheet in sheets.values() for row in sheet.rows}
    lost = {"Other: Avg", "Other: Cut", "all methods: Avg", "all methods: Cut", "Other: Avg × Cut",
            "all methods: Avg × Cut", "Other: Avg (minus Plain)", "Other: Cut (minus Plain)"}  # fmt: skip
    assert {name for name, n in seeds.items() if n == "7"} == lost
    assert {n for name, n in seeds.items() if name not in lost} == {"8"}
    said = "seed 3 left out, as not every cell has a value there."
    assert sheets["effects"].notes[-1] == f"Other: Avg, Other: Cut, all methods: Avg, all methods: Cut: {said}"
    assert "Plain: Avg: " not in " ".join(sheets["effects"].notes)


def test_a_cell_without_a_run_is_a_dash_with_the_reason(tmp_path: Path) -> None:
    manifest, store = make(tmp_path, methods=(*METHODS, "Third"))
    for seed in range(6):
        keep(store, ("Other", "Avg", "Cut"), diverged(seed, "the loss is nan"))
    sheets = sheets_of(manifest, store)
    rows = {row[0]: row[1:] for row in sheets["effects"].rows}
    assert rows["Other: Avg"] == rows["Other: Cut"] == ("–",) * 7
    assert rows["Other: Mix"][4] == rows["all methods: Avg"][4] == "6"
    assert sheets["effects"].notes[2:] == (
        "Other: Avg, Other: Cut: no effect (Other+Avg+Cut: all runs diverged).",
        "all methods: Avg, all methods: Cut: without Other, of which not every cell has a value.",
    )
    assert not [line for line in sheets["effects"].numbers if (line["column"], line["effect"]) == ("Other", "Avg")]
    mean = lines_of(manifest, store)["all methods: Avg"].by_response["aurc"].mean
    assert mean == pytest.approx(-9), "of Plain and Third"
    for seed in range(6):
        remove(store, ("Third", "none", "none"), seed)
    sheets = sheets_of(manifest, store)
    rows = {row[0]: row[1:] for row in sheets["effects"].rows}
    assert rows["all methods: Avg"][0] == "–", "one method is not all"
    notes = " ".join(sheets["effects"].notes)
    assert "all methods: Avg, all methods: Cut: no effect (fewer than two methods have all cells)." in notes
    assert "Third: no run yet" in notes


def test_a_cell_that_the_task_cannot_have_says_why(tmp_path: Path) -> None:
    manifest, store = make(tmp_path)
    first = replace(manifest.entries[0], job="", seeds=(), reason="it averages by itself")
    notes = sheets_of(replace(manifest, entries=(first, *manifest.entries[1:])), store)["effects"].notes
    assert any("(Plain+Avg+Mix: it averages by itself)." in note for note in notes)
    notes = sheets_of(replace(manifest, entries=manifest.entries[1:]), store)["effects"].notes
    assert any("(Plain Avg Mix: not among what is shown)." in note for note in notes)


def test_a_response_that_few_runs_have_is_said_to_be_missing_there(tmp_path: Path) -> None:
    """A run without an error has no AUROC, so that nothing can be said of its ranking."""
    manifest, store = make(tmp_path)
    cell = ("Plain", "Avg", "Cut")
    for seed in range(6):
        keep(store, cell, run_of({**exact(cell, seed), "auroc": None}, seed))
    sheet = sheets_of(manifest, store)["effects"]
    assert sheet.rows[0][1:5] == ("-9.00±0.00", "+0.00±0.00", "+0.00±0.00", "–")
    assert "Plain: Avg, Plain: Cut (ranking): no effect (Plain+Avg+Cut: no ranking)." in sheet.notes


def test_levels_that_are_not_shown_are_no_lines(tmp_path: Path) -> None:
    manifest, store = make(tmp_path)
    fewer = replace(manifest, entries=tuple(entry for entry in manifest.entries if "Cut" not in entry.levels))
    assert set(lines_of(fewer, store)) == {
        name for name in lines_of(manifest, store) if "Cut" not in name
    }  # fmt: skip
    assert lines_of(fewer, store)["Plain: Avg"].by_response["aurc"].mean == pytest.approx(-8.5)


def test_effects_without_a_level_none_say_what_they_are_counted_from(tmp_path: Path) -> None:
    manifest, store = make(tmp_path)
    entries = tuple(
        replace(entry, levels=tuple({"none": "old"}.get(level, level) for level in entry.levels))
        for entry in manifest.entries
    )
    factors = (("averaging", ("Avg", "old")), ("mixing", ("Mix", "Cut", "old")))
    manifest = replace(manifest, entries=entries, factors=factors)
    lines = lines_of(manifest, store)
    assert lines["Plain: averaging Avg against old"].by_response["aurc"].mean == pytest.approx(-9)
    assert sheets_of(manifest, store)["effects"].notes[0].endswith("Effects are counted from old.")


def test_runs_of_earlier_grids_are_not_in_this_one(tmp_path: Path) -> None:
    """Neither those with other factors, nor a second setting of the same cell."""
    manifest, store = make(tmp_path)
    again = replace(manifest.entries[0], label="Plain+Avg+Mix (job x)", job=job_of(("Plain", "none", "none")))
    others = tuple(replace(again, levels=levels) for levels in ((), ("Avg",), ("Avg", "Swap")))
    more = replace(manifest, entries=(*manifest.entries, again, *others))
    assert effect_sheets(*open_table(more, store)) == effect_sheets(*open_table(manifest, store))


def test_without_a_grid_there_is_nothing(tmp_path: Path) -> None:
    manifest, store = make(tmp_path)
    assert not sheets_of(replace(manifest, factors=()), store)
    assert not sheets_of(manifest, Store(tmp_path / "empty"))
    unpaired = tuple(replace(entry, unpaired=True) for entry in manifest.entries)
    assert not sheets_of(replace(manifest, entries=unpaired), store)
    no_baseline = lines_of(replace(manifest, baseline=""), store)
    assert not [name for name in no_baseline if "minus" in name]


def test_they_stand_among_the_statistics_in_every_form(tmp_path: Path) -> None:
    manifest, store = make(tmp_path, noisy, seeds=8)
    sheets = assemble(manifest, store).statistics
    assert [sheet.name for sheet in sheets[-2:]] == ["effects", "interactions"]
    assert sheets[-1].label == "tab:toy-statistics-interactions"
    assert " all methods: Avg × Mix | " in render.markdown(sheets)
    assert r"Plain: Avg $\times$ Mix & " in latex.document(sheets)
    lines = list(csv.DictReader(io.StringIO(render.csv(sheets[-2:]))))
    found: dict[str, Any] = next(line for line in lines if (line["column"], line["effect"]) == ("Other", "Avg × Mix"))
    known = lines_of(manifest, store)["Other: Avg × Mix"].by_response["aurc"]
    assert float(found["mean"]) == pytest.approx(known.mean)
    assert float(found["high"]) - float(found["low"]) == pytest.approx(2 * known.half_width)
    assert not isnan(known.p)
