"""Look at what certified thresholds do to evaluation sets, for which they guarantee nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmark.certify.runs import CertifiedRun, kept_by
from benchmark.measure.catalogue import Unavailable
from benchmark.measure.prediction import CONFIDENCE
from benchmark.measure.sets.formulas import judged
from benchmark.measure.sets.parts import Kept
from benchmark.store.finished import Finished
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store, folder_of

SHIFTED = ("corruptions", "shift", "new")
"""Kinds of sets whose images are not the test images."""


@dataclass(frozen=True)
class EvaluatedSet:
    """An evaluation set of a task, with the folders of its runs."""

    name: str
    manifest: Manifest
    store: Store

    def realised(self, run: CertifiedRun, risks: Sequence[float]) -> Mapping[float, Kept]:
        """Return what the certified thresholds of a run keep of the set; nothing where it was not evaluated on it."""
        for entry in self.manifest.entries:
            folder = folder_of(self.manifest.task, entry.method, entry.job, run.record.seed)
            record = self.store.read_record(folder) if entry.job and run.record.seed in entry.seeds else None
            if record is None or record.evaluation is None or record.evaluation.kind not in SHIFTED:
                continue
            if run.record.job not in (*record.identity.get("needs", ()), record.job):
                continue
            try:
                pool = Finished(folder, self.store, None, record.checksums).test
            except Unavailable:
                continue
            if f"{CONFIDENCE}{run.score}" in pool.prediction.aux:
                images = judged(pool, run.score)
                return {risk: kept_by(run.at_risk[risk].threshold, images) for risk in risks}
        return {}


def sets_of(task: str, store: Store) -> Iterator[EvaluatedSet]:
    """Yield the evaluation sets of a task that the folder has results of."""
    for manifest in store.manifests():
        if manifest.set_of == task:
            yield EvaluatedSet(manifest.task.removeprefix(f"{task}-"), manifest, store)
