"""Build everything that is shown of a manifest. Records are read once, for tables, statistics and the report."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables.build import build_tables
from benchmark.tables.columns import Column
from benchmark.tables.costs import cost_tables
from benchmark.tables.intervals import with_draws
from benchmark.tables.model import Sheet, Table
from benchmark.tables.modified import open_table, with_note
from benchmark.tables.render.latex import with_labels
from benchmark.tables.sets.build import set_tables, with_images
from benchmark.tables.statistics import build_statistics


@dataclass(frozen=True)
class Assembled:
    """All that is shown of one task or one published table. Only a published table has a companion."""

    manifest: Manifest
    columns: list[Column]
    tables: list[Table]
    statistics: list[Sheet]
    companion: list[Sheet]
    costs: list[Table] = field(default_factory=list)
    """Of errors and rejections, in a file of their own."""

    @property
    def name(self) -> str:
        return str(self.manifest.name)

    @property
    def title(self) -> str:
        return str(self.manifest.title)


def assemble(manifest: Manifest, store: Store) -> Assembled:
    """Return all tables and sheets of a task."""
    manifest, columns = open_table(manifest, store)
    columns = with_draws(manifest, columns, store)
    shown = assemble_parts(manifest, columns, all_tables(manifest, columns), [], manifest.name)
    costs = with_labels(cost_tables(manifest, columns), manifest.name)
    return replace(shown, costs=with_note(costs, manifest.modified))


def all_tables(manifest: Manifest, columns: Sequence[Column]) -> list[Table]:
    """Return the tables of all images together, then those of the parts of an evaluation set."""
    return [*with_images(build_tables(manifest, columns), columns), *set_tables(manifest, columns)]


def assemble_parts(
    manifest: Manifest, columns: list[Column], tables: list[Table], companion: list[Sheet], stem: str
) -> Assembled:
    """Add statistics, LaTeX labels that start with `stem`, and the note on what was modified."""
    statistics = with_labels(build_statistics(manifest, columns), f"{stem}-statistics")
    tables, companion = with_labels(tables, stem), with_labels(companion, stem)
    note = manifest.modified
    return Assembled(
        manifest, columns, with_note(tables, note), with_note(statistics, note), with_note(companion, note)
    )
