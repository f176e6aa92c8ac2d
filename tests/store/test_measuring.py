"""Measures are made again from stored predictions, where records lack them or other code made them."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmark.base.added import Added
from benchmark.measure import catalogue, versions
from benchmark.measure.evaluate import OF_CLASSIFIERS, OF_SCORES, RISKS
from benchmark.measure.measures import ClassifierMeasures, ScoreMeasures
from benchmark.measure.versions import measure_versions, score_version
from benchmark.store.measuring import keep, outdated_names, renew_folder, up_to_date
from benchmark.store.record import NOTHING, Record
from benchmark.store.store import PREDICTION, RECORD, Store
from tests.conftest import ROOT, TINY, run_here
from tests.tables.test_other_code import made_by_other_code

GONE = "its predictions were not kept"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods on a tiny task, one with a score of its own; one is also measured before its end."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.toml").write_text(TINY)
    words = ("--methods", "sr", "sat", "--seeds", 1, "--set", "evaluate_at=[3]", "--results", folder / "results", "-q")
    made = run_here("--datasets", folder / "tiny.toml", *words)
    assert made.returncode == 0, made.stderr
    return folder / "results"


@pytest.fixture
def store(finished: Path, tmp_path: Path) -> Store:
    shutil.copytree(finished, tmp_path / "results")
    return Store(tmp_path / "results")


def folder_with(store: Store, score: str) -> Path:
    """The run whose method has this score of its own."""
    records = ((folder, stored(store, folder)) for folder in store.finished())
    return next(folder for folder, record in records if score in record.measures.scores)


def stored(store: Store, folder: Path) -> Record:
    record = store.read_record(folder)
    assert record is not None
    return record


def content(store: Store, folder: Path) -> dict[str, Any]:
    return json.loads((store.root / folder / RECORD).read_text())


def by_other_code(record: Record, *names: str) -> Record:
    """The record as if other code had made these measures or scores, with another result."""

    def wrong(part: Any) -> Any:
        changed = {name: -1.0 for name in names if isinstance(getattr(part, name, None), float)}
        return replace(part, **changed)

    own = {name: wrong(score) for name, score in record.measures.scores.items()}
    changed = replace(record.measures, classifier=wrong(record.measures.classifier), scores=own)
    return made_by_other_code(replace(record, measures=changed), *names)


def test_every_measure_has_a_formula_and_a_field() -> None:
    assert set(OF_CLASSIFIERS) == set(vars(ClassifierMeasures()))
    assert set(OF_SCORES) == set(vars(ScoreMeasures([])))


def test_a_record_of_this_code_is_left_as_it_is(store: Store) -> None:
    for folder in store.finished():
        before = (store.root / folder / RECORD).stat().st_mtime_ns
        record = stored(store, folder)
        assert not outdated_names(record)
        assert up_to_date(record, folder, store) is record
        assert (store.root / folder / RECORD).stat().st_mtime_ns == before


@pytest.mark.parametrize("name", ["aurc", "accuracy", "percentile_risk", "risk", "SR", "abstention"])
def test_what_other_code_made_is_made_again_and_kept(store: Store, name: str) -> None:
    folder = folder_with(store, "abstention")
    right = stored(store, folder)
    store.write_record(folder, by_other_code(right, name))
    assert outdated_names(stored(store, folder)) == {name}
    assert up_to_date(stored(store, folder), folder, store) == right
    assert stored(store, folder) == right, "it is kept"


LATER = ("naurc", "coverage_at_risk_1", "coverage_at_risk_2", "coverage_at_risk_5", "fpr95", "aupr", "cost",
         "expected_cost")  # fmt: skip
"""Measures of a score that no record of version 1 has."""


def test_what_a_record_of_version_1_lacks_is_added(store: Store) -> None:
    """Also in the measures of earlier epochs; the file gets the present version."""
    folder = folder_with(store, "abstention")
    right = stored(store, folder)
    assert set(right.at_epochs) == {3}
    plain = content(store, folder)
    old = {name: value for name, value in content(store, folder).items() if name not in ("version", "measured_by")}
    for part in (old, old["at_epochs"]["3"]):
        for score in part["scores"].values():
            for name in ("class_coverage", "percentile_coverage", *LATER):
                score.pop(name, None)
        del part["classifier"]["chow_cost"]
    rewrite(store, folder, old)
    record = stored(store, folder)
    later = {*LATER, "chow_cost"} - {"expected_cost"}
    assert outdated_names(record) == {"class_coverage", "percentile_coverage", "percentile_risk", *later}
    assert up_to_date(record, folder, store) == replace(right, provenance=record.provenance)
    assert content(store, folder) | {"provenance": 0} == plain | {"provenance": 0}


def rewrite(store: Store, folder: Path, plain: dict[str, Any]) -> None:
    """Write the content of a record as it is, without its seal: as from before there were seals."""
    origin = {name: value for name, value in plain["provenance"].items() if name not in ("seal", "codes")}
    (store.root / folder / RECORD).write_text(json.dumps({**plain, "provenance": origin}))


@pytest.mark.parametrize("name", ["aurc", "risk", "abstention"])
def test_without_the_prediction_it_is_unknown_for_a_reason(store: Store, name: str) -> None:
    folder = folder_with(store, "abstention")
    store.write_record(folder, by_other_code(stored(store, folder), name))
    (store.root / folder / PREDICTION).unlink()
    before = (store.root / folder / RECORD).read_bytes()
    record = up_to_date(stored(store, folder), folder, store)
    assert record.reasons == {name: GONE}
    assert (store.root / folder / RECORD).read_bytes() == before, "nothing was computed, so nothing is written"
    before_that = stored(store, folder)
    for score in ("abstention", "SR"):
        expected = replace(before_that.score(score), **({} if name == "abstention" else {name: None}))
        lost = ScoreMeasures() if score == name else expected
        assert record.score(score) == lost
    shown = run_here("tables", "--results", store.root, "--methods", "sat")
    assert shown.returncode == 0, shown.stderr
    assert GONE in shown.stdout
    if name == "aurc":
        assert not re.search(r"^\| +AURC", shown.stdout, re.MULTILINE), "a row without a value is left out"
        assert f"AURC ×10³ cannot be measured: {GONE}." in shown.stdout
    else:
        line = re.search(r"^\| +100 +\|.*$", shown.stdout, re.MULTILINE)
        assert line is not None and "–" in line[0]


def test_a_prediction_that_is_cut_off_counts_as_damaged(store: Store) -> None:
    """Also where the record is from before there were checksums."""
    folder = folder_with(store, "abstention")
    store.write_record(folder, replace(by_other_code(stored(store, folder), "aurc"), checksums=None))
    path = store.root / folder / PREDICTION
    for content in (path.read_bytes()[:-100], b"no archive"):
        path.write_bytes(content)
        assert "damaged" in up_to_date(stored(store, folder), folder, store).reasons["aurc"]


def test_what_needs_the_truth_is_not_missed_where_it_is_not_known(store: Store) -> None:
    folder = folder_with(store, "abstention")
    record = by_other_code(stored(store, folder), "expected_risk", "expected_aurc")
    assert record.measures.oracle is None and not outdated_names(record)


def test_a_score_that_is_asked_for_is_kept_and_shown_only_then(store: Store) -> None:
    folder = folder_with(store, "abstention")
    words = ("tables", "--results", store.root, "--methods", "sat")
    before = run_here(*words).stdout
    assert "SAT+energy" in run_here(*words, "--scores", "energy", "kNN").stdout
    record = stored(store, folder)
    assert list(record.measures.scores) == ["abstention", "SR"] and list(record.measures.further) == ["energy"]
    assert list(record.at_epochs[3].further) == ["energy"]
    assert record.made_by.scores["energy"] == score_version("energy")
    assert run_here(*words).stdout == before
    (store.root / folder / PREDICTION).unlink()
    assert "SAT+energy" in run_here(*words, "--scores", "energy").stdout, "without its prediction"


def test_scores_of_a_plugin_need_the_plugin(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_with(store, "abstention")
    record = stored(store, folder)
    scores = {"mine": record.score("SR"), **record.measures.scores}
    own = replace(
        record,
        method="my_file",
        identity={**record.identity, "source_sha256": "v1"},
        measures=replace(record.measures, scores=scores),
        at_epochs={},
        made_by=replace(record.made_by, scores={"mine": "v1", "abstention": "v1", "SR": "v1"}),
    )
    assert not outdated_names(own), "whose code is not known does not count, also of a score with a known name"
    lacking = by_other_code(own, "aurc")
    reasons = up_to_date(lacking, folder, store).reasons
    assert reasons == {"aurc": "the score mine is not known here; if it is in a file of your own, add --plugin FILE.py"}

    def mine(prediction: Any) -> dict[str, Any]:
        largest = np.asarray(prediction.logits.max(axis=1), np.float64)
        return {"mine": largest, "abstention": largest, "SR": largest}

    monkeypatch.setitem(catalogue.OF_METHODS, "my_file", (mine, "v1"))
    made = up_to_date(lacking, folder, store)
    assert made.reasons == {} and made.made_by.scores == {"mine": "v1", "abstention": "v1", "SR": "v1"}
    largest = up_to_date(record, folder, store, ["max logit"]).score("max logit")
    assert made.score("mine").risk == made.score("SR").risk == largest.risk, "as its training computes them"
    monkeypatch.setitem(catalogue.OF_METHODS, "my_file", (mine, "v2"))
    assert outdated_names(own) == {"mine", "abstention", "SR"}


def test_a_further_score_whose_file_is_not_at_hand_costs_only_itself(store: Store) -> None:
    """The record stays as it is, so that nothing of it is lost."""
    folder = folder_with(store, "abstention")
    right = up_to_date(stored(store, folder), folder, store, ["energy"])
    further = {"mine": right.score("SR"), **right.measures.further}
    old = by_other_code(replace(right, measures=replace(right.measures, further=further)), "aurc")
    store.write_record(folder, old)
    new = up_to_date(old, folder, store)
    assert list(new.reasons) == ["mine"] and list(new.measures.further) == ["energy"]
    assert new.measures == right.measures
    assert stored(store, folder) == old


def test_folders_under_version_control_and_claimed_jobs_stay(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_with(store, "abstention")
    right = stored(store, folder)
    store.write_record(folder, by_other_code(right, "aurc"))
    before = (store.root / folder / RECORD).read_bytes()
    with store.claim(folder) as ours:
        assert ours
        assert up_to_date(stored(store, folder), folder, store) == right, "in memory"
    assert (store.root / folder / RECORD).read_bytes() == before
    monkeypatch.setattr("benchmark.store.measuring.is_under_version_control", lambda root: True)
    assert up_to_date(stored(store, folder), folder, store) == right
    assert (store.root / folder / RECORD).read_bytes() == before


def test_a_record_that_was_replaced_meanwhile_stays(store: Store) -> None:
    folder = folder_with(store, "abstention")
    before = by_other_code(stored(store, folder), "aurc")
    trained_again = replace(before, notes=["trained again"])
    store.write_record(folder, trained_again)
    keep(replace(before, made_by=trained_again.made_by), before, folder, store)
    assert stored(store, folder) == trained_again


def test_the_hash_of_a_file_that_is_not_loaded_is_kept(store: Store) -> None:
    folder = folder_with(store, "abstention")
    record = stored(store, folder)
    further = {"mine": record.score("SR")}
    made_by = replace(record.made_by, scores={**record.made_by.scores, "mine": "v1"})
    record = replace(record, measures=replace(record.measures, further=further), made_by=made_by)
    store.write_record(folder, record)
    up_to_date(record, folder, store, ["margin"])
    assert stored(store, folder).made_by.scores["mine"] == "v1"


def test_a_score_of_ones_own_cannot_change_what_others_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_place(run: Any) -> Any:
        run.test.prediction.logits.sort(axis=1)
        return run.test.prediction.logits[:, -1]

    monkeypatch.setitem(catalogue.ADDED, "mine", Added(in_place, "in place", "v1", Path("mine.py")))
    folder = folder_with(store, "abstention")
    right = up_to_date(stored(store, folder), folder, store, ["margin"])
    found = up_to_date(right, folder, store, ["mine", "energy"])
    assert "mine.py fails (ValueError" in found.reasons["mine"]
    assert found.score("margin") == right.score("margin")


def test_trials_are_left_alone(store: Store) -> None:
    folder = folder_with(store, "abstention")
    record = stored(store, folder)
    trial = replace(record, measures=NOTHING, at_epochs={}, held_out=record.measures)
    assert up_to_date(trial, folder, store, ["margin"]) is trial


def test_a_whole_folder(store: Store) -> None:
    first, second = store.finished()
    store.write_record(first, by_other_code(stored(store, first), "aurc"))
    found = {each.folder: each for each in renew_folder(store, store.finished(), ["margin", "kNN"])}
    assert all(each.measured and each.kept for each in found.values()) and set(found) == {first, second}
    assert all(list(each.reasons) == ["kNN"] for each in found.values())
    again = list(renew_folder(store, store.finished(), ["margin", "kNN"]))
    assert not any(each.measured for each in again)


def test_a_hash_changes_with_what_a_formula_calls_and_with_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = versions.FOLDER
    before = measure_versions() | {name: score_version(name) for name in ("SR", "margin", "kNN", "abstention")}

    def changed(module: str, old: str, new: str) -> set[str]:
        folder = tmp_path / f"{module}-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(original, folder)
        text = (folder / f"{module}.py").read_text()
        assert text.count(old) == 1
        (folder / f"{module}.py").write_text(text.replace(old, new))
        monkeypatch.setattr(versions, "FOLDER", folder)
        for function in (versions.definitions, versions.table_versions):
            function.cache_clear()
        after = measure_versions() | {name: score_version(name) for name in ("SR", "margin", "kNN", "abstention")}
        return {name for name in before if after[name] != before[name]}

    try:
        assert changed("metrics", "Return AURC = ", "Give AURC = ") == set()
        assert changed("metrics", "bins: int = 15", "bins: int = 10") == {"ece"}
        curves = {"risk", "aurc", "e_aurc", "expected_risk", "expected_aurc", "naurc"}
        curves |= {f"coverage_at_risk_{risk}" for risk in RISKS}
        assert changed("metrics", "np.cumsum(ranked) / np.arange(1,", "np.cumsum(ranked) / np.arange(2,") == curves
        assert changed("scores", "log_p[:, -2]))", "log_p[:, -3]))") == {"margin"}
        assert changed("scores", "k: int = 50", "k: int = 5") == {"kNN"}
        percentiles = {"percentile_risk", "percentile_coverage"}
        assert changed("scores", "np.exp(u - u.max(axis=1", "np.exp(u - u.min(axis=1") == percentiles
        of_scores = set(OF_SCORES)
        assert changed("evaluate", "ORACLE, posterior.max(axis=1)", "ORACLE, posterior.min(axis=1)") == of_scores
        assert changed(
            "evaluate", "Classified(prediction.logits, labels, ", "Classified(prediction.logits, labels + 1, "
        ) == (set(OF_CLASSIFIERS))
        assert changed("metrics", "def curve(ranked: Array) -> Sequence[float]", "def curve(ranked)") == set()
        assert changed("evaluate", "CLASS_COVERAGES = (90,", "CLASS_COVERAGES = (95,") == {"class_coverage"}
    finally:
        monkeypatch.undo()
        for function in (versions.definitions, versions.table_versions):
            function.cache_clear()


ADDED = {
    "benchmark/measure/measures.py": ("    top_ties: float | None = None\n", "    median_loss: float | None = None\n"),
    "benchmark/measure/evaluate.py": (
        '    "top_ties": lambda r: metrics.top_ties(r.confidence),\n',
        '    "median_loss": lambda r: float(r.ranked[len(r.ranked) // 2] + 7),\n',
    ),
    "benchmark/tables/build.py": (
        'MEASURES = (\n',
        '    Row("median loss", lambda r, s: r.score(s).median_loss, scale=1, measure="median_loss"),\n',
    ),
}  # fmt: skip
"""What adding a measure takes: by file, a line of it and the line to put behind that."""


def test_a_measure_that_is_added_later_needs_no_training(store: Store, tmp_path: Path) -> None:
    """In a copy of the code with one more measure, a finished folder gets it from its predictions."""
    for name in ("benchmark", "methods", "configs"):
        shutil.copytree(ROOT / name, tmp_path / "copy" / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "run_all.py", tmp_path / "copy")
    for path, (line, added) in ADDED.items():
        text = (tmp_path / "copy" / path).read_text()
        assert text.count(line) == 1
        (tmp_path / "copy" / path).write_text(text.replace(line, line + added))
    without = folder_with(store, "abstention")
    (store.root / without / PREDICTION).unlink()
    command = [sys.executable, "run_all.py", "tables", "--results", str(store.root)]
    made = subprocess.run(command, cwd=tmp_path / "copy", capture_output=True, text=True, check=False)
    assert made.returncode == 0 and "Traceback" not in made.stderr, made.stderr
    line = re.search(r"^\| +median loss \|(.*)$", made.stdout, re.MULTILINE)
    assert line is not None, made.stdout
    shown = dict(zip(["SAT+SR", "SAT", "SR"], (cell.strip("* ") for cell in line[1].split("|")), strict=False))
    assert shown == {"SAT+SR": "–", "SAT": "–", "SR": "7.00"}
    assert f"SAT+SR, SAT: median loss cannot be measured: {GONE}." in made.stdout
    assert "made by another version of the code" not in made.stdout, "no run is stale"
    kept = content(store, next(path for path in store.finished() if path != without))
    assert kept["scores"]["SR"]["median_loss"] == 7.0
