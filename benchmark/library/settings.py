"""Turn options into the values that the packages below take."""

import os
from dataclasses import fields, replace
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.base.program import program
from benchmark.data.cache import Folders
from benchmark.library.options import CACHE_VARIABLE, DATA_VARIABLE, DataOptions, Options
from benchmark.measure.labels import match_scores
from benchmark.store.manifest import TableSettings


def asked_settings(options: Options) -> TableSettings:
    """Return the table settings that some options name. Refuse scores that not every method can be read with."""
    asked = TableSettings(**{field.name: getattr(options, field.name, None) for field in fields(TableSettings)})
    return asked if asked.scores is None else replace(asked, scores=match_scores(asked.scores))


def no_results(folder: Path) -> UserError:
    """Return the error for a folder without results."""
    return UserError(f"no results in '{folder}'; make some with: {program()} --results DIR")


def data_folder(asked: Path | None) -> Path:
    """Return the folder of data sets: as asked for, by environment variable, or data/."""
    return (asked or Path(os.environ.get(DATA_VARIABLE) or "data")).resolve()


def folders_of(options: DataOptions) -> Folders:
    """Return the folders of data sets and of decoded images (by default: data/, and cache/ in it)."""
    data = data_folder(options.data_dir)
    cache = options.cache_dir or Path(os.environ.get(CACHE_VARIABLE) or data / "cache")
    return Folders(data, cache.resolve())
