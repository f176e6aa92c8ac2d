"""The page in parts, one for each task and published table. A part that nothing has changed for is not made again.

Parts are kept among the user's own caches, never in a results folder: reading one leaves it as it is, and what somebody
else put there is not shown as ours.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmark.files import BLANK, Damaged, read_sealed, write_sealed
from benchmark.report.health import runs_of
from benchmark.report.markup import Markup
from benchmark.store import Store
from benchmark.tables import complete
from benchmark.tasks import CONFIG_DIR

CODE = Path(__file__).resolve().parents[1]
FORSAKEN_DAYS = 30
SETTLED_NS = 2 * 10**9
NOT_SHOWN = ("seal", "earlier")
"""What a manifest says that no page shows."""


@dataclass(frozen=True)
class Part:
    anchor: str
    link: str
    """What the navigation calls it."""
    card: Markup
    section: Markup


def kept_or_made(kind: str, manifest: dict[str, Any], store: Store, make: Callable[[], Part]) -> Part:
    """The part of a manifest as its records are now."""
    kept = read_part(place_of(kind, manifest, store), made_from(manifest, store)[0])
    return kept or make_and_keep(kind, manifest, store, make)


def make_and_keep(kind: str, manifest: dict[str, Any], store: Store, make: Callable[[], Part]) -> Part:
    """Kept only if no file changed meanwhile, or so shortly before that a second change might show the same time."""
    started, before = time.time_ns(), made_from(manifest, store)
    part = make()
    if before[1] < started - SETTLED_NS and made_from(manifest, store) == before:
        write_part(place_of(kind, manifest, store), before[0], part)
    return part


def made_from(manifest: dict[str, Any], store: Store) -> tuple[str, int]:
    """A hash of all that a part follows from, and when the last of it changed.

    Manifest, code, and every file in the folders of its runs. As for git, the system tells which file is another one
    than before: looking at thirty thousand takes a second or two, reading them minutes.
    """
    told = {name: value for name, value in complete(manifest).items() if name not in NOT_SHOWN}
    digest = hashlib.sha256(f"{code_version()}{json.dumps(told, sort_keys=True)}".encode())
    last = 0
    for _, _, folder in runs_of(manifest):
        files = files_of(store.root / folder)
        digest.update(f"\n{folder} {files}".encode())
        last = max(last, *(when for *_, when in files), 0)
    return digest.hexdigest(), last


def files_of(folder: Path) -> list[tuple[str, int, int, int, int]]:
    """What changes with every write: number, size, and both times of each file; only the system sets the last."""
    try:
        with os.scandir(folder) as found:
            stats = sorted((entry.name, entry.stat()) for entry in found)
    except OSError:
        return []
    return [(name, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for name, stat in stats]


@cache
def code_version() -> str:
    """Of all that turns records into a page: the core, the tasks and published figures it knows, and its libraries."""
    digest = hashlib.sha256(" ".join(version(name) for name in ("numpy", "scipy", "tabulate")).encode())
    for path in sorted([*CODE.rglob("*.py"), *(path for path in CONFIG_DIR.rglob("*") if path.is_file())]):
        digest.update(f"\n{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def place_of(kind: str, manifest: dict[str, Any], store: Store) -> Path:
    """One for each part of each results folder, so that a new one takes the place of the old."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    whose = f"{store.root.resolve()}\n{kind}\n{manifest['name']}"
    return home / "selbench" / "report" / f"{hashlib.sha256(whose.encode()).hexdigest()[:32]}.json"


def read_part(path: Path, key: str) -> Part | None:
    with suppress(OSError, Damaged):
        kept = read_sealed(path, path.name)
        if kept is not None and kept["key"] == key:
            os.utime(path)
            return Part(kept["anchor"], kept["link"], Markup(kept["card"]), Markup(kept["section"]))
    return None


def write_part(path: Path, key: str, part: Part) -> None:
    """A cache that cannot be written costs time and nothing else. Folders that are gone leave parts: they go too."""
    with suppress(OSError):
        write_sealed(path, {"key": key, **asdict(part), "seal": BLANK}, path.name)
        for other in path.parent.glob("*.json"):
            if time.time() - other.stat().st_mtime > FORSAKEN_DAYS * 24 * 3600:
                other.unlink()
