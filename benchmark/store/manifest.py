"""Runs that earlier commands asked for. A manifest shows those of the last one, and keeps the others in mind."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmark.names import canonical, labels_named

Entry = dict[str, Any]


def with_earlier(manifest: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """The manifest of a command, with the runs in mind that the one before it named."""
    new, found = {made_by(entry): entry for entry in manifest["entries"]}, dict[Any, Entry]()
    for entry in known_entries(before) if before else ():
        key = made_by(entry)
        seeds = sorted({*entry["seeds"], *found.get(key, entry)["seeds"]})
        found[key] = {**found.get(key, entry), "seeds": seeds}
    kept = [entry for key, entry in found.items() if set(entry["seeds"]) - set(new.get(key, {"seeds": ()})["seeds"])]
    return {**manifest, "earlier": kept} if kept else dict(manifest)


def known_entries(manifest: Mapping[str, Any]) -> Iterator[Entry]:
    """Those shown, then earlier ones, the latest first."""
    yield from manifest["entries"]
    yield from manifest.get("earlier", ())


def made_by(entry: Entry) -> tuple[Any, ...]:
    return (*column_of(entry), entry["job"])


def column_of(entry: Entry) -> tuple[Any, ...]:
    return entry["label"], entry.get("coverage"), entry.get("epoch")


def with_every_run(manifest: Mapping[str, Any], published: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The manifest with every run of its task that any command asked for: all seeds, and all labels.

    Of a label with several settings, the latest has its name; the others are told by their job.
    """
    entries = {made_by(entry): entry for entry in manifest["entries"]}
    columns = {column_of(entry) for entry in manifest["entries"]}
    same = (entry for other in published if other["task"] == manifest["task"] for entry in other["entries"])
    for entry in (*manifest.get("earlier", ()), *same):
        key = made_by(entry)
        if key in entries:
            entries[key] = {**entries[key], "seeds": sorted({*entries[key]["seeds"], *entry["seeds"]})}
        elif entry["job"]:
            taken = column_of(entry) in columns
            entries[key] = {**entry, "label": f"{entry['label']} (job {entry['job']})"} if taken else entry
            columns.add(column_of(entry))
    return {**manifest, "entries": list(entries.values())}


def needed_plugin(name: str, manifests: Iterable[Mapping[str, Any]], methods: Iterable[str]) -> str:
    """The file that made what the results call by this name, where it is none of these methods; else empty."""
    known = set(methods)
    for manifest in manifests:
        owners = {entry["label"]: entry["method"] for entry in known_entries(manifest)}
        foreign = {label: owner for label, owner in owners.items() if owner not in known}
        for label in labels_named(canonical(name), foreign) if canonical(name) != "all" else ():
            return f"{foreign[label]}.py"
    return ""
