"""Choose the tables of an evaluation set by its kind, and say which images its ordinary tables are about."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmark.measure.sets.formulas import NEW, SHIFTED, WITH_NEW
from benchmark.measure.sets.parts import CLEAN
from benchmark.store.manifest import Manifest
from benchmark.tables.columns import Column
from benchmark.tables.model import Table
from benchmark.tables.sets.groups import group_outlines
from benchmark.tables.sets.new import new_outlines
from benchmark.tables.sets.outline import Outline, table_of
from benchmark.tables.sets.severity import shift_outlines
from benchmark.tables.sets.thresholds import threshold_outlines
from benchmark.tables.sets.values import Seen, see

OUTLINES: dict[str, tuple[Callable[[Manifest, Seen], list[Outline]], ...]] = {
    "corruptions": (shift_outlines, threshold_outlines),
    "shift": (shift_outlines, threshold_outlines),
    "new": (new_outlines, threshold_outlines),
    "groups": (group_outlines,),
}
"""By kind of set; what people say of images is in the ordinary tables, as the true probabilities of classes."""


def set_outlines(manifest: Manifest, columns: Sequence[Column]) -> list[Outline]:
    """Return the tables of the parts of an evaluation set, not filled yet; none for a task."""
    seen = see(columns)
    if seen is None:
        return []
    found = [outline for make in OUTLINES.get(seen.kind, ()) for outline in make(manifest, seen)]
    if found and seen.no_thresholds:
        found[0] = replace(found[0], notes=(*found[0].notes, f"No thresholds carried along: {seen.no_thresholds}."))
    return found


def set_tables(manifest: Manifest, columns: Sequence[Column]) -> list[Table]:
    """Return the tables of the parts of an evaluation set; none for a task."""
    return [table_of(outline, manifest, columns) for outline in set_outlines(manifest, columns)]


def with_images(tables: Sequence[Table], columns: Sequence[Column]) -> list[Table]:
    """Return the ordinary tables, which are about all images of a set together, with a note that says which."""
    seen = see(columns)
    note = "" if seen is None else images_note(seen)
    return [replace(table, notes=(*table.notes, note)) if note else table for table in tables]


def images_note(seen: Seen) -> str:
    if seen.kind in ("corruptions", "shift"):
        return f"Images: all {seen.num_images(SHIFTED):,} shifted ones together, without the clean ones."
    if seen.kind == "new":
        new, together = seen.num_images(NEW), seen.num_images(WITH_NEW)
        known, share = together - new, new / together
        return (
            f"Images: {known:,} test images and {new:,} of new classes ({share:.0%}); to accept a new one is an error."
        )
    return f"Images: the {seen.num_images(CLEAN):,} test images."
