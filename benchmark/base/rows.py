"""Choose some of many rows, the same ones each time; read tables with a row for each sample, write rows of numbers."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError, brief

if TYPE_CHECKING:
    from pandas import DataFrame

READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
    ".parquet": "read_parquet",
    ".feather": "read_feather",
}
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
WITH_ARROW = ("read_parquet", "read_feather")
INSTALL = 'pyarrow is needed to read it; install it with: pip install "selbench[parquet]", or: pip install pyarrow'


def choose_rows(total: int, count: int) -> NDArray[np.int64]:
    """Return `count` random rows, in order, which depend on `count` and `total` alone; all rows if it is 0."""
    if not count or count >= total:
        return np.arange(total)
    return np.sort(np.random.Generator(np.random.PCG64(count)).permutation(total)[:count])


def table_suffix(path: Path) -> str:
    """Return the suffix that says what a file is: `.csv` of `runs.csv.gz`, but `.gz` of `runs.npz.gz`."""
    suffixes = path.suffixes
    if len(suffixes) > 1 and suffixes[-1] in PACKED and READERS.get(suffixes[-2], "") in ("read_csv", "read_json"):
        return suffixes[-2]
    return path.suffix


def read_frame(path: Path, as_text: Callable[[Sequence[str]], Iterable[str]]) -> "DataFrame":
    """Return the table in a file, with its numbers as they are written.

    `as_text` takes the names of its columns and returns those whose numbers may be names: 007 is not 7.
    """
    import pandas

    reader = READERS[table_suffix(path)]
    options: dict[str, Any] = {}
    if reader == "read_json":
        options = {"lines": True, "precise_float": True, "dtype": False}
    if reader == "read_csv":
        options = {"sep": "\t" if table_suffix(path) == ".tsv" else ",", "keep_default_na": False}
        options["na_values"] = ["", "nan", "NaN"]
    try:
        if reader == "read_csv":
            heading = pandas.read_csv(path, nrows=0, **options)
            options["dtype"] = dict.fromkeys(as_text(list(heading.columns)), str)
        frame: DataFrame = getattr(pandas, reader)(path, **options)
    except ImportError as error:
        wanted = INSTALL if reader in WITH_ARROW else f"it cannot be read ({brief(error)})"
        raise UserError(f"'{path}': {wanted}") from None
    except FileNotFoundError:
        raise
    except (ValueError, OSError, EOFError, KeyError) as error:
        raise UserError(f"'{path}' is no {table_suffix(path)[1:]} file that can be read ({brief(error)})") from None
    return frame


def csv_text(rows: Sequence[Mapping[str, float]]) -> str:
    """Return rows of numbers as CSV, with nine digits each; a row may lack some of the columns."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: f"{value:.9g}" for key, value in row.items()} for row in rows)
    return text.getvalue()
