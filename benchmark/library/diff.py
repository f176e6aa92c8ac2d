"""Find which results moved (changed) between two folders."""

from dataclasses import dataclass

from benchmark.base.errors import UserError
from benchmark.base.units import counted
from benchmark.library.options import DiffOptions
from benchmark.library.registry import load_plugins
from benchmark.measure.statistics import LEVEL
from benchmark.store.mirror import pulled
from benchmark.store.store import Store
from benchmark.tables.diff import MARGIN, compare_folders


@dataclass(frozen=True)
class FolderComparison:
    """What moved between two results folders, and how much was compared."""

    moved: tuple[str, ...]
    notes: tuple[str, ...]
    equal: int
    """Runs of the same job that are equal to the bit."""
    changed: int
    rounded: int
    """Runs that are not equal, but were made elsewhere: their cells are compared instead."""
    unknown: int
    """Runs whose risks cannot be compared: other code measured them, and nothing can measure them again."""
    cells: int
    """Cells of other jobs or machines."""

    def text(self) -> str:
        total = self.equal + self.changed + self.rounded + self.unknown
        lines = [f"{self.equal:,} of {counted(total, 'run')} of the same job are equal to the bit."]
        if self.rounded:
            lines.append(
                f"{self.rounded} more are not equal, but were made with another kind of processor, version of torch or "
                "number of threads: their cells are compared instead."
            )
        if self.unknown:
            lines.append(f"{self.unknown} more cannot be compared: see the notes.")
        lines.append(
            f"{counted(self.cells, 'cell')} of other jobs or machines compared. A cell moved if its mean changed "
            f"by more than {MARGIN:g} points and Welch's test is significant (level {LEVEL:g}, Holm's "
            "correction over all)."
        )
        lines += [f"note: {line}" for line in self.notes]
        lines += [f"moved: {line}" for line in self.moved]
        return "\n".join([*lines, f"{len(self.moved)} moved" if self.moved else "nothing moved"])


def compare_results(options: DiffOptions) -> FolderComparison:
    """Compare two results folders: equal jobs to the bit, others beyond chance and a margin."""
    load_plugins(options.plugin)
    stores = [Store(pulled(place)) for place in (options.old, options.new)]
    for store in stores:
        if not store.manifests() and not store.paper_manifests():
            raise UserError(f"no results in '{store.root}'; expected a folder that --results made")
    found = compare_folders(*stores)
    gone = () if options.part else (f"{what}: gone" for what in found.gone)
    return FolderComparison(
        moved=(*gone, *found.moved),
        notes=tuple(found.notes),
        equal=found.count_runs("equal"),
        changed=found.count_runs("changed"),
        rounded=found.count_runs("rounded"),
        unknown=found.count_runs("unknown"),
        cells=len(found.tested),
    )
