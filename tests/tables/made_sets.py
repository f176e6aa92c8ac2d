"""Made-up runs on evaluation sets: the more the images are shifted, the less right and sure are the classifiers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmark.measure.evaluate import measure
from benchmark.measure.prediction import CONFIDENCE, Evidence, Prediction
from benchmark.measure.sets.formulas import (
    NEW,
    SHIFTED,
    StoredPart,
    joined,
    measure_set,
    thresholds_for,
    without_logits,
)
from benchmark.measure.sets.parts import PartMeasures, SetMeasures
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.store.measuring import made_by_now
from benchmark.store.provenance import Provenance
from benchmark.store.record import Record
from benchmark.store.store import Store, folder_of

FAMILIES_MADE = {"noise": ("gaussian noise", "shot noise"), "weather": ("fog",)}
STORED = [StoredPart(f"{kind}-{s}", kind, s) for kinds in FAMILIES_MADE.values() for kind in kinds for s in (1, 2, 3)]
CLASSES, IMAGES = 4, 120
COVERAGES = (100.0, 90.0, 80.0)
METHODS = ("Ours", "Theirs")
NO_VALIDATION = "the run has no validation images"
HIGH = 1e9
"""A threshold that no image reaches."""


def predicted(random: np.random.Generator, skill: float, new_class: int | None = None) -> Evidence:
    labels = random.integers(CLASSES, size=IMAGES)
    logits = random.normal(size=(IMAGES, CLASSES)) + skill * np.eye(CLASSES)[labels]
    return without_logits(Evidence(Prediction(logits), labels), {"SR": np.sort(logits, axis=1)[:, -1]}, new_class)


def pool_of(kind: str, random: np.random.Generator, skill: float, clean: Evidence) -> tuple[Evidence, list[StoredPart]]:
    """All images of a set together, and the parts that they come from."""
    if kind == "corruptions":
        return joined([predicted(random, skill * (1 - 0.2 * (part.severity or 0))) for part in STORED]), STORED
    if kind == "shift":
        return joined([predicted(random, skill / 2)]), [StoredPart(SHIFTED)]
    if kind == "new":
        return joined([clean, predicted(random, 0, CLASSES)]), [StoredPart("clean"), StoredPart(NEW)]
    sex, age = np.array(["a", "b"])[random.integers(2, size=IMAGES)], random.integers(2, size=IMAGES)
    return replace(clean, groups={"sex": sex, "age": age}), []


def made_run(kind: str, name: str, seed: int, coverages: Sequence[float], thresholds: str) -> Record:
    random = np.random.default_rng([*name.encode(), seed])
    skill = 2 + 0.1 * seed
    clean, val = predicted(random, skill), predicted(random, skill)
    pool, stored = pool_of(kind, random, skill, clean)
    confidence = np.asarray(val.prediction.aux[f"{CONFIDENCE}SR"], np.float64)
    limits = {"set": thresholds_for(confidence, coverages), "none": {}, "unreachable": {"90": HIGH, "80": HIGH}}
    reason = NO_VALIDATION if thresholds == "none" else ""
    own = {"SR": limits[thresholds]} if limits[thresholds] else {}
    measured: SetMeasures = measure_set(kind, pool, clean, stored, own, coverages, reason)
    measures = measure(pool, {"SR": np.asarray(pool.prediction.aux[f"{CONFIDENCE}SR"], np.float64)})
    made = Record("toy-set", name.lower(), "id", seed, {}, measures=measures, evaluation=measured)
    return replace(made, provenance=Provenance(environments=("here",)), made_by=made_by_now(made))


def made_set(
    root: Path,
    kind: str,
    methods: Sequence[str] = METHODS,
    seeds: int = 3,
    coverages: tuple[float, ...] = COVERAGES,
    *,
    thresholds: bool = True,
    unreachable: Sequence[str] = (),
) -> tuple[Manifest, Store]:
    """The results of some methods on a set of a kind; the thresholds of some methods can be too high for any image."""
    store = Store(root)
    for name in methods:
        which = "unreachable" if name in unreachable else "set" if thresholds else "none"
        for seed in range(seeds):
            run = made_run(kind, name, seed, coverages, which)
            store.write_record(folder_of("toy-set", run.method, "id", seed), run)
    entries = tuple(ManifestEntry(name, name.lower(), "id", tuple(range(seeds))) for name in methods)
    manifest = Manifest("toy-set", "toy-set", "toy data: set", coverages, methods[0], methods[-1], entries=entries)
    manifest = replace(manifest, set_of="toy")
    store.write_manifest(manifest)
    return manifest, store


def parts_of(store: Store, manifest: Manifest, name: str) -> dict[int, Mapping[str, PartMeasures]]:
    """What the records of a method say of the parts, by seed."""
    found = {}
    for entry in manifest.entries:
        for seed in entry.seeds if entry.label == name else ():
            record = store.read_record(folder_of("toy-set", entry.method, "id", seed))
            assert record is not None and record.evaluation is not None
            found[seed] = record.evaluation.parts["SR"]
    return found
