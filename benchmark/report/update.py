"""Bring the page of a results folder up to date: what a command has just shown, and the rest as its manifests say."""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmark.report import write_report
from benchmark.report.page import make_part
from benchmark.report.parts import Part, load_or_make, make_and_store
from benchmark.store.store import Store
from benchmark.tables.assemble import Assembled

Parts = dict[tuple[str, str], Part | None]
"""Parts of the page by kind and name; None where the records cannot be shown."""
Makers = Mapping[str, Callable[[dict[str, Any], Store], Assembled]]
"""By kind of manifest, `task` or `paper`, how everything that is shown of one is assembled."""


def make_parts(kind: str, manifests: Iterable[dict[str, Any]], shown: Iterable[Assembled], store: Store) -> Parts:
    """Return the parts of the page for what a command has just shown of some manifests."""
    parts: Parts = {}
    for manifest, each in zip(manifests, shown, strict=True):
        parts[kind, each.name] = try_part(kind, manifest, each, store)
    return parts


def try_part(kind: str, manifest: dict[str, Any], shown: Assembled, store: Store) -> Part | None:
    return or_none(manifest, lambda: make_and_store(kind, manifest, store, lambda: make_part(kind, shown, store)))


def read_part(kind: str, manifest: dict[str, Any], store: Store, makers: Makers) -> Part | None:
    """Return the part of another command, as its manifest says."""

    def make() -> Part:
        return make_part(kind, makers[kind](manifest, store), store)

    return or_none(manifest, lambda: load_or_make(kind, manifest, store, make))


def or_none(manifest: dict[str, Any], make: Callable[[], Part]) -> Part | None:
    """Make a part; say so and return None where records are of another version. No command fails for that."""
    try:
        return make()
    except (KeyError, IndexError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        print(f"report: {manifest['name']} is left out, its records cannot be read ({reason})", file=sys.stderr)
        return None


def update_report(store: Store, makers: Makers, made: Parts | None = None, folder: Path | None = None) -> Path:
    """Write the page of the whole results folder and return its path."""
    parts, known = [], made or {}
    named = [("task", manifest) for manifest in store.manifests()]
    named += [("paper", manifest) for manifest in store.paper_manifests()]
    for kind, manifest in named:
        key = (kind, manifest["name"])
        part = known[key] if key in known else read_part(kind, manifest, store, makers)
        if part is not None:
            parts.append(part)
    return write_report(parts, folder or store.root)


def try_report(store: Store, makers: Makers, made: Parts, folder: Path | None = None) -> str:
    """Write the page and say where it is. The tables are written by now: what it cannot show fails no command."""
    try:
        return f"Report: {update_report(store, makers, made, folder)}"
    except (KeyError, IndexError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        return f"No report: some records of this folder cannot be shown, perhaps of another version ({reason})"
