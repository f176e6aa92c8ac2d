"""Keep a copy on this disk of results at a URL, and bring both to the same state.

Every command works on the copy. There are no locks at a URL: one command at a time may write there.
"""

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any

from benchmark.base.errors import Unreachable, UserError, brief
from benchmark.base.files import COMPRESSED, read_if_there, read_json, say, write_atomically, write_json
from benchmark.store.store import RECORD

NOTES, PROBE = ".mirror.json", ".probe"
PAUSES = (1.0, 4.0)
"""Seconds to wait before the second and the third try."""


def folder_or_url(text: str) -> Path | str:
    """Return the path of a folder, or the URL of one as text."""
    return text.rstrip("/") if "://" in text else Path(text)


@dataclass
class Mirror:
    """A folder on this disk and one at a URL. New files of either are copied to the other, the records last."""

    url: str
    local: Path
    notes: dict[str, list[Any]] = field(init=False)
    """For each file that both have: its version at the URL, then size and time of the one on this disk."""

    def __post_init__(self) -> None:
        self.notes = read_json(self.local / NOTES) or {}

    @cached_property
    def remote(self) -> tuple[Any, str]:
        """Return the file system of the URL and the path in it."""
        return open_remote(self.url)

    def versions(self, folder: str = "", depth: int | None = None) -> dict[str, str]:
        """Return the present version of each file below a folder at the URL."""
        system, root = self.remote
        system.invalidate_cache()
        files = system.find(f"{root}/{folder}".rstrip("/"), maxdepth=depth, detail=True)
        names = {str(PurePosixPath(path).relative_to(root)): version_of(about) for path, about in files.items()}
        return {name: version for name, version in names.items() if is_result(name)}

    def pull(self, *folders: Path) -> None:
        """Copy what is new at the URL to this disk, and remove what is gone there; in some folders or in all."""
        for folder in folders or (Path(),):
            self.with_retries(partial(self.pull_folder, "" if folder == Path() else folder.as_posix()))
        write_json(self.local / NOTES, self.notes)

    def pull_folder(self, folder: str) -> None:
        system, root = self.remote
        there = self.versions(folder)
        if not folder and not there and self.notes:
            raise UserError(f"no results are left at '{self.url}'; to start again, remove '{self.local}' too")
        kept = {name: note[0] for name, note in self.notes.items() if name in there and (self.local / name).exists()}
        for name in records_last(name for name, version in there.items() if kept.get(name) != version):
            write_atomically(self.local / name, system.cat_file(f"{root}/{name}"))
            self.notes[name] = [there[name], *self.stamp(name)]
        below = f"{folder}/" if folder else ""
        for name in [name for name in self.notes if name not in there and name.startswith(below)]:
            (self.local / name).unlink(missing_ok=True)
            del self.notes[name]

    def push(self) -> None:
        """Copy what is new on this disk to the URL, and remove there what is gone on this disk."""
        here = {name: stamp for name in self.names_here() if (stamp := self.stamp(name))}
        new = [name for name, stamp in here.items() if self.notes.get(name, [""])[1:] != stamp]
        gone = self.notes.keys() - here.keys()
        for name in records_last(new):
            self.with_retries(partial(self.upload, name))
        for name in gone:
            self.with_retries(partial(self.remove, name))
        stamps = {name: here[name] for name in new}
        for folder in {name.rpartition("/")[0] for name in new}:
            self.with_retries(partial(self.note_versions, folder, stamps))
        if new or gone:
            write_json(self.local / NOTES, self.notes)

    def check_writable(self) -> None:
        """Raise an error before any training if nothing can be written to the URL."""
        system, root = self.remote
        try:
            make_folder(system, f"{root}/{PROBE}")
            system.pipe_file(f"{root}/{PROBE}", b"")
            system.rm_file(f"{root}/{PROBE}")
        except Exception as error:  # each file system has its own errors
            why = f"({brief(error)}); name another place with --results"
            raise UserError(f"cannot write to '{self.url}' {why}") from None

    def upload(self, name: str) -> None:
        system, root = self.remote
        if (content := read_if_there(self.local / name)) is not None:
            make_folder(system, f"{root}/{name}")
            system.pipe_file(f"{root}/{name}", content)

    def remove(self, name: str) -> None:
        system, root = self.remote
        with suppress(FileNotFoundError):
            system.rm_file(f"{root}/{name}")
        self.notes.pop(name, None)

    def note_versions(self, folder: str, stamps: dict[str, list[int]]) -> None:
        """Note the versions of uploaded files. They are read from a listing, as only that gives what later ones do."""
        there = self.versions(folder, depth=1)
        self.notes |= {name: [there[name], *stamp] for name, stamp in stamps.items() if name in there}

    def names_here(self) -> Iterator[str]:
        for folder, _, names in os.walk(self.local):
            paths = (Path(folder, name).relative_to(self.local).as_posix() for name in names)
            yield from filter(is_result, paths)

    def stamp(self, name: str) -> list[int]:
        """Return size and time of a file on this disk, which differ once it is written again."""
        try:
            about = (self.local / name).stat()
        except FileNotFoundError:
            return []
        return [about.st_size, about.st_mtime_ns]

    def with_retries(self, action: Callable[[], None]) -> None:
        """Run an action, up to three times with pauses, as networks fail for a moment now and then."""
        for pause in (*PAUSES, None):
            try:
                action()
                return
            except UserError:
                raise
            except Exception as error:  # each file system has its own errors
                if pause is None:
                    raise Unreachable(f"cannot reach '{self.url}' ({brief(error)})") from error
                time.sleep(pause)


