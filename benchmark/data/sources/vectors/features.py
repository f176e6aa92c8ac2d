"""Load features of images as vectors: the command `features` computes them and writes the task file."""

from pathlib import Path

from benchmark.base.errors import MissingData, UserError
from benchmark.base.program import program
from benchmark.config.task import DataConfig
from benchmark.data.cache import Unusable, read_cache
from benchmark.data.images import Facts, Loaded

SETTINGS = ("path",)
CACHED = False


def describe(config: DataConfig) -> Facts:
    loaded = load(config, Path())
    width = loaded.train.pictures[0].shape[0]
    return Facts(loaded.num_classes, len(loaded.train), len(loaded.test), (width, 1, 1), floats=True)


def load(config: DataConfig, data_dir: Path) -> Loaded:
    if not config.path:
        raise UserError(f"data.path: source 'features' needs the folder that this wrote: {program()} features TASK")
    try:
        return read_cache(Path(config.path), None)[0]
    except Unusable as problem:
        why = str(problem) or f"'{config.path}' does not exist"
        raise MissingData(f"{why}; compute the features again: {program()} features TASK") from None
