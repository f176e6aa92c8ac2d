"""Results folders of any size: the records of one short run under many names, with other numbers."""

import json
import math
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmark.base.files import BLANK, write_atomically, write_sealed
from tests.speed.command import run_command

SHORT = ("--datasets", "digits", "--methods", "sr", "sat", "ccl-sc", "dg", "focal", "--set", "epochs=10")
SCALED = ("aurc", "e_aurc", "augrc")
CURVES = ("risk", "percentile_risk")


@dataclass(frozen=True)
class ShortRun:
    """What a short run left: its manifest, and the record and learning curve of each method."""

    manifest: dict[str, Any]
    jobs: list[tuple[dict[str, Any], bytes]]


def short_run(tree: Path) -> ShortRun:
    """Train a few methods with the code of a source tree; that tree and later ones can read what it writes."""
    with tempfile.TemporaryDirectory() as results:
        words = [*SHORT, "--seeds", "1", "--quiet", "--results", results]
        run_command(tree, *words)
        jobs = [
            (json.loads(path.read_text()), (path.parent / "history.csv").read_bytes())
            for path in sorted(Path(results).glob("digits/*/*/seed-0/record.json"))
        ]
        return ShortRun(json.loads(Path(results, "manifests", "digits.json").read_text()), jobs)


def write_tasks(results: Path, run: ShortRun, tasks: int, methods: int, seeds: int) -> None:
    """Write a results folder with a record for each task, method and seed."""
    draws = random.Random(0)
    for task in (f"task{index}" for index in range(tasks)):
        entries = []
        for index in range(methods):
            record, history = run.jobs[index % len(run.jobs)]
            names = {"label": f"M{index}", "method": f"m{index}", "job": f"{index:012x}"}
            code = record["provenance"]["codes"][-1]
            entries.append({**names, "code": code, "seeds": list(range(seeds))})
            write_seeds(results, {**record, "task": task, **names}, history, seeds, draws)
        head = {"name": task, "task": task, "title": task, "reference": "M0", "baseline": "M1"}
        place = f"manifests/{task}.json"
        write_sealed(results / place, {**run.manifest, **head, "entries": entries, "seal": BLANK}, place)


def write_digits(results: Path, run: ShortRun, seeds: int) -> None:
    """Write the results of the short run for so many seeds, as if they had been trained."""
    for record, history in run.jobs:
        write_seeds(results, record, history, seeds, random.Random(0))


def write_seeds(results: Path, record: dict[str, Any], history: bytes, seeds: int, draws: random.Random) -> None:
    """Write a record and a learning curve for each seed of a method, which is better or worse than it was."""
    skill = 0.8 + 0.4 * draws.random()
    with patch("os.fsync"):  # a folder that is thrown away need not survive a power cut
        for seed in range(seeds):
            place = f"{record['task']}/{record['method']}/{record['job']}/seed-{seed}"
            changed = with_other_numbers({**record, "seed": seed}, skill, draws)
            write_atomically(results / place / "history.csv", history)
            write_sealed(results / place / "record.json", changed, place)


def with_other_numbers(record: dict[str, Any], skill: float, draws: random.Random) -> dict[str, Any]:
    """Return a record with about `skill` times as many errors; risks are shares of whole images, as real ones are."""
    factor = skill * (0.9 + 0.2 * draws.random())
    kept = [max(1, math.ceil(share * record["num_test"] / 100)) for share in record["coverages"]]
    scores = {name: dict(changed_score(score, factor, kept)) for name, score in record["scores"].items()}
    accuracy = 1 - next(iter(scores.values()))["risk"][-1]
    classifier = {**record["classifier"], "accuracy": accuracy}
    provenance = {**record["provenance"], "seconds": draws.random(), "seal": BLANK}
    return {**record, "classifier": classifier, "scores": scores, "provenance": provenance}


def changed_score(score: dict[str, Any], factor: float, kept: list[int]) -> Iterator[tuple[str, Any]]:
    for name, value in score.items():
        if name in CURVES:
            yield name, [round(factor * risk * count) / count for risk, count in zip(value, kept, strict=True)]
        else:
            yield name, factor * value if name in SCALED else value
