"""Write files whole or not at all, and check on reading that they are still what was written."""

import errno
import gzip
import hashlib
import json
import os
import re
import socket
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from benchmark.base.errors import UserError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors after which neither this job nor another can write here."""
HOST = re.sub(r"[^\w.]", "_", socket.gethostname())
ABANDONED_SECONDS = 24 * 3600.0
BLANK = "0" * 64
SEAL = re.compile(rb'"seal": "([0-9a-f]{64})"')
AT_ONCE = 8
"""How many files wait for the disk together."""
DIGEST_BYTES = hashlib.sha256().digest_size
COMPRESSED = ".gz"
"""Ends the name of a file that is kept small."""
TEXTS = (".json", ".csv")
"""Files of which a compressed form is read, too."""
MOST_BYTES = 2**28
"""A compressed file that would hold more than this is not opened."""


def cannot_write(error: OSError) -> str:
    """Return a message with what the system says and what the user can do about it."""
    remedy = "make it writable" if error.errno == errno.EROFS else "make room"
    return f"cannot write '{error.filename}': {error.strerror}; {remedy} and run the same command again"


class Damaged(Exception):
    """A file is not what was written; the text says how one can tell."""


def write_atomically(path: Path, content: bytes | memoryview, *, lasting: bool = True) -> None:
    """Write a file so that a reader, also after a crash at any instant, sees the old or the new one, never a part.

    A file that is not `lasting` yet may be lost in a power cut, until `make_lasting` is called.
    """
    temporary = path.with_name(f".{path.name}.{HOST}-{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        temporary.replace(path)
        if lasting:
            sync(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def make_lasting(folder: Path, names: Iterable[str]) -> None:
    """Make sure that files of a folder, and their names in it, survive a power cut. What is elsewhere is left out."""
    there = [path for path in (folder / name for name in names) if path.exists()]
    if there:
        with ThreadPoolExecutor(AT_ONCE) as pool:  # a disk serves those that wait together at once
            list(pool.map(sync, (*there, folder)))


def write_if_changed(path: Path, content: bytes) -> None:
    """Write a file unless it has this content already. It then keeps its date, which other programs may look at."""
    with suppress(OSError):  # writing reports what is wrong
        if path.read_bytes() == content:
            return
    write_atomically(path, content)


def check_folder(folder: Path, kind: str, option: str) -> None:
    """Raise an error before any work if the folder is not writable; `option` is how the user names another."""
    probe = folder / f".probe.{HOST}-{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"x")
    except OSError as error:
        if error.errno in NO_ROOM and error.errno != errno.EROFS:
            raise OSError(error.errno, error.strerror, str(folder)) from None
        raise UserError(f"cannot write to {kind}'{folder}': {error.strerror}; name another with {option}") from None
    finally:
        with suppress(OSError):
            probe.unlink()


def sync(path: Path) -> None:
    """Make sure that the content of a file, or the names in a folder, survive a power cut."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(opened)


def remove_leftovers(root: Path) -> None:
    """Remove temporary files of killed writers: of ended processes on this machine, and any older than a day."""
    for folder, _, names in os.walk(root):  # which does not fail where a folder is removed meanwhile
        for path in (Path(folder, name) for name in names if re.fullmatch(r"\..*\.tmp", name)):
            ours = re.search(rf"\.{re.escape(HOST)}-(\d+)\.tmp$", path.name)
            with suppress(OSError):
                gone = ours is not None and not psutil.pid_exists(int(ours[1]))
                if gone or time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                    path.unlink()


