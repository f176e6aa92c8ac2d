"""Define what can be asked of the features of a task's images. Importing this costs next to nothing."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from benchmark.base.limits import Within
from benchmark.config.task import BATCH, SIDE
from benchmark.library.options import DataOptions

SIZE = replace(SIDE, least=1)
AT_A_TIME: Within = BATCH


@dataclass(frozen=True, kw_only=True)
class FeaturesOptions(DataOptions):
    """The task whose images a network makes features of, and the task file to write for them."""

    task: str
    network: str
    weights: str = "default"
    size: Annotated[int, SIDE] = 0
    """The side that images are resized to; 0: as they are."""
    to: Path | None = None
    """None: TASK-NAME.toml in the current folder."""
    dtype: Literal["float16", "float32"] = "float16"
    normalise: Literal["own", "task"] = "own"
    batch: Annotated[int, replace(BATCH, least=0)] = 0
    """0: as suits the device."""
    device: str = "auto"
    set: tuple[str, ...] = ()
    plugin: tuple[Path, ...] = ()
