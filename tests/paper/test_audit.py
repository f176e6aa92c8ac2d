"""The audit of the published tables, against what a separate reading of them found."""

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from benchmark.paper.audit import (
    audit,
    fits,
    marker_mismatches,
    recomputed_ranks,
    separated,
    tied_rows,
    trial_mismatches,
    wtl_from_markers,
)
from benchmark.paper.table_files import load_tables
from benchmark.paper.values import PublishedCell, published_figures, published_summaries
from tests.conftest import run_here

FIGURES = published_figures()


def test_every_published_cell_is_there() -> None:
    shapes = {name: (len(f.coverages), len(f.columns), len(f.cells)) for name, f in FIGURES.items()}
    assert shapes == {
        "table_cifar10": (8, 8, 64),
        "table_celeba": (13, 8, 104),
        "table_cifar100": (13, 8, 104),
        "table_imagenet": (10, 4, 40),
        "table_related": (13, 7, 91),
        "ablation_unweighted": (13, 2, 26),
        "ablation_ccl_sc2": (13, 4, 52),
        "ablation_ccl_sc3": (13, 4, 52),
        "ablation_supcon": (13, 4, 52),
        "sensitivity_q": (13, 4, 52),
        "sensitivity_s": (13, 5, 65),
        "sensitivity_w": (13, 4, 52),
        "sensitivity_es": (13, 5, 65),
        "combination_cifar100": (13, 2, 26),
        "combination_imagenet": (10, 2, 20),
    }
    markers = Counter(cell.marker for figures in FIGURES.values() for cell in figures.cells.values())
    assert (sum(markers.values()), markers["better"], markers["worse"]) == (865, 187, 1)
    assert len(published_summaries()) == 34


REPRODUCED = {
    "table_celeba": (8, 1, 3),
    "table_cifar100": (8, 1, 1),
    "sensitivity_q": (4, 2, 3),
    "sensitivity_s": (5, 1, 2),
    "sensitivity_w": (4, 2, 4),
    "sensitivity_es": (5, 5, 5),
}
TIED = {
    "table_celeba": "100 (3 pairs), 95, 85, 30, 20, 10",
    "table_cifar100": "100 (3 pairs), 85, 20, 10 (2 pairs)",
    "sensitivity_q": "50",
    "sensitivity_s": "40, 10",
    "sensitivity_w": "40",
    "sensitivity_es": "none",
}


@pytest.mark.parametrize("table", REPRODUCED)
def test_average_ranks_by_each_rule(table: str) -> None:
    printed = {column: s.avg_rank for (name, column), s in published_summaries().items() if name == table}
    counts = [
        sum(recomputed_ranks(FIGURES[table], rule)[column] == rank for column, rank in printed.items())
        for rule in ("min", "average", "dense")
    ]
    assert tuple(counts) == REPRODUCED[table]
    assert tied_rows(FIGURES[table]) == TIED[table]


def test_some_ranks_by_other_rules() -> None:
    assert recomputed_ranks(FIGURES["table_celeba"], "average")["DG"] == "6.77"
    assert recomputed_ranks(FIGURES["table_cifar100"], "dense")["CCL-SC"] == "1.62"
    assert recomputed_ranks(FIGURES["sensitivity_q"], "dense")["q=0"] == "3.85"


@pytest.mark.parametrize(
    ("table", "column", "counted"),
    [
        ("table_celeba", "SAT+SR", (13, 0, 0)),
        ("table_celeba", "SAT", (11, 2, 0)),
        ("table_celeba", "DG+SR", (12, 1, 0)),
        ("table_celeba", "DG", (10, 3, 0)),
        ("table_celeba", "SR", (13, 0, 0)),
        ("table_cifar100", "SAT+SR", (8, 4, 1)),
        ("table_cifar100", "DG", (12, 1, 0)),
        ("table_cifar10", "SAT+EM+SR", (6, 2, 0)),
        ("table_cifar10", "SR", (5, 3, 0)),
        ("ablation_unweighted", "Unweighted", (5, 8, 0)),
    ],
)
def test_wins_ties_losses_from_the_markers(table: str, column: str, counted: tuple[int, int, int]) -> None:
    assert wtl_from_markers(FIGURES[table], column) == counted


