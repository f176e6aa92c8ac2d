"""docs/files.md holds the keys of what is really stored, and predictions can be joined with their images."""

import csv
import io
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmark.base.files import BLANK, write_sealed
from benchmark.config.load import load_task
from benchmark.data.cache import Folders, cache_name
from benchmark.data.cache_build import open_cache
from benchmark.data.dataset import divide, load
from benchmark.measure.prediction import Evidence, Prediction
from benchmark.paper.table_files import load_tables, table_manifest
from benchmark.store.store import Store
from benchmark.tables.columns import load_columns
from benchmark.tables.render.runs_csv import HEADING, runs_csv
from benchmark.tune.ledger import Trial, add_to_ledger
from tests.conftest import NOWHERE, ROOT, TINY, run_here
from tests.image_sets import write_celeba
from tests.tables.test_build import many_columns

LEAVES = (
    "identity", "class_coverage", "checksums", "provenance", "facts", "bound", "oracle", "standard", "modified",
    "held_out", "winners", "at_epochs", "trials", "incomparable", "measured_by", "further", "earlier",
)  # fmt: skip
"""Keys whose values are told of as a whole."""


def documented() -> dict[str, dict[str, bool]]:
    """By file, each key and whether it is always there."""
    found: dict[str, dict[str, bool]] = defaultdict(dict)
    for line in (ROOT / "docs" / "files.md").read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif match := re.match(r"\| (\*?)`([^`]+)`\*? \|", line):
            found[section][match[2]] = not match[1]
    return found


def keys_of(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        for each in value:
            yield from keys_of(each, path)
    elif not isinstance(value, dict) or (path[-1:] and path[-1] in LEAVES):
        yield ".".join(path)
    else:
        name = {"scores": "<score>", "methods": "<label>", "splits": "<name>"}.get(path[-1]) if path else None
        for key, part in value.items():
            yield from keys_of(part, (*path, name or key))


def check(section: str, *stored: dict[str, Any]) -> None:
    """Every key that is stored is told of, and every key told of is there unless it says otherwise."""
    told = documented()[section]
    for each in stored:
        keys = set(keys_of(each))
        assert keys <= told.keys(), section
        assert {key for key, always in told.items() if always} <= keys, section


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "tiny.toml").write_text(TINY)
    words = ("--methods", "sat", "temperature-scaling", "--seeds", 1, "--results", folder / "results", "-q")
    made = run_here("--datasets", folder / "tiny.toml", *words)
    assert made.returncode == 0, made.stderr
    return folder / "results"


def test_records_predictions_histories(results: Path) -> None:
    records = [json.loads(path.read_text()) for path in results.rglob("record.json")]
    assert sorted(record["label"] for record in records) == ["SAT", "SR", "Temperature scaling"]
    check("record.json", *records)
    for record in records:
        assert record["coverages"] == [c / 2 for c in range(201)]
        assert all(len(score["risk"]) == 201 for score in record["scores"].values())
        assert set(record["measured_by"]["scores"]) == set(record["scores"])
        assert all(score.keys() <= record["measured_by"]["measures"].keys() for score in record["scores"].values())
    for path in results.rglob("prediction*.npz"):
        with np.load(path) as arrays:
            check("prediction.npz", dict.fromkeys(re.sub(r"^aux\..*", "aux.<name>", key) for key in arrays))
    for path in results.rglob("classifier.npz"):
        with np.load(path) as arrays:
            check("classifier.npz", dict.fromkeys(arrays))
    for path in results.rglob("history.csv"):
        named = documented()["history.csv"]
        header = path.read_text().splitlines()[0].split(",")
        check("history.csv", dict.fromkeys(key if key in named else "<name>" for key in header))


def test_scores_that_were_asked_for_later_stand_apart(results: Path, tmp_path: Path) -> None:
    again = tmp_path / "results"
    shutil.copytree(results, again)
    shown = run_here("tables", "--results", again, "--scores", "margin")
    assert shown.returncode == 0, shown.stderr
    asked = []
    for path in sorted(again.glob("tiny/*/*/seed-0/record.json")):
        before, now = (json.loads((root / path.relative_to(again)).read_text()) for root in (results, again))
        check("record.json", now)
        assert now["scores"] == before["scores"]
        if "further" in now:
            asked.append(now["label"])
            assert now["further"].keys() == {"margin"}
            assert now["further"]["margin"].keys() == next(iter(now["scores"].values())).keys()
    assert asked == ["SAT", "Temperature scaling"], "those that the table shows"


