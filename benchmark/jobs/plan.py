"""Plan jobs: from labels to settings, from settings to identities, and which jobs each job needs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.names import canonical, unknown_name
from benchmark.base.schema import build, identity
from benchmark.config.recipe import differences
from benchmark.config.task import TaskConfig
from benchmark.interface import Contestant, Derived, Member, Method, Recipe
from benchmark.jobs.allowance import Allowance
from benchmark.jobs.code_version import combined, core_hash
from benchmark.jobs.job import Job, Methods, own_parts, part_owners
from benchmark.jobs.members import changed_recipe, members_of, with_data_seed
from benchmark.jobs.suite import Entry
from benchmark.measure.catalogue import all_titles
from benchmark.measure.labels import name_at

NO_OUTLIERS = "needs images of another data set, and data.outliers names none"


def label_owners(methods: Methods) -> dict[str, str]:
    """Return the name of the method's file for every label. Raise UserError where labels are ambiguous."""
    owners: dict[str, str] = {}
    for name in methods.names():
        for label in methods.get(name).labels:
            if canonical(label) in {canonical(known) for known in owners}:
                raise UserError(f"the label '{label}' of '{name}' is taken by another method; rename it")
            owners[label] = name
    scores = [canonical(score) for score in all_titles()]
    for label in owners:
        base, _, score = label.rpartition("+")
        if base in owners and canonical(score) in scores:
            raise UserError(f"the label '{label}' would mean '{base}' read with the score {score}; rename one of them")
    return owners


def in_task_order(labels: Iterable[str], task: TaskConfig) -> list[str]:
    """Sort labels as the task lists its methods, which is the order of the published table; others come last."""
    position = {canonical(name): index for index, name in enumerate(task.methods)}
    return sorted(labels, key=lambda label: position.get(canonical(label), len(position)))


def resolve_config(task: TaskConfig, label: str, owner: str, method: type[Contestant], **fixed: Any) -> Any:
    """Return the settings of a label: defaults ← the task's for the file ← the label's own ← the task's for the label.

    A file and one of its labels may have the same name: then only the file's exact name means all its labels.
    """
    of_file: dict[str, Any] = {}
    of_label: dict[str, Any] = {}
    labels = {canonical(each) for each in method.labels}
    for name, settings in task.method.items():
        if name == owner or (canonical(name) == canonical(owner) and canonical(name) not in labels):
            of_file |= settings
        elif canonical(name) == canonical(label):
            of_label |= settings
    settings = of_file | dict(method.labels[label]) | of_label | fixed
    return build(method.Config, settings, f"{task.name}: method.{label}")


def check_settings(task: TaskConfig, methods: Methods, owners: Mapping[str, str]) -> None:
    """Raise UserError for wrong settings of any method, also of those that do not take part."""
    for name, settings in task.method.items():
        known = [owner for label, owner in owners.items() if canonical(name) in (canonical(label), canonical(owner))]
        if not known:
            raise unknown_name(name, [*owners, *owners.values()], f"method in {task.name}: method.{name}:")
        build(methods.get(known[0]).Config, settings, f"{task.name}: method.{name}")


