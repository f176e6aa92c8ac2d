"""Records and manifests: what is written is read again, older versions are read, newer ones refused in one line."""

import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from benchmark.base.errors import UserError
from benchmark.measure.measures import ClassifierMeasures, Measures, ScoreMeasures
from benchmark.measure.sets.parts import Kept, PartMeasures, SetMeasures
from benchmark.measure.versions import MadeBy
from benchmark.store.manifest import Manifest, ManifestEntry, TableSettings, plain_manifest, read_manifest
from benchmark.store.provenance import Branch, Imported, Provenance, Timed
from benchmark.store.record import Pixels, Record, plain_record, read_record
from benchmark.store.store import Store
from tests.conftest import ROOT, plain_content, run_here

CURVE = [index / 1000 for index in range(201)]
SCORE = ScoreMeasures(
    CURVE, 0.1, 0.2, 0.4, 0.3, None, 0.0, CURVE, CURVE, CURVE, {"90": [0.5, None]},
    0.3, 0.1, 0.2, 0.5, 0.6, 0.7, CURVE[:101], CURVE[100:],
)  # fmt: skip
CLASSIFIER = ClassifierMeasures(0.9, 0.5, 0.2, 0.1, CURVE[50:151])
MEASURES = Measures(CLASSIFIER, {"own": SCORE, "SR": SCORE}, 200, {"margin": SCORE}, SCORE)
PART = PartMeasures(200, 0.1, 0.2, 0.05, 0.9, CURVE, {"90": Kept(0.8, 0.1), "50": Kept(0.0, None)}, "fog", 3, 0.7, 0.6)
EVALUATION = SetMeasures("shift", {"own": {"fog-3": PART}}, ("fog-3",), {"own": {"90": 1.5}}, "none could be set", 9)
FULL = Record(
    "toy", "ours", "0123", 3, {"config": {"weight": 0.5}, "needs": ["a"]}, "Ours", MEASURES, 170, {2: MEASURES},
    EVALUATION, None, None, Pixels([0.1], [0.2]), 0.4, {"gamma": 1.0}, {"temperature": 1.5}, ["a note"],
    {"prediction.npz": "0" * 64},
    Provenance("abc", "3.11", "Linux", {"torch": "2.9"}, 5.0, 4.0, ["here"], ["c0de"], True, ["scatter"], 1024, 2,
               Timed("cpu", {"own": 0.1}), Timed("cpu", {"later": 0.2}), Branch("base", 2),
               Imported("a-0.npz", "0" * 64, "logits", True)),
    MadeBy({"aurc": "1"}, {"SR": "2"}),
)  # fmt: skip
ENTRY = ManifestEntry(
    "Ours", "ours", "0123", (0, 1), "c0de", 90.0, 3, "why", {"weight": [0.5, 1.0]}, True, True, "Base", ("on", "none"),
)  # fmt: skip
SHOWN = Manifest(
    "toy", "toy", "Toy", (100.0, 90.0), "Ours", "SR", "2.9", (ENTRY,), {"epochs": 3}, "paired", "row", "percentile",
    ("margin",), ("Ours",), (("Ours",),), ("markers",), 1, 3, True, True, "all", "part of it", "t1", {"Ours": 5},
    {"Ours": "other"}, (("first", ("on", "none")), ("second", ("a", "b", "none"))),
    (replace(ENTRY, job="4567"),),
)  # fmt: skip


def through_json(plain: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(plain))


def test_every_field_of_a_record_is_kept() -> None:
    """Each field of FULL has a value of its own, so one that is not written or not read is found."""
    empty = Record("", "", "", 0, {})
    left_out = {each.name for each in fields(Record) if getattr(FULL, each.name) == getattr(empty, each.name)}
    assert left_out == {"held_out", "diverged", "reasons"}
    assert read_record(through_json(plain_record(FULL)), "here") == FULL


@pytest.mark.parametrize(("full", "empty"), [
    (PART, PartMeasures(0, 0.0, 0.0, 0.0)), (EVALUATION, SetMeasures("", {})),
])  # fmt: skip
def test_the_parts_of_a_set_have_values_of_their_own_in_the_full_record(full: Any, empty: Any) -> None:
    assert not [each.name for each in fields(full) if getattr(full, each.name) == getattr(empty, each.name)]


