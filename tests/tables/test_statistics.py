"""The statistics beside a table, from hand-made records and against numbers computed in another way."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmark.measure.metrics import (
    augrc,
    augrc_of,
    curve,
    failure_auroc,
    ranked_loss,
    sampling_variance,
    selective_risk,
    split_gain,
)
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables import render
from benchmark.tables.columns import load_columns
from benchmark.tables.model import Sheet
from benchmark.tables.render import latex
from benchmark.tables.statistics import build_statistics
from tests.tables.test_build import MANIFEST, diverged, fill, record, store, with_score  # noqa: F401


def sheets_of(manifest: Manifest, results: Store) -> dict[str, Sheet]:
    return {sheet.name: sheet for sheet in build_statistics(manifest, load_columns(manifest, results))}


def test_golden_sheets(store: Store) -> None:  # noqa: F811
    """Ours: 10.0 … 10.8 and 1.0 … 1.4; theirs by softmax response 10.1 … and 2.0 … 2.4, by its head twice that."""
    sheets = sheets_of(replace(MANIFEST, baseline="Ours"), store)
    assert list(sheets) == ["corrected", "differences", "correlations", "ranks", "variance", "gain"]
    assert sheets["corrected"].rows == (
        ("Theirs+SR", "1/1/0", "1/1/0", "1/1/0", "1/1/0", "needs 6 seeds", "needs 8 seeds"),
        ("Theirs", "1/1/0", "1/1/0", "1/1/0", "1/1/0", "needs 6 seeds", "needs 8 seeds"),
    )
    assert sheets["differences"].rows == (
        ("Theirs+SR", "+0.00±0.28", "+1.00±0.00"),
        ("Theirs", "+0.00±0.28", "+3.20±0.20*"),
    )
    assert sheets["correlations"].rows == (("Theirs+SR", "0.71", "1.00"), ("Theirs", "0.71", "1.00"))
    assert [row[:2] for row in sheets["ranks"].rows] == [("Ours", "1.00"), ("Theirs+SR", "1.50"), ("Theirs", "2.00")]
    assert "P(best)" in sheets["ranks"].heading
    assert sheets["variance"].rows[0][0] == "Ours"
    assert sheets["variance"].rows[0][1] == "0.32 / 0.97"
    assert sheets["gain"].rows == (
        ("Theirs+SR", "+0.00±0.00", "+0.00±0.00", "+0.00±0.00"),
        ("Theirs", "+0.00±0.00", "+0.00±0.00", "+0.00±0.00"),
    )


def test_too_few_seeds_for_a_correction_say_how_many_it_takes(store: Store) -> None:  # noqa: F811
    """Seven columns and thirteen coverages at five seeds, as in the published tables."""
    entries = tuple(replace(MANIFEST.entries[0], label=f"M{i}") for i in range(8))
    coverages = (100, 95, 90, 85, 80, 75, 70, 60, 50, 40, 30, 20, 10)
    manifest = replace(MANIFEST, entries=entries, coverages=coverages, reference="M0")
    row = sheets_of(manifest, store)["corrected"].rows[0]
    assert row == ("M1", "0/13/0", "needs 6 seeds", "needs 6 seeds", "needs 8 seeds", "needs 6 seeds", "needs 12 seeds")


def test_what_cannot_be_is_left_out(store: Store) -> None:  # noqa: F811
    alone = sheets_of(replace(MANIFEST, entries=MANIFEST.entries[:1]), store)
    assert list(alone) == ["variance"]
    no_reference = sheets_of(replace(MANIFEST, reference="Late"), store)
    assert list(no_reference) == ["ranks", "variance"]
    assert list(sheets_of(MANIFEST, Store(store.root / "empty"))) == ["variance"]


def test_a_column_that_lacks_seeds_does_not_spoil_the_resampling(store: Store) -> None:  # noqa: F811
    """Theirs has four of five: the others are resampled over five, and it is named."""
    fill(store, "theirs", [diverged(4, "nan")])
    third = replace(MANIFEST.entries[0], label="Third")
    ranks = sheets_of(replace(MANIFEST, entries=(*MANIFEST.entries, third)), store)["ranks"]
    assert [row[0] for row in ranks.rows] == ["Ours", "Third"]
    assert ranks.notes[1] == "Left out, as they lack seeds that most have: Theirs+SR, Theirs."
    assert "2,000 times 5 seeds" in ranks.caption


@pytest.mark.parametrize(("seeds", "smallest"), [(2, "0.3333"), (3, "0.1000"), (4, "0.0286")])
def test_below_five_seeds_nothing_is_concluded(store: Store, seeds: int, smallest: str) -> None:  # noqa: F811
    """At 50 % all pairs differ by the same: without a spread, and from few seeds, that is no proof."""
    entries = tuple(replace(entry, seeds=tuple(range(seeds))) for entry in MANIFEST.entries)
    sheets = sheets_of(replace(MANIFEST, entries=entries), store)
    assert sheets["differences"].rows[0][2] == "+1.00±0.00"
    assert "*" not in render.markdown([sheets["differences"]]).partition("|")[2]
    ranks = sheets["ranks"]
    assert ranks.heading == ("method", "avg. rank")
    assert ranks.rows[0] == ("Ours", "1.00")
    assert f"{seeds} seeds are too few to draw from (it takes 5)" in ranks.caption
    assert f"{seeds} against {seeds} runs, is {smallest}" in ranks.notes[-1]
    assert ("no difference can be shown before 4 seeds" in ranks.notes[-1]) == (seeds < 4)
    assert not {"probability_of_best", "low", "high"} & {key for line in ranks.numbers for key in line}


def test_two_seeds_have_no_correlation(store: Store) -> None:  # noqa: F811
    entries = tuple(replace(entry, seeds=(0, 1)) for entry in MANIFEST.entries)
    assert sheets_of(replace(MANIFEST, entries=entries), store)["correlations"].rows[0] == ("Theirs+SR", "–", "–")


def test_sheets_render(store: Store) -> None:  # noqa: F811
    sheets = list(sheets_of(replace(MANIFEST, baseline="Ours"), store).values())
    markdown, tex, csv = render.markdown(sheets), latex.document(sheets), render.csv(sheets)
    assert "| Theirs+SR |" in markdown
    assert r"Theirs+SR & +0.00$\pm$0.28 & +1.00$\pm$0.00 \\" in tex
    assert tex.count(r"\caption{") >= len(sheets)
    header, *lines = csv.splitlines()
    assert header.startswith("table,column,test,holm,w/t/l,possible")
    assert any(line.startswith("differences,Theirs,") and ",3.2," in line for line in lines)


def samples(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Confidences and errors, the latter rarer where the former is high."""
    random = np.random.default_rng(seed)
    confidence = random.normal(size=n)
    return confidence, (random.random(n) < 0.35 / (1 + np.exp(2 * confidence))).astype(float)


