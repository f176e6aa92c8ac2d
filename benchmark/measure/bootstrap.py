"""Resample the test images of finished runs: how far a measure depends on which images were drawn, the run fixed.

A draw is a number of copies for each image. Copies of an image tie, and tied images count with their mean loss, so that
a draw is measured by the formulas of `metrics.py`; here they are sums over the images, for many draws at a time.
Arrays have the shape (images, draws), or (parts of the ranking, draws).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchmark.measure.evaluate import COST_RATIOS, RISKS, Classified, Ranking
from benchmark.measure.metrics import ROUNDING, kept, normalised_aurc
from benchmark.measure.prediction import LARGEST_P, Evidence
from benchmark.measure.statistics import DRAWS, LEVEL, NOISE_DECIMALS, Outcome

Array = NDArray[np.float64]
Counts = NDArray[np.int32]
AT_ONCE = 2**19
"""Numbers of a block of draws: few enough for the processor's cache."""


def draw_images(strata: NDArray[np.int64], random: np.random.Generator, draws: int = DRAWS) -> Iterator[Counts]:
    """Yield blocks of draws: how often each image is in each. A stratum has as many images in a draw as in the set."""
    order = np.argsort(strata, kind="stable")
    _, starts, sizes = np.unique(strata[order], return_index=True, return_counts=True)
    first, size = np.repeat(starts, sizes)[:, None], np.repeat(sizes, sizes)[:, None]
    n = len(strata)
    step = max(1, AT_ONCE // n)
    for begun in range(0, draws, step):
        columns = min(step, draws - begun)
        picked = order[first + (random.random((n, columns)) * size).astype(np.int64)]
        places = picked * columns + np.arange(columns)
        yield np.bincount(places.ravel(), minlength=n * columns).reshape(n, columns).astype(np.int32)


@dataclass(frozen=True)
class ResampledRanking:
    """Samples with a confidence and a loss from 0 to 1 each, to be measured in many draws."""

    confidence: Array
    loss: Array

    @cached_property
    def order(self) -> NDArray[np.int64]:
        return np.argsort(-self.confidence, kind="stable")

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Return where the parts of the ranking begin: tied samples are one part, as are neighbours without loss."""
        ranked, loss = self.confidence[self.order], self.loss[self.order]
        ties = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
        lossless = np.add.reduceat(loss, ties) == 0
        return np.asarray(ties[~(lossless & np.r_[False, lossless[:-1]])])

    @cached_property
    def tables(self) -> tuple[Array, Array]:
        """Return what the samples up to each rank add to AURC and AUGRC, if all had the loss 1.

        AURC = (1/n) Σ_r ℓ_(r) Σ_{k≥r} 1/k and AUGRC = (1/n²) Σ_r ℓ_(r) (n − r + ½), over the ranks r.
        """
        n = len(self.loss)
        ranks = np.arange(1, n + 1)
        weights = np.cumsum(1 / ranks[::-1])[::-1] / n, (n - ranks + 0.5) / n**2
        aurc, augrc = (np.r_[0.0, np.cumsum(weight)] for weight in weights)
        return aurc, augrc

    def measured(self, counts: Counts, coverages: Sequence[float]) -> dict[str, Array]:
        """Return each measure in each draw; coverages are in per cent."""
        sizes, losses, ends = self.ranked_parts(counts)
        sums = np.vstack([np.zeros_like(losses[:1]), np.cumsum(losses, axis=0)])
        aurc, augrc = (self.area(table, sizes, losses, ends) for table in self.tables)
        mean = sums[-1] / len(self.loss)
        best = self.optimum(counts, sums[-1])
        measures = {"aurc": aurc, "augrc": augrc, "e_aurc": aurc - best, "naurc": normalised_aurc(aurc, best, mean)}
        measures |= risks(ends, sums, coverages) | coverages_at_risk(ends, sums) | best_costs(ends, sums)
        if not self.is_right_or_wrong:
            return measures
        return measures | {"auroc": auroc_of(augrc, mean), "fpr95": fpr95(ends, sums), "aupr": aupr(ends, sums)}

    @cached_property
    def is_right_or_wrong(self) -> bool:
        """Tell whether every loss is 0 or 1."""
        return bool(((self.loss == 0) | (self.loss == 1)).all())

    def optimum(self, counts: Counts, total: Array) -> Array:
        """Return the AURC of a perfect ranking in each draw, whose losses sum to `total`."""
        if self.is_right_or_wrong:
            return np.asarray(self.optimal_aurc[np.rint(total).astype(np.int64)])
        best = self.by_loss
        return best.area(best.tables[0], *best.ranked_parts(counts))

    def parts(self, counts: Counts) -> tuple[Counts, Array]:
        """Return how many samples of each part are in each draw, and the sum of their losses."""
        sizes = np.add.reduceat(counts[self.order], self.starts, axis=0)
        losses = np.zeros(sizes.shape)
        rows, parts, starts = self.lossy
        if len(rows):
            losses[parts] = np.add.reduceat(counts[rows] * self.loss[rows][:, None], starts, axis=0)
        return sizes, losses

    @cached_property
    def lossy(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the samples that have a loss, ranked; the parts they are in; where each part begins among them."""
        ranks = np.flatnonzero(self.loss[self.order])
        parts, starts = np.unique(np.searchsorted(self.starts, ranks, side="right") - 1, return_index=True)
        return self.order[ranks], parts, starts

    def ranked_parts(self, counts: Counts) -> tuple[Counts, Array, Counts]:
        """Return the same, and at which rank each part begins and ends."""
        sizes, losses = self.parts(counts)
        return sizes, losses, np.vstack([np.zeros_like(sizes[:1]), np.cumsum(sizes, axis=0)])

    @staticmethod
    def area(table: Array, sizes: Counts, losses: Array, ends: Counts) -> Array:
        """Return the sum over the parts of their mean loss times what their ranks would add with the loss 1."""
        means = losses / np.maximum(sizes, 1)
        return np.asarray((means * (table[ends[1:]] - table[ends[:-1]])).sum(axis=0))

    @cached_property
    def by_loss(self) -> "ResampledRanking":
        """Return the perfect ranking of the same samples."""
        return ResampledRanking(-self.loss, self.loss)

    @cached_property
    def optimal_aurc(self) -> Array:
        """Return the AURC of a perfect ranking by the number of errors E: [E − (n−E)(H_n − H_{n−E})]/n."""
        n = len(self.loss)
        harmonic = np.r_[0.0, np.cumsum(1 / np.arange(1, n + 1))]
        errors = np.arange(n + 1)
        return np.asarray((errors - (n - errors) * (harmonic[n] - harmonic[n - errors])) / n)


def risks(ends: Counts, sums: Array, coverages: Sequence[float]) -> dict[str, Array]:
    """Return the selective risk in each draw at each coverage. Within a part losses grow evenly, as ties do."""
    numbers = [int(kept(coverage / 100, int(ends[-1, 0]))) for coverage in coverages]
    pairs = zip(np.ascontiguousarray(ends.T), np.ascontiguousarray(sums.T), strict=True)
    found = np.array([np.interp(numbers, xs, ys) for xs, ys in pairs]) / numbers
    return {f"risk@{coverage:g}": found[:, index] for index, coverage in enumerate(coverages)}


def coverages_at_risk(ends: Counts, sums: Array) -> dict[str, Array]:
    """Return the largest coverage in each draw at each bound of the risk."""
    return {f"coverage_at_risk_{risk:g}": coverage_at_risk(ends, sums, risk / 100 + ROUNDING) for risk in RISKS}


def coverage_at_risk(ends: Counts, sums: Array, risk: float) -> Array:
    """Return the same at one bound: at the end of the last part where it holds, or within the part after it."""
    room = risk * ends - sums
    before = len(ends) - 1 - np.argmax(room[::-1] >= 0, axis=0)
    after = np.minimum(before + 1, len(ends) - 1)
    left, fall = at_part(room, before), at_part(room, before) - at_part(room, after)
    size = at_part(ends, after) - at_part(ends, before)
    within = np.floor(np.divide(left * size, fall, out=np.zeros_like(left), where=after > before))
    return np.asarray((at_part(ends, before) + within) / ends[-1])


def best_costs(ends: Counts, sums: Array) -> dict[str, Array]:
    """Return the cost by the best threshold in each draw at each ratio of the tables."""
    n = int(ends[-1, 0])
    found = {ratio: (sums - ratio / 100 * ends).min(axis=0) / n + ratio / 100 for ratio in COST_RATIOS}
    return {f"cost_{ratio:g}": costs for ratio, costs in found.items()}


def fpr95(ends: Counts, sums: Array) -> Array:
    """Return the share of wrong samples kept with 95 % of the right ones; NaN where there is only one kind."""
    right = ends - sums
    enough = np.argmax(right >= kept(0.95, right[-1]), axis=0)
    return of_errors(at_part(sums, enough), ends, sums)


def aupr(ends: Counts, sums: Array) -> Array:
    """Return the AUPR of errors in each draw; NaN where there is only one kind."""
    precision = (sums[-1] - sums[:-1]) / np.maximum(ends[-1] - ends[:-1], 1)
    return of_errors((np.diff(sums, axis=0) * precision).sum(axis=0), ends, sums)


def of_errors(number: Array, ends: Counts, sums: Array) -> Array:
    """Return a number as a share of all errors; NaN where there is only one kind."""
    both = (sums[-1] > 0) & (sums[-1] < ends[-1])
    return np.asarray(np.divide(number, sums[-1], out=np.full_like(number, np.nan), where=both))


def at_part(table: Array | Counts, part: NDArray[np.int64]) -> Array:
    """Return the entry of each draw at the end of one of its parts."""
    return np.asarray(np.take_along_axis(table, part[None], axis=0)[0], np.float64)


def auroc_of(augrc: Array, wrong: Array) -> Array:
    """Return the AUROC that belongs to an AUGRC and a share of errors; NaN where there is only one kind."""
    both = wrong * (1 - wrong)
    return np.asarray(1 - np.divide(augrc - wrong**2 / 2, both, out=np.full_like(both, np.nan), where=both > 0))


@dataclass(frozen=True)
class ResampledMeans:
    """Measures that are means over samples, by name: shape (samples,)."""

    values: dict[str, Array]

    def measured(self, counts: Counts) -> dict[str, Array]:
        means = np.stack(list(self.values.values())) @ counts / len(counts)
        return dict(zip(self.values, means, strict=True))


@dataclass(frozen=True)
class ResampledCalibration:
    """The largest probabilities and errors of samples, whose ECE is measured in many draws."""

    probability: Array
    error: Array
    bins: int = 15

    @cached_property
    def bin_of(self) -> NDArray[np.int64]:
        return np.clip(np.ceil(self.bins * self.probability).astype(np.int64) - 1, 0, self.bins - 1)

    @cached_property
    def gaps(self) -> Array:
        """Return what each sample adds to the gap between accuracy and confidence in each bin."""
        return np.asarray((self.bin_of == np.arange(self.bins)[:, None]) * (1 - self.error - self.probability))

    def measured(self, counts: Counts) -> dict[str, Array]:
        return {"ece": np.abs(self.gaps @ counts).sum(axis=0) / len(counts)}


@dataclass(frozen=True)
class ResampledRun:
    """A run, read with one score, to be measured in many draws."""

    rankings: dict[str, ResampledRanking]
    """By what the names of its measures begin with: nothing, or `expected_` where the truth is known."""
    others: tuple[ResampledMeans | ResampledCalibration, ...]
    """What does not depend on the score."""

    def measured(self, counts: Counts, coverages: Sequence[float]) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for prefix, ranking in self.rankings.items():
            found |= {f"{prefix}{name}": values for name, values in ranking.measured(counts, coverages).items()}
        for other in self.others:
            found |= other.measured(counts)
        return found


def resampled(evidence: Evidence, confidence: Array) -> ResampledRun:
    """Return a run as the draws need it: one number or two per sample, however many classes there are."""
    ranking, prediction = Ranking("", confidence, evidence), evidence.prediction
    rankings = {"": ResampledRanking(confidence, ranking.error)}
    if ranking.expected is not None:
        rankings["expected_"] = ResampledRanking(confidence, ranking.expected)
    if evidence.loss is not None:
        return ResampledRun(rankings, ())
    accuracy = {"accuracy": 1 - ranking.error}
    if not evidence.has_logits:
        known = prediction.aux.get(LARGEST_P)
        chow = {} if known is None else chow_costs(np.asarray(known, np.float64), ranking.error)
        return ResampledRun(rankings, (ResampledMeans(accuracy | chow),))
    classified = Classified(prediction.logits, evidence.labels, prediction.probabilities)
    likely = classified.likelihoods
    probability = np.asarray(classified.probability, np.float64)
    likelihoods = {"nll": -likely.label_log_p, "brier": likely.squared_distance}
    means = ResampledMeans(accuracy | likelihoods | chow_costs(probability, ranking.error))
    return ResampledRun(rankings, (means, ResampledCalibration(probability, ranking.error)))


def chow_costs(probability: Array, error: Array) -> dict[str, Array]:
    """Return what each sample costs by Chow's rule at each ratio of the tables."""
    ratios = {f"chow_cost_{ratio:g}": ratio / 100 for ratio in COST_RATIOS}
    return {name: np.where(probability >= 1 - ratio, error, ratio) for name, ratio in ratios.items()}


def interval(draws: Array) -> tuple[float, float]:
    """Return the ends between which all but a share LEVEL of the draws lie; draws without a value are left out."""
    low, high = np.nanquantile(draws, [LEVEL / 2, 1 - LEVEL / 2])
    return float(low), float(high)


def bootstrap_test(a: Array, b: Array) -> Outcome:
    """Test by paired draws whether two measures differ: p is twice the smaller share of draws on one side of 0.

    A draw without a difference counts on both sides, and one more on each, so that p is never 0. What is smaller than
    the noise of sums of floats is no difference.
    """
    difference = np.round(b - a, NOISE_DECIMALS)
    difference = difference[~np.isnan(difference)]
    lower, higher = int((difference >= 0).sum()), int((difference <= 0).sum())
    p = min(1.0, 2 * (1 + min(lower, higher)) / (1 + len(difference)))
    return Outcome(p, float(difference.mean()), float(difference.mean()))
