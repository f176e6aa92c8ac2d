"""Bring the measures of a whole results folder up to date, from its stored predictions. This trains nothing."""

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tqdm import tqdm

from benchmark.base.errors import UserError
from benchmark.base.units import counted
from benchmark.library.options import MeasureOptions
from benchmark.library.registry import load_plugins
from benchmark.library.settings import no_results
from benchmark.measure.labels import each_score, match_scores
from benchmark.store.measuring import renew_folder
from benchmark.store.mirror import mirrored
from benchmark.store.store import Store
from benchmark.store.version_control import is_under_version_control


@dataclass(frozen=True)
class Measured:
    """What became of the runs of a folder."""

    runs: int
    kept: int
    """Runs that were measured, with what was found in their records."""
    lost: int
    """Runs that were measured, but whose records could not be written."""
    lacking: Mapping[tuple[str, str], int]
    """By measure or score, and the reason why it cannot be measured: the number of runs without it."""

    def text(self) -> str:
        """Return a line on what was done, and one for each thing that could not be."""
        unchanged = self.runs - self.kept
        lines = [
            f"{counted(self.runs, 'run')}: {self.kept} measured and kept, {unchanged} unchanged; nothing was trained"
        ]
        if self.lost:
            why = "another process works on them, or the folder cannot be written"
            lines.append(f"{counted(self.lost, 'run')} measured, but not kept: {why}")
        for (name, why), count in self.lacking.items():
            lines.append(f"{name}: not known of {counted(count, 'run')}: {why}")
        return "\n".join(lines)


def measure_results(options: MeasureOptions) -> Measured:
    """Measure what runs of a folder lack or other code measured, with further scores if some are named; keep it."""
    load_plugins(options.plugin)
    wanted = each_score(match_scores(options.scores or ()))
    kept = lost = 0
    lacking = Counter[tuple[str, str]]()
    with mirrored(options.results) as here:
        store = Store(here.folder)
        folders = store.finished()
        if not folders:
            raise no_results(store.root)
        if is_under_version_control(store.root):
            raise UserError(f"'{store.root}' is under version control, so its records stay as they are; copy it first")
        hidden = options.quiet or not sys.stderr.isatty()
        for run in tqdm(renew_folder(store, folders, wanted), total=len(folders), unit="run", disable=hidden):
            kept, lost = kept + run.kept, lost + (run.measured and not run.kept)
            lacking.update(run.reasons.items())
    return Measured(len(folders), kept, lost, dict(sorted(lacking.items())))
