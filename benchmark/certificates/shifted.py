"""Look at evaluation sets: at what certified thresholds do to them, for which nothing is guaranteed, and at groups."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from benchmark.certificates.held_out import View
from benchmark.certificates.runs import CertifiedRun, kept_by
from benchmark.measure.catalogue import FinishedRun, Unavailable
from benchmark.measure.prediction import CONFIDENCE, Evidence
from benchmark.measure.sets.formulas import judged
from benchmark.measure.sets.parts import Kept
from benchmark.store.finished import Finished
from benchmark.store.manifest import Manifest
from benchmark.store.record import Record
from benchmark.store.store import Store, folder_of

SHIFTED = ("corruptions", "shift", "new")
"""Kinds of sets whose images are not the test images."""


@dataclass(frozen=True)
class EvaluatedSet:
    """An evaluation set of a task, with its runs."""

    name: str
    manifest: Manifest
    store: Store

    def pool(self, run: Record, kinds: Sequence[str]) -> Evidence | None:
        """Return what a run predicted of the set; None if it was not evaluated on one of these kinds."""
        for entry in self.manifest.entries:
            folder = folder_of(self.manifest.task, entry.method, entry.job, run.seed)
            record = self.store.read_record(folder) if entry.job and run.seed in entry.seeds else None
            if record is None or record.evaluation is None or record.evaluation.kind not in kinds:
                continue
            if run.job in (*record.identity.get("needs", ()), record.job):
                with suppress(Unavailable):
                    return Finished(folder, self.store, None, record.checksums).test
        return None

    def realised(self, run: CertifiedRun, risks: Sequence[float]) -> Mapping[float, Kept]:
        """Return what the certified thresholds of a run keep of the set; nothing where that is not known."""
        pool = self.pool(run.record, SHIFTED)
        if pool is None or f"{CONFIDENCE}{run.score}" not in pool.prediction.aux:
            return {}
        images = judged(pool, run.score)
        return {risk: kept_by(run.at_risk[risk].threshold, images) for risk in risks}


def sets_of(task: str, store: Store) -> Iterator[EvaluatedSet]:
    """Yield the evaluation sets of a task that the folder has results of."""
    for manifest in store.manifests():
        if manifest.set_of == task:
            yield EvaluatedSet(manifest.task.removeprefix(f"{task}-"), manifest, store)


def with_groups(run: FinishedRun, record: Record, sets: Sequence[EvaluatedSet]) -> FinishedRun:
    """Return a run whose test images have the groups that an evaluation set of groups says, where there is one."""
    test = run.test
    for each in sets:
        pool = each.pool(record, ("groups",))
        if pool is not None and test.ids is not None and pool.ids is not None and np.array_equal(pool.ids, test.ids):
            test = replace(test, groups={**test.groups, **pool.groups})
    return View(run, test, None)
