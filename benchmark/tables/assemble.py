"""Manifest → everything that is shown of it. Records are read once, for tables, statistics and the report."""

from dataclasses import dataclass
from typing import Any

from benchmark.cells import Table
from benchmark.columns import Column
from benchmark.latex import labelled
from benchmark.modified import noted, open_table
from benchmark.sheet import Sheet
from benchmark.significance import build_statistics
from benchmark.store import Store
from benchmark.tables import build_tables
from benchmark.verdicts import build_companion


@dataclass(frozen=True)
class Assembled:
    """One task, or one published table, which alone has a companion."""

    manifest: dict[str, Any]
    columns: list[Column]
    tables: list[Table]
    statistics: list[Sheet]
    companion: list[Sheet]

    @property
    def name(self) -> str:
        return str(self.manifest["name"])

    @property
    def title(self) -> str:
        return str(self.manifest["title"])


def assemble(manifest: dict[str, Any], store: Store) -> Assembled:
    """All tables of a task."""
    manifest, columns = open_table(manifest, store)
    return gather(manifest, columns, build_tables(manifest, columns), [], manifest["name"])


def assemble_paper(manifest: dict[str, Any], store: Store) -> Assembled:
    """A published table in its own form, and its companion with the published figures."""
    manifest, columns = open_table(manifest, store)
    tables = [table for table in build_tables(manifest, columns) if table.name in ("risk", "kept")]
    return gather(manifest, columns, tables, build_companion(manifest, tables[0]), f"paper-{manifest['name']}")


def gather(
    manifest: dict[str, Any], columns: list[Column], tables: list[Table], companion: list[Sheet], stem: str
) -> Assembled:
    statistics = labelled(build_statistics(manifest, columns), f"{stem}-statistics")
    tables, companion = labelled(tables, stem), labelled(companion, stem)
    return Assembled(
        manifest, columns, noted(tables, manifest), noted(statistics, manifest), noted(companion, manifest)
    )
