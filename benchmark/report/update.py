"""Bring the page of a results folder up to date: what a command has just shown, and the rest as its manifests say."""

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.base.files import write_if_changed
from benchmark.report.page import build_page, make_part
from benchmark.report.parts import Part, load_or_make, make_and_store
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables.assemble import Assembled

Parts = dict[tuple[str, str], Part | None]
"""Parts of the page by kind and name; None where the records cannot be shown."""
Makers = Mapping[str, Callable[[Manifest, Store], Assembled]]
"""By kind of manifest, `task` or `paper`, how everything that is shown of one is assembled."""
NAME = "report.html"
UNREADABLE = (UserError, KeyError, IndexError, TypeError, ValueError)
"""What is raised where records are of another version: no command fails for that."""


def make_parts(kind: str, manifests: Iterable[Manifest], shown: Iterable[Assembled], store: Store) -> Parts:
    """Return the parts of the page for what a command has just shown of some manifests."""
    parts: Parts = {}
    for manifest, each in zip(manifests, shown, strict=True):
        make = partial(make_part, kind, each, store)
        parts[kind, each.name] = try_part(manifest, partial(make_and_store, kind, manifest, store, make))
    return parts


def find_part(kind: str, manifest: Manifest, store: Store, makers: Makers) -> Part | None:
    """Return the part of a manifest that this command has not shown, from the cache or from its records."""

    def make() -> Part:
        return make_part(kind, makers[kind](manifest, store), store)

    return try_part(manifest, partial(load_or_make, kind, manifest, store, make))


def try_part(manifest: Manifest, make: Callable[[], Part]) -> Part | None:
    """Return the part that `make` returns; where its records cannot be read, say so and return None."""
    try:
        return make()
    except UNREADABLE as error:
        reason = f"{type(error).__name__}: {error}"
        print(f"report: {manifest.name} is left out, its records cannot be read ({reason})", file=sys.stderr)
        return None


def update_report(
    store: Store, makers: Makers, made: Parts | None = None, folder: Path | None = None, name: str = NAME
) -> Path:
    """Write the page of the whole results folder and return its path. Equal records give equal bytes."""
    parts, known = [], made or {}
    for kind, manifest in in_order(store):
        key = (kind, manifest.name)
        parts.append(known[key] if key in known else find_part(kind, manifest, store, makers))
    path = (folder or store.root) / name
    write_if_changed(path, build_page([part for part in parts if part is not None]).encode())
    return path


def in_order(store: Store) -> list[tuple[str, Manifest]]:
    """Return the manifests of a results folder with their kind, in the order of the page."""
    named = [("task", manifest) for manifest in sorted(store.manifests(), key=beside_task)]
    return named + [("paper", manifest) for manifest in store.paper_manifests()]


def beside_task(manifest: Manifest) -> tuple[str, str]:
    """Return what parts are ordered by: evaluation sets stand behind their task."""
    return (manifest.set_of, manifest.name) if manifest.set_of else (manifest.name, "")


def try_report(store: Store, makers: Makers, made: Parts, folder: Path | None = None) -> str:
    """Write the page and say where it is. The tables are written by now: what it cannot show fails no command."""
    try:
        return f"Report: {update_report(store, makers, made, folder)}"
    except UNREADABLE as error:
        reason = f"{type(error).__name__}: {error}"
        return f"No report: some records of this folder cannot be shown, perhaps of another version ({reason})"