@pytest.mark.parametrize("coverage", [1.0, 0.9, 0.5, 0.2])
def test_the_sampling_variance_is_that_of_resampled_test_sets(coverage: float) -> None:
    """Against fresh test sets of the same size, 3,000 times: within the accuracy of a variance estimated so."""
    n = 1500
    risks = [float(selective_risk(*samples(n, 10_000 + seed), coverage)) for seed in range(3000)]
    found = [sampling_variance(curve(ranked_loss(*samples(n, seed))), coverage, n) for seed in range(40)]
    assert np.mean(found) == pytest.approx(np.var(risks), rel=0.1)


def test_the_sampling_variance_at_full_coverage_is_binomial() -> None:
    confidence, error = samples(1000, 0)
    risk, found = error.mean(), sampling_variance(curve(ranked_loss(confidence, error)), 1.0, 1000)
    assert found == pytest.approx(risk * (1 - risk) / 1000)


@pytest.mark.parametrize("seed", range(5))
def test_the_gain_splits_without_a_rest(seed: int) -> None:
    """The closed form is the area itself, and the two parts sum to the fall of it."""
    base, better = samples(400, seed), samples(400, 100 + seed)
    measures = [(failure_auroc(*x), 1 - x[1].mean()) for x in (base, better)]
    for (auroc, accuracy), each in zip(measures, (base, better), strict=True):
        assert augrc_of(auroc, accuracy) == pytest.approx(augrc(*each))
    ranking, classifier = split_gain(*measures[0], *measures[1])
    assert ranking + classifier == pytest.approx(augrc(*base) - augrc(*better))
    (auroc, accuracy), (other, _) = measures
    assert ranking == pytest.approx((other - auroc) * accuracy * (1 - accuracy))


def test_a_classifier_of_equal_ranking_gains_by_accuracy_alone() -> None:
    assert split_gain(0.9, 0.8, 0.9, 0.85)[0] == 0
    assert split_gain(0.9, 0.8, 0.95, 0.8)[1] == 0


def test_gains_are_paired_by_seed(tmp_path: Path) -> None:
    """The baseline's seeds 0 and 1 against seeds 1 and 2: only seed 1 is in both. A run without errors has no AUROC."""
    results = Store(tmp_path)
    for method, seeds, auroc in (("ours", (0, 1), 0.8), ("theirs", (1, 2), 0.9)):
        for seed in seeds:
            run = record(seed, {"SR": (0.1, 0.1)})
            fill(results, method, [with_score(run, "SR", auroc=auroc if seed != 2 else None)])
    entries = tuple(replace(entry, seeds=(0, 1, 2)) for entry in MANIFEST.entries)
    gain = sheets_of(replace(MANIFEST, entries=entries, baseline="Ours"), results)["gain"]
    assert gain.numbers[0]["n"] == 1
    assert gain.rows == (("Theirs", "+9.00", "+9.00", "+0.00"),)
