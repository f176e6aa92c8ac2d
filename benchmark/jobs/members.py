"""Find the trainings that a job needs, and the recipes that they are trained by."""

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

from benchmark.base.errors import UserError, brief
from benchmark.base.schema import build
from benchmark.config.task import TaskConfig
from benchmark.interface import Contestant, Derived, Member, Method
from benchmark.jobs.job import Job


def with_data_seed(job: Job, seed: int) -> Job:
    """Return the job on the split of another seed, with all that it needs."""
    needs = tuple(with_data_seed(need, seed) for need in job.needs)
    return replace(job, data_seed=seed, needs=needs, trunk=job.trunk and replace(job.trunk, data_seed=seed))


def changed_recipe(task: TaskConfig, changes: Mapping[str, Any], label: str) -> TaskConfig:
    """Return the task with some fields replaced; in a table of settings, only the values that are named."""
    if not changes:
        return task
    values = dict(vars(task))
    for name, value in changes.items():
        old = getattr(task, name, None)
        values[name] = {**vars(old), **value} if is_dataclass(old) and isinstance(value, Mapping) else value
    plain = {name: vars(value) if is_dataclass(value) else value for name, value in values.items()}
    return build(TaskConfig, plain, f"{task.name}: recipe of {label}")


def members_of(method: type[Contestant], config: Any, seed: int, num_epochs: int) -> Sequence[Member]:
    """Return the trainings that a method combines, or the one that it starts from."""
    if issubclass(method, Derived):
        try:
            members = list(method.members(config, seed, num_epochs))
        except Exception as error:
            reason = brief(error)
            raise UserError(f"{method.__name__}.members fails: {reason}") from error
        if not members:
            raise UserError(f"{method.__name__}.members names no training to combine")
        return members
    if issubclass(method, Method) and method.starts_from is not None and not method.second_stage:
        return [Member(method.starts_from, seed)]
    return []
