"""Draw a t-SNE map of the test features of baseline and reference: kept images, rejected images, errors."""

from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from benchmark.base.units import counted
from benchmark.figures.runs import Runs
from benchmark.figures.style import BLACK, COLOURS, DOUBLE, GREY, NotDrawn, panel_name, short_name
from benchmark.measure.catalogue import Unavailable
from benchmark.measure.prediction import Evidence, Floats
from benchmark.measure.scores import softmax_response
from benchmark.measure.statistics import Array
from benchmark.store.finished import Finished
from benchmark.store.manifest import ManifestEntry
from benchmark.store.store import folder_of

MOST_POINTS, DIMENSIONS, PERPLEXITY, SEED = 2000, 50, 30, 0
COVERAGE = 0.95
PALETTE = (*COLOURS[:-1], GREY, "#F0E442")
"""Colours of classes, not of methods; black is for errors."""
MANY_ERRORS = 100
NAMED_CLASSES = 20
"""If there are more classes, their numbers would cover the points."""


@dataclass(frozen=True)
class Map:
    """Some test images of one run, and where they lie on the map."""

    name: str
    seed: int
    places: Array
    labels: NDArray[np.int64]
    kept: NDArray[np.bool_]
    wrong: NDArray[np.bool_]


def draw(runs: Runs) -> Figure:
    names = dict.fromkeys(filter(None, (runs.manifest.baseline, runs.manifest.reference)))
    entries = [entry for name in names for entry in runs.manifest.entries if entry.label == name][:2]
    stored = {entry.label: seed_evidence(entry, runs) for entry in entries if entry.seeds}
    if not stored:
        raise NotDrawn("neither baseline nor reference has a run among those shown")
    lacking = [name for name, by_seed in stored.items() if not by_seed]
    if lacking:
        raise NotDrawn(f"{lacking[0]} has no stored features; training with --keep-features stores them")
    common = set.intersection(*(set(by_seed) for by_seed in stored.values()))
    if not common:
        raise NotDrawn(f"no seed has stored features of both {' and '.join(stored)}")
    maps = [make_map(name, min(common), by_seed[min(common)]) for name, by_seed in stored.items()]
    figure = runs.new_figure(DOUBLE, 3.75, caption(runs, maps))
    for axes, each, letter in zip(np.ravel(figure.subplots(1, len(maps))), maps, "ab", strict=False):
        draw_map(axes, each)
        panel_name(axes, f"({letter}) {short_name(each.name)}, seed {each.seed}")
    figure.legend(handles=legend_marks(), loc="outside upper left", ncols=3, columnspacing=1.5, handlelength=1.2)
    return figure


def seed_evidence(entry: ManifestEntry, runs: Runs) -> dict[int, Evidence]:
    """Return the test images by seed, for the runs whose features are stored."""
    by_seed = {}
    for seed in entry.seeds:
        folder = folder_of(runs.manifest.task, entry.method, entry.job, seed)
        with suppress(Unavailable):
            by_seed[seed] = Finished(folder, runs.store, entry.epoch).test
    return {seed: evidence for seed, evidence in by_seed.items() if evidence.prediction.features is not None}


def make_map(name: str, seed: int, evidence: Evidence) -> Map:
    features = np.asarray(evidence.prediction.features)
    chosen = draw_points(len(features))
    kept, wrong = kept_and_wrong(evidence)
    return Map(name, seed, embed(features[chosen]), evidence.labels[chosen], kept[chosen], wrong[chosen])


def draw_points(available: int) -> NDArray[np.int64]:
    """Choose the images to draw, the same for every run of a task."""
    if available <= MOST_POINTS:
        return np.arange(available)
    return np.sort(np.random.default_rng(SEED).choice(available, MOST_POINTS, replace=False))