def test_the_inconsistencies() -> None:
    found = [(finding.table, finding.what) for finding in audit()[1]]
    wtl = [(table, what.split(" of ")[1].split(" is ")[0]) for table, what in found if what.startswith("w/t/l")]
    assert wtl == [("table_celeba", c) for c in ("SAT+SR", "SAT", "DG+SR", "DG", "SR")] + [("table_cifar100", "DG")]
    assert [x for x in found if "bold" in x[1]] == [
        ("sensitivity_q", "coverage 70: bold is q=0.9 (11.19), the minimum is q=0.999 (11.18)")
    ]
    assert [x for x in found if "no marker" in x[1]] == [
        ("table_cifar10", "coverage 98: SR (4.87±0.04 against 5.16±0.06) has no marker")
    ]
    assert not [what for _, what in found if "average rank" in what or "underlined" in what]
    assert len(found) == 17


def test_the_four_columns_of_two_trials() -> None:
    """They are those that the table's file says have two. Two fit MMCE as well, but so do five."""
    tables = load_tables(["all"])
    found = [finding.what for finding in trial_mismatches(tables) if "2 trials fit" in finding.what]
    columns = [what.split(":")[0] for what in found]
    assert columns == ["Adaptive Focal", "Soft AvUC", "Soft-ECE", "Focal Loss"]
    (related,) = [table for table in tables if table.name == "related"]
    assert related.trials_of == dict.fromkeys(columns, 2)
    impossible = [finding.what for finding in trial_mismatches(tables) if "no 5 trials" in finding.what]
    means = [what.split("±")[0].split()[-1] for what in impossible]
    assert sorted(means) == ["0.49", "1.45", "2.85", "4.55", "5.05"]
    mmce = FIGURES["table_related"].cells[10, "MMCE"]
    assert fits(mmce, 2, 1000)
    assert fits(mmce, 5, 1000)


def printed(counts: Sequence[int], images: int) -> PublishedCell:
    risks = 100 * np.array(counts) / images
    return PublishedCell(float(f"{risks.mean():.2f}"), float(f"{risks.std():.2f}"), "", bold=False, underlined=False)


def test_what_trials_can_give() -> None:
    """1,000 images: single risks come in steps of 0.1, means of five in steps of 0.02."""
    assert fits(printed([3, 4, 4, 3, 4], 1000), 5, 1000)
    assert not fits(PublishedCell(0.35, 0.05, "", False, False), 5, 1000)
    assert fits(PublishedCell(0.35, 0.05, "", False, False), 2, 1000)
    two = PublishedCell(mean=4.55, std=0.15, marker="", bold=False, underlined=False)
    assert fits(two, 2, 1000)  # 44 and 47 wrong
    assert not fits(PublishedCell(4.55, 0.10, "", False, False), 2, 1000)
    assert not list(marker_mismatches([]))


def test_fits_against_every_set_of_trials() -> None:
    """Three trials of 300 images with up to 12 wrong, all of them written down."""
    images, trials = 300, 3
    possible = {printed(counts, images) for counts in itertools.combinations_with_replacement(range(13), trials)}
    grid = [PublishedCell(m / 100, s / 100, "", False, False) for m in range(0, 200, 3) for s in range(0, 100, 4)]
    tried = [cell for cell in {*grid, *possible} if cell.mean + 2 * cell.std < 100 * 12 / images]
    assert {cell for cell in tried if fits(cell, trials, images)} == possible & set(tried)
    assert 0 < len(possible & set(tried)) < len(tried)


def test_the_hold_out_of_the_public_code_was_not_used() -> None:
    (sheet,) = [sheet for sheet in audit()[0] if sheet.name == "test images"]
    assert sheet.rows == (
        ("CIFAR-100", "10,000", "30/31", "ablation_ccl_sc2: CCL-SC2 s=300"),
        ("CIFAR-100", "9,000", "7/31", "24 columns"),
    )
    assert "were not left out" in sheet.notes[0]


def test_separation_allows_for_rounding() -> None:
    """The farthest that five values of std s can lie is 2s from their mean."""
    low, high = (PublishedCell(mean, 0.1, "", False, False) for mean in (1.0, 1.44))
    assert separated(low, high, 5)
    assert not separated(low, PublishedCell(1.42, 0.1, "", False, False), 5)
    assert not separated(high, low, 5)


def test_repeated_columns() -> None:
    (sheet,) = [sheet for sheet in audit()[0] if sheet.name == "repeated"]
    assert [row[0] for row in sheet.rows] == ["11", "2", "4"]


def test_the_command() -> None:
    result = run_here("audit")
    assert result.returncode == 0
    assert "| table_celeba |   8/8 |       1/8 |     3/8 |" in result.stdout.replace("   table_celeba", " table_celeba")
    assert "17 inconsistencies:" in result.stdout
    assert "12/0/0/" in result.stdout
