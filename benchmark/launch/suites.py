"""Make the suites of a command. Everything about them is checked before anything runs."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.base.files import say
from benchmark.base.names import canonical, match_name
from benchmark.config.load import load_task, load_tasks, task_names, task_path
from benchmark.config.task import TaskConfig
from benchmark.data.cache import Folders
from benchmark.data.devices import default_settings, device_kind
from benchmark.data.images import Facts
from benchmark.jobs.allowance import Allowance
from benchmark.jobs.cells import (
    Cell,
    Levels,
    crossed,
    factor_levels,
    named_cell_misfit,
    plan_cells,
    read_cells,
    split_name,
)
from benchmark.jobs.earlier_ids import suite_as_found
from benchmark.jobs.job import Methods
from benchmark.jobs.plan import Planner, check_settings, in_task_order, label_owners, plan
from benchmark.jobs.suite import Entry, Suite, entry_of_manifest, shown_label
from benchmark.measure.labels import labels_named, match_labels, name_at
from benchmark.paper.entries import table_entries
from benchmark.paper.table_files import SCALES, PublishedTable, table_manifest
from benchmark.store.manifest import Manifest, TableSettings, needed_plugin
from benchmark.store.stale import installed_torch
from benchmark.store.store import Store
from benchmark.tables.build import pick_reference
from benchmark.train.preflight import (
    Found,
    check_recipe,
    filled_in,
    find_data,
    find_outliers,
    head_remark,
    with_labels_hash,
)
from benchmark.tune.ledger import Settings
from benchmark.tune.search import PlannedTrial, as_stored, find_grid, make_trials, value_at, without_idle_validation

AS_TASKS_SAY = TableSettings()


@dataclass(frozen=True)
class SuiteMaker:
    """Makes suites from tasks: finds the data, checks the recipe, plans the jobs."""

    methods: Methods
    folders: Folders
    device: str = "auto"
    """Where jobs will run. The device suggests settings that a task leaves open."""
    overrides: tuple[str, ...] = ()
    """Settings of the command line, each as KEY=VALUE."""
    speed: tuple[str, ...] = ()
    """The same of the options that have a name of their own, such as --amp."""
    seeds: tuple[int, ...] = ()
    """Empty: as many as each task says."""
    max_steps: int = 0
    needs_data: Callable[[TaskConfig], bool] = lambda task: True
    """Whether a task's images must be there. A plan can often do without."""
    quiet: bool = False
    allowance: Allowance = field(default_factory=Allowance)

    def read_tasks(self, names: Iterable[str], changes: Iterable[str] = ()) -> list[TaskConfig]:
        """Read tasks: what the device suggests, their own settings, what the command line sets, `changes`."""
        defaults = default_settings(device_kind(self.device))
        tasks = load_tasks(names, [*self.overrides, *changes, *self.speed], defaults)
        return [filled_in(task, self.folders) for task in tasks]

    def read_standards(self, names: Iterable[str]) -> dict[str, TaskConfig]:
        """Return by name the tasks without overrides: as the suite's file of that name, or else their own, has them."""
        defaults, own = default_settings(device_kind(self.device)), task_names()
        files = [Path(name).stem if Path(name).stem in own else name for name in names]
        tasks = (load_task(file, defaults=defaults) for file in files)
        return {task.name: self.with_labels_known(task) for task in tasks}

    def with_labels_known(self, task: TaskConfig) -> TaskConfig:
        """Return a task with the hash of its training labels, if their file is there: a run may replace it."""
        with suppress(UserError):
            return with_labels_hash(task, self.folders)
        return task

    def seeds_of(self, task: TaskConfig) -> Sequence[int]:
        """Return the seeds asked for, or the task's own. One is enough to try a few steps."""
        return self.seeds or range(1 if self.max_steps else task.seeds)

    def find_data(self, task: TaskConfig) -> Found:
        """Find a task's images, and tell what a person should know of them before it runs."""
        data = find_data(task, self.folders, required=self.needs_data(task))
        for text in (data.remark, *(() if self.quiet else (data.preprocessing, head_remark(task, data.facts)))):
            if text:
                say(f"{task.name}: {text}")
        return data

    def outliers_of(self, task: TaskConfig, data: Found) -> Callable[[], str]:
        """Return what finds the hash of a task's outliers."""
        return partial(find_outliers, task.data, data.facts, self.folders, required=self.needs_data(task))


