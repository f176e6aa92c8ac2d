"""Certify thresholds of finished runs: the risk of what they keep is bounded, with a stated probability."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.base.errors import UserError
from benchmark.base.files import say, write_if_changed
from benchmark.base.names import select_names, unknown_name
from benchmark.base.units import counted
from benchmark.certificates.groups import CLASS, certify_groups
from benchmark.certificates.held_out import Source
from benchmark.certificates.runs import CertifiedColumn, Wanted, certify_columns
from benchmark.certificates.shifted import EvaluatedSet, sets_of, with_groups
from benchmark.certificates.shown import Certified, Key, key_of, lines_of
from benchmark.certificates.tables import certified_tables
from benchmark.interface import Method
from benchmark.library.guarantee_options import CertifyOptions, GuaranteeOptions
from benchmark.library.registry import load_methods, load_plugins
from benchmark.library.run import Names
from benchmark.library.selection import select
from benchmark.library.settings import asked_settings, no_results
from benchmark.library.tables import HERE
from benchmark.measure.catalogue import FinishedRun, Unavailable
from benchmark.measure.sets.parts import Kept
from benchmark.store.finished import Finished
from benchmark.store.manifest import Manifest
from benchmark.store.mirror import mirrored
from benchmark.store.record import Record
from benchmark.store.store import Store, folder_of
from benchmark.store.version_control import left_alone, place_to_write
from benchmark.tables import render
from benchmark.tables.columns import Column, split_by_coverage
from benchmark.tables.model import Sheet, Table
from benchmark.tables.modified import open_table, with_note
from benchmark.tables.render.latex import with_labels
from benchmark.tables.render.write import write_files
from benchmark.tune.ledger import is_tuned

if TYPE_CHECKING:
    from pandas import DataFrame

Numbers = float | Iterable[float]
"""One number, or several."""
RISKS = (1.0, 2.0, 5.0, 10.0)
"""In per cent: what is guaranteed where nothing is asked for."""


@dataclass(frozen=True)
class Guarantees:
    """What was certified of some tasks, and a line about what was written."""

    certified: tuple[Certified, ...]
    remark: str = ""

    def tables(self) -> Iterator[tuple[Certified, Sequence[Table | Sheet]]]:
        """Yield what was certified of each task with its tables and sheets."""
        for each in self.certified:
            note = each.manifest.modified
            tables = [with_note([table], note)[0] for table in certified_tables(each)]
            yield each, with_labels(tables, f"{each.manifest.name}-certified")

    def text(self, width: int | None = None) -> str:
        """Return the tables as text for a terminal of this width; whole for a file or another program."""
        parts = [f"\n## {each.manifest.title}\n\n{render.markdown(tables, width)}\n" for each, tables in self.tables()]
        return "".join(parts)

    def __str__(self) -> str:
        """Return the tables in Markdown."""
        return self.text()

    def to_frame(self) -> "DataFrame":
        """Return a line for each run and guarantee: threshold, held-out images, errors, coverages, risk, broken."""
        from pandas import DataFrame

        return DataFrame([line for each in self.certified for line in lines_of(each)])


def certify_runs(options: CertifyOptions) -> Guarantees:
    """Certify runs of a results folder, and write the tables and the figure, unless it is under version control."""
    load_plugins(options.plugin)
    asked = asked_settings(options)
    with mirrored(options.results) as here:
        store = Store(here.folder)
        manifests = {manifest.task: manifest for manifest in store.manifests() if not manifest.set_of}
        if not manifests:
            raise no_results(store.root)
        names = select_names([Path(task).stem for task in options.tasks] or None, list(manifests), f"task {HERE}")
        chosen = [
            select(manifests[name], options.methods, None, options.reference, (), options.ingredients) for name in names
        ]
        wanted = wanted_of(options, options.risk, options.coverage)
        found = certify_tasks([asked.applied_to(each) for each in chosen], wanted, options, store)
        place = place_to_write(store.root, options.out)
        guarantees = Guarantees(tuple(found))
        remark = written(guarantees, place) if place else f"Nothing is written: {left_alone(store.root)}"
        here.outcome = guarantees = replace(guarantees, remark=remark)
    return guarantees


def wanted_of(options: GuaranteeOptions, risks: Sequence[float] | None, coverages: Sequence[float] | None) -> Wanted:
    """Return what is to be guaranteed. Percentages become fractions."""
    asked = risks or (() if coverages else RISKS)
    return Wanted(
        fractions(asked),
        fractions(coverages or ()),
        round(1 - options.confidence / 100, 12),
        options.bound,
        Source(None if options.from_test is None else options.from_test / 100, use_of_validation(options.plugin)),
    )


def fractions(percentages: Iterable[float]) -> tuple[float, ...]:
    return tuple(sorted({round(each / 100, 12) for each in percentages}))


def use_of_validation(plugins: Sequence[Path]) -> Callable[[Record], str]:
    """Return what tells why the validation images of a run have been used; empty where they have not."""
    methods = cache(lambda: load_methods(plugins))

    def why(record: Record) -> str:
        if record.is_imported:
            return ""
        if is_tuned(record.task):
            return "`tune` chose its settings by training images, its validation images among them"
        if record.identity.get("checkpoint") == "best":
            return "its validation images chose the epoch that is tested"
        if "method" in record.own_parts and record.method not in {path.stem for path in plugins}:
            return f"its method is in a file of your own, which must say what it uses (--plugin {record.method}.py)"
        method = methods().get(record.method)
        trains = issubclass(method, Method) and method.second_stage and record.settings.get("images") == "validation"
        return "its method has used the validation images" if method.needs_validation or trains else ""

    return why


def certify_tasks(
    manifests: Sequence[Manifest], wanted: Wanted, options: CertifyOptions, store: Store
) -> list[Certified]:
    """Certify the runs of each task. Where none is named, tasks that cannot be certified are left out with a line."""
    found, errors = [], []
    for manifest in manifests:
        try:
            found.append(certify_task(manifest, wanted, options.by, store))
        except UserError as error:
            errors.append(error)
    if errors and (options.tasks or not found):
        raise errors[0]
    for reason in errors:
        say(f"left out: {reason}")
    return found


def certify_task(manifest: Manifest, wanted: Wanted, by: str | None, store: Store) -> Certified:
    """Certify the runs of one task. Refuse a task without a run that can be certified."""
    opened, columns = open_table(manifest, store)
    judged = split_by_coverage([column for column in columns if not column.is_oracle])
    sets = tuple(sets_of(manifest.task, store))

    def open_run(record: Record, column: Column) -> FinishedRun:
        folder = folder_of(manifest.task, record.method, record.job, record.seed)
        run = Finished(folder, store, column.epoch, record.checksums)
        return run if by in (None, CLASS) else with_groups(run, record, sets)

    found = tuple(certify_columns(judged, open_run, wanted))
    refuse_nothing(found, manifest.task)
    shown = Certified(replace(opened, intervals=False), wanted, found, shifted_risks(sets, found, wanted))
    if by is None:
        return shown
    if not wanted.risks:
        raise UserError("--by: thresholds for groups are certified for a risk; add --risk R")
    return replace(shown, by=by, groups=certified_groups(shown, by))


def refuse_nothing(columns: Sequence[CertifiedColumn], task: str) -> None:
    """Raise UserError where no run can be certified."""
    if not any(column.runs for column in columns):
        reasons = [f"{column.name}: {column.reason}" for column in columns if column.reason]
        why = reasons[0] if reasons else "none of its runs is finished"
        raise UserError(f"{task}: none of {counted(len(columns), 'column')} can be certified: {why}")


def shifted_risks(
    sets: Sequence[EvaluatedSet], columns: Sequence[CertifiedColumn], wanted: Wanted
) -> Mapping[str, Mapping[Key, Mapping[float, Kept]]]:
    """Return what the thresholds keep of the evaluation sets that there are results of."""
    found = {}
    for each in sets if wanted.risks else ():
        runs = [run for column in columns for run in column.runs]
        kept = {key_of(run.record, run.score): each.realised(run, wanted.risks) for run in runs}
        if any(kept.values()):
            found[each.name] = kept
    return found


def certified_groups(shown: Certified, by: str) -> Mapping[str, Mapping[float, Any]]:
    """Return what is certified by group, by column and risk. Refuse a column of groups that no run has."""
    wanted, found, reasons = shown.wanted, {}, []
    for column in shown.columns:
        try:
            found[column.name] = {
                risk: [certify_groups(run, by, risk, wanted.delta, wanted.bound) for run in column.runs]
                for risk in wanted.risks
            }
        except Unavailable as why:
            reasons.append(str(why))
    if not any(any(by_risk.values()) for by_risk in found.values()):
        raise UserError(f"--by {by}: {reasons[0] if reasons else 'no run'}")
    return {name: by_risk for name, by_risk in found.items() if any(by_risk.values())}


def written(guarantees: Guarantees, place: Path) -> str:
    """Write the tables of each task, one line for each run as CSV, and the figure; say where they are."""
    paths: list[Path] = []
    for shown, tables in guarantees.tables():
        name = f"{shown.manifest.name}-certified"
        paths += write_files(place / "tables", name, tables)
        paths += [write_lines(place / "tables" / f"{name}-runs.csv", shown)]
        paths += draw_figure(shown, place, name) if shown.wanted.risks else []
    return "Certified:\n" + "\n".join(f"  {path}" for path in paths)


def draw_figure(shown: Certified, place: Path, name: str) -> list[Path]:
    # Only now, so that errors need not wait for matplotlib.
    from benchmark.figures.style import house_style, save
    from benchmark.figures.thresholds import certified

    with house_style():
        return save(certified.draw(shown), place / "figures", name)


def write_lines(path: Path, shown: Certified) -> Path:
    """Write a line for each run and guarantee."""
    write_if_changed(path, render.lines_csv(list(lines_of(shown))).encode())
    return path


def certify(
    results: str | PathLike[str] = "results",
    tasks: Names = (),
    risk: Numbers | None = None,
    coverage: Numbers | None = None,
    **more: Any,
) -> Guarantees:
    """Certify runs of a results folder at some risks or coverages, in per cent, and write the tables.

    `more` are the options of the command `certify`: confidence, bound, from_test, by, methods, scores, plugin, out.
    Bad input raises UserError.
    """
    known = [field.name for field in fields(CertifyOptions)]
    for name in more:
        if name not in known:
            raise unknown_name(name, known, "option of certify:")
    asked = {"results": results, "tasks": tasks, "risk": several(risk), "coverage": several(coverage)}
    return certify_runs(CertifyOptions(**asked, **more))  # type: ignore[arg-type]


def several(numbers: Numbers | None) -> Iterable[float] | None:
    return (numbers,) if isinstance(numbers, int | float) else numbers
