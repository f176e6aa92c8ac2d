"""A score, a network and a source of a user's own file, through the command line."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmark.store.store import Store
from methods import Registry
from tests.conftest import run_all, run_here
from tests.methods.test_own_parts import CACHED
from tests.own_parts import written

pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    Registry()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """The printed example, trained in worker processes as CONTRIBUTING says: plugin, task, results."""
    folder = tmp_path_factory.mktemp("own")
    plugin, task = written(folder)
    result = run_all("--plugin", plugin, "--datasets", task, "--scores", "logit gap", "--seeds", 2, "--workers", 2,
                     "--results", folder / "r")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "SR+logit gap" in result.stdout
    return plugin, task, folder / "r"


def records_of(results: Path) -> Iterator[tuple[Path, dict]]:
    for path in sorted(results.rglob("record.json")):
        yield path.parent.relative_to(results), json.loads(path.read_text())


def test_the_example_trains_and_is_measured_with_its_score(made: tuple[Path, Path, Path]) -> None:
    """For two classes the logit gap ranks as softmax response does; its risk is computed here from the prediction."""
    _, _, results = made
    store = Store(results)
    found = [(folder, store.read_record(folder)) for folder, _ in records_of(results)]
    assert len(found) == 4
    for folder, record in found:
        assert record is not None
        evidence = store.read_prediction(folder)
        gap = np.abs(evidence.prediction.logits[:, 0] - evidence.prediction.logits[:, 1])
        kept = np.argsort(-gap, kind="stable")[:320]
        wrong = evidence.prediction.logits.argmax(1) != evidence.labels
        assert record.measures.all_scores["logit gap"].risk[160] == pytest.approx(wrong[kept].mean())
        assert record.measures.all_scores["SR"].risk[160] == pytest.approx(wrong[kept].mean())
        assert 0.02 < wrong.mean() < 0.4


def test_results_are_read_with_and_without_the_file(made: tuple[Path, Path, Path]) -> None:
    plugin, _, results = made
    out = ("--results", results, "--out", results.parent / "out")
    for more in ([], ["--plugin", plugin, "--scores", "Logit-Gap"]):
        shown = run_here("tables", *out, *more)
        assert shown.returncode == 0, shown.stderr
        assert "SR+logit gap" in shown.stdout
        figures = run_here("figures", "--plain", *out, *more)
        assert figures.returncode == 0, figures.stderr
    measured = run_here("measure", "--results", results, "--plugin", plugin, "--scores", "logit gap")
    assert measured.stdout == "4 runs: 0 measured and kept, 4 unchanged; nothing was trained\n", measured.stderr
    explained = run_here("explain", "my_stripes", "sr+logit gap", 80, "--results", results, "--plugin", plugin)
    assert "SR+logit gap read with logit gap" in explained.stdout
    unknown = run_here("tables", *out, "--scores", "logit gap")
    assert unknown.returncode == 2
    assert unknown.stderr.count("\n") == 1
    assert unknown.stderr.endswith("; one of your own comes with --plugin FILE.py\n")


def test_a_change_trains_again_what_it_can_change(made: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """A score in a file of its own trains nothing; a network does."""
    plugin, task, results = made
    score = tmp_path / "minus.py"
    text = "def low(run):\n    '''Low.'''\n    return -run.test.prediction.logits.max(1)\nSCORES = {'low': low}\n"
    score.write_text(text)
    words = ("--plugin", plugin, "--plugin", score, "--datasets", task, "--seeds", 2, "--results", results)
    risks = []
    for version in (text, f"# a comment\n{text}", text.replace("-run", "run")):
        score.write_text(version)
        result = run_here(*words, "--scores", "low")
        assert result.returncode == 0, result.stderr
        assert "4 jobs, 4 done already" in result.stderr
        risks.append([record["further"]["low"]["aurc"] for _, record in records_of(results)])
    assert risks[0] == risks[1]
    assert all(high < low for low, high in zip(risks[0], risks[2], strict=True))
    other = tmp_path / plugin.name
    other.write_text(plugin.read_text().replace("ReLU", "Tanh"))
    again = run_here("--plugin", other, *words[2:], "--dry-run")
    assert "4 jobs: 0 done" in again.stdout, again.stderr


def test_a_worker_that_cannot_load_a_file_says_why(tmp_path: Path) -> None:
    plugin, task = written(tmp_path)
    plugin.write_text(
        plugin.read_text() + "\nimport multiprocessing\nassert multiprocessing.parent_process() is None\n"
    )
    result = run_all("--plugin", plugin, "--datasets", task, "--methods", "sr", "--seeds", 1, "--workers", 1,
                     "--results", tmp_path / "r")  # fmt: skip
    assert result.returncode == 1
    assert re.search(r"failed: my_stripes SR seed 0: UserError: plugin .* cannot be loaded: Assert", result.stderr)


def test_list_shows_them_with_their_file(tmp_path: Path) -> None:
    plugin, _ = written(tmp_path)
    shown = run_here("list", "--plugin", plugin)
    assert re.search(r"^logit gap +any method +The difference .* \(own_parts\.py\)$", shown.stdout, re.MULTILINE)
    assert re.search(r"^small_cnn +Build 3×3", shown.stdout, re.MULTILINE)
    listing = json.loads(run_here("list", "--json", "--plugin", plugin).stdout)
    for kind, name in (("scores", "logit gap"), ("networks", "perceptron"), ("sources", "stripes")):
        by_file = {row["file"]: row[kind[:-1]] for row in listing[kind]}
        assert by_file[str(plugin)] == name
        assert len(by_file) == 2, "all others come from no file of the user's"
    assert "perceptron" not in run_here("list").stdout


def test_prepare_caches_what_a_source_of_ones_own_reads(tmp_path: Path) -> None:
    plugin, task = written(tmp_path)
    plugin.write_text(CACHED)
    task.write_text(task.read_text().replace("stripes", "text").replace("perceptron", "vgg16"))
    (tmp_path / "pixels.txt").write_text("1 2 3 4 5 6 7 8")
    folders = ("--data-dir", tmp_path, "--cache-dir", tmp_path / "cache")
    result = run_here("prepare", task, "--plugin", plugin, *folders)
    assert result.returncode == 0, result.stderr
    assert "my_stripes: 4 train, 4 test images for 1×2×2 input, 2 classes; checksums verified" in result.stdout
    assert run_here("check", plugin, "--data-dir", tmp_path).returncode == 0
    without = run_here("prepare", task, *folders)
    assert without.returncode == 2
    assert "unknown data source 'text'" in without.stderr


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("SCORES = {'margin': len}", ("list",), "there is a score 'margin' already; rename 'margin'"),
        ("SOURCES = {'mine': 5}", ("prepare", "digits"), "source 'mine' lacks describe, load"),
        ("NETWORKS = {'mine': 5}", ("--datasets", "digits"), "'mine' must be a function, got 5"),
        ("SCORES = {'a': len, 'A': len}", ("tables",), "there is a score 'a' already; rename 'A'"),
        ("NETWORKS = {'mine': len}", ("--datasets", "digits", "--set", "network.name=mne"), "did you mean 'mine'"),
        ("SCORES = {'mine': len}", ("--datasets", "digits", "--scores", "mne"), "did you mean 'mine'"),
        ("SCORES = {'mine': len}", ("--datasets", "digits", "--methods", "mine"), "unknown method 'mine'"),
    ],
)
def test_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "mine.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    result = run_here(*words, "--plugin", "mine.py")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
