"""Show what went wrong or is missing, and how the trainings ended."""

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmark.base.files import Damaged
from benchmark.measure.labels import name_at
from benchmark.report.markup import Markup, join, plain_table, tag
from benchmark.report.runs import trainings
from benchmark.store.curves import DAMAGED, read_curve
from benchmark.store.manifest import Manifest
from benchmark.store.record import Record
from benchmark.store.store import ERROR, Store, folder_of
from benchmark.tables.columns import Column, column_notes, run_notes, split_by_coverage

BOUND = ("intra_class_variance", "margin_hinge", "last_layer_norm", "bound", "test_selective_loss")
"""Columns that --track-bound adds; they say nothing about the health of a method."""
COMMON = ("loss", "accuracy")
"""Columns of the learning curve that every training has."""
ABSOLUTE = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?(?:[/\\][^\s/\\'\":,;()]+)+[/\\](?=[^\s/\\])")
"""The folders of a path: the page must not show on whose machine it was made."""


def health_section(manifest: Manifest, columns: Sequence[Column], store: Store) -> Markup:
    problems = [*diverged_runs(columns), *unfinished_runs(manifest, store)]
    finished = [replace(column, diverged=()) for column in split_by_coverage(columns)]
    endings, damaged = read_endings(manifest, columns, store)
    notes = [*column_notes(columns), *run_notes(finished), *damaged]
    table = plain_table(["run", "seed", "what happened"], problems, "Runs without a result")
    good = tag("p", "Every run that was asked for is there, and none diverged.", class_="good")
    items = tag("ul", (tag("li", note) for note in notes), class_="notes")
    return join([table if problems else good, items if notes else "", endings_table(endings) if endings else ""])


def diverged_runs(columns: Sequence[Column]) -> Iterator[list[str]]:
    for column in split_by_coverage(columns):
        for record in column.diverged if column.published else ():
            yield [column.name, str(record.seed), f"diverged: {record.diverged}"]


def runs_of(manifest: Manifest) -> Iterator[tuple[str, int, Path]]:
    """Yield (name, seed, folder) of every run in the manifest."""
    for entry in manifest.entries:
        for seed in entry.seeds:
            name = name_at(entry.label, entry.coverage)
            yield name, seed, folder_of(manifest.task, entry.method, entry.job, seed)


def unfinished_runs(manifest: Manifest, store: Store) -> Iterator[list[str]]:
    """Yield the runs without a record, with the last line of their error."""
    for name, seed, folder in runs_of(manifest):
        if not store.has_record(folder):
            yield [name, str(seed), last_error(store.root / folder / ERROR) or "not there yet"]


def last_error(path: Path) -> str:
    if not path.is_file():
        return ""
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"failed: {without_folders(lines[-1])}" if lines else "failed"


def without_folders(text: str) -> str:
    """Remove folders from a text. Quoted paths may contain anything; user and password of a URL are removed too."""
    text = re.sub(r"//[^/@\s]+@", "//", text)
    text = re.sub(r"(['\"])(?:[A-Za-z]:)?[/\\][^'\"]*[/\\]([^'\"/\\]*)\1", r"\1…/\2\1", text)
    return ABSOLUTE.sub("…/", text)


def read_endings(
    manifest: Manifest, columns: Sequence[Column], store: Store
) -> tuple[dict[str, list[dict[str, float]]], list[str]]:
    """Return the last row of each learning curve by training, and a note for each training with damaged curves."""
    records: dict[tuple[str, int], Record] = {}
    for name, column in trainings(columns).items():
        records |= {(name, record.seed): record for record in (*column.records, *column.diverged)}
    endings: dict[str, list[dict[str, float]]] = {}
    damaged: dict[str, list[str]] = {}
    for name, seed, folder in runs_of(manifest):
        if (name, seed) not in records:
            continue
        try:
            if ending := last_row(read_curve(folder, records[name, seed], store)):
                endings.setdefault(name, []).append(ending)
        except Damaged:
            damaged.setdefault(name, []).append(str(seed))
    return endings, [f"{name}, seed {', '.join(seeds)}: {DAMAGED}." for name, seeds in damaged.items()]


def endings_table(endings: dict[str, list[dict[str, float]]]) -> Markup:
    """Show the last row of the learning curves, as mean over seeds."""
    title = "How the trainings ended"
    rows = ([name, *ending_texts(rows)] for name, rows in endings.items())
    about = (
        ": last epoch of the learning curves, mean over seeds; loss and accuracy on the training images, "
        "then what the method watches of itself."
    )
    table = plain_table(["method", "epochs", *COMMON, "health"], rows, title)
    return tag("div", tag("p", tag("strong", title), about, class_="caption"), table)


def last_row(curve: str) -> dict[str, float]:
    """Return the numbers of the last epoch; nothing if the curve cannot be read."""
    lines = curve.splitlines()
    if len(lines) < 2:
        return {}
    heading, last = csv.reader([lines[0], lines[-1]])
    numbers = {}
    for key, text in zip(heading, last, strict=False):
        with suppress(ValueError):
            numbers[key] = float(text)
    return numbers


def ending_texts(endings: Sequence[dict[str, float]]) -> list[str]:
    """Return the cells of a training: epochs, loss, accuracy, and what the method measures itself."""
    keys = list(dict.fromkeys(key for ending in endings for key in ending))
    means = {key: float(np.mean([ending[key] for ending in endings if key in ending])) for key in keys}
    epochs = f"{means['epoch'] + 1:g}" if "epoch" in means else "–"
    common = [f"{means[key]:.3f}" if key in means else "–" for key in COMMON]
    own = [f"{key.replace('_', ' ')} {means[key]:.3g}" for key in keys if key not in (*COMMON, *BOUND, "epoch")]
    return [epochs, *common, ", ".join(own) or "–"]