@contextmanager
def tolerate_outage() -> Iterator[None]:
    """Report that the URL does not answer, and go on: it may be out of reach for a while."""
    try:
        yield
    except Unreachable as error:
        say(f"{error}; going on, and trying again later")


def open_remote(url: str) -> tuple[Any, str]:
    """Return the file system behind a URL, and the path in it."""
    import fsspec

    try:
        system, root = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise UserError(f"results at '{url}' need another package: {error}") from None
    except ValueError as error:
        raise UserError(f"cannot keep results at '{url}': {error}") from None
    return system, root.rstrip("/")


def is_result(name: str) -> bool:
    """Tell whether a file is a result: locks, notes, attempts and unfinished files begin with a dot."""
    return not any(part.startswith(".") for part in PurePosixPath(name).parts)


def version_of(about: dict[str, Any]) -> str:
    """Return a text that changes with the content, from the fields by which different file systems tell it."""
    known = ("size", "etag", "mtime", "lastmodified", "last_modified", "created")
    return " ".join(str(value) for key, value in about.items() if key.lower() in known)


def records_last(names: Any) -> list[str]:
    return sorted(names, key=lambda name: (PurePosixPath(name).name.removesuffix(COMPRESSED) == RECORD, name))


def make_folder(system: Any, path: str) -> None:
    """Create the folder of a file where the file system has folders; object stores have none."""
    if "file" in system.protocol:
        system.makedirs(system._parent(path), exist_ok=True)


def mirror_of(place: Path | str) -> Mirror | None:
    """Return the mirror of a place that is a URL, with all that is new there on this disk; None of a folder."""
    place = folder_or_url(str(place))
    if isinstance(place, Path):
        return None
    mirror = Mirror(place, local_copy(place))
    try:
        mirror.pull()
    except Unreachable as error:
        raise UserError(f"{error}; check the address and the credentials in the environment") from None
    return mirror


def pulled(place: Path | str) -> Path:
    """Return a folder with the results at a place: its own, or a copy on this disk, for those who only read."""
    mirror = mirror_of(place)
    return mirror.local if mirror else Path(place)


@dataclass
class Place:
    """Where results lie on this disk, and their mirror if that is a copy."""

    folder: Path
    mirror: Mirror | None = None
    outcome: Any = None
    """What was done there: it must not be lost where the copying of it fails."""


@contextmanager
def mirrored(place: Path | str) -> Iterator[Place]:
    """Yield a place on this disk for results in a folder or at a URL; at any end, copy what is new to the URL."""
    mirror = mirror_of(place)
    if mirror is None:
        yield Place(Path(place))
        return
    here = Place(mirror.local, mirror)
    try:
        yield here
    finally:
        try:
            mirror.push()
        except Unreachable as error:
            kept = f"all results are kept in '{mirror.local}'; run the same command again to upload them"
            late = Unreachable(f"{error}; {kept}")
            late.outcome = here.outcome
            raise late from None


def local_copy(url: str) -> Path:
    """Return the folder of the copy of a URL, the same for every command."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    readable = re.sub(r"[^\w.-]+", "-", url)[-60:]
    return home / "selbench" / "results" / f"{readable}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