@dataclass(frozen=True)
class Planner:
    """Makes the jobs of one task."""

    task: TaskConfig
    methods: Methods
    data_sha256: str
    max_steps: int = 0
    standard: TaskConfig | None = None
    """The task as its file has it, where the command line changes it."""
    held_out: float = 0.0
    """The share of the training images on which trials are measured."""
    outliers: Callable[[], str] = lambda: ""
    """Finds the hash of the task's outliers; called for methods that need some alone, as they have to be loaded."""

    def all_entries(self, label: str, owner: str, seeds: Sequence[int]) -> Iterator[Entry]:
        """Yield the entries of a label; where the task averages weights, first those of the training as it is."""
        if self.task.averaging.is_on and not issubclass(self.methods.get(owner), Recipe):
            yield from self.trained.entries(label, owner, seeds)
        yield from self.entries(label, owner, seeds)

    def entries(self, label: str, owner: str, seeds: Sequence[int]) -> Iterator[Entry]:
        """Yield the entry of a label, or one for each coverage that the method is trained for."""
        method, shown = self.methods.get(owner), label + self.task.suffix
        if issubclass(method, Recipe):
            yield from self.recipe_entries(label, method, seeds)
            return
        base = label if shown != label else ""
        if reason := self.impossible(method, resolve_config(self.task, label, owner, method)):
            yield Entry(shown, owner, (), reason=reason, base=base)
            return
        field = method.one_per_coverage if issubclass(method, Method) else None
        self.refuse_coverage_setting(field, label, owner)
        for coverage in self.task.model_coverages if field else (None,):
            fixed = {field: coverage / 100} if field and coverage else {}
            config = resolve_config(self.task, label, owner, method, **fixed)
            name = name_at(shown, coverage)
            standard = resolve_config(self.standard or self.task, label, owner, method, **fixed)
            jobs = tuple(self.job(name, owner, config, seed) for seed in seeds)
            yield Entry(shown, owner, jobs, coverage, modified=differences(vars(standard), vars(config)), base=base)

    def impossible(self, method: type[Contestant], config: Any) -> str:
        """Return why the task cannot have a method; empty where it can."""
        validates = method.needs_validation or getattr(config, "images", "") == "validation"
        if validates and not self.task.data.has_validation:
            return "needs validation images, and data.val is 0"
        if self.needs_outliers(method) and not self.task.data.outliers:
            return NO_OUTLIERS
        if self.task.averaging.is_on and issubclass(method, Derived) and not method.uses_final_weights:
            return "combines states of earlier epochs, and has no final weights to average"
        return ""

    def taking_part(self, method: type[Contestant]) -> list[type[Contestant]]:
        """Return a method, and what trains the network before it."""
        before = [getattr(method, name, None) for name in ("warmup", "starts_from")]
        return [method, *(self.methods.get(name) for name in before if name in self.methods.names())]

    def needs_outliers(self, method: type[Contestant]) -> bool:
        """Return whether a method trains on outliers, or one that trains the network before it."""
        return any(issubclass(each, Method) and each.needs_outliers for each in self.taking_part(method))

    def outliers_for(self, label: str, method: type[Contestant]) -> str:
        """Return the hash of the outliers that a method trains on; empty where it needs none."""
        if not self.needs_outliers(method):
            return ""
        if not self.task.data.outliers:
            raise UserError(f"{label} {NO_OUTLIERS}")
        return self.outliers()

    def recipe_entries(self, label: str, method: type[Recipe], seeds: Sequence[int]) -> Iterator[Entry]:
        """Yield the entry of a label with ingredients that has a name of its own."""
        owners = label_owners(self.methods)
        if method.of not in owners:
            raise unknown_name(method.of, owners, f"label that {label} is made of:")
        planner = replace(self, task=changed_recipe(self.task, method.changes, label))
        for entry in planner.entries(method.of, owners[method.of], seeds):
            jobs = tuple(replace(job, label=name_at(label, entry.coverage)) for job in entry.jobs)
            yield replace(entry, label=label, jobs=jobs, base="")

    def refuse_coverage_setting(self, field: str | None, label: str, owner: str) -> None:
        """Raise UserError where a task sets the field that model_coverages sets."""
        for name, settings in self.task.method.items():
            if canonical(name) in (canonical(label), canonical(owner)) and field in settings:
                raise UserError(f"{self.task.name}: method.{name}.{field} is set by model_coverages; set that instead")

    @property
    def trained(self) -> "Planner":
        """Return the planner of the trainings whose weights this one's jobs average."""
        return replace(self, task=self.task.trained)

    def job(self, label: str, owner: str, config: Any, seed: int) -> Job:
        method = self.methods.get(owner)
        if issubclass(method, Recipe):
            entry = next(self.recipe_entries(label, method, [seed]))
            if not entry.jobs:
                raise UserError(f"{label}: {entry.reason}")
            return entry.jobs[0]
        if self.task.averaging.is_on and issubclass(method, Method) and method.starts_from is None:
            return self.averaged_job(label, self.trained.job(label, owner, config, seed))
        self.refuse_mixed(label, owner)
        members = members_of(method, config, seed, self.task.epochs)
        needs = tuple(self.needs(label, method, members, seed))
        warmup, epochs, stage_epochs = method.warmup if issubclass(method, Method) else None, 0, 0
        if issubclass(method, Method) and method.second_stage:
            warmup, epochs, stage_epochs = method.starts_from, self.task.epochs, int(config.epochs)
        elif warmup:
            epochs = self.warmup_epochs(label, warmup, config)
        files = (owner, warmup, *part_owners(self.task).values())
        own_code = [self.methods.code_hash(name) for name in files if name]
        return Job(
            self.task,
            owner,
            identity(config),
            self.data_sha256,
            self.methods.source_hash(owner),
            seed,
            epochs,
            stage_epochs,
            self.max_steps,
            needs=needs,
            takes_over=issubclass(method, Method) and bool(members),
            held_out=self.held_out,
            own_parts=own_parts(self.task, self.methods),
            outliers_sha256=self.outliers_for(label, method),
            bytes_sha256=self.methods.bytes_hash(owner),
            label=label,
            code=combined([core_hash(), *own_code, *(need.code for need in needs)]),
            trunk=self.trunk(warmup, seed) if warmup and epochs else None,
        )

    def averaged_job(self, label: str, trained: Job) -> Job:
        """Return the job that takes over the average of a training."""
        name, at, coverage = label.partition("@")
        named = name.endswith(self.task.suffix)  # trials of a search are called otherwise
        plain = name.removesuffix(self.task.suffix) + self.task.trained.suffix if named else name
        needs = (replace(trained, label=plain + at + coverage),)
        return replace(trained, task=self.task, label=label, needs=needs, takes_over=True, warmup_epochs=0, trunk=None)

    def refuse_mixed(self, label: str, owner: str) -> None:
        """Raise UserError where mixed images would replace those of a method that cannot learn from two labels."""
        mixing, parts = self.task.mixing.name, self.taking_part(self.methods.get(owner))
        learn = [each for each in parts if issubclass(each, Method) and each.starts_from is None]
        if mixing in ("mixup", "cutmix") and not all(each.takes_mixed for each in learn):
            raise UserError(
                f"{label} cannot learn from the two labels of mixed images (mixing.name = {mixing}); use regmixup, "
                "which adds them beside any loss, or leave it out"
            )

    def warmup_epochs(self, label: str, warmup: str, config: Any) -> int:
        """Return the epochs of the declared warm-up. Raise UserError where it leaves no epoch to the method."""
        if warmup not in self.methods.names():
            raise unknown_name(warmup, self.methods.names(), f"warm-up method of {label}:")
        epochs, most = int(config.warmup_epochs), self.task.epochs
        if not 0 <= epochs < most:
            name = label.removesuffix(self.task.suffix)
            raise UserError(
                f"{self.task.name}: method.{name}: warmup_epochs = {epochs} must be at least 0 and below epochs = "
                f"{most}; set both, e.g. --set method.{name}.warmup_epochs=0"
            )
        return epochs

    def trunk(self, warmup: str, seed: int) -> Job | None:
        """Return the job that a warm-up would be by itself; None where that has a warm-up of its own."""
        method = self.methods.get(warmup)
        plain = issubclass(method, Method) and method.warmup is None
        return self.trained.plain_job(warmup, seed) if plain else None

    def plain_job(self, owner: str, seed: int) -> Job:
        """Return the job of a method's first label."""
        method = self.methods.get(owner)
        label = next(iter(method.labels))
        return self.job(label, owner, resolve_config(self.task, label, owner, method), seed)

    def needs(self, label: str, method: type[Contestant], members: Sequence[Member], seed: int) -> Iterator[Job]:
        """Yield the training of each member; several epochs of one training are one job."""
        trainings: dict[tuple[str, int, int, bool], Job] = {}
        for member in members:
            key = member.method, member.seed, id(member.recipe), self.task.averaging.is_on and member.epoch is None
            if key not in trainings:
                trainings[key] = self.member(label, method, member, seed)
            if member.epoch not in (None, *trainings[key].task.evaluate_at):
                raise UserError(f"{label} needs epoch {member.epoch} of '{member.method}'; name it in evaluate_at too")
            yield trainings[key]

    def member(self, label: str, method: type[Contestant], member: Member, seed: int) -> Job:
        """Return a training that another job needs: the grid's own job, except for changes of the recipe."""
        if member.method not in self.methods.names():
            raise unknown_name(member.method, self.methods.names(), f"method that {label} needs:")
        trained = self.methods.get(member.method)
        if not issubclass(trained, Method) or trained.starts_from is not None:
            raise UserError(f"{label} needs '{member.method}', which trains nothing itself; name a method that trains")
        if issubclass(method, Method) and (method.extra_outputs or trained.extra_outputs):
            raise UserError(f"{label} starts from '{member.method}': neither may have outputs beyond the classes")
        averages = issubclass(method, Derived) and member.epoch is None
        start = self if averages else self.trained  # what starts from a network averages it itself
        planner = replace(start, task=changed_recipe(start.task, member.recipe, label))
        job = planner.plain_job(member.method, member.seed)
        if member.seed == seed:
            return job
        return with_data_seed(job, seed)


def plan(
    task: TaskConfig,
    labels: Iterable[str],
    seeds: Iterable[int],
    methods: Methods,
    data_sha256: str,
    max_steps: int = 0,
    standard: TaskConfig | None = None,
    allowance: Allowance | None = None,
    outliers: Callable[[], str] = lambda: "",
) -> tuple[Entry, ...]:
    """Return the entries of a task: each label with one job per seed; if it averages weights, also without that."""
    owners = label_owners(methods)
    check_settings(task, methods, owners)
    planner = Planner(task, methods, data_sha256, max_steps, standard, outliers=outliers)
    ordered = in_task_order(labels, task)

    def make(seeds: Sequence[int]) -> tuple[Entry, ...]:
        return tuple(entry for label in ordered for entry in planner.all_entries(label, owners[label], seeds))

    return tuple((allowance or Allowance()).all_of(make, list(seeds)))
