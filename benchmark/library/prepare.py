"""Download or check the data sets of some tasks, decode them once, and verify every checksum."""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmark.base.errors import UserError
from benchmark.base.units import text_from_bytes
from benchmark.config.load import load_tasks
from benchmark.config.task import TaskConfig
from benchmark.data.cache import Folders, cache_name, fingerprint_originals
from benchmark.data.cache_build import open_cache
from benchmark.data.preprocessing import preprocessing
from benchmark.data.sources import describe, get_source
from benchmark.library.options import PrepareOptions
from benchmark.library.registry import load_plugins
from benchmark.library.settings import folders_of


@dataclass(frozen=True)
class Prepared:
    """What is known of a task's images now, or what they lack."""

    task: str
    text: str = ""
    error: UserError | None = None


def prepare_data(options: PrepareOptions) -> Iterator[Prepared]:
    """Try every task in turn, and yield what became of it."""
    load_plugins(options.plugin)
    folders = folders_of(options)
    for task in load_tasks(options.tasks, options.set):
        try:
            yield Prepared(task.name, prepared(task, folders))
        except UserError as error:
            yield Prepared(task.name, error=error)


def prepared(task: TaskConfig, folders: Folders) -> str:
    """Prepare the images of a task, and return a description of them."""
    facts = describe(task.data)
    if not get_source(task.data).CACHED:
        return f"{task.name}: made in memory, nothing to prepare"
    loaded, sha256 = open_cache(task.data, folders, thorough=True)
    folder = folders.cache / cache_name(task.data)
    originals = fingerprint_originals(task.data, folders)
    gone = "" if originals else f"\n  from the cache alone: there are no originals in {folders.data}"
    size = text_from_bytes(sum(path.stat().st_size for path in folder.iterdir()))
    counts = ", ".join(f"{len(images):,} {name}" for name, images in loaded.splits().items())
    used = preprocessing(task, loaded)
    shape = "×".join(map(str, facts.shape))
    return (
        f"{task.name}: {counts} images for {shape} input, {facts.num_classes} classes; checksums verified\n"
        f"  {size} in {folder}\n  sha256 {sha256}{gone}{f'{chr(10)}  {used}' if used else ''}"
    )
