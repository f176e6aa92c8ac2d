"""Build everything that is shown of a published table."""

from collections.abc import Callable

from benchmark.paper.companion import build_companion
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables.assemble import Assembled, assemble, assemble_parts
from benchmark.tables.build import build_tables
from benchmark.tables.modified import open_table


def assemble_paper(manifest: Manifest, store: Store) -> Assembled:
    """Return a published table in its own form, and its companion with the published figures."""
    manifest, columns = open_table(manifest, store)
    tables = [table for table in build_tables(manifest, columns) if table.name in ("risk", "kept")]
    return assemble_parts(manifest, columns, tables, build_companion(manifest, tables[0]), f"paper-{manifest.name}")


MAKERS: dict[str, Callable[[Manifest, Store], Assembled]] = {"task": assemble, "paper": assemble_paper}
"""By kind of manifest, how everything that is shown of one is assembled."""
