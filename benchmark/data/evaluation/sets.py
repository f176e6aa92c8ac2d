"""Open the evaluation sets of a task that consist of images: corrupted ones, shifted ones, those of new classes."""

from functools import lru_cache

from benchmark.base.errors import UserError
from benchmark.config.evaluation import EvaluationConfig
from benchmark.config.task import DataConfig, TaskConfig
from benchmark.data.cache import Folders
from benchmark.data.corruptions.corrupt import VERSION
from benchmark.data.evaluation.home import Home
from benchmark.data.evaluation.new import new_set
from benchmark.data.evaluation.parts import EvaluationSet, Part
from benchmark.data.evaluation.shift import shifted_set


def open_set(config: EvaluationConfig, task: TaskConfig, folders: Folders, *, build: bool = True) -> EvaluationSet:
    """Return a set of kind corruptions, shift or new; its images are cached as those of tasks. Kept for the next job.

    New images have the number behind the task's last class as their label.
    """
    return opened(config, task.data, folders, build)


@lru_cache(maxsize=2)
def opened(config: EvaluationConfig, data: DataConfig, folders: Folders, build: bool) -> EvaluationSet:
    makers = {"corruptions": made_corruptions, "shift": shifted_set, "new": new_set}
    return makers[config.kind](config, Home(data, folders, build)).sealed()


def made_corruptions(config: EvaluationConfig, home: Home) -> EvaluationSet:
    if home.facts.floats:
        raise UserError(f"corruptions are made of 8-bit images, and those of '{home.data.source}' are not")
    pairs = [(kind, severity) for kind in config.used_kinds for severity in config.used_severities]
    parts = tuple(Part(f"{kind.replace(' ', '-')}-{severity}", None, kind, severity) for kind, severity in pairs)
    return EvaluationSet(parts, str(VERSION))
