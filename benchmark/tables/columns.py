"""Manifest + records → the columns of a table: each method read with each of its scores, and what to say of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmark.names import name_at
from benchmark.post_hoc import with_scores
from benchmark.stale import reasons
from benchmark.store import Store, folder_of

DAMAGED = "its record is damaged and left out; the command that made it makes it again"


@dataclass(frozen=True)
class Column:
    """A method read with one of its scores: its records by seed. The oracle has no seeds."""

    name: str
    score: str
    records: tuple[dict[str, Any], ...]
    wanted: int
    is_oracle: bool = False
    diverged: tuple[dict[str, Any], ...] = ()
    reason: str = ""
    """Why there is nothing to show."""
    published: bool = True
    """Whether the score is the one the method was published with."""
    epoch: int | None = None
    """The state after so many epochs; None is the one the task tests."""
    coverage: float | None = None
    code: str = ""
    """The code that the command meant its runs to be made by."""
    torch: str = ""
    damaged: tuple[int, ...] = ()
    """Seeds whose record cannot be believed."""
    modified: dict[str, Any] = field(default_factory=dict)
    """Settings of the method that differ from the task's file: both values by name."""
    parts: "tuple[Column, ...]" = ()
    """One training for each coverage: each fills its own row."""

    @property
    def label(self) -> str:
        """The method, whatever coverage it was trained for and score it is read with."""
        name = self.name if self.coverage is None else self.name.removesuffix(name_at("", self.coverage))
        return name if self.published else name.removesuffix(f"+{self.score}")

    def at(self, coverage: float | None) -> "Column":
        """What fills a row: the column itself, or its part for that coverage, which may be empty."""
        if not self.parts:
            return self
        nothing = replace(self, records=(), wanted=0, diverged=(), damaged=(), parts=())
        return next((part for part in self.parts if part.coverage == coverage), nothing)


def load_columns(manifest: dict[str, Any], store: Store) -> list[Column]:
    """In the manifest's order; of one training the further scores come before its published one, as in the paper."""
    apart = [column for entry in manifest["entries"] for column in entry_columns(entry, manifest, store)]
    by_name: dict[str, list[Column]] = {}
    for column in apart:
        by_name.setdefault(column.name, []).append(column)
    found = [merged(parts) for parts in by_name.values()]
    if manifest["columns"]:
        return [pick(name, found) for name in manifest["columns"]]
    records = (record for column in single(found) for record in column.records)
    oracle = next((record["oracle"] for record in records if "oracle" in record), None)
    if oracle is not None:
        found.append(Column("oracle", "oracle", ({"scores": {"oracle": oracle}},), 1, is_oracle=True))
    return found


def pick(name: str, found: Sequence[Column]) -> Column:
    """A column by its name; one whose runs are not there yet, so that their scores are unknown, is still to come."""
    exact = next((column for column in found if column.name == name), None)
    if exact is not None:
        return exact
    owner = max((c for c in found if name.startswith(f"{c.name}+")), key=lambda column: len(column.name))
    reason = "its runs have no such score" if owner.records else owner.reason
    return replace(owner, name=name, records=(), diverged=() if owner.records else owner.diverged, reason=reason)


def entry_columns(entry: dict[str, Any], manifest: dict[str, Any], store: Store) -> list[Column]:
    """One column for each score of an entry's runs, those asked for in addition included."""
    folders = [folder_of(manifest["task"], entry["method"], entry["job"], seed) for seed in entry["seeds"]]
    read = [(seed, folder, store.read_record(folder)) for seed, folder in zip(entry["seeds"], folders, strict=True)]
    found = [(folder, record) for _, folder, record in read if record is not None]
    epoch = entry.get("epoch")
    whole = [(folder, at_epoch(record, epoch)) for folder, record in found if "diverged" not in record]
    records = tuple(with_scores(record, folder, store, manifest["scores"], epoch) for folder, record in whole)
    column = Column(
        entry["label"],
        score="",
        records=records,
        wanted=len(folders),
        diverged=tuple(record for _, record in found if "diverged" in record),
        reason=entry.get("reason", ""),
        epoch=epoch,
        coverage=entry.get("coverage"),
        code=entry.get("code", ""),
        torch=manifest.get("torch", ""),
        modified=entry.get("modified", {}),
        damaged=tuple(seed for seed, folder, record in read if record is None and store.has_record(folder)),
    )
    if not records:
        return [column]
    published = next(iter(records[0]["scores"]))
    names = dict.fromkeys(score for record in records for score in (*record["scores"], *record["unavailable"]))
    further = [read_with(score, column) for score in names if score != published]
    return [*further, replace(column, score=published)]