@pytest.mark.parametrize("changes", [
    {"measures": Measures(ClassifierMeasures(), {}, 0), "at_epochs": {}, "diverged": "the loss is nan"},
    {"measures": Measures(ClassifierMeasures(), {}, 0), "held_out": replace(MEASURES, further={})},
])  # fmt: skip
def test_runs_without_a_test_result_are_kept(changes: dict[str, Any]) -> None:
    record = replace(FULL, **changes)
    assert read_record(through_json(plain_record(record)), "here") == record


def test_every_field_of_a_manifest_is_kept() -> None:
    empty = Manifest("", "", "", (), "")
    left_out = {each.name for each in fields(Manifest) if getattr(SHOWN, each.name) == getattr(empty, each.name)}
    assert left_out == {"modified"}
    assert read_manifest(through_json(plain_manifest(SHOWN)), "here") == SHOWN
    assert "modified" not in plain_manifest(replace(SHOWN, modified="in words"))


def test_a_manifest_without_factors_has_none_of_their_keys() -> None:
    """Its file is equal to the byte to one of before there were factors."""
    entry = replace(ENTRY, base="", levels=())
    plain = plain_manifest(replace(SHOWN, factors=(), entries=(entry,), earlier=(entry,)))
    assert "factors" not in plain
    assert not any({"base", "levels"} & each.keys() for each in (*plain["entries"], *plain["earlier"]))
    assert read_manifest(through_json(plain), "here").entries == (entry,)


def test_settings_that_nobody_asked_for_stay() -> None:
    assert TableSettings().applied_to(SHOWN) == SHOWN
    assert TableSettings(ddof=0, scores=()).applied_to(SHOWN) == replace(SHOWN, ddof=0, scores=())


def test_version_1_is_read_whole() -> None:
    """The records of the first recorded run are of version 1: every value in them is found again."""
    every = sorted((ROOT / "results" / "reference").rglob("record.json.gz"))
    paths = [path for path in every if not path.parents[3].name.endswith("-features-tuned")]
    assert len(paths) == 415
    for path in paths:
        plain = plain_content(path)
        record = read_record(plain, str(path))
        assert "version" not in plain
        text = json.dumps(plain["identity"], sort_keys=True, separators=(",", ":"))
        assert record.job == hashlib.sha256(text.encode()).hexdigest()[:12]
        again = plain_record(record)
        assert again.keys() - plain.keys() == {"version", "label", "coverages", "measured_by"}
        for name in plain.keys() - {"provenance", "at_epochs"}:
            assert again.get(name, {}) == plain[name], name
        for epoch, part in plain.get("at_epochs", {}).items():
            assert again["at_epochs"][epoch]["scores"] == part["scores"]
        for name in plain["provenance"].keys() - {"seal"}:
            assert again["provenance"].get(name, 0) == plain["provenance"][name], name


@pytest.mark.parametrize("version", [3, "new", None])
def test_a_newer_version_is_refused_in_one_line(version: object) -> None:
    with pytest.raises(UserError, match=r"'x.json' is a record of version .* up to 2: update the suite"):
        read_record({**plain_record(FULL), "version": version}, "x.json")
    with pytest.raises(UserError, match=r"'y.json' is a manifest of version"):
        read_manifest({**plain_manifest(SHOWN), "version": version}, "y.json")


def test_commands_refuse_a_newer_version_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    folder = Path("toy", "ours", "0123", "seed-0")
    store.write_record(folder, replace(FULL, seed=0))
    monkeypatch.setattr("benchmark.store.manifest.VERSION", 3)
    store.write_manifest(replace(SHOWN, earlier=(), holm="", published="", columns=(), groups=(), entries=(ENTRY,)))
    monkeypatch.undo()
    made = run_here("tables", "--results", tmp_path)
    assert (made.returncode, made.stdout) == (2, "")
    assert made.stderr.startswith("error: '") and made.stderr.count("\n") == 1
    assert "is a manifest of version 3, and this code reads versions up to 2" in made.stderr
    store.write_manifest(replace(SHOWN, earlier=(), holm="", published="", columns=(), groups=(), entries=(ENTRY,)))
    monkeypatch.setattr("benchmark.store.record.VERSION", 3)
    store.write_record(folder, replace(FULL, seed=0))
    monkeypatch.undo()
    for words in (["tables"], ["explain", "toy", "ours", 90], ["diff", tmp_path]):
        made = run_here(*words, *([tmp_path] if words[0] == "diff" else ["--results", tmp_path]))
        assert made.returncode == 2 and "is a record of version 3" in made.stderr, made.stderr
        assert made.stderr.count("\n") == 1
