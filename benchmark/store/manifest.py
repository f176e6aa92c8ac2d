"""Combine manifests: each shows the runs of the last command, and remembers those of earlier ones."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmark.base.files import Damaged
from benchmark.base.names import canonical, is_plain
from benchmark.measure.labels import labels_named

Entry = dict[str, Any]


def with_earlier(manifest: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the manifest of a command with the runs that the manifest before it names and it does not."""
    shown = {run_key(entry): set(entry["seeds"]) for entry in manifest["entries"]}
    earlier: dict[Any, Entry] = {}
    for entry in known_entries(before) if before else ():
        first = earlier.get(run_key(entry), entry)
        earlier[run_key(entry)] = {**first, "seeds": sorted({*entry["seeds"], *first["seeds"]})}
    kept = [entry for key, entry in earlier.items() if set(entry["seeds"]) - shown.get(key, set())]
    return {**manifest, "earlier": kept} if kept else dict(manifest)


def known_entries(manifest: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield the entries that are shown, then the earlier ones, the latest first."""
    yield from manifest["entries"]
    yield from manifest.get("earlier", ())


def run_key(entry: Entry) -> tuple[Any, ...]:
    return (*column_key(entry), entry["job"])


def column_key(entry: Entry) -> tuple[Any, ...]:
    return entry["label"], entry.get("coverage"), entry.get("epoch")


def with_every_run(manifest: Mapping[str, Any], published: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return the manifest with every run of its task that any command asked for: all seeds, and all labels.

    Where a label has several settings, the latest keeps the name; the others get their job added to it.
    """
    entries = {run_key(entry): entry for entry in manifest["entries"]}
    columns = {column_key(entry) for entry in manifest["entries"]}
    same = (entry for other in published if other["task"] == manifest["task"] for entry in other["entries"])
    for entry in (*manifest.get("earlier", ()), *same):
        key = run_key(entry)
        if key in entries:
            entries[key] = {**entries[key], "seeds": sorted({*entries[key]["seeds"], *entry["seeds"]})}
        elif entry["job"]:
            taken = column_key(entry) in columns
            entries[key] = {**entry, "label": f"{entry['label']} (job {entry['job']})"} if taken else entry
            columns.add(column_key(entry))
    return {**manifest, "entries": list(entries.values())}


def needed_plugin(name: str, manifests: Iterable[Mapping[str, Any]], methods: Iterable[str]) -> str:
    """Return the plugin file that made the results of this name; empty where one of these methods did."""
    known = set(methods)
    for manifest in manifests:
        owners = {entry["label"]: entry["method"] for entry in known_entries(manifest)}
        foreign = {label: owner for label, owner in owners.items() if owner not in known}
        for label in labels_named(canonical(name), foreign) if canonical(name) != "all" else ():
            return f"{foreign[label]}.py"
    return ""


FOREIGN = "it names what cannot be in this folder"


def checked_names(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the manifest; raise Damaged where a name in it could lead out of its results folder."""
    parts = [part for entry in known_entries(manifest) for part in (entry["method"], entry["job"] or "none")]
    if manifest["name"] != name or not all(is_plain(part) for part in (name, manifest["task"], *parts)):
        raise Damaged(FOREIGN)
    return manifest