def at_epoch(record: dict[str, Any], epoch: int | None) -> dict[str, Any]:
    """The record of a training as it stood after so many epochs."""
    return record if epoch is None else {**record, **record["at_epochs"][str(epoch)]}


def read_with(score: str, column: Column) -> Column:
    """The runs that have a score, and why the others have none."""
    having = tuple(record for record in column.records if score in record["scores"])
    reason = next((r["unavailable"][score] for r in column.records if score in r["unavailable"]), "")
    diverged = column.diverged if having else ()
    name = f"{column.name}+{score}"
    return replace(column, name=name, score=score, records=having, diverged=diverged, reason=reason, published=False)


def merged(parts: list[Column]) -> Column:
    """Trainings for single coverages stand in one column."""
    if parts[0].coverage is None:
        return parts[0]
    return replace(max(parts, key=lambda part: len(part.records)), coverage=None, parts=tuple(parts))


def single(columns: Sequence[Column]) -> list[Column]:
    """Every training apart, named by its coverage where it has one."""
    apart = [part for column in columns for part in (column.parts or (column,))]
    return [replace(column, name=name_at(column.name, column.coverage)) for column in apart]


def column_notes(columns: Sequence[Column]) -> list[str]:
    """Why a column is empty, and what the runs of a column report of themselves."""
    notes: dict[str, list[str]] = {}
    for column in columns:
        if column.reason:
            notes.setdefault(column.reason, []).append(column.name)
    reasons = [f"{some(names)}: {reason}." for reason, names in notes.items()]
    reasons += [coverages_note(column) for column in columns if column.parts and column.published]
    reasons += [*plugin_notes(columns), *images_notes(columns)]
    return reasons + [note for column in single(columns) if (note := facts_note(column))]


def plugin_notes(columns: Sequence[Column]) -> list[str]:
    """Which file makes the runs of a method that is none of the suite's."""
    made = [c for c in columns if c.published and c.records and c.records[0].get("identity", {}).get("source_sha256")]
    return [f"{column.name}: made by a plugin; --plugin {column.records[0]['method']}.py." for column in made]


def images_notes(columns: Sequence[Column]) -> list[str]:
    """Columns whose runs saw other images than those of the first: they may be of different commands."""
    trained = [column for column in single(columns) if column.published and column.records and not column.is_oracle]
    seen = {column.name: column.records[0].get("identity", {}).get("data_sha256") for column in trained}
    first = next((name for name, images in seen.items() if images), "")
    others = [name for name, images in seen.items() if images and images != seen[first]]
    return [f"{some(others)}: other images than {first} was given, so not comparable."] if others else []


def coverages_note(column: Column) -> str:
    trained = ", ".join(f"{part.coverage:g}" for part in column.parts)
    return f"{column.name}: one training for each of the coverages {trained}; other rows have no model."


def some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def facts_note(column: Column) -> str:
    facts = [record["facts"] for record in column.records if record.get("facts")]
    if not facts or not column.published:
        return ""
    values = {name: [fact[name] for fact in facts] for name in facts[0]}
    return f"{column.name}: " + ", ".join(f"{k} {np.mean(v):.3g}±{np.std(v):.2g}" for k, v in values.items()) + "."


def run_notes(columns: Sequence[Column]) -> list[str]:
    """What readers must know of single runs, each said once."""
    seeds_by_note: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        found = [(r, note) for r in column.records for note in record_notes(r, column)]
        diverged = [record for record in column.diverged if column.published]
        found += [(r, f"diverged ({r['diverged']})") for r in diverged]
        found += [(r, note) for r in diverged for note in reasons(r, column.code, column.torch)]
        found += [({"seed": seed}, DAMAGED) for seed in column.damaged if column.published]
        for record, note in found:
            seeds_by_note.setdefault((column.name, note), []).append(str(record["seed"]))
    return [f"{name}, seed {', '.join(seeds)}: {note}." for (name, note), seeds in seeds_by_note.items()]


def record_notes(record: dict[str, Any], column: Column) -> list[str]:
    if column.is_oracle:
        return []
    notes = list(record["notes"]) if column.published else []
    ties = record["scores"][column.score]["top_ties"]
    if ties > max(0.001, 1.5 / record["num_test"]):
        notes.append(f"{ties:.1%} of the test images tie for the highest confidence")
    if column.published:
        notes += reasons(record, column.code, column.torch)
    if column.published and len(record["provenance"]["environments"]) > 1:
        notes.append("resumed with other libraries, threads or hardware, so not reproducible to the bit")
    return notes
