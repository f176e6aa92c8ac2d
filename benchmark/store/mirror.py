"""Results that are kept at a URL: a copy of them on this disk, and what differs between the two.

Every command works on the copy. There are no locks at a URL: one command at a time writes there.
"""

import argparse
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

from benchmark.errors import Unreachable, UserError, brief
from benchmark.files import read_if_there, read_json, say, write_atomically, write_json
from benchmark.store import RECORD

NOTES, PROBE = ".mirror.json", ".probe"
PLACES = ("results", "old", "new")
"""Arguments of commands that may be URLs."""
PAUSES = (1.0, 4.0)
"""Seconds before the second and the third try."""


def place(text: str) -> Path | str:
    """A folder, or the URL of one."""
    return text.rstrip("/") if "://" in text else Path(text)


@dataclass
class Mirror:
    """A folder here and one at a URL. What either has new goes to the other, the records last."""

    url: str
    local: Path
    notes: dict[str, list[Any]] = field(init=False)
    """Of each file that both have: what names its version there, then size and time of the one here."""

    def __post_init__(self) -> None:
        self.notes = read_json(self.local / NOTES) or {}

    @cached_property
    def place(self) -> tuple[Any, str]:
        return open_place(self.url)

    def versions(self, folder: str = "", depth: int | None = None) -> dict[str, str]:
        """The files below a folder there, as they are now."""
        system, root = self.place
        system.invalidate_cache()
        found = system.find(f"{root}/{folder}".rstrip("/"), maxdepth=depth, detail=True)
        names = {str(PurePosixPath(path).relative_to(root)): version_of(about) for path, about in found.items()}
        return {name: version for name, version in names.items() if is_result(name)}

    def pull(self, *folders: Path) -> None:
        """Take over what is new or gone there, of some folders or of all."""
        for folder in folders or (Path(),):
            self.try_hard(partial(self.pull_folder, "" if folder == Path() else folder.as_posix()))
        write_json(self.local / NOTES, self.notes)

    def pull_folder(self, folder: str) -> None:
        system, root = self.place
        there = self.versions(folder)
        if not folder and not there and self.notes:
            raise UserError(f"there is nothing at '{self.url}' any more; remove '{self.local}' too to begin anew")
        for name in records_last(name for name, version in there.items() if self.noted_version(name) != version):
            write_atomically(self.local / name, system.cat_file(f"{root}/{name}"))
            self.notes[name] = [there[name], *self.stamp(name)]
        below = f"{folder}/" if folder else ""
        for name in [name for name in self.notes if name not in there and name.startswith(below)]:
            (self.local / name).unlink(missing_ok=True)
            del self.notes[name]

    def push(self) -> None:
        """Bring there what is new or gone here."""
        here = {name: stamp for name in self.names_here() if (stamp := self.stamp(name))}
        new = [name for name, stamp in here.items() if self.notes.get(name, [""])[1:] != stamp]
        gone = self.notes.keys() - here.keys()
        for name in records_last(new):
            self.try_hard(partial(self.bring, name))
        for name in gone:
            self.try_hard(partial(self.remove, name))
        for folder in {parent_of(name) for name in new}:
            self.try_hard(partial(self.note, folder, {name: here[name] for name in new if parent_of(name) == folder}))
        if new or gone:
            write_json(self.local / NOTES, self.notes)

    def check_writable(self) -> None:
        """Fail before any training if results could not be kept."""
        system, root = self.place
        try:
            make_folder(system, f"{root}/{PROBE}")
            system.pipe_file(f"{root}/{PROBE}", b"")
            system.rm_file(f"{root}/{PROBE}")
        except Exception as error:  # each kind of store has its own
            raise UserError(
                f"cannot write to '{self.url}' ({brief(error)}); name another place with --results"
            ) from None

    def bring(self, name: str) -> None:
        system, root = self.place
        if (content := read_if_there(self.local / name)) is not None:
            make_folder(system, f"{root}/{name}")
            system.pipe_file(f"{root}/{name}", content)

    def remove(self, name: str) -> None:
        system, root = self.place
        with suppress(FileNotFoundError):
            system.rm_file(f"{root}/{name}")
        self.notes.pop(name, None)

    def note(self, folder: str, stamps: dict[str, list[int]]) -> None:
        """Only a listing tells versions as a later listing does."""
        there = self.versions(folder, depth=1)
        self.notes |= {name: [there[name], *stamp] for name, stamp in stamps.items() if name in there}

    def names_here(self) -> Iterator[str]:
        for folder, _, names in os.walk(self.local):
            for name in (Path(folder, name).relative_to(self.local).as_posix() for name in names):
                if is_result(name):
                    yield name

    def noted_version(self, name: str) -> str | None:
        """None where the copy is not here any more either."""
        return self.notes[name][0] if name in self.notes and (self.local / name).exists() else None

    def stamp(self, name: str) -> list[int]:
        """Differs when a file here has been written since."""
        try:
            about = (self.local / name).stat()
        except FileNotFoundError:
            return []
        return [about.st_size, about.st_mtime_ns]

    def try_hard(self, action: Callable[[], None]) -> None:
        """Networks fail for a moment now and then."""
        for pause in (*PAUSES, None):
            try:
                action()
                return
            except UserError:
                raise
            except Exception as error:  # each kind of store has its own
                if pause is None:
                    raise Unreachable(f"cannot reach '{self.url}' ({brief(error)})") from error
                time.sleep(pause)


