"""The README's commands do what it says: the default run is made once and looked at from all sides."""

import csv
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmark.config.load import load_task
from benchmark.store.record import Record
from benchmark.store.store import Store, folder_of
from tests.conftest import ROOT, run_here, tables_of

pytestmark = pytest.mark.usefixtures("alone")

LABELS = ["CCL-SC", "SAT+EM", "SAT", "DG", "SR"]


def commands() -> list[str]:
    """What follows `&&` in the lines of the README's first block of commands."""
    block = re.search(r"```\w*\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert block
    return [line.split("&&")[1].split("#")[0].strip() for line in block[1].splitlines() if "&&" in line]


def test_the_two_commands() -> None:
    """The second is this very test run."""
    assert commands() == ["python run_all.py", "pytest"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The first command as it stands, in a folder where everything but results/ is this checkout."""
    folder = tmp_path_factory.mktemp("user")
    for path in ROOT.iterdir():
        if path.name != "results":
            (folder / path.name).symlink_to(path)
    words = [sys.executable if word == "python" else word for word in shlex.split(commands()[0])]
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return folder / "results", result


@pytest.fixture(scope="module")
def results(run: tuple[Path, subprocess.CompletedProcess[str]]) -> Path:
    return run[0]


def records(results: Path, task: str) -> Iterator[tuple[str, Record, Path]]:
    """(label, record, folder) of every run that the task's manifest names."""
    store = Store(results)
    manifest = next(m for m in store.manifests() if m.task == task)
    for entry in manifest.entries:
        for seed in entry.seeds:
            folder = folder_of(task, entry.method, entry.job, seed)
            record = store.read_record(folder)
            assert record is not None
            yield entry.label, record, results / folder


def test_tables_are_printed_and_written(run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    results, process = run
    for task in ("digits", "gaussians"):
        for suffix in ("md", "tex", "csv"):
            assert (results / "tables" / f"{task}.{suffix}").stat().st_size > 500
            assert f"results/tables/{task}.{suffix}" in process.stdout
        assert (results / "tables" / f"{task}.md").read_text() in process.stdout
    assert "50 jobs, 0 done already" in process.stderr
    assert "[50/50]" in process.stderr


def test_the_recorded_run_can_be_repeated(results: Path) -> None:
    """On the same kind of machine to the bit, elsewhere within chance."""
    compared = run_here("diff", "--part", ROOT / "results" / "reference", results)
    assert compared.returncode == 0, compared.stdout
    assert "of 50 runs of the same job are equal to the bit." in compared.stdout


@pytest.mark.parametrize("task", ["digits", "gaussians"])
def test_five_seeds_of_all_five_methods(results: Path, task: str) -> None:
    found = [(label, record.seed) for label, record, _ in records(results, task)]
    assert found == [(label, seed) for label in LABELS for seed in range(5)]


def test_digits_have_errors_worth_abstaining_from(results: Path) -> None:
    errors = [1 - record.measures.classifier.accuracy for _, record, _ in records(results, "digits")]
    assert 0.04 < np.mean(errors) < 0.08


@pytest.mark.parametrize("task", ["digits", "gaussians"])
def test_own_head_and_sr_agree_at_full_coverage(results: Path, task: str) -> None:
    for _, record, _ in records(results, task):
        assert len({score.risk[200] for score in record.measures.scores.values()}) == 1


def test_no_method_falls_below_the_oracle(results: Path) -> None:
    """At any of the 201 coverages of any run, with any score."""
    for label, record, _ in records(results, "gaussians"):
        oracle, scores = record.measures.oracle, record.measures.scores
        floor = np.array(oracle.expected_risk)
        for name, score in scores.items():
            assert (np.array(score.expected_risk) >= floor - 1e-12).all(), (label, name)
        assert oracle.expected_aurc < min(score.expected_aurc for score in scores.values())


def test_expected_and_ordinary_risk_agree_within_noise(results: Path) -> None:
    for _, record, _ in records(results, "gaussians"):
        for score in record.measures.scores.values():
            assert score.expected_risk[200] == pytest.approx(score.risk[200], abs=0.015)


@pytest.mark.parametrize("task", ["digits", "gaussians"])
def test_the_contrastive_loss_starts_within_an_epoch_of_the_warmup(results: Path, task: str) -> None:
    checked = 0
    for label, record, folder in records(results, task):
        if label == "CCL-SC":
            rows = list(csv.DictReader((folder / "history.csv").read_text().splitlines()))
            after = record.identity["config"]["warmup_epochs"] + 1
            assert float(rows[after]["contrast_active"]) > 0, record.seed
            assert record.notes == []
            checked += 1
    assert checked == 5


@pytest.mark.parametrize("task", ["cifar10-cpu", "cifar100-cpu"])
def test_queues_of_the_other_small_tasks_fill_from_few_errors(task: str) -> None:
    """An error rate of a sixth, far below what these small networks reach on their training images, fills them."""
    config = load_task(task)
    assert config.method["ccl_sc"]["queue_size"] <= config.data.train_images * (1 - config.data.val) / 6


def test_tables_come_from_the_records_alone(results: Path) -> None:
    store = Store(results)
    manifest = next(m for m in store.manifests() if m.task == "gaussians")
    risk = tables_of(manifest, store)[0]
    assert risk.columns == ("CCL-SC", "SAT+EM+SR", "SAT+EM", "SAT+SR", "SAT", "DG+SR", "DG", "SR", "oracle")
    runs = [record for label, record, _ in records(results, "gaussians") if label == "SR"]
    values = [100 * run.score("SR").risk[180] for run in runs]
    assert risk.cells["90", "SR"].mean == f"{np.mean(values):.2f}"
    assert risk.cells["90", "SR"].std == f"{np.std(values):.2f}"


def test_scores_can_be_computed_again_from_the_stored_predictions(results: Path) -> None:
    from benchmark.measure.evaluate import measure
    from methods import Registry

    store = Store(results)
    for _, record, folder in records(results, "digits"):
        stored = store.read_prediction(folder.relative_to(results))
        again = measure(stored, Registry().get(record.method).scores(stored.prediction))
        assert again.scores == record.measures.scores
        assert again.classifier == record.measures.classifier


def test_links_and_files_of_the_readme_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def printed_method(tmp_path: Path) -> Path:
    """The file of the contributing guide, exactly as it stands there."""
    block = re.search(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)
    assert block
    assert len(block[1].splitlines()) <= 45, "about 40 lines"
    plugin = tmp_path / "confidence_penalty.py"
    plugin.write_text(block[1])
    return plugin


def test_the_loss_of_the_contributing_guide(tmp_path: Path) -> None:
    import torch

    from tests.fixtures import F6_LABELS, F6_LOGITS

    names = runpy.run_path(str(printed_method(tmp_path)))
    losses = names["penalised_cross_entropy"](torch.tensor(F6_LOGITS), torch.tensor(F6_LABELS), 0.1)
    entropies = [0.62158460, 1.09528727, 0.57717555, 0.83239558, 0.43713601, 0.95280756]
    assert losses.mean().item() == pytest.approx(0.70077762 - 0.1 * sum(entropies) / 6, abs=2e-8)


def test_the_method_of_the_contributing_guide_works_as_printed(tiny: Path, tmp_path: Path) -> None:
    from tests.conftest import run_all

    plugin = printed_method(tmp_path)
    result = run_all("--plugin", plugin, "--methods", "sr", "confidence-penalty", "--datasets", tiny, "--seeds", 1,
                     "--results", tmp_path / "r")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "Confidence penalty" in result.stdout
    examined = run_all("check", plugin)
    assert examined.returncode == 0, examined.stdout