def suite_of(task: TaskConfig, data: Found, entries: Iterable[Entry]) -> Suite:
    """Return the suite of some entries of a task, with all else as the task says."""
    return Suite(
        task,
        tuple(entries),
        task.coverages,
        task.reference,
        TableSettings(),
        data.sha256,
        data.facts,
        data.remark,
        data_state=data.state,
    )


@dataclass(frozen=True)
class Wanted:
    """What a command asks of each task beyond its seeds; what is empty, the task says."""

    methods: Sequence[str] = ()
    factors: Sequence[Levels] = ()
    """Cross the methods with every combination of these levels."""
    coverages: Sequence[float] = ()
    reference: str | None = None
    table_settings: TableSettings = AS_TASKS_SAY


def task_suites(names: Sequence[str], wanted: Wanted, maker: SuiteMaker, store: Store) -> list[Suite]:
    """Return the grids of some tasks, with the ids that older results already have."""
    standards, files = maker.read_standards(names), {task_path(name).stem: name for name in names}
    suites = []
    for task in maker.read_tasks(names):
        read = partial(read_changed, maker, files[task.name])
        suites.append(task_suite(task, standards[task.name], wanted, maker, store, read))
    return [suite_as_found(suite, store) for suite in suites]


def read_changed(maker: SuiteMaker, name: str, changes: Sequence[str]) -> TaskConfig:
    """Return a task with some changed settings, each as KEY=VALUE."""
    (task,) = maker.read_tasks([name], changes)
    return task


def task_suite(
    task: TaskConfig,
    standard: TaskConfig,
    wanted: Wanted,
    maker: SuiteMaker,
    store: Store,
    read: Callable[[Sequence[str]], TaskConfig],
) -> Suite:
    """Return the grid of one task: its methods, or those asked for, with a job for each seed.

    `read` returns the task with changed settings, for methods that are asked for with ingredients of their own.
    """
    owners = label_owners(maker.methods)
    check_plugins([split_name(name, owners)[0] for name in wanted.methods], owners, maker.methods, store)
    cells = read_cells(wanted.methods or task.methods, owners)
    own = [cell.label for cell in cells if not cell.ingredients]
    if wanted.factors:
        own, cells = [], crossed_cells(cells, wanted.factors, task)
    misfits = {label: reason for label in own if (reason := named_cell_misfit(maker.methods.get(owners[label]), task))}
    data = maker.find_data(task)
    check_recipe(task, data.facts)
    seeds = list(dict.fromkeys(maker.seeds_of(task)))
    found = maker.methods, data.sha256, maker.max_steps, standard
    outliers = maker.outliers_of(task, data)
    fitting = [label for label in own if label not in misfits]
    entries = plan(task, fitting, seeds, *found, maker.allowance, outliers)
    entries += tuple(Entry(label, owners[label], (), reason=reason) for label, reason in misfits.items())

    @cache
    def planner_with(changes: tuple[str, ...]) -> Planner:
        changed = read(changes)
        check_recipe(changed, data.facts)
        return Planner(changed, *found, outliers=outliers)

    apart = [cell for cell in cells if cell.ingredients or wanted.factors]
    if apart:
        entries += tuple(maker.allowance.all_of(partial(plan_cells, apart, planner_with, owners), seeds))
    refuse_doubled(entries)
    default = match_labels([task.reference], owners, f"reference of {task.name}:")[0]
    shown = list(dict.fromkeys(entry.label for entry in entries))
    asked = wanted.reference and shown_label(wanted.reference, entries)
    reference = pick_reference(asked, shown_label(default, entries), shown)
    if not any(entry.jobs for entry in entries):
        raise UserError(f"{task.name}: none of {', '.join(shown)} can run here: {entries[0].reason}")
    for entry in entries:
        if entry.reason:
            say(f"{task.name} {entry.label}: {entry.reason}; its column stays empty")
    coverages = tuple(dict.fromkeys(wanted.coverages or task.coverages))
    suite = replace(suite_of(task, data, entries), factors=factor_levels(wanted.factors))
    return replace(suite, coverages=coverages, reference=reference, settings=wanted.table_settings, standard=standard)


def crossed_cells(cells: Sequence[Cell], factors: Sequence[Levels], task: TaskConfig) -> list[Cell]:
    """Return the crossed grid of some methods. Refuse those that bring ingredients of their own."""
    for cell in cells:
        if cell.ingredients:
            raise UserError(f"{cell.label}: name methods without ingredients; --with crosses all of them with its own")
    return crossed(in_task_order([cell.label for cell in cells], task), factors)


