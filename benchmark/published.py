"""Published tables: one TOML file each, which columns of which task, and what is set for them."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmark.config import CONFIG_DIR, TaskConfig
from benchmark.errors import UserError
from benchmark.jobs import Entry, Methods
from benchmark.names import match_labels, match_name
from benchmark.planner import Planner, check_settings, label_owners, resolve_config
from benchmark.schema import build, check

TABLE_DIR = CONFIG_DIR / "tables"


@dataclass(frozen=True)
class Variant:
    """A column that is a method with settings of its own."""

    method: str
    settings: dict[str, Any] = field(default_factory=dict)


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
    variants: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (self.reference, *self.variants):
            check(name in self.columns, f"'{name}' is not among the columns")

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


def table_entries(
    table: PublishedTable, task: TaskConfig, seeds: Sequence[int], methods: Methods, data_sha256: str
) -> tuple[Entry, ...]:
    """The runs behind a table's columns. Two columns of one method and different scores share theirs."""
    owners = label_owners(methods)
    check_settings(task, methods, owners)
    planner, entries = Planner(task, methods, data_sha256), {}
    for label, variant in dict(table.variant(column, owners) for column in table.columns).items():
        made_of = match_labels([variant.method], owners, f"method of {table.name}: {label}:")[0]
        owner = owners[made_of]
        config = resolve_config(task, made_of, owner, methods.get(owner), **variant.settings)
        jobs = (planner.job(made_of, owner, config, seed) for seed in seeds)
        entries[label] = Entry(label, owner, tuple(replace(job, label=label) for job in jobs))
    return tuple(entries.values())
