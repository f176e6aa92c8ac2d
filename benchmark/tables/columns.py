"""Read a manifest and its records into the columns of a table, one per method and score, and write their notes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.measure.evaluate import ORACLE
from benchmark.measure.labels import EVERY_SCORE, each_score, name_at
from benchmark.measure.measures import UNKNOWN_SCORE, ClassifierMeasures, Measures
from benchmark.measure.metrics import split_gain
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.store.measuring import up_to_date
from benchmark.store.record import Record
from benchmark.store.stale import stale_reasons
from benchmark.store.store import Store, folder_of

LACKING = {
    "predicted": "imported as predicted classes with a confidence, so there is no NLL, Brier score or ECE",
    "loss": "imported as a loss with a confidence, so there is no accuracy, NLL, Brier score or ECE; "
    "the risk is the mean loss of what is kept",
}
"""Why measures are missing, by what a run was imported with."""
DAMAGED = "its record is damaged and left out; the command that made it makes it again"


@dataclass(frozen=True)
class Column:
    """One method judged by one of its scores: a record per seed. The oracle has no seeds."""

    name: str
    score: str
    records: tuple[Record, ...]
    wanted: int
    is_oracle: bool = False
    diverged: tuple[Record, ...] = ()
    reason: str = ""
    """Why there is nothing to show."""
    published: bool = True
    """Whether the score is the one the method was published with."""
    epoch: int | None = None
    """Show the state after this epoch; None is the state that the task tests."""
    coverage: float | None = None
    code: str = ""
    """The version of the code that should have made the runs."""
    torch: str = ""
    damaged: tuple[int, ...] = ()
    """Seeds whose record is damaged."""
    modified: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Settings of the method that differ from the task file, by name: the value in the file and the value used."""
    draws: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, compare=False, repr=False)
    """The measures in resampled test images, by name, where the table has intervals."""
    undrawn: str = ""
    """Why there are no draws."""
    parts: "tuple[Column, ...]" = ()
    """For a method with one training per coverage: a column for each. Each fills its own row."""

    @property
    def label(self) -> str:
        """Return the name of the method, without a coverage or a score."""
        name = self.name if self.coverage is None else self.name.removesuffix(name_at("", self.coverage))
        return name if self.published else name.removesuffix(f"+{self.score}")

    def at(self, coverage: float | None) -> "Column":
        """Return what fills a row: the column itself, or its part for that coverage, which may be empty."""
        if not self.parts:
            return self
        empty = replace(self, records=(), wanted=0, diverged=(), damaged=(), parts=())
        return next((part for part in self.parts if part.coverage == coverage), empty)


def load_columns(manifest: Manifest, store: Store) -> list[Column]:
    """Return the columns in the manifest's order; a method's published score comes last, as in the paper."""
    by_name: dict[str, list[Column]] = {}
    for entry in manifest.entries:
        for column in entry_columns(entry, manifest, store):
            by_name.setdefault(column.name, []).append(column)
    columns = [merge_coverages(parts) for parts in by_name.values()]
    if manifest.columns:
        return [find_column(name, columns) for name in manifest.columns]
    records = (record for column in split_by_coverage(columns) for record in column.records)
    oracle = next((oracle_record(record.measures) for record in records if record.measures.oracle), None)
    if oracle is not None and oracle.score(ORACLE) != UNKNOWN_SCORE:
        columns.append(Column(ORACLE, ORACLE, (oracle,), 1, is_oracle=True))
    return columns


def oracle_record(measures: Measures) -> Record:
    """Return the oracle of some measures as a record, which no run has made."""
    scores = {ORACLE: measures.oracle or UNKNOWN_SCORE}
    return Record("", "", "", 0, {}, measures=Measures(ClassifierMeasures(), scores, measures.num_images))


def find_column(name: str, columns: Sequence[Column]) -> Column:
    """Return the column with this name. Make an empty one where no run is there yet, as its scores are not known."""
    for column in columns:
        if column.name == name:
            return column
    owner = max((c for c in columns if name.startswith(f"{c.name}+")), key=lambda column: len(column.name))
    reason = "its runs have no such score" if owner.records else owner.reason
    return replace(owner, name=name, records=(), diverged=() if owner.records else owner.diverged, reason=reason)


def entry_columns(entry: ManifestEntry, manifest: Manifest, store: Store) -> list[Column]:
    """Return one column for each score of an entry's runs, also for the scores that the manifest adds.

    Where it adds every score, the columns stay the method's own: a sheet shows them all.
    """
    records, diverged, damaged = [], [], []
    for seed in entry.seeds:
        folder = folder_of(manifest.task, entry.method, entry.job, seed)
        record = store.read_record(folder)
        if record is None:
            if store.has_record(folder):
                damaged.append(seed)
        elif record.diverged is not None:
            diverged.append(record)
        else:
            record = up_to_date(record, folder, store, each_score(manifest.scores))
            records.append(record if entry.epoch is None else replace(record, measures=record.at_epochs[entry.epoch]))
    column = Column(
        entry.label,
        score="",
        records=tuple(records),
        wanted=len(entry.seeds),
        diverged=tuple(diverged),
        damaged=tuple(damaged),
        torch=manifest.torch,
        reason=entry.reason,
        epoch=entry.epoch,
        coverage=entry.coverage,
        code=entry.code,
        modified=entry.modified,
    )
    added = () if EVERY_SCORE in manifest.scores else manifest.scores
    return split_by_score(column, added) if records else [column]


def split_by_score(column: Column, wanted: Sequence[str]) -> list[Column]:
    """Return one column per score; the published score is the first of a record, and its column the last."""
    published = next(iter(column.records[0].measures.scores))
    names = dict.fromkeys([*(score for record in column.records for score in record.measures.scores), *wanted])
    further = [score_column(score, column) for score in names if score != published]
    return [*further, replace(score_column(published, column), name=column.name, published=True)]


