"""Read the TOML files of the published tables: which columns of which task, and the settings of each."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.names import match_name
from benchmark.base.schema import build, check
from benchmark.config.load import CONFIG_DIR
from benchmark.config.task import TaskConfig
from benchmark.measure.labels import match_labels
from benchmark.paper.values import published_figures
from benchmark.store.manifest import ALL_SHOWN, Manifest

TABLE_DIR = CONFIG_DIR / "tables"
SCALES = {"paper": "", "cpu": "-cpu"}
"""The suffix of a task's name at each scale."""


@dataclass(frozen=True)
class Change:
    """What a variant changes on the small version of a task."""

    settings: dict[str, Any] = field(default_factory=dict)
    epoch: int = 0


@dataclass(frozen=True)
class Variant:
    """A column that is a method with other settings, or its state before the end of training."""

    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    epoch: int = 0
    """Show the state after this epoch, which the task must have in evaluate_at; 0 = the state that it tests."""
    cpu: Change = Change()

    def at(self, scale: str) -> "Variant":
        if scale == "paper":
            return self
        return replace(self, settings={**self.settings, **self.cpu.settings}, epoch=self.cpu.epoch or self.epoch)


@dataclass(frozen=True)
class PublishedTable:
    name: str
    title: str
    task: str
    published: str
    """The name of the table in the published figures."""
    reference: str
    """The column that the markers compare with."""
    columns: tuple[str, ...]
    """As published, from left to right: a method, a method with a further score, or one of the variants."""
    shows: tuple[str, ...]
    """What the published table shows besides mean±std and bold."""
    groups: tuple[tuple[str, ...], ...] = ()
    """The best is marked in each group of columns; empty = all columns are one group."""
    trials: int = 5
    """Runs behind each published cell."""
    trials_of: dict[str, Any] = field(default_factory=dict)
    """Other numbers of runs, by column."""
    incomparable: dict[str, Any] = field(default_factory=dict)
    """Columns that cannot be compared with our runs, and why."""
    variants: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        grouped = (column for group in self.groups for column in group)
        for name in (self.reference, *self.variants, *self.trials_of, *self.incomparable, *grouped):
            check(name in self.columns, f"'{name}' is not among the columns")
        for part in self.shows:
            check(part in ALL_SHOWN, f"shows may have {', '.join(ALL_SHOWN)}; got '{part}'")
        check(self.published in published_figures(), f"no published table is called '{self.published}'")
        printed = published_figures()[self.published].columns
        check(list(self.columns) == printed, f"the published columns are {', '.join(printed)}")

    def variant(self, column: str, owners: Mapping[str, str]) -> tuple[str, Variant]:
        """Return the label of a column's runs, and the variant that makes them."""
        if column in self.variants:
            return column, build(Variant, self.variants[column], f"{self.name}: variants.{column}")
        label = match_labels([column], owners, f"column of {self.name}:")[0]
        return label, Variant(label)


def table_names() -> list[str]:
    return sorted(path.stem for path in TABLE_DIR.glob("*.toml"))


def load_tables(names: Iterable[str]) -> list[PublishedTable]:
    """Return the tables with these names, each once; `all` means every table."""
    wanted = [name for each in names for name in (table_names() if each == "all" else [each])]
    known = dict.fromkeys(match_name(name, table_names(), "table") for name in wanted)
    return [read_table(name) for name in known]


def read_table(name: str) -> PublishedTable:
    try:
        tables = tomllib.loads((TABLE_DIR / f"{name}.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read table {name}: {error}") from None
    return build(PublishedTable, {**tables, "name": name}, name)


def table_manifest(table: PublishedTable, scale: str, task: TaskConfig, remark: str) -> Manifest:
    """Return the manifest of a published table, still without its runs."""
    reason = remark if scale == "paper" else f"{task.name} is a small sibling of the published task"
    return Manifest(
        name=f"{table.name}{SCALES[scale]}",
        task=task.name,
        title=f"{task.title}, {table.title}",
        coverages=tuple(published_figures()[table.published].coverages),
        reference=table.reference,
        baseline=task.baseline,
        columns=table.columns,
        shows=table.shows,
        groups=table.groups,
        published=table.published,
        trials={column: table.trials_of.get(column, table.trials) for column in table.columns},
        incomparable=dict.fromkeys(table.columns, reason) if reason else dict(table.incomparable),
        remark=remark,
    )
