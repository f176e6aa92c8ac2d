"""Tell what the `images` of an evaluation set are, and open what they name."""

import os
from dataclasses import dataclass
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.base.names import unknown_name
from benchmark.config.evaluation import EvaluationConfig, looks_like_file
from benchmark.config.load import is_task, load_task, task_names
from benchmark.config.task import DataConfig
from benchmark.data.cache_build import open_cache
from benchmark.data.dataset import facts_of, load
from benchmark.data.evaluation.home import Home
from benchmark.data.images import Facts, Images, Loaded
from benchmark.data.sources import EVALUATION
from benchmark.data.sources._evaluation import is_arrays

ENCODED = ("path", "test_share", "columns", "missing", "constant", "one_hot")
"""Settings that decide what the columns of vectors are."""


@dataclass(frozen=True)
class Opened:
    """Images in the size of the task's, with what is known of them."""

    data: DataConfig
    test: Images
    facts: Facts
    sha256: str


def names_task(config: EvaluationConfig) -> bool:
    """Tell whether the images are those of another task; raise UserError where there is nothing of that name."""
    name = config.images
    if name.endswith(".toml") or is_task(name):
        return True
    if os.path.exists(name):  # noqa: PTH110 - a Path fails where a name is too long
        return False
    if looks_like_file(name):
        raise UserError(f"images: '{name}' does not exist; a path in a task file is relative to it")
    raise UserError(f"images: there is no file or folder '{name}', and {unknown_name(name, task_names(), 'task')}")


def open_task(config: EvaluationConfig, home: Home) -> Opened:
    """Return the test images of another task."""
    data = home.fit(load_task(config.images).data.images_alone)
    check_encoding(config.images, data, home.data)
    return opened(config, home, data, *load(data, home.folders, home.build))


def check_encoding(name: str, other: DataConfig, home: DataConfig) -> None:
    """Raise UserError where the columns of other vectors follow from other training rows than those of the task."""
    follows = bool(other.one_hot or home.one_hot) or "drop" in (other.constant, home.constant)
    if follows and any(getattr(other, field) != getattr(home, field) for field in ENCODED):
        raise UserError(
            f"images: '{name}' makes its columns from other training rows than the task (data.one_hot, data.constant), "
            "so that they may mean something else; give it the same data settings but for data.test_path"
        )


def open_files(config: EvaluationConfig, home: Home) -> Opened:
    """Return the images of a folder or an npz file, decoded into the cache."""
    numbers = (0.5,) * home.facts.shape[0]
    ignored = 1 if config.kind == "new" else 0
    data = DataConfig(EVALUATION, numbers, numbers, path=str(Path(config.images)), classes=ignored)
    data = data if is_arrays(config.images) else home.fit(data)
    return opened(config, home, data, *open_cache(data, home.folders, build=home.build))


def opened(config: EvaluationConfig, home: Home, data: DataConfig, loaded: Loaded, sha256: str) -> Opened:
    facts = facts_of(data, loaded)
    home.check_form(config.images, facts)
    return Opened(data, loaded.test, facts, sha256)
