"""Published tables: one TOML file each, which columns of which task, and what is set for them."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchmark.config import TaskConfig
from benchmark.errors import UserError
from benchmark.figures import published_figures
from benchmark.names import match_labels, match_name
from benchmark.schema import build, check
from benchmark.tables import ALL_SHOWN
from benchmark.tasks import CONFIG_DIR

TABLE_DIR = CONFIG_DIR / "tables"
SCALES = {"paper": "", "cpu": "-cpu"}
"""What is added to the name of a task."""


@dataclass(frozen=True)
class Change:
    """What is different on the small sibling of a task."""

    settings: dict[str, Any] = field(default_factory=dict)
    epoch: int = 0


@dataclass(frozen=True)
class Variant:
    """A column that is a method with settings of its own, or its state before the end of training."""

    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    epoch: int = 0
    """The state after so many epochs, which the task must name in evaluate_at; 0 = the one it tests."""
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
    """What the table is called in the published figures."""
    reference: str
    """The column that the markers compare with."""
    columns: tuple[str, ...]
    """As published, from left to right: a method, a method read with a score, or one of the variants."""
    shows: tuple[str, ...]
    """What the published table has beside mean±std and bold."""
    groups: tuple[tuple[str, ...], ...] = ()
    """Columns among which the best is sought; empty = all."""
    trials: int = 5
    """Runs behind each published cell."""
    trials_of: dict[str, Any] = field(default_factory=dict)
    """The same of single columns."""
    incomparable: dict[str, Any] = field(default_factory=dict)
    """Columns that no run of ours can be held against, and why."""
    variants: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        grouped = (column for group in self.groups for column in group)
        named = (self.reference, *self.variants, *self.trials_of, *self.incomparable, *grouped)
        for name in named:
            check(name in self.columns, f"'{name}' is not among the columns")
        for part in self.shows:
            check(part in ALL_SHOWN, f"shows may have {', '.join(ALL_SHOWN)}; got '{part}'")
        check(self.published in published_figures(), f"no published table is called '{self.published}'")
        printed = published_figures()[self.published].columns
        check(list(self.columns) == printed, f"the published columns are {', '.join(printed)}")

    def variant(self, column: str, owners: Mapping[str, str]) -> tuple[str, Variant]:
        """The label under which a column's runs are listed, and what makes them."""
        if column in self.variants:
            return column, build(Variant, self.variants[column], f"{self.name}: variants.{column}")
        label = match_labels([column], owners, f"column of {self.name}:")[0]
        return label, Variant(label)


def table_names() -> list[str]:
    return sorted(path.stem for path in TABLE_DIR.glob("*.toml"))


def load_tables(names: Iterable[str]) -> list[PublishedTable]:
    """The tables called so, each once; `all` means every one."""
    wanted = [name for each in names for name in (table_names() if each == "all" else [each])]
    found = dict.fromkeys(match_name(name, table_names(), "table") for name in wanted)
    return [read_table(name) for name in found]


def read_table(name: str) -> PublishedTable:
    try:
        tables = tomllib.loads((TABLE_DIR / f"{name}.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read table {name}: {error}") from None
    return build(PublishedTable, {**tables, "name": name}, name)


def table_manifest(table: PublishedTable, scale: str, task: TaskConfig, remark: str) -> dict[str, Any]:
    """What is shown, and how it compares with what was published; the runs are still to be added."""
    reasons = dict(table.incomparable)
    if remark:
        reasons = dict.fromkeys(table.columns, remark)
    if scale != "paper":
        reasons = dict.fromkeys(table.columns, f"{task.name} is a small sibling of the published task")
    return {
        "name": f"{table.name}{SCALES[scale]}",
        "task": task.name,
        "title": f"{task.title}, {table.title}",
        "coverages": published_figures()[table.published].coverages,
        "reference": table.reference,
        "baseline": task.baseline,
        "columns": list(table.columns),
        "shows": list(table.shows),
        "groups": [list(group) for group in table.groups],
        "published": table.published,
        "trials": {column: table.trials_of.get(column, table.trials) for column in table.columns},
        "incomparable": reasons,
        **({"remark": remark} if remark else {}),
    }
