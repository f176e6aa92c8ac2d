"""Hash large files once, and remember it beside the caches until their size or date changes."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from benchmark.base.files import read_json, write_json


def file_sha256(path: Path, cache: Path) -> str:
    """Return the hash of a file, from the note in the folder of caches where that is of the same size and date."""
    status = path.stat()
    name = os.fsencode(path.resolve())
    seen = {"file": os.fsdecode(name), "bytes": status.st_size, "date": status.st_mtime_ns}
    note = cache / "hashes" / f"{hashlib.sha256(name).hexdigest()[:16]}.json"
    known = read_json(note) or {}
    if {name: known.get(name) for name in seen} == seen and isinstance(known.get("sha256"), str):
        return str(known["sha256"])
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    with suppress(OSError):  # where nothing can be noted, it is read each time
        write_json(note, {**seen, "sha256": sha256})
    return sha256
