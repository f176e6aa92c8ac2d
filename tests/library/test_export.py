"""Predictions of trained runs go out and come back: the same tables to the byte, captions aside."""

import re
from pathlib import Path

import numpy as np
import pytest

import benchmark as sb
from tests.conftest import TINY, run_here
from tests.imports.runs import grid, imported, logit_run, loss_run, save

COVERAGES = ("100", "90", "80")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Methods with an output for abstention, with several scores, and with plain logits."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "tiny.toml").write_text(
        TINY.replace("tiny digits", "digits").replace("seeds = 2", 'seeds = 2\nbaseline = "SR"')
    )
    words = ("--methods", "sr", "sat", "mc-dropout", "--seeds", 2, "--results", folder / "r", "-q", "--reference", "SR")
    made = run_here("--datasets", folder / "tiny.toml", *words, "--keep-features")
    assert made.returncode == 0, made.stderr
    return folder / "r"


def without_captions(text: str) -> list[str]:
    """The lines of a table, without what stands above and below it on how to read it."""
    return [line for line in text.splitlines() if not re.search(r"over 2 seeds \(population", line)]


def test_the_same_tables_come_back(trained: Path, tmp_path: Path) -> None:
    results = sb.load_results(trained)
    files = [run.save(tmp_path / "files") for run in results.predictions("tiny")]
    assert {path.name for path in files} == {
        f"{label}-{seed}.npz" for label in ("SR", "SAT", "MC-dropout") for seed in (0, 1)
    }
    words = ("--task", "tiny", "--title", "digits", "--paired", "--reference", "SR", "--coverages", *COVERAGES)
    imported(tmp_path / "back", *files, *words)
    for end in (".md", ".tex", "-statistics.md"):
        ours, theirs = ((root / "tables" / f"tiny{end}").read_text() for root in (trained, tmp_path / "back"))
        assert without_captions(ours) == without_captions(theirs), end
    for end in (".csv", "-statistics.csv"):
        ours, theirs = ((root / "tables" / f"tiny{end}").read_bytes() for root in (trained, tmp_path / "back"))
        assert ours == theirs, end
    frames = [sb.load_results(root).to_frame() for root in (trained, tmp_path / "back")]
    assert frames[0].drop(columns="method").equals(frames[1].drop(columns="method")), "to the bit, percentiles too"


def test_arrays_go_back_without_files(trained: Path, tmp_path: Path) -> None:
    run = next(sb.load_results(trained).predictions())
    back = sb.score(run.arrays, method=run.method, seed=run.seed, scores=run.scores, results=tmp_path / "r")
    (record,) = [
        r for r in sb.load_results(trained).store.records("tiny") if (r.label, r.seed) == (run.method, run.seed)
    ]
    assert {"val.logits", "val.labels", "features", "train.features", "train.labels"} <= set(run.arrays)
    assert back.records[0].measures.scores == record.measures.scores
    assert list(record.measures.scores) == list(run.scores)


@pytest.mark.parametrize(
    "arrays",
    [
        logit_run(3, **{"confidence.mc": np.arange(120.0), "group.age": np.arange(120) % 3}),
        logit_run(4, **{"output.abstain": np.ones(120)}),
        loss_run(ids=np.arange(120)),
        {"labels": np.arange(120) % 4, "predicted": np.arange(120) % 3, "confidence": np.arange(120.0)},
        {"labels": np.arange(120) % 4, "probabilities": np.full((120, 4), 0.25)},
        {"labels": np.arange(120) % 4, "log_probabilities": np.full((120, 4), np.log(0.25))},
    ],
)  # fmt: skip
def test_imported_runs_go_out_as_they_came(arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    imported(tmp_path / "r", *save(tmp_path, a_0=arrays))
    (run,) = sb.load_results(tmp_path / "r").predictions()
    (tmp_path / "out").mkdir()
    imported(tmp_path / "q", run.save(tmp_path / "out"))
    ours, theirs = (next(iter(sb.load_results(tmp_path / name).store.records("predictions"))) for name in "rq")
    assert ours.measures == theirs.measures
    assert ours.checksums == theirs.checksums


def test_a_run_without_predictions_is_left_out(tmp_path: Path) -> None:
    imported(tmp_path / "r", *grid(tmp_path))
    next(iter((tmp_path / "r").rglob("prediction.npz"))).unlink()
    assert len(list(sb.load_results(tmp_path / "r").predictions())) == 5


def test_a_file_of_another_run_is_not_replaced(tmp_path: Path) -> None:
    for task, noise in (("one", 1), ("two", 2)):
        imported(tmp_path / "r", *save(tmp_path, a_0=logit_run(noise)), "--task", task)
    runs = list(sb.load_results(tmp_path / "r").predictions())
    runs[0].save(tmp_path / "out")
    runs[0].save(tmp_path / "out")
    with pytest.raises(sb.UserError, match="is there with other content; name another folder"):
        runs[1].save(tmp_path / "out")
