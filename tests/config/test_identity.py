"""What a job's id depends on: every field of every config either changes it, or is listed as one that cannot matter."""

import copy
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from benchmark.config import recipe
from benchmark.config.evaluation import EvaluationConfig
from benchmark.config.load import load_task
from benchmark.config.task import TaskConfig
from benchmark.jobs import job as job_module
from benchmark.jobs.job import Evaluated, Job
from methods import Registry
from tests.conftest import plain_content

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
IDENTIFIED = {
    "TaskConfig": "epochs batch_size eval_batch_size threads channels_last amp compile tf32 sync_batchnorm checkpoint"
    " evaluate_at data network augment optimizer schedule averaging mixing",
    "DataConfig": "source mean std val official_val train_images test_images image_size test_holdout val_images"
    " cache_size attribute folders classes test_share channels leave_out"
    " train_labels_sha256 labels columns missing constant one_hot",
    "NetworkConfig": "name widths dropout pool classifier cosine_scale batch_norm feature residual"
    " weights_sha256 input_size train",
    "AugmentConfig": "crop_padding flip random_resized_crop color_jitter crop_scale noise feature_dropout",
    "OptimizerConfig": "name lr momentum weight_decay sharpness rho sigma smoothing statistics head_lr",
    "ScheduleConfig": "name factor every cycles rise hold_from hold_rate",
    "AveragingConfig": "name start rate decay ramp",
    "MixingConfig": "name alpha weight reduction",
    "Job": "task method config data_sha256 source_sha256 max_steps needs held_out own_parts outliers_sha256 evaluates"
    " trunk",
    "Evaluated": "config sha256",
    "EvaluationConfig": "kind share",
}
"""Fields that can change a result, by class: another value gives another id."""
NOT_IDENTIFIED = {
    "TaskConfig": " ".join(recipe.INDIFFERENT),
    "DataConfig": "path test_path outliers train_labels",
    "NetworkConfig": "weights normalise",
    "BoundConfig": "alpha beta rho rho_prime abstention_cost delta threshold",
    "ResourcesConfig": "cpus gpus memory_gb",
    "Job": " ".join(job_module.INDIFFERENT),
    "Evaluated": "name num_images",
    "EvaluationConfig": "name images file kinds severities columns",
}
"""Fields that cannot: any value leaves the id as it is."""
WHAT_TO_DO = (
    "is in neither list. If it can change a result, declare it with schema.later(neutral), which keeps the ids of "
    "older results, and enter it in IDENTIFIED. If it cannot, enter it in INDIFFERENT of benchmark/config/recipe.py "
    "(a field of a task), or of benchmark/jobs/job.py (of a job), or declare it with schema.unidentified, and enter it "
    "in NOT_IDENTIFIED"
)
EVALUATED = Evaluated("foggy", EvaluationConfig("corruptions"), "set")
JOB = Job(load_task("digits"), "some_method", {"weight": 1.0}, "images", None, seed=0, evaluates=EVALUATED)


def configs(config: type) -> Iterator[type]:
    """A config and those within it."""
    yield config
    for hint in get_type_hints(config).values():
        if is_dataclass(hint):
            yield from configs(hint)  # type: ignore[arg-type]


CONFIGS = [*configs(TaskConfig), Job, Evaluated, EvaluationConfig]


def changed(config: Any, name: str, value: Any) -> Any:
    """A copy with another value, whatever the checks of its class say of it."""
    other = copy.copy(config)
    other.__dict__.pop("id", None)
    object.__setattr__(other, name, value)
    return other


def job_with(owner: type, name: str) -> Job:
    """The job with another value of one field, of its own or of the config in it that is an `owner`."""
    odd = "another value"
    if owner is Job:
        other = replace(JOB, seed=1)
        values = {"task": replace(JOB.task, epochs=7), "needs": (other,), "trunk": other, "evaluates": None}
        return changed(JOB, name, values.get(name, odd))  # type: ignore[no-any-return]
    if owner is Evaluated:
        value = EvaluationConfig("new") if name == "config" else odd
        return changed(JOB, "evaluates", changed(EVALUATED, name, value))  # type: ignore[no-any-return]
    if owner is EvaluationConfig:
        return changed(JOB, "evaluates", changed(EVALUATED, "config", changed(EVALUATED.config, name, odd)))  # type: ignore[no-any-return]
    if owner is TaskConfig:
        return changed(JOB, "task", changed(JOB.task, name, odd))  # type: ignore[no-any-return]
    (table,) = (field for field, hint in get_type_hints(TaskConfig).items() if hint is owner)
    return changed(JOB, "task", changed(JOB.task, table, changed(getattr(JOB.task, table), name, odd)))  # type: ignore[no-any-return]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_every_field_is_in_one_of_the_lists(config: type) -> None:
    identified = IDENTIFIED.get(config.__name__, "").split()
    others = NOT_IDENTIFIED.get(config.__name__, "").split()
    for field in fields(config):  # type: ignore[arg-type]
        assert field.name in (*identified, *others), f"{config.__name__}.{field.name} {WHAT_TO_DO}"
    assert sorted((*identified, *others)) == sorted(field.name for field in fields(config)), "each once, and no other"  # type: ignore[arg-type]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_the_id_changes_with_exactly_the_identified_fields(config: type) -> None:
    for name in IDENTIFIED.get(config.__name__, "").split():
        assert job_with(config, name).id != JOB.id, name
    for name in NOT_IDENTIFIED.get(config.__name__, "").split():
        assert job_with(config, name).id == JOB.id, name


def test_every_setting_of_a_method_is_identified() -> None:
    """No list has to be edited for a new method: none of its settings may be left out."""
    registry = Registry()
    for name in registry.names():
        config = registry.get(name).Config
        left_out = [field.name for field in fields(config) if not field.metadata.get("identified", True)]
        assert not left_out, f"{name}: a setting of a method can change its result"


@dataclass(frozen=True)
class LaterTask(TaskConfig):
    news: bool = False


@dataclass(frozen=True)
class LaterJob(Job):
    news: bool = False


def test_a_field_that_nobody_lists_is_identified() -> None:
    """No older result is believed to be that of a setting which it does not know."""
    later = [replace(JOB, task=LaterTask(**vars(JOB.task), news=news)) for news in (False, True)]
    assert len({JOB.id, *(job.id for job in later)}) == 3
    assert LaterJob(**vars(replace(JOB)), news=True).id != LaterJob(**vars(replace(JOB))).id == JOB.id


def test_every_recorded_id_is_the_hash_of_its_identity() -> None:
    found = sorted(REFERENCE.glob("*/*/*/seed-*/record.json.gz"))
    assert len(found) >= 375
    for path in found:
        identity = plain_content(path)["identity"]
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(text.encode()).hexdigest()[:12] == path.parent.parent.name, path
