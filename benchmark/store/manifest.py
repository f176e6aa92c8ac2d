"""Define the manifest of a table: which runs of which methods it shows, and how. One place knows the keys of the file.

A manifest shows the runs of the last command, and remembers those of earlier ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.files import Damaged
from benchmark.base.names import canonical, is_plain
from benchmark.measure.labels import labels_named
from benchmark.store.record import Plain, newer_version

VERSION = 2
FOREIGN = "it names what cannot be in this folder"
DEFAULT_THRESHOLD = "sort"
ALL_SHOWN = ("markers", "second", "w/t/l", "avg. rank")


@dataclass(frozen=True)
class ManifestEntry:
    """A method of a table, and its runs."""

    label: str
    method: str
    job: str
    """Empty where the task cannot have it."""
    seeds: tuple[int, ...]
    code: str = ""
    """Hash of the code that was to make its predictions."""
    coverage: float | None = None
    """In per cent, of a training that is meant for one."""
    epoch: int | None = None
    """Show the state after so many epochs; None is the state that the task tests."""
    reason: str = ""
    """Why the task cannot have it."""
    modified: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Settings of the method that differ from the task file, by name: the value in the file and the value used."""
    imported: bool = False
    """Whether its runs were made elsewhere."""
    unpaired: bool = False
    """Whether nothing says that its runs are pairs with those of other methods that have the same seed."""
    base: str = ""
    """The label of its method without ingredients, where the manifest has factors."""
    levels: tuple[str, ...] = ()
    """Its level of each factor, in the order of the manifest's factors."""

    @property
    def column(self) -> tuple[str, float | None, int | None]:
        return self.label, self.coverage, self.epoch

    @property
    def key(self) -> tuple[str, float | None, int | None, str]:
        return (*self.column, self.job)

    def with_seeds(self, further: Iterable[int]) -> "ManifestEntry":
        return replace(self, seeds=tuple(sorted({*self.seeds, *further})))


@dataclass(frozen=True)
class Manifest:
    """What one table shows: rows, columns, the runs behind them, and how they are compared and printed."""

    name: str
    task: str
    title: str
    coverages: tuple[float, ...]
    """Rows, in per cent."""
    reference: str
    """The method that the others are compared with."""
    baseline: str = ""
    """The method that gains are counted from."""
    torch: str = ""
    """The version that was installed."""
    entries: tuple[ManifestEntry, ...] = ()
    standard: Mapping[str, Any] | None = None
    """The recipe of the task file that it is called after; older manifests have none."""
    test: str = "exact"
    holm: str = ""
    """What Holm's correction covers; empty for no correction."""
    threshold: str = DEFAULT_THRESHOLD
    """Which images are kept at a coverage."""
    scores: tuple[str, ...] = ()
    """Scores that every method is read with, in addition to its own."""
    columns: tuple[str, ...] = ()
    """Show only these, in this order; all where there are none."""
    groups: tuple[tuple[str, ...], ...] = ()
    """The best is marked in each group of columns; all are one group where there are none."""
    shows: tuple[str, ...] = ALL_SHOWN
    """Parts of the table."""
    ddof: int = 0
    """The standard deviation divides by n − ddof."""
    decimals: int = 2
    """Of percentages; other measures change by as many."""
    transpose: bool = False
    """Whether each method is a row."""
    intervals: bool | None = None
    """Whether test images are resampled, to show how far measures depend on them; None: for imported single runs."""
    set_of: str = ""
    """The task of which its samples are an evaluation set."""
    remark: str = ""
    """What to know of the data."""
    published: str = ""
    """Of a published table: its name among the published figures."""
    trials: Mapping[str, int] = field(default_factory=dict)
    """Published runs by column."""
    incomparable: Mapping[str, str] = field(default_factory=dict)
    """Why a column cannot be compared with our runs, by column."""
    factors: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Of a crossed grid: the name of each factor, and its levels in the order asked for."""
    earlier: tuple[ManifestEntry, ...] = ()
    """Runs that earlier commands asked for and the last one did not, the latest first."""
    modified: str = ""
    """What the runs differ in from the task file, in words. Found when a table is opened; not stored."""

    @property
    def known_entries(self) -> tuple[ManifestEntry, ...]:
        """Return the entries that are shown, then the earlier ones."""
        return (*self.entries, *self.earlier)

    @property
    def owners(self) -> dict[str, str]:
        """Return the method of each label that is shown."""
        return {entry.label: entry.method for entry in self.entries}

    @property
    def has_imported(self) -> bool:
        """Tell whether some of the runs that are shown were made elsewhere."""
        return any(entry.imported for entry in self.entries)

    @property
    def paired(self) -> bool:
        """Tell whether runs of one seed are pairs across methods, as trained ones are."""
        return not any(entry.unpaired for entry in self.entries)

    @property
    def is_of_single_runs(self) -> bool:
        """Tell whether no method has more than one run, so that nothing can be said about seeds."""
        return all(len(entry.seeds) <= 1 for entry in self.entries)

    @property
    def resamples_images(self) -> bool:
        """Tell whether test images are resampled: as asked, else where single runs were imported."""
        by_default = self.has_imported and self.is_of_single_runs
        return by_default if self.intervals is None else self.intervals

    @property
    def judged_by_images(self) -> bool:
        """Tell whether its cells have intervals over test images, and are compared over these, not over seeds."""
        return self.resamples_images and self.is_of_single_runs and self.threshold == DEFAULT_THRESHOLD


@dataclass(frozen=True)
class TableSettings:
    """How tables are compared and printed, as far as somebody asked for it; None leaves what the manifest says."""

    test: str | None = None
    holm: str | None = None
    threshold: str | None = None
    scores: tuple[str, ...] | None = None
    ddof: int | None = None
    decimals: int | None = None
    transpose: bool | None = None
    intervals: bool | None = None

    def applied_to(self, manifest: Manifest) -> Manifest:
        asked: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        if self.test == "paired" and not manifest.paired:
            raise UserError(
                f"--test paired: nothing says that runs of {manifest.task} with one seed are pairs; "
                "import them again with --paired, or choose another test"
            )
        return replace(manifest, **asked)


def read_manifest(plain: Plain, where: str) -> Manifest:
    """Return the manifest in the content of a file of any version up to this one."""
    version = plain.get("version", 1)
    if not isinstance(version, int) or version not in READERS:
        raise newer_version("manifest", where, version, VERSION)
    return READERS[version](plain)


def read_version_2(plain: Plain) -> Manifest:
    known = {name: plain[name] for name in STORED if name in plain}
    for name in ("coverages", "scores", "columns", "shows"):
        if name in known:
            known[name] = tuple(known[name])
    if "groups" in known:
        known["groups"] = tuple(map(tuple, known["groups"]))
    if "factors" in known:
        known["factors"] = tuple((name, tuple(levels)) for name, levels in known["factors"])
    for name in ("entries", "earlier"):
        if name in known:
            known[name] = tuple(map(read_entry, known[name]))
    return Manifest(**known)


def read_entry(plain: Plain) -> ManifestEntry:
    return ManifestEntry(**{**plain, "seeds": tuple(plain["seeds"]), "levels": tuple(plain.get("levels", ()))})


READERS = {1: read_version_2, 2: read_version_2}
"""Version 1 has the same keys as version 2, except that of the version."""
STORED = [each.name for each in fields(Manifest) if each.name != "modified"]
DEFAULTS = Manifest("", "", "", (), "")
ALWAYS = ("name", "task", "title", "coverages", "reference", "baseline", "torch", "entries")


def plain_manifest(manifest: Manifest) -> Plain:
    """Return the content of a manifest's file, in the present version; the seal is added when it is written."""
    plain: Plain = {"version": VERSION}
    for name in STORED:
        value = getattr(manifest, name)
        if name in ALWAYS or value != getattr(DEFAULTS, name):
            plain[name] = [plain_entry(entry) for entry in value] if name in ("entries", "earlier") else value
    return plain


