"""The learning curve of a run. It is believed only if it is the one that the run's record tells of."""

import hashlib
from pathlib import Path
from typing import Any

from benchmark.files import Damaged, read_if_there, say
from benchmark.store import HISTORY, Store, is_older_record

DAMAGED = "its learning curve (history.csv) is damaged and left out; the command that made it makes it again"


def read_curve(folder: Path, record: dict[str, Any], store: Store) -> str:
    """The text of history.csv; empty where there is none. Raises Damaged, and says so, where it is another one."""
    told = record.get("checksums", {})
    if "checksums" in record and HISTORY not in told and not is_older_record(record):
        return ""  # a run without a curve: what lies there is not its own
    try:
        content = store.read_checked(folder, HISTORY, told.get(HISTORY))
    except Damaged as why:
        say(f"'{store.find(folder, HISTORY)}' is damaged ({why}) and left out; the command that made it makes it again")
        raise
    return (content or b"").decode("utf-8", errors="replace")


def curve_checksum(folder: Path, store: Store) -> dict[str, str]:
    """For the record of a run: the SHA-256 of its curve by file name, if it left one."""
    content = read_if_there(store.find(folder, HISTORY))
    return {} if content is None else {HISTORY: hashlib.sha256(content).hexdigest()}
