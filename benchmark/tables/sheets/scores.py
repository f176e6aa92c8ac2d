"""Build the sheet of every score of every method: what each post-hoc score is worth beside softmax response."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Any

import numpy as np

from benchmark.measure.labels import EVERY_SCORE, each_score
from benchmark.measure.statistics import LEVEL, NOISE_DECIMALS, seeds_needed, sign_test_p
from benchmark.store.manifest import Manifest
from benchmark.tables.columns import Column, abbreviate, split_by_coverage
from benchmark.tables.model import Sheet

SCORES, PLAIN = "scores", "SR"
BySeed = dict[int, float]


@dataclass(frozen=True)
class Against:
    """What a score does to the AURC of runs beside SR of the same runs."""

    differences: dict[tuple[str, int], float]
    """AURC ×10³ minus that of SR, by column and seed."""

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """Return in how many runs it is lower, equal and higher."""
        return counts_of(list(self.differences.values()))

    @cached_property
    def p(self) -> float:
        """Return p of the sign test over seeds, the runs of a seed taken together by their mean difference."""
        seeds = sorted({seed for _, seed in self.differences})
        means = [float(np.mean([d for (_, each), d in self.differences.items() if each == seed])) for seed in seeds]
        lower, _, higher = counts_of(means)
        return sign_test_p(lower, higher)


def counts_of(differences: Sequence[float]) -> tuple[int, int, int]:
    signs = np.sign(np.round(np.array(differences, np.float64), NOISE_DECIMALS))
    return int((signs < 0).sum()), int((signs == 0).sum()), int((signs > 0).sum())


def scores_sheet(manifest: Manifest, columns: Sequence[Column]) -> Sheet | None:
    """Return the sheet, if every score was asked for: a line for each score that a run has."""
    trainings = split_by_coverage([column for column in columns if column.published and column.records])
    if EVERY_SCORE not in manifest.scores or not trainings:
        return None
    own = (name for column in trainings for record in column.records for name in record.measures.scores)
    table = {
        name: {column.name: aurc_by_seed(column, name) for column in trainings}
        for name in dict.fromkeys((*each_score(manifest.scores), *own))
    }
    table = {name: line for name, line in table.items() if any(line.values())}
    best = {column.name: best_of(column.name, table, manifest.decimals) for column in trainings}
    lines, numbers = [], []
    for name, line in table.items():
        texts = [cell_text(line[c.name], c, name in best[c.name], manifest.decimals) for c in trainings]
        against = Against(differences_from(table.get(PLAIN, {}), line))
        compared = name != PLAIN and bool(against.differences)
        counts, p = ("/".join(map(str, against.counts)), p_text(against.p)) if compared else ("–", "–")
        lines.append((name, *texts, counts, p))
        numbers += list(line_numbers(name, line, best))
        if compared:
            numbers.append(
                {"score": name, **dict(zip(("lower", "equal", "higher"), against.counts, strict=True)), "p": against.p}
            )
    heading = ("score", *(column.name for column in trainings), f"lower/equal/higher than {PLAIN}", "sign test p")
    return Sheet(
        SCORES, caption(manifest), heading, tuple(lines), tuple(missing_notes(trainings, manifest)), tuple(numbers)
    )


def caption(manifest: Manifest) -> str:
    return (
        f"Every score on {manifest.title}: mean AURC ×10³ over the seeds of each method read with each score, * the "
        "best score of a method on these test images, of those that all its runs have: no way to choose one. "
        f"Lower/equal/higher than {PLAIN}: in how many runs of all methods the AURC is lower, equal or higher than by "
        f"{PLAIN} of the same run. p: of the two-sided exact sign test over seeds, each with the mean difference of "
        f"its runs, no correction; it takes {seeds_needed('paired')} seeds to fall below {LEVEL:g}, and says nothing "
        "of other test images."
    )


def aurc_by_seed(column: Column, score: str) -> BySeed:
    """Return the AURC ×10³ of the runs that have the score."""
    having = [record for record in column.records if score in record.measures.all_scores]
    return {record.seed: 1000 * aurc for record in having if (aurc := record.score(score).aurc) is not None}


def best_of(column: str, table: dict[str, dict[str, BySeed]], decimals: int) -> list[str]:
    """Return the scores with the lowest printed mean, of those that most runs of a column have."""
    most = max(len(line[column]) for line in table.values())
    means = {name: mean_text(line[column], decimals) for name, line in table.items() if len(line[column]) == most > 0}
    return [name for name, mean in means.items() if float(mean) == min(map(float, means.values()))]


def mean_text(values: BySeed, decimals: int) -> str:
    return f"{np.mean(list(values.values())):.{decimals}f}"


def cell_text(values: BySeed, column: Column, is_best: bool, decimals: int) -> str:
    if not values:
        return "–"
    missing = f" ({len(values)}/{len(column.records)})" if len(values) < len(column.records) else ""
    return mean_text(values, decimals) + ("*" if is_best else "") + missing


def p_text(p: float) -> str:
    return "–" if isnan(p) else f"{p:.3f}"


def differences_from(plain: dict[str, BySeed], line: dict[str, BySeed]) -> dict[tuple[str, int], float]:
    """Return each value minus that of SR, of the runs that have both."""
    return {
        (name, seed): value - plain[name][seed]
        for name, values in line.items()
        for seed, value in values.items()
        if seed in plain.get(name, {})
    }


def line_numbers(score: str, line: dict[str, BySeed], best: dict[str, list[str]]) -> Iterator[dict[str, Any]]:
    """Yield a line of the CSV file for each column that has the score."""
    for name, values in line.items():
        if values:
            mean, std = (float(f(list(values.values()))) for f in (np.mean, np.std))
            yield {
                "score": score,
                "column": name,
                "mean": mean,
                "std": std,
                "n": len(values),
                "best": score in best[name],
            }


def missing_notes(columns: Sequence[Column], manifest: Manifest) -> list[str]:
    """Return one note on the scores that runs do not have, and why."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for score in each_score(manifest.scores):
        without: dict[str, list[str]] = {}
        for column in columns:
            lacking = (record for record in column.records if score not in record.measures.all_scores)
            for why in dict.fromkeys(record.reasons.get(score, "") for record in lacking):
                without.setdefault(why, []).append(column.name)
        for why, names in without.items():
            found.setdefault((why, tuple(names)), []).append(score)
    every = tuple(column.name for column in columns)
    parts = [
        ", ".join(scores) + ("" if names == every else f" of {abbreviate(names)}") + (f": {why}" if why else "")
        for (why, names), scores in found.items()
    ]
    return [f"Not there: {'; '.join(parts)}."] if parts else []
