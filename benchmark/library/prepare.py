"""Download or check the data sets of some tasks, decode them once, and verify every checksum."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmark.base.errors import UserError
from benchmark.base.units import counted, text_from_bytes
from benchmark.config.evaluation import EvaluationConfig, set_name
from benchmark.config.load import load_tasks
from benchmark.config.task import TaskConfig
from benchmark.data.cache import Folders, cache_name, fingerprint_originals
from benchmark.data.cache_build import open_cache
from benchmark.data.classes import facts_without
from benchmark.data.dataset import facts_of, load
from benchmark.data.evaluation.annotations import annotations
from benchmark.data.evaluation.sets import open_set
from benchmark.data.preprocessing import preprocessing
from benchmark.data.sources import describe, get_source
from benchmark.data.sources._train_labels import remark_on_labels
from benchmark.library.options import PrepareOptions
from benchmark.library.registry import load_plugins
from benchmark.library.settings import folders_of
from benchmark.train.preflight import filled_in


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
            yield Prepared(task.name, prepared(filled_in(task, folders), folders))
        except UserError as error:
            yield Prepared(task.name, error=error)


def prepared(task: TaskConfig, folders: Folders) -> str:
    """Prepare the images of a task and of its evaluation sets, and return a description of them."""
    return "\n  ".join([own_images(task, folders), *(evaluation_set(each, task, folders) for each in task.evaluate)])


def evaluation_set(config: EvaluationConfig, task: TaskConfig, folders: Folders) -> str:
    """Prepare an evaluation set, and return a line about it."""
    name = f"evaluation set '{set_name(config)}'"
    if config.kind == "corruptions":
        return f"{name}: made from the test images"
    if config.kind in ("humans", "groups"):
        loaded, _ = load(task.data, folders)
        ids, classes = loaded.test.rows.astype(np.int32), facts_of(task.data, loaded).num_classes
        known = annotations(config, task, folders, ids, classes)
        what = f"groups by {', '.join(known.groups)}" if known.groups else "what people call them"
        return f"{name}: {what}, for {counted(len(loaded.test), 'test image')}"
    found = open_set(config, task, folders)
    count = sum(len(part.images) for part in found.parts if part.images is not None)
    remark = f"; {found.remark}" if found.remark else ""
    return f"{name}: {counted(count, 'image')} in {counted(len(found.parts), 'part')}{remark}"


def own_images(task: TaskConfig, folders: Folders) -> str:
    facts = facts_without(task.data, describe(task.data))
    if not get_source(task.data).CACHED:
        return f"{task.name}: made in memory, nothing to prepare{labels_line(task, folders)}"
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
        f"{labels_line(task, folders)}"
    )


def labels_line(task: TaskConfig, folders: Folders) -> str:
    """Return a line about the training labels, if they come from a file; refuse those that do not fit."""
    if not task.data.train_labels:
        return ""
    remark = remark_on_labels(task.data, load(task.data, folders)[0].labels_changed)
    return f"\n  {remark}; sha256 {task.data.train_labels_sha256}"