@contextmanager
def claimed(path: Path, is_over: Callable[[], bool]) -> Iterator[bool]:
    """Take a lock for the duration of the block, and yield whether that worked. A dead process holds no lock.

    The lock file is removed once `is_over()`: whoever gets the lock then finds nothing to do.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        if is_over():
            path.unlink(missing_ok=True)
        lock.release()


def sealed(payload: bytes, place: str) -> bytes:
    """Return the payload followed by a checksum of it and of `place`, so that a file from elsewhere is refused."""
    return payload + checksum(payload, place)


def unsealed(content: bytes, place: str) -> bytes:
    """Return the payload that `sealed` was given; raise Damaged where the checksum does not fit."""
    payload, seal = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    if checksum(payload, place) != seal:
        raise Damaged("its checksum is wrong" if content else "it is empty")
    return payload


def checksum(payload: bytes, place: str) -> bytes:
    return hashlib.sha256(place.encode() + b"\n" + payload).digest()


def write_sealed(path: Path, value: Mapping[str, Any], place: str) -> None:
    """Write a JSON object that contains BLANK; the checksum of the text and of `place` is put there."""
    blank = json.dumps(value, indent=1).encode() + b"\n"
    before, _, after = blank.rpartition(BLANK.encode())
    write_atomically(path, before + checksum(blank, place).hex().encode() + after)


def read_sealed(
    path: Path, place: str, is_older: Callable[[dict[str, Any]], bool] = lambda value: False
) -> dict[str, Any] | None:
    """Return what `write_sealed` wrote, or None where there is no file. Raise Damaged on any other content.

    Objects of a version without seals are accepted: `is_older` tells them from sealed ones that lost their seal.
    """
    content = read_content(path)
    if content is None:
        return None
    seals = list(SEAL.finditer(content))
    if not seals:
        older = object_in(content)
        if older is not None and b'"seal"' not in content and is_older(older):
            return older
        raise Damaged("it has no checksum" if content else "it is empty")
    seal = seals[-1]
    blank = content[: seal.start(1)] + BLANK.encode() + content[seal.end(1) :]
    if checksum(blank, place).hex().encode() != seal[1]:
        raise Damaged("its checksum is wrong")
    value: dict[str, Any] = json.loads(content)
    return value


def read_if_there(path: Path) -> bytes | None:
    """Return the content of a file, or None where there is none. Raise Damaged where the disk cannot read it."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.EIO:
            raise Damaged("the disk cannot read it") from None
        raise


def small(path: Path) -> Path:
    """Return the path of the compressed form of a file."""
    return path.with_name(path.name + COMPRESSED)


def as_kept(path: Path) -> Path:
    """Return the path of the form in which a file is there: as it is, or compressed; as it is where there is neither.

    Where both are there, the compressed one is older: writers leave one.
    """
    is_small = path.suffix in TEXTS and not path.exists() and small(path).exists()
    return small(path) if is_small else path


def remove(path: Path) -> None:
    """Remove a file, in whatever form it is there."""
    for each in (path, small(path)):
        each.unlink(missing_ok=True)


def compressed(content: bytes) -> bytes:
    """Return content as a compressed file has it; there is no date in it."""
    return gzip.compress(content, 9, mtime=0)


def read_content(path: Path) -> bytes | None:
    """Return what a file holds, also a compressed one, or None where there is none. Raise Damaged where it is cut."""
    content = read_if_there(path)
    if content is None or path.suffix != COMPRESSED:
        return content
    reader = zlib.decompressobj(wbits=31)
    try:
        plain = reader.decompress(content, MOST_BYTES)
    except zlib.error:
        raise Damaged("it cannot be decompressed") from None
    if not reader.eof or reader.unused_data:
        raise Damaged("it does not end where it should" if content else "it is empty")
    return plain


def set_aside(path: Path) -> None:
    """Rename a damaged file to make room for a new one; people can still look at it."""
    path = as_kept(path)
    with suppress(FileNotFoundError):
        path.replace(path.with_name(f"{path.name}.damaged"))


def say(text: str) -> None:
    """Print a message for the user to standard error."""
    print(text, file=sys.stderr, flush=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(value, indent=1) + "\n").encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, or None where there is no readable one."""
    try:
        return object_in(path.read_bytes())
    except OSError:
        return None


def object_in(content: bytes) -> dict[str, Any] | None:
    """Return the object that a text in JSON is, or None where it is none."""
    try:
        value = json.loads(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


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
