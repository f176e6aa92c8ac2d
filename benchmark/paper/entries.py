"""Plan the runs behind the columns of a published table."""

from collections.abc import Sequence
from dataclasses import replace

from benchmark.base.errors import UserError
from benchmark.interface import Method
from benchmark.jobs.job import Methods
from benchmark.jobs.plan import Planner, check_settings, label_owners, resolve_config
from benchmark.jobs.suite import Entry
from benchmark.measure.labels import match_labels
from benchmark.paper.table_files import PublishedTable


def table_entries(
    table: PublishedTable, scale: str, planner: Planner, methods: Methods, seeds: Sequence[int]
) -> tuple[Entry, ...]:
    """Return an entry with the runs of each column. Columns of one method with different scores share one entry."""
    task, owners = planner.task, label_owners(methods)
    check_settings(task, methods, owners)
    entries = {}
    for label, variant in dict(table.variant(column, owners) for column in table.columns).items():
        scaled = variant.at(scale)
        base = match_labels([scaled.method], owners, f"method of {table.name}: {label}:")[0]
        owner = owners[base]
        method = methods.get(owner)
        trains = issubclass(method, Method) and method.starts_from is None
        if scaled.epoch and (scaled.epoch not in task.evaluate_at or not trains):  # only trainings keep that state
            must = f"epoch {scaled.epoch} must be in evaluate_at of {task.name}, for a method that trains"
            raise UserError(f"{table.name}: {label}: {must}")
        config = resolve_config(task, base, owner, method, **scaled.settings)
        jobs = tuple(replace(planner.job(base, owner, config, seed), label=label) for seed in seeds)
        entries[label] = Entry(label, owner, jobs, epoch=scaled.epoch or None)
    return tuple(entries.values())