def score_column(score: str, column: Column) -> Column:
    """Return the column of a further score: the runs that have it, and why the others do not."""
    having = tuple(record for record in column.records if score in record.measures.all_scores)
    lacking = [record for record in column.records if score not in record.measures.all_scores]
    reason = next((why for record in lacking if (why := record.reasons.get(score))), "")
    diverged = column.diverged if having else ()
    name = f"{column.name}+{score}"
    return replace(column, name=name, score=score, records=having, diverged=diverged, reason=reason, published=False)


def merge_coverages(parts: list[Column]) -> Column:
    """Join the trainings of one method for several coverages into one column."""
    if parts[0].coverage is None:
        return parts[0]
    return replace(max(parts, key=lambda part: len(part.records)), coverage=None, parts=tuple(parts))


def split_by_coverage(columns: Sequence[Column]) -> list[Column]:
    """Return one column per training. Its name tells its coverage, if it was trained for one."""
    trainings = [part for column in columns for part in (column.parts or (column,))]
    return [replace(column, name=name_at(column.name, column.coverage)) for column in trainings]


def column_notes(columns: Sequence[Column]) -> list[str]:
    """Return the notes on whole columns: why one is empty, where its runs come from, and the facts that they report."""
    names_by_reason: dict[str, list[str]] = {}
    for column in columns:
        for reason in filter(None, (column.reason, column.undrawn, lacking(column))):
            names_by_reason.setdefault(reason, []).append(column.name)
    notes = [f"{abbreviate(names)}: {reason}." for reason, names in names_by_reason.items()]
    for column in columns:
        if column.parts and column.published:
            trained = ", ".join(f"{part.coverage:g}" for part in column.parts)
            notes.append(f"{column.name}: one training for each of the coverages {trained}; other rows have no model.")
    for column in columns:
        parts = column.records[0].own_parts if column.published and column.records else ()
        if "method" in parts:
            notes.append(f"{column.name}: made by a plugin; --plugin {column.records[0].method}.py.")
        elif parts:
            notes.append(f"{column.name}: its {' and '.join(parts)} came from a plugin.")
    notes += images_notes(columns)
    return notes + [note for column in split_by_coverage(columns) if (note := facts_note(column))]


def lacking(column: Column) -> str:
    """Return why an imported run has no measures of its probabilities; empty where it has them."""
    origin = column.records[0].provenance.imported if column.published and column.records else None
    if origin is None or origin.given not in LACKING:
        return ""
    return LACKING[origin.given]


def images_notes(columns: Sequence[Column]) -> list[str]:
    """Return a note on columns that used other images than the first: different commands may have made them."""
    used = {}
    for column in split_by_coverage(columns):
        if column.published and column.records and not column.is_oracle:
            used[column.name] = column.records[0].data_sha256
    first = next((name for name, images in used.items() if images), "")
    others = [name for name, images in used.items() if images and images != used[first]]
    return [f"{abbreviate(others)}: other images than {first} was given, so not comparable."] if others else []


def abbreviate(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def facts_note(column: Column) -> str:
    facts = [record.facts for record in column.records if record.facts]
    if not facts or not column.published:
        return ""
    values = {name: [fact[name] for fact in facts] for name in facts[0]}
    return f"{column.name}: " + ", ".join(f"{k} {np.mean(v):.3g}±{np.std(v):.2g}" for k, v in values.items()) + "."


def run_notes(columns: Sequence[Column]) -> list[str]:
    """Return the notes on single runs: the same note on several seeds of a column is one line."""
    seeds_by_note: dict[tuple[str, str], list[str]] = {}
    for column in (column for column in columns if not column.is_oracle):
        notes = [(r.seed, note) for r in column.records for note in record_notes(r, column)]
        if column.published:
            notes += [(r.seed, f"diverged ({r.diverged})") for r in column.diverged]
            notes += [(r.seed, note) for r in column.diverged for note in stale_reasons(r, column.code, column.torch)]
            notes += [(seed, DAMAGED) for seed in column.damaged]
        for seed, note in notes:
            seeds_by_note.setdefault((column.name, note), []).append(str(seed))
    return [f"{name}, seed {', '.join(seeds)}: {note}." for (name, note), seeds in seeds_by_note.items()]


def record_notes(record: Record, column: Column) -> list[str]:
    notes = list(record.notes) if column.published else []
    ties = record.score(column.score).top_ties
    if ties is not None and ties > max(0.001, 1.5 / record.measures.num_images):
        notes.append(f"{ties:.1%} of the test images tie for the highest confidence")
    if column.published:
        notes += stale_reasons(record, column.code, column.torch)
        if len(record.provenance.environments) > 1:
            notes.append("resumed with other libraries, threads or hardware, so not reproducible to the bit")
    return notes


def gains_by_seed(base: Column, column: Column) -> dict[int, tuple[float, float]]:
    """Return both parts of the gain over `base` (ranking, classifier) for each seed that both have."""
    ours = {record.seed: ranking_of(record, base) for record in base.records}
    theirs = {record.seed: ranking_of(record, column) for record in column.records}
    pairs = ((seed, ours.get(seed), ranking) for seed, ranking in theirs.items())
    return {seed: split_gain(*before, *after) for seed, before, after in pairs if before and after}


def ranking_of(record: Record, column: Column) -> tuple[float, float] | None:
    """Return AUROC and accuracy of a run."""
    auroc, accuracy = record.score(column.score).auroc, record.measures.classifier.accuracy
    return None if auroc is None or accuracy is None else (auroc, accuracy)