def plain_entry(entry: ManifestEntry) -> Plain:
    always = ("label", "method", "job", "code", "seeds")
    return {name: value for name, value in vars(entry).items() if name in always or value}


def with_earlier(manifest: Manifest, before: Manifest | None) -> Manifest:
    """Return the manifest of a command with the runs that the manifest before it names and it does not."""
    shown = {entry.key: set(entry.seeds) for entry in manifest.entries}
    earlier: dict[Any, ManifestEntry] = {}
    for entry in before.known_entries if before else ():
        earlier[entry.key] = earlier.get(entry.key, entry).with_seeds(entry.seeds)
    kept = [entry for key, entry in earlier.items() if set(entry.seeds) - shown.get(key, set())]
    return replace(manifest, earlier=tuple(kept))


def check_owners(manifests: Iterable[Manifest]) -> None:
    """Raise UserError where results of a task and of an evaluation set, or of two sets, would lie in one folder."""
    owners: dict[str, str] = {}
    for each in manifests:
        if owners.setdefault(each.name, each.set_of) != each.set_of:
            both = " and ".join(owner_text(each.name, task) for task in (owners[each.name], each.set_of))
            raise UserError(f"results called '{each.name}' would be those of {both}; give the set another name")


def owner_text(name: str, set_of: str) -> str:
    return f"the evaluation set '{name.removeprefix(f'{set_of}-')}' of '{set_of}'" if set_of else f"the task '{name}'"


def with_every_run(manifest: Manifest, published: Iterable[Manifest] = ()) -> Manifest:
    """Return the manifest with every run of its task that any command asked for: all seeds, and all labels.

    Where a label has several settings, the latest keeps the name; the others get their job added to it.
    """
    entries = {entry.key: entry for entry in manifest.entries}
    columns = {entry.column for entry in manifest.entries}
    same = (entry for other in published if other.task == manifest.task for entry in other.entries)
    for entry in (*manifest.earlier, *same):
        if entry.key in entries:
            entries[entry.key] = entries[entry.key].with_seeds(entry.seeds)
        elif entry.job:
            taken = entry.column in columns
            entries[entry.key] = replace(entry, label=f"{entry.label} (job {entry.job})") if taken else entry
            columns.add(entry.column)
    return replace(manifest, entries=tuple(entries.values()))


def needed_plugin(name: str, manifests: Iterable[Manifest], methods: Iterable[str]) -> str:
    """Return the plugin file that made the results of this name; empty where one of these methods did."""
    known = set(methods)
    for manifest in manifests:
        owners = {entry.label: entry.method for entry in manifest.known_entries}
        imported = {entry.label for entry in manifest.known_entries if entry.imported}
        foreign = {label: owner for label, owner in owners.items() if owner not in known and label not in imported}
        for label in labels_named(canonical(name), foreign) if canonical(name) != "all" else ():
            return f"{foreign[label]}.py"
    return ""


def checked_names(manifest: Manifest, name: str) -> Manifest:
    """Return the manifest; raise Damaged where a name in it could lead out of its results folder."""
    parts = (part for entry in manifest.known_entries for part in (entry.method, entry.job or "none"))
    if manifest.name != name or not all(is_plain(part) for part in (name, manifest.task, *parts)):
        raise Damaged(FOREIGN)
    return manifest
