"""Store the page in parts, one for each task and published table. A part is made again only if something changed.

Parts are stored in the user's own cache, never in a results folder: reading a folder must not change it, and what
somebody else put there must not be shown as ours.
"""

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

from benchmark.base.files import BLANK, Damaged, read_sealed, write_sealed
from benchmark.config.load import CONFIG_DIR
from benchmark.report.health import runs_of
from benchmark.report.markup import Markup
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store

CODE = Path(__file__).resolve().parents[1]
UNUSED_DAYS = 30
"""Parts that nobody has read for this long are deleted."""
SETTLED_NS = 2 * 10**9


@dataclass(frozen=True)
class Part:
    """A section of the page, with its card in the overview and its link in the navigation."""

    anchor: str
    link: str
    card: Markup
    section: Markup


def load_or_make(kind: str, manifest: Manifest, store: Store, make: Callable[[], Part]) -> Part:
    """Return the part of a manifest: from the cache if nothing has changed, else a new one."""
    stored = read_part(cache_path(kind, manifest, store), fingerprint(manifest, store)[0])
    return stored or make_and_store(kind, manifest, store, make)


def make_and_store(kind: str, manifest: Manifest, store: Store, make: Callable[[], Part]) -> Part:
    """Make a part, and store it if no file changed meanwhile or just before (two changes could have the same time)."""
    started, before = time.time_ns(), fingerprint(manifest, store)
    part = make()
    if before[1] < started - SETTLED_NS and fingerprint(manifest, store) == before:
        write_part(cache_path(kind, manifest, store), before[0], part)
    return part


def fingerprint(manifest: Manifest, store: Store) -> tuple[str, int]:
    """Return a hash of all that decides a part, and the time of the last change.

    It covers the manifest, the code, and every file in the folders of its runs. As in git, size and times show whether
    a file changed: checking thirty thousand files takes a second or two, reading them takes minutes.
    """
    digest = hashlib.sha256(f"{code_version()}{replace(manifest, earlier=())}".encode())
    last = 0
    for _, _, folder in runs_of(manifest):
        files = files_of(store.root / folder)
        digest.update(f"\n{folder} {files}".encode())
        last = max(last, *(when for *_, when in files), 0)
    return digest.hexdigest(), last


def files_of(folder: Path) -> list[tuple[str, int, int, int, int]]:
    """Return what changes with every write: inode, size and both times of each file; only the system sets the last."""
    try:
        with os.scandir(folder) as entries:
            stats = sorted((entry.name, entry.stat()) for entry in entries)
    except OSError:
        return []
    return [(name, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for name, stat in stats]


@cache
def code_version() -> str:
    """Return a hash of all that turns records into a page: the code, the task files and published values, libraries."""
    digest = hashlib.sha256(" ".join(version(name) for name in ("numpy", "scipy", "tabulate")).encode())
    for path in sorted([*CODE.rglob("*.py"), *(path for path in CONFIG_DIR.rglob("*") if path.is_file())]):
        digest.update(f"\n{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def cache_path(kind: str, manifest: Manifest, store: Store) -> Path:
    """Return the file of a part: one for each part of each results folder, so that a new one replaces the old."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    owner = f"{store.root.resolve()}\n{kind}\n{manifest.name}"
    return home / "selbench" / "report" / f"{hashlib.sha256(owner.encode()).hexdigest()[:32]}.json"


def read_part(path: Path, key: str) -> Part | None:
    """Return the stored part; None if there is none with this key."""
    with suppress(OSError, Damaged):
        stored = read_sealed(path, path.name)
        if stored is not None and stored["key"] == key:
            os.utime(path)
            return Part(stored["anchor"], stored["link"], Markup(stored["card"]), Markup(stored["section"]))
    return None


def write_part(path: Path, key: str, part: Part) -> None:
    """Store a part and delete those that are no longer used. A cache that cannot be written only costs time."""
    with suppress(OSError):
        write_sealed(path, {"key": key, **asdict(part), "seal": BLANK}, path.name)
        for other in path.parent.glob("*.json"):
            if time.time() - other.stat().st_mtime > UNUSED_DAYS * 24 * 3600:
                other.unlink()
