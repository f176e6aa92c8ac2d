"""Bring in predictions that were made elsewhere: check them, measure them, and store them beside trained runs."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from tabulate import tabulate
from tqdm import tqdm

from benchmark.base.errors import UserError
from benchmark.base.files import say
from benchmark.base.names import canonical, is_plain
from benchmark.base.units import counted
from benchmark.config.task import RESERVED
from benchmark.imports.checks import Allowed
from benchmark.imports.find import Reading
from benchmark.imports.intake import CheckedRun, Intake
from benchmark.imports.keep import COVERAGES, Place, extended
from benchmark.imports.listing import Listing, runs_of_files
from benchmark.imports.objects import Told, estimator_fields, runs_of_objects
from benchmark.library.options import ScoreOptions
from benchmark.library.results import KEY, TESTED, Results
from benchmark.library.settings import asked_settings
from benchmark.library.tables import Tables, files_remark, write_results
from benchmark.store.manifest import Manifest
from benchmark.store.mirror import mirrored
from benchmark.store.record import Record
from benchmark.store.store import Store
from benchmark.tables.build import pick_reference
from benchmark.tables.render.runs_csv import measured

if TYPE_CHECKING:
    from pandas import DataFrame

DEFAULT_TASK = "predictions"
SHOWN = (
    "risk@100",
    "risk@90",
    "risk@80",
    "risk@50",
    "aurc",
    "e_aurc",
    "augrc",
    "auroc",
    "accuracy",
    "nll",
    "brier",
    "ece",
)
"""Measures that a run is printed with."""
SHOWN_COVERAGES = (100, 90, 80, 50)
NOT_OF_SCORE = {"files", "labels", "results", "columns", "scores"}
"""Options of the command that mean something else from Python."""


@dataclass(frozen=True)
class Scored:
    """Runs that were brought in, with their measures. It prints as a table with a line for each run and score."""

    records: tuple[Record, ...]
    new: int
    """How many of them were not in the folder before."""
    tables: Tables | None = None
    results: Results | None = None
    """All results of the folder, where there is one."""

    @property
    def measures(self) -> dict[str, float]:
        """Return the measures of the first run by its own score: aurc, risk@90, accuracy …; all are fractions."""
        record = self.records[0]
        return dict(measured(record, next(iter(record.measures.scores)), SHOWN_COVERAGES))

    def to_frame(self) -> "DataFrame":
        """Return a line for each run and measure, as `load_results(…).to_frame()` does."""
        from pandas import DataFrame

        lines = [
            (record.task, record.method, record.label, score, record.seed, TESTED, measure, value)
            for record in self.records
            for score in record.measures.scores
            for measure, value in measured(record, score, SHOWN_COVERAGES)
        ]
        return DataFrame(lines, columns=[*KEY, "measure", "value"])

    def __str__(self) -> str:
        """Return a table of the usual measures, as fractions."""
        rows, has_sets = [], len({record.task for record in self.records}) > 1
        for record in self.records:
            for score in record.measures.scores:
                values = dict(measured(record, score, SHOWN_COVERAGES))
                task = record.task if has_sets else None
                rows.append([task, record.label, record.seed, score, *(values.get(name) for name in SHOWN)])
        heading = ["task", "method", "seed", "score", *SHOWN]
        known = [i for i in range(len(heading)) if any(row[i] is not None for row in rows)]
        return str(tabulate([[row[i] for i in known] for row in rows], [heading[i] for i in known], floatfmt=".4f"))

    __repr__ = __str__

    @property
    def remark(self) -> str:
        """Return a line on how many runs are new, and where the tables are."""
        old = len(self.records) - self.new
        there = f", {counted(old, 'run is', 'runs are')} there already with the same content" if old else ""
        return f"{counted(self.new, 'run')} imported{there}\n{self.tables.remark if self.tables else ''}".rstrip()


def score_files(options: ScoreOptions) -> Scored:
    """Check the runs in some files, store those that are new, and write the tables."""
    how = Reading(options.labels, options.given, named_columns(options.columns or ()))
    return store_runs(runs_of_files(options.files, how), options)


def named_columns(texts: Sequence[str]) -> dict[str, str]:
    """Return the column of each field, of texts such as labels=y."""
    found: dict[str, str] = {}
    for text in texts:
        field, equals, column = text.partition("=")
        if not equals or not field or not column:
            raise UserError(f"--columns '{text}': expected FIELD=COLUMN, e.g. labels=y probabilities=p_*")
        if field in found:
            raise UserError(f"--columns '{text}': {field} is {found[field]} already; name it once")
        found[field] = column
    return found


def store_runs(listing: Listing, options: ScoreOptions) -> Scored:
    """Store the runs that are new, add them to the manifest of their task, and write its tables."""
    asked = asked_settings(options)
    with mirrored(options.results) as here:
        store = Store(here.folder)
        manifests = {manifest.task: manifest for manifest in store.manifests()}
        task = task_name(options.task or listing.task, [name for name, each in manifests.items() if not each.set_of])
        allowed = Allowed(options.normalise, options.allow_ties)
        rows = options.coverages or (manifests[task].coverages if task in manifests else COVERAGES)
        intake = Intake(task, allowed, store, options.replace, manifests, coverages=rows)
        checked = intake.check(listing.runs, progress("checked", options))
        paired = listing.paired if options.paired is None else options.paired
        new = [
            asked.applied_to(with_options(manifest, options, listing.reference, is_set=manifest.task != task))
            for manifest in new_manifests(checked, task, manifests, options.title or listing.title, paired=paired)
        ]
        store.check_writable()
        warn(checked)
        for manifest in new:
            if manifests.get(manifest.task) != manifest:
                store.write_manifest(manifest)
        records = [intake.keep(each) for each in progress("imported", options)(checked)]
        tables = write_results("task", new, store, files_remark)
        count = sum(each.stored is None for each in checked)
        here.outcome = scored = Scored(
            tuple(records), count, tables, Results(store, {m.task: m for m in store.manifests()})
        )
    return scored


def warn(checked: Sequence[CheckedRun]) -> None:
    for each in checked:
        for warning in each.warnings:
            say(f"warning: {warning}")


def progress(what: str, options: ScoreOptions) -> Any:
    """Return a bar with what is left to do, for those who look at it."""
    hidden = options.quiet or not sys.stderr.isatty()
    return lambda runs: tqdm(runs, desc=what, unit="run", disable=hidden, leave=False)


def task_name(wanted: str, known: Sequence[str]) -> str:
    """Return the task that is meant: as named, else the only one of the folder, else one of its own."""
    name = wanted or (known[0] if len(known) == 1 else DEFAULT_TASK)
    if not is_plain(name) or name.lower() in RESERVED:
        raise UserError(
            f"--task '{name}': expected a name of letters, digits, - and _, and none of {', '.join(RESERVED)}"
        )
    return name


def new_manifests(
    checked: Sequence[CheckedRun], task: str, manifests: Mapping[str, Manifest], title: str, *, paired: bool | None
) -> list[Manifest]:
    """Return the manifests that show the runs: one for the test samples, one for each evaluation set."""
    places: dict[str, dict[Place, list[int]]] = {}
    for each in checked:
        places.setdefault(each.place.task, {}).setdefault(each.place, []).append(each.run.seed)
    found = []
    for name, own in places.items():
        before, of_set = manifests.get(name), name.removeprefix(f"{task}-") if name != task else ""
        shown = title if before or title else task
        shown = f"{shown}: {of_set}" if shown and of_set else shown
        manifest = extended(before, own, name, shown, paired=paired)
        found.append(replace(manifest, set_of=task if of_set else manifest.set_of))
    return found


def with_options(manifest: Manifest, options: ScoreOptions, reference: str, *, is_set: bool) -> Manifest:
    """Return a manifest with the rows and the reference that were asked for. An evaluation set may lack the latter."""
    labels = [entry.label for entry in manifest.entries]
    wanted = options.reference or reference or None
    if is_set and wanted is not None and canonical(wanted) not in map(canonical, labels):
        wanted = None
    chosen = pick_reference(wanted, manifest.reference, labels)
    rows = tuple(dict.fromkeys(options.coverages or manifest.coverages))
    return replace(manifest, reference=chosen, coverages=rows, baseline=manifest.baseline or chosen)


def score(
    given: Any = None,
    /,
    *,
    method: str = "",
    seed: int | None = None,
    results: str | PathLike[str] | None = None,
    columns: Mapping[str, str] | None = None,
    estimator: Any = None,
    X: Any = None,
    y: Any = None,
    scores: Iterable[str] = (),
    **more: Any,
) -> Scored:
    """Measure predictions that were made elsewhere, and store them if `results` names a folder.

    Bring `labels` and one of `logits`, `log_probabilities`, `probabilities`, `predicted` with a `confidence`; or a
    `loss` from 0 to 1 with a `confidence`. A confidence may be several by name. Also: `features`, `ids`, `groups`,
    `outputs`, `posterior`, `val`, `train`, `sets`. Or bring files by name, a pandas frame with `columns`, the output
    of a Hugging Face Trainer, or a scikit-learn `estimator` with `X` and `y`. `scores` names the confidences to show,
    the method's own first. Other names are options of the command `score`: task, title, paired, normalise,
    allow_ties, replace, reference, coverages … Bad input raises UserError.
    """
    named = {field.name for field in fields(ScoreOptions)} - NOT_OF_SCORE
    asked = ScoreOptions(**{name: more.pop(name) for name in named & more.keys()}, results=fspath(results or "results"))
    if estimator is None and (X is not None or y is not None):
        raise UserError("score: X and y are for an estimator, and none is given; bring `labels` and what was predicted")
    if estimator is not None:
        more = {**estimator_fields(estimator, X, y), **more}
        method = method or type(estimator).__name__
    shown = (scores,) if isinstance(scores, str) else tuple(scores)
    told = Told(str(method), seed, shown, columns or {}, asked.given)
    runs = runs_of_objects(given, told, more)
    if results is not None:
        return store_runs(runs, asked)
    intake = Intake(asked.task or runs.task or DEFAULT_TASK, Allowed(asked.normalise, asked.allow_ties))
    checked = intake.check(runs.runs)
    warn(checked)
    return Scored(tuple(intake.keep(each) for each in checked), len(checked))
