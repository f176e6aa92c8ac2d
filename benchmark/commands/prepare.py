"""`prepare`: download or check the data sets of some tasks, decode them once, and verify every checksum."""

import argparse
import sys

from benchmark.base.errors import UserError
from benchmark.base.units import text_from_bytes
from benchmark.commands.options import MakeRegistry, add_data_folders, add_list, add_set, folders_of
from benchmark.config.load import load_tasks
from benchmark.config.task import TaskConfig
from benchmark.data.cache import cache_name, fingerprint_originals
from benchmark.data.cache_build import open_cache
from benchmark.data.preprocessing import preprocessing
from benchmark.data.sources import describe, get_source

HELP = "download or check data sets and cache their images"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_list(parser, "tasks", "TASK", "tasks by name, or paths to task files (.toml)")
    add_data_folders(parser)
    add_set(parser, example="data.image_size=64")


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    """Try every task, and say of each what it lacks."""
    failed = False
    for task in load_tasks(arguments.tasks, arguments.set):
        try:
            print(prepared(task, arguments), flush=True)
        except UserError as error:
            print(f"error: {task.name}: {error}", file=sys.stderr)
            failed = True
    return 2 if failed else 0


def prepared(task: TaskConfig, arguments: argparse.Namespace) -> str:
    folders, facts = folders_of(arguments), describe(task.data)
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
