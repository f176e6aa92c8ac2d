"""Tables of single runs are judged over test images; tables of several seeds may have intervals in their statistics."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

import benchmark as sb
from benchmark.store.store import Store
from tests.conftest import run_here
from tests.imports.runs import grid, imported, labels, logit_run, logits, loss_run, save
from tests.store.test_files import results as trained_runs

results = trained_runs


COVERAGES = ["SAC99 (%)", "SAC98 (%)", "SAC95 (%)"]


@pytest.fixture
def single(tmp_path: Path) -> Path:
    """One run of a good and of a poor classifier."""
    runs = {"good_0": logit_run(1), "poor_0": {"labels": labels(), "logits": logits(2, 0.5)}}
    imported(tmp_path / "r", *save(tmp_path, **runs))
    return tmp_path / "r"


def cells(path: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    with path.open(newline="") as file:
        return {(line["table"], line["row"], line["column"]): line for line in csv.DictReader(file)}


def test_cells_have_intervals_and_the_test_is_named(single: Path) -> None:
    text = (single / "tables" / "predictions.md").read_text()
    assert "one run of each method, [95% interval over test images: 10,000 bootstrap draws" in text
    assert "good is significantly better/worse (two-sided paired bootstrap test over the same test images" in text
    assert "over 1 seed" not in text and "initialisation" not in text
    assert re.search(r"\| +100 \| +\*\*[\d.]+\*\* \[[\d.]+, [\d.]+\] \| +<u>[\d.]+</u> \[[\d.]+, [\d.]+\] • \|", text)
    assert "Smallest attainable p, 10,000 draws: 0.0002." in text


def test_every_measure_has_an_interval_that_holds_its_value(single: Path) -> None:
    found = cells(single / "tables" / "predictions.csv")
    assert {row for table, row, _ in found if table == "measures"} == {
        "AURC ×10³", "E-AURC ×10³", "AUGRC ×10³", "AUROC (%)", "accuracy (%)", "NLL", "Brier", "ECE (%)",
        "NAURC", "AUPR (%)", "FPR95 (%)", *COVERAGES,
    }  # fmt: skip
    for key, line in found.items():
        if key[1] != "ECE (%)":  # resampling makes gaps larger, as it adds noise to every bin
            assert float(line["low"]) <= float(line["mean"]) <= float(line["high"]), key


def test_costs_have_intervals_that_hold_them_and_a_test(single: Path) -> None:
    found = cells(single / "tables" / "predictions-costs.csv")
    assert {row for _, row, _ in found} == {f"{c}{rule}" for c in (1, 2, 5, 10, 20, 50) for rule in ("", " Chow")}
    for key, line in found.items():
        assert float(line["low"]) <= float(line["mean"]) <= float(line["high"]), key
    assert found["costs", "50 Chow", "poor"]["reference_is"] == "better"


def test_a_draw_repeats(single: Path, tmp_path: Path) -> None:
    """Seeded: another machine gets the same table."""
    assert run_here("tables", "--results", single, "--out", tmp_path / "again").returncode == 0
    before, after = ((root / "tables" / "predictions.csv").read_bytes() for root in (single, tmp_path / "again"))
    assert before == after


def test_latex_page_and_explanation(single: Path) -> None:
    assert re.search(r"\\textbf\{[\d.]+\} \[[\d.]+, [\d.]+\]", (single / "tables" / "predictions.tex").read_text())
    assert re.search(r"<small> \[[\d.]+, [\d.]+\]</small>", (single / "report.html").read_text())
    told = run_here("explain", "predictions", "poor", "100", "--results", single).stdout
    assert re.search(r"poor minus good: [\d.]+ on average over the draws \[[\d.]+, [\d.]+\], p = 0\.000200", told)


def test_more_seeds_are_judged_over_seeds_again(single: Path, tmp_path: Path) -> None:
    imported(single, *save(tmp_path, good_1=logit_run(7), poor_1={"labels": labels(), "logits": logits(8, 0.5)}))
    text = (single / "tables" / "predictions.md").read_text()
    assert "mean±std over 2 seeds" in text
    assert "bootstrap" not in text
    assert not Store(single).manifests()[0].judged_by_images


def test_intervals_can_be_left_out(single: Path) -> None:
    shown = run_here("tables", "--results", single, "--no-intervals").stdout
    assert "bootstrap" not in shown
    assert "no marker is possible before 4 seeds" in shown


def test_the_choice_to_leave_them_out_stays(single: Path, tmp_path: Path) -> None:
    (path,) = save(tmp_path, good_0=logit_run(1))
    imported(single, path, "--no-intervals")
    assert "bootstrap" not in imported(single, path)
    assert "bootstrap" in imported(single, path, "--intervals")


def test_another_rule_of_what_is_kept_has_none(single: Path) -> None:
    shown = run_here("tables", "--results", single, "--threshold", "percentile").stdout
    assert "bootstrap" not in shown


def test_losses_have_intervals_too(tmp_path: Path) -> None:
    imported(tmp_path / "r", *save(tmp_path, a_0=loss_run(1), b_0=loss_run(2)))
    found = cells(tmp_path / "r" / "tables" / "predictions.csv")
    assert all(float(line["low"]) < float(line["high"]) for line in found.values())
    assert {row for table, row, _ in found if table == "measures"} == {
        "AURC ×10³", "E-AURC ×10³", "NAURC", "AUGRC ×10³", *COVERAGES,
    }  # fmt: skip


def test_several_seeds_have_them_in_the_statistics(tmp_path: Path) -> None:
    imported(tmp_path / "r", *grid(tmp_path), "--intervals")
    statistics = (tmp_path / "r" / "tables" / "predictions-statistics.md").read_text()
    assert "How far the measures on predictions depend on the test images: mean over runs [95% interval" in statistics
    assert "Differences from a on the same test images" in statistics
    assert "mean±std over 3 seeds" in (tmp_path / "r" / "tables" / "predictions.md").read_text()
    frame = sb.load_results(tmp_path / "r").table("predictions").to_frame()
    assert "low" not in frame


def test_trained_runs_have_them_on_request(results: Path, tmp_path: Path) -> None:
    assert run_here("tables", "--results", results, "--out", tmp_path, "--intervals").returncode == 0
    statistics = (tmp_path / "tables" / "tiny-statistics.md").read_text()
    assert "risk at 90 (%)" in statistics
    text = (tmp_path / "tables" / "tiny.md").read_text()
    assert "one run of each method" in text, "a single seed was trained"
    assert "initialisation" not in text


def test_a_column_without_predictions_has_none(single: Path) -> None:
    folder = next(path for path in Store(single).finished() if "poor" in str(path))
    (single / folder / "prediction.npz").unlink()
    shown = run_here("tables", "--results", single).stdout
    assert "poor: no intervals, as its predictions were not kept." in shown
    assert re.search(r"\| +100 \| +\*\*[\d.]+\*\* \[[\d.]+, [\d.]+\] \| +<u>[\d.]+</u> \|", shown)


def test_holm_corrects_them(single: Path) -> None:
    shown = run_here("tables", "--results", single, "--holm", "table").stdout
    assert "Holm-corrected over the whole table" in shown
    assert "Smallest attainable p, 10,000 draws: 0.0002, corrected for 13 comparisons 0.0026." in shown


def test_a_draw_without_errors_has_no_auroc(tmp_path: Path) -> None:
    table = 9 * np.eye(4)[labels()]
    table[0] = [0, 1, 0, 0]
    imported(tmp_path / "r", *save(tmp_path, a_0={"labels": labels(), "logits": table + logits() / 9}, b_0=logit_run()))
    found = cells(tmp_path / "r" / "tables" / "predictions.csv")
    assert float(found["measures", "AUROC (%)", "a"]["low"]) > 0
