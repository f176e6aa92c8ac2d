"""Data sets whose tasks resolve and plan, but whose images this version cannot read yet."""

from pathlib import Path

from benchmark.config import DataConfig
from benchmark.errors import MissingData
from benchmark.sources import Facts, Loaded

FACTS = {
    "celeba": Facts(2, 162_770, 19_962, (3, 224, 224)),
    "imagenet": Facts(1000, 1_281_167, 50_000, (3, 224, 224)),
}


def describe(config: DataConfig) -> Facts:
    return FACTS[config.source]


def load(config: DataConfig, data_dir: Path, *, download: bool) -> Loaded:
    raise MissingData(f"images of '{config.source}' cannot be read by this version yet; --dry-run shows the plan")