@pytest.mark.parametrize("kind", ["record", "manifest"])
def test_a_file_of_a_later_version_is_refused(results: Path, tmp_path: Path, kind: str) -> None:
    again = tmp_path / "results"
    shutil.copytree(results, again)
    path = next(again.glob("tiny/self_adaptive/*/seed-0/record.json" if kind == "record" else "manifests/tiny.json"))
    plain = {**json.loads(path.read_text()), "version": 99}
    (plain["provenance"] if kind == "record" else plain)["seal"] = BLANK
    place = path.parent if kind == "record" else path
    write_sealed(path, plain, place.relative_to(again).as_posix())
    shown = run_here("tables", "--results", again)
    assert shown.returncode == 2
    assert shown.stderr.startswith(f"error: '{path}' is a {kind} of version 99, and this code reads versions up to 2")
    assert len(shown.stderr.splitlines()) == 1
    assert path.is_file()


def test_manifests_and_tables(results: Path, tmp_path: Path) -> None:
    (table,) = load_tables(["cifar10"])
    (shown,) = Store(results).manifests()
    paper = table_manifest(table, "paper", load_task("cifar10"), "part of the set")
    Store(tmp_path).write_manifest(replace(paper, entries=shown.entries, earlier=shown.entries), "paper")
    paths = (results / "manifests" / "tiny.json", tmp_path / "paper" / "cifar10.json")
    check("manifest.json", *(json.loads(path.read_text()) for path in paths))
    for section, name in (("tables.csv", "tiny.csv"), ("runs.csv", "tiny-runs.csv")):
        check(section, next(csv.DictReader(io.StringIO((results / "tables" / name).read_text()))))
    ledger = add_to_ledger({"task": "toy"}, "Ours", [], [Trial({"weight": 0.1}, "id", {"0": 0.1})], [0])
    check("ledger.json", ledger)


def test_runs_are_what_the_records_say(results: Path) -> None:
    lines = list(csv.DictReader(io.StringIO((results / "tables" / "tiny-runs.csv").read_text())))
    assert tuple(lines[0]) == HEADING
    by_method = {json.loads(p.read_text())["method"]: json.loads(p.read_text()) for p in results.rglob("record.json")}
    assert {(line["label"], line["score"]) for line in lines} >= {("SAT", "SR"), ("SAT", "abstention")}
    for line in lines:
        record, (measure, _, coverage) = by_method[line["method"]], line["measure"].partition("@")
        place = record["scores"][line["score"]] | record["classifier"]
        if cost := re.fullmatch(r"(cost|chow_cost)_(\d+)", measure):
            assert float(line["value"]) == place[cost[1]][2 * int(cost[2])]
            continue
        wanted = place[measure][record["coverages"].index(float(coverage))] if coverage else (
            place[measure])  # fmt: skip
        assert float(line["value"]) == wanted


def test_runs_that_diverged_are_there_without_a_measure(tmp_path: Path) -> None:
    manifest, store = many_columns(tmp_path)
    lines = list(csv.DictReader(io.StringIO(runs_csv(manifest, load_columns(manifest, store)))))
    assert [(line["label"], line["seed"]) for line in lines if line["measure"] == "diverged"] == [("Theirs", "4")]
    assert "oracle" not in {line["label"] for line in lines}


def test_ids_are_places_in_the_whole_set(results: Path) -> None:
    """Whatever part of a set a task takes, and whatever it sets apart, an id means the same image."""
    whole, part = load_task("digits").data, replace(load_task("digits").data, test_images=200, test_holdout=50, val=0.2)
    images = load(whole, NOWHERE)[0]
    train, val, test, _ = divide(load(part, NOWHERE)[0], part, seed=3)
    assert (images.test.labels[test.rows] == test.labels).all()
    assert val is not None
    assert not set(val.rows) & set(train.rows)
    (path,) = results.glob("tiny/cross_entropy/*/seed-0/prediction.npz")
    with np.load(path) as arrays:
        assert (images.test.labels[arrays["ids"]] == arrays["labels"]).all()
        assert arrays["ids"].nbytes == 4 * len(arrays["labels"])


def test_predictions_without_ids_stay_readable(tmp_path: Path) -> None:
    store, evidence = Store(tmp_path), Evidence(Prediction(np.zeros((3, 2), np.float32)), np.arange(3))
    store.write_prediction(Path("job"), "prediction.npz", evidence)
    assert store.read_prediction(Path("job")).ids is None


def test_a_cache_names_the_files_of_its_images(tmp_path: Path) -> None:
    write_celeba(tmp_path)
    config, folders = load_task("celeba-cpu").data, Folders(tmp_path, tmp_path / "cache")
    loaded, _ = open_cache(config, folders)
    folder = folders.cache / cache_name(config)
    names = (folder / "test-names.txt").read_text().splitlines()
    assert len(names) == len(set(names)) == len(loaded.test)
    assert all(Path(name).is_file() for name in names)
    check("cache manifest", json.loads((folder / "manifest.json").read_text()))
