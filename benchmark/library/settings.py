"""Turn options into the values that the packages below take."""

import os
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.base.names import match_name
from benchmark.base.program import program
from benchmark.data.cache import Folders
from benchmark.library.options import CACHE_VARIABLE, DATA_VARIABLE, DataOptions, Options
from benchmark.measure.catalogue import any_run_scores
from benchmark.store.manifest import TableSettings


def asked_settings(options: Options) -> TableSettings:
    """Return the table settings that some options name. Refuse scores that not every method can be read with."""
    asked = TableSettings(**{field.name: getattr(options, field.name, None) for field in fields(TableSettings)})
    return asked if asked.scores is None else replace(asked, scores=score_names(asked.scores))


def score_names(wanted: Iterable[str]) -> tuple[str, ...]:
    """Return the scores that are meant, of those that any method can be read with."""
    return tuple(match_name(name, any_run_scores(), "score") for name in wanted)


def no_results(folder: Path) -> UserError:
    """Return the error for a folder without results."""
    return UserError(f"no results in '{folder}'; make some with: {program()} --results DIR")


def folders_of(options: DataOptions) -> Folders:
    """Return the folders of data sets and of decoded images: as asked for, by environment variable, or data/."""
    data = options.data_dir or Path(os.environ.get(DATA_VARIABLE) or "data")
    cache = options.cache_dir or Path(os.environ.get(CACHE_VARIABLE) or data / "cache")
    return Folders(data.resolve(), cache.resolve())