def kept_and_wrong(evidence: Evidence) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which images are kept, by softmax response over the whole test set, and which are predicted wrongly."""
    logits = evidence.prediction.logits
    order = np.argsort(-softmax_response(logits), kind="stable")
    kept = np.zeros(len(logits), dtype=np.bool_)
    kept[order[: ceil(COVERAGE * len(logits))]] = True
    return kept, np.asarray(logits.argmax(axis=1) != evidence.labels)


def embed(features: Floats) -> Array:
    """Return the places by t-SNE. It uses one thread: several threads sum in any order, which would change the map."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    values = np.asarray(features, dtype=np.float64)
    dimensions = min(DIMENSIONS, *values.shape)
    perplexity = min(PERPLEXITY, (len(values) - 1) / 3)
    with threadpool_limits(limits=1):
        if dimensions < values.shape[1]:
            values = PCA(dimensions, svd_solver="full").fit_transform(values)
        places = TSNE(perplexity=perplexity, init="pca", random_state=SEED, n_jobs=1).fit_transform(values)
    return np.asarray(places, dtype=np.float64)


def draw_map(axes: Axes, each: Map) -> None:
    """Draw kept points filled, the others hollow and small, and a cross on the errors among the kept."""
    classes = np.unique(each.labels)
    halo = [withStroke(linewidth=2.2, foreground="white")]
    name_style: dict[str, Any] = {"fontsize": 9, "weight": "bold", "path_effects": halo, "zorder": 4}
    for number in classes:
        colour, marker = PALETTE[number % len(PALETTE)], "o^s"[number // len(PALETTE) % 3]
        own = each.labels == number
        kept, rest = each.places[own & each.kept], each.places[own & ~each.kept]
        hollow = {"facecolors": "none", "edgecolors": colour, "alpha": 0.8, "linewidths": 0.5}
        axes.scatter(rest[:, 0], rest[:, 1], s=5, marker=marker, **hollow)
        axes.scatter(kept[:, 0], kept[:, 1], s=6, c=colour, marker=marker, linewidths=0)
        if len(classes) <= NAMED_CLASSES:
            x, y = centre(each.places[own])
            axes.text(x, y, str(number), ha="center", va="center", **name_style)
    bad = each.places[each.kept & each.wrong]
    size, width = (11, 0.7) if len(bad) < MANY_ERRORS else (5, 0.45)
    axes.scatter(bad[:, 0], bad[:, 1], s=size, c=BLACK, marker="x", linewidths=width, zorder=3)
    draw_frame(axes, each.places)


def centre(places: Array) -> Array:
    """Return the point with the smallest median distance to the others: it lies among points even in a split class."""
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    return np.asarray(places[np.median(distances, axis=1).argmin()])


def draw_frame(axes: Axes, places: Array) -> None:
    """Draw a square around the points, without numbers: the axes of such a map have no unit."""
    middle, half = (places.max(0) + places.min(0)) / 2, 0.54 * np.ptp(places, axis=0).max()
    (left, bottom), (right, top) = middle - half, middle + half
    axes.set(xlim=(left, right), ylim=(bottom, top), box_aspect=1, xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("#CCCCCC")


def legend_marks() -> list[Line2D]:
    return [
        Line2D([], [], marker="o", linestyle="", markersize=3.2, color=GREY, label=f"kept at {COVERAGE:.0%} coverage"),
        Line2D([], [], marker="o", linestyle="", markersize=2.4, color=GREY, fillstyle="none", label="abstained"),
        Line2D([], [], marker="x", linestyle="", markersize=4, color=BLACK, label="error among the kept"),
    ]


def caption(runs: Runs, maps: list[Map]) -> list[str]:
    counts = " and ".join(f"{int((each.kept & each.wrong).sum())}" for each in maps)
    many = int(max(each.labels.max() for each in maps)) >= len(PALETTE)
    return [
        f"{runs.manifest.title}: t-SNE of the features of {counted(len(maps[0].labels), 'test image')}; colour: "
        f"class{' (colours repeat)' if many else ''}. Errors among the kept: {counts}.",
        "Confidence is the softmax response of the stored logits for both, whatever score a method was published with.",
        "Distances between clusters mean little in such a map.",
    ]
