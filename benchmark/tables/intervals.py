"""Resample the test images behind a table: intervals of its cells, and comparisons on the same images."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmark.measure.bootstrap import Array, ResampledRun, draw_images, resampled
from benchmark.measure.catalogue import Unavailable, confidence_of, own_confidence
from benchmark.store.finished import Finished
from benchmark.store.manifest import Manifest
from benchmark.store.record import Record
from benchmark.store.store import Store, folder_of
from benchmark.tables.columns import Column

REPEATED = "its images are the test images many times over, so they are not drawn one by one"
OTHER_IMAGES = "it was tested on other images than the first, so they are not resampled together"
Labels = NDArray[np.int64]


def with_draws(manifest: Manifest, columns: Sequence[Column], store: Store) -> list[Column]:
    """Return the columns with their measures in many draws of the test images, if the table is to have intervals.

    All share the draws. A column with several runs has the mean of its runs in each draw.
    """
    if not manifest.resamples_images:
        return list(columns)
    runs: dict[str, list[ResampledRun]] = {}
    reasons: dict[str, str] = {}
    labels: Labels | None = None
    for column in columns:
        if column.is_oracle or column.parts or not column.records:
            continue
        try:
            if repeats_images(column):
                raise Unavailable(REPEATED)
            own = [resampled_run(record, column, manifest, store) for record in column.records]
            labels = own[0][1] if labels is None else labels
            if any(len(each) != len(labels) or (each != labels).any() for _, each in own):
                raise Unavailable(OTHER_IMAGES)
            runs[column.name] = [run for run, _ in own]
        except Unavailable as why:
            reasons[column.name] = f"no intervals, as {why}"
    drawn = draw_all(runs, labels, manifest.coverages) if labels is not None else {}
    return [
        replace(column, draws=drawn.get(column.name, {}), undrawn=reasons.get(column.name, "")) for column in columns
    ]


def repeats_images(column: Column) -> bool:
    """Tell whether its runs were tried on the same test images many times, changed by kind and severity."""
    return any(record.evaluation is not None and record.evaluation.repeats_images for record in column.records)


def resampled_run(record: Record, column: Column, manifest: Manifest, store: Store) -> tuple[ResampledRun, Labels]:
    """Return a run as the draws need it, and the classes of its images; zeros where there are none."""
    folder = folder_of(manifest.task, record.method, record.job, record.seed)
    run = Finished(folder, store, column.epoch, record.checksums)
    is_own = column.score in record.measures.scores
    confidence = own_confidence(column.score, run, record.method) if is_own else confidence_of(column.score, run)
    labels = run.test.labels
    return resampled(run.test, confidence), labels if len(labels) else np.zeros(run.test.num_samples, np.int64)


def draw_all(
    runs: dict[str, list[ResampledRun]], labels: Labels, coverages: Sequence[float]
) -> dict[str, dict[str, Array]]:
    """Return each measure of each column in every draw, by the name of the column and of the measure."""
    parts: dict[str, list[dict[str, Array]]] = {name: [] for name in runs}
    for counts in draw_images(labels, np.random.default_rng(0)):
        for name, own in runs.items():
            measured = [run.measured(counts, coverages) for run in own]
            parts[name].append({key: np.mean([each[key] for each in measured], axis=0) for key in measured[0]})
    return {
        name: {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]}
        for name, blocks in parts.items()
    }