def refuse_doubled(entries: Iterable[Entry]) -> None:
    """Raise UserError where two columns would have one name."""
    for column, count in Counter((entry.label, entry.coverage) for entry in entries).items():
        if count > 1:
            raise UserError(
                f"{name_at(*column)} is asked for twice: by its name, and by --with or the task; do it once"
            )


def check_plugins(names: Sequence[str], owners: Mapping[str, str], methods: Methods, store: Store) -> None:
    """Name the plugin to bring in where a label is known only from earlier results."""
    for name in names:
        if not labels_named(canonical(name), owners):
            plugin = needed_plugin(name, store.manifests(), methods.names())
            if plugin:
                raise UserError(f"method '{name}' was made by a plugin; bring it in with --plugin {plugin}")


@dataclass(frozen=True)
class PaperGrid:
    """The runs of all published tables of one task, and what each of the tables shows of them."""

    suite: Suite
    manifests: list[Manifest]


def paper_grids(tables: Sequence[PublishedTable], scale: str, maker: SuiteMaker) -> list[PaperGrid]:
    """Return a grid for each task that some published tables are about."""
    by_task: dict[str, list[PublishedTable]] = {}
    for table in tables:
        by_task.setdefault(table.task, []).append(table)
    return [paper_grid(f"{name}{SCALES[scale]}", own, scale, maker) for name, own in by_task.items()]


def paper_grid(name: str, tables: Sequence[PublishedTable], scale: str, maker: SuiteMaker) -> PaperGrid:
    """Return the grid of the published tables of one task. A run that several tables name is one job."""
    (task,) = maker.read_tasks([name])
    data = maker.find_data(task)
    check_recipe(task, data.facts)
    outliers = maker.outliers_of(task, data)
    planner = Planner(task, maker.methods, data.sha256, maker.max_steps, outliers=outliers)
    entries: list[Entry] = []
    manifests = []
    for table in tables:
        make = partial(table_entries, table, scale, planner, maker.methods)
        own = maker.allowance.all_of(make, maker.seeds_of(task))
        shown = table_manifest(table, scale, task, data.remark)
        runs = tuple(map(entry_of_manifest, own))
        manifests.append(replace(shown, torch=installed_torch(), entries=runs))
        entries += own
    return PaperGrid(suite_of(task, data, entries), manifests)


@dataclass(frozen=True)
class Search:
    """The grid of one method as a suite, and what each of its entries tries."""

    label: str
    suite: Suite
    tried: Sequence[PlannedTrial]
    split: str
    """The images that judge the trials, in words."""


def search_suite(name: str, method: str, grid: Sequence[str], maker: SuiteMaker, store: Store) -> Search:
    """Return the trials of a method's settings on a task, with a part of its training images held out."""
    methods, owners = maker.methods, label_owners(maker.methods)
    label = match_name(method, owners, "method")
    (task,) = maker.read_tasks([name])
    check_settings(task, methods, owners)
    trials = find_grid(task, label, owners[label], grid)
    data = maker.find_data(task)
    facts = held_out_facts(task, data.facts)

    def planner_with(changes: Settings) -> Planner:
        (changed,) = maker.read_tasks([name], [f"{field}={value}" for field, value in changes.items()])
        judged = without_idle_validation(changed, methods.get(owners[label]), methods)
        check_recipe(judged, facts)
        found = maker.outliers_of(task, data)
        return Planner(judged, methods, data.sha256, maker.max_steps, held_out=task.tune_val, outliers=found)

    overridden = [override.partition("=")[0].strip() for override in maker.overrides]
    always = {key: value_at(task, key) for key in overridden}
    make = partial(make_trials, planner_with, methods, label, trials, always=always)
    tried = as_stored(maker.allowance.all_of(make, maker.seeds), store)
    suite = replace(suite_of(planner_with({}).task, data, [each.entry for each in tried]), facts=facts)
    split = f"{task.tune_val:.0%} of the training images ({facts.num_test:,}), drawn by the seed"
    return Search(label, suite, tried, split)


def held_out_facts(task: TaskConfig, facts: Facts) -> Facts:
    """Return the facts of a task's data in a trial: a share of the training images takes the place of the test's."""
    held_out = round(task.tune_val * facts.num_train)
    if not held_out:
        raise UserError(f"tune_val = {task.tune_val:g} holds out none of {facts.num_train} training images; raise it")
    return replace(facts, num_train=facts.num_train - held_out, num_test=held_out)