@contextmanager
def patience() -> Iterator[None]:
    """Where results are kept may be out of reach for a while."""
    try:
        yield
    except Unreachable as error:
        say(f"{error}; going on, and trying again later")


def open_place(url: str) -> tuple[Any, str]:
    """The file system behind a URL, and the path there."""
    import fsspec

    try:
        system, root = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise UserError(f"results at '{url}' need another package: {error}") from None
    except ValueError as error:
        raise UserError(f"cannot keep results at '{url}': {error}") from None
    return system, root.rstrip("/")


def is_result(name: str) -> bool:
    """Locks, notes, attempts and what is being written begin with a dot."""
    return not any(part.startswith(".") for part in PurePosixPath(name).parts)


def version_of(about: dict[str, Any]) -> str:
    """Changes with the content; what tells it, each kind of store calls differently."""
    known = ("size", "etag", "mtime", "lastmodified", "last_modified", "created")
    return " ".join(str(value) for key, value in about.items() if key.lower() in known)


def records_last(names: Any) -> list[str]:
    return sorted(names, key=lambda name: (PurePosixPath(name).name == RECORD, name))


def make_folder(system: Any, path: str) -> None:
    """Stores of objects have no folders."""
    if "file" in system.protocol:
        system.makedirs(system._parent(path), exist_ok=True)


def parent_of(name: str) -> str:
    return name.rpartition("/")[0]


@contextmanager
def mirrored(arguments: argparse.Namespace) -> Iterator[None]:
    """Puts copies in the place of URLs, and at the end what is new there goes up, however the end came."""
    urls = {name: getattr(arguments, name, None) for name in PLACES}
    mirrors = {name: Mirror(url, copy_of(url)) for name, url in urls.items() if isinstance(url, str)}
    for name, mirror in mirrors.items():
        try:
            mirror.pull()
        except Unreachable as error:
            raise UserError(f"{error}; check the address and the credentials in the environment") from None
        setattr(arguments, name, mirror.local)
    arguments.mirror = mirrors.get("results")
    try:
        yield
    finally:
        if arguments.mirror:
            push_at_last(arguments.mirror)


def push_at_last(mirror: Mirror) -> None:
    try:
        mirror.push()
    except Unreachable as error:
        raise Unreachable(f"{error}; all is kept in '{mirror.local}', the same command brings it there") from None


def copy_of(url: str) -> Path:
    """Where the copy lies, for the next command as well."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    readable = re.sub(r"[^\w.-]+", "-", url)[-60:]
    return home / "selbench" / "results" / f"{readable}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
