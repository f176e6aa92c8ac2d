"""Read the learning curve of a run. It is used only if its checksum is the one in the run's record."""

import csv
import hashlib
from contextlib import suppress
from pathlib import Path

from benchmark.base.files import Damaged, read_content, say
from benchmark.store.record import Record
from benchmark.store.store import HISTORY, Store

DAMAGED = "its learning curve (history.csv) is damaged and left out; the command that made it makes it again"


def read_curve(folder: Path, record: Record, store: Store) -> str:
    """Return the text of history.csv, empty where there is none. Where it is another one, say so and raise Damaged."""
    checksums = record.checksums or {}
    if record.checksums is not None and HISTORY not in checksums and record.provenance.codes is not None:
        return ""  # a run without a curve: a file that is there is not its own
    try:
        content = store.read_checked(folder, HISTORY, checksums.get(HISTORY))
    except Damaged as why:
        say(f"'{store.find(folder, HISTORY)}' is damaged ({why}) and left out; the command that made it makes it again")
        raise
    return (content or b"").decode("utf-8", errors="replace")


def rows_of(curve: str) -> list[dict[str, float]]:
    """Return the rows of a learning curve. Cells without a number are left out."""
    rows = []
    for line in csv.DictReader(curve.splitlines()):
        row: dict[str, float] = {}
        for name, text in line.items():
            with suppress(TypeError, ValueError):
                row[str(name)] = float(text)
        rows.append(row)
    return rows


def curve_checksum(folder: Path, store: Store) -> dict[str, str]:
    """Return what a record keeps of its run's curve: the SHA-256 by file name, or nothing without a curve."""
    content = read_content(store.find(folder, HISTORY))
    return {} if content is None else {HISTORY: hashlib.sha256(content).hexdigest()}
