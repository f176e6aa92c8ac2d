"""Keep a small copy of a results folder: compressed records and learning curves, manifests, tables, ledgers, figures.

Nothing that the copy has is lost: a run or a ledger that says something else than the new one stays, and is told of.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.files import (
    Damaged,
    as_kept,
    check_folder,
    compressed,
    read_content,
    remove_leftovers,
    small,
    write_atomically,
)
from benchmark.base.units import counted, text_from_bytes
from benchmark.library.folder_options import PackOptions
from benchmark.library.settings import no_results
from benchmark.store.manifest import Manifest, with_earlier
from benchmark.store.mirror import pulled
from benchmark.store.store import HISTORY, RECORD, Store
from benchmark.tables.diff import says_all_of
from benchmark.tune.ledger import trials_of

MANIFESTS = ("manifests", "paper")
LEDGERS = "tune"
SHOWN = {"tables": (".md", ".tex", ".csv"), "paper": (".md", ".tex", ".csv"), "figures": (".png",)}
"""By folder, the endings of the files that are copied as they are."""
OF_LEDGERS = (".md", ".tex", ".csv", ".json")


@dataclass
class Packed:
    """What was written into a small copy, and what was not."""

    place: Path
    written: Counter[str] = field(default_factory=Counter)
    """Files by kind."""
    left: list[str] = field(default_factory=list)
    """What was not copied, and why."""

    def text(self) -> str:
        """Return a line on what was written, how large all is now, and a line for each thing that was not copied."""
        kinds = [counted(count, *names) for names in KINDS if (count := self.written[names[0]])]
        paths = [path for path in self.place.rglob("*") if path.is_file()]
        size = text_from_bytes(sum(path.stat().st_size for path in paths))
        wrote = ", ".join(kinds) or "nothing new"
        lines = [f"{self.place}: {wrote} written; {counted(len(paths), 'file')} of {size} in all"]
        return "\n".join([*lines, *(f"not copied: {line}" for line in self.left)])


KINDS = (("record",), ("learning curve",), ("manifest",), ("ledger file",), ("table or figure", "tables and figures"))


def pack_results(options: PackOptions) -> Packed:
    """Copy what is new in a results folder into a small one, each run's record last, the manifests after all runs.

    Whenever it ends, the small folder can be read.
    """
    if "://" in options.to:
        raise UserError(f"--to {options.to}: expected a folder on this machine, got a URL")
    source, target = Store(pulled(options.results)), Store(Path(options.to))
    if source.root.resolve() == target.root.resolve():
        raise UserError(f"--to {options.to}: these are the results themselves; name another folder")
    folders, manifests = source.finished(), [(kind, each) for kind in MANIFESTS for each in source.manifests(kind)]
    if not folders and not manifests:
        raise no_results(source.root)
    check_folder(target.root, "", "--to DIR")
    remove_leftovers(target.root)
    packed = Packed(target.root)
    for folder in folders:
        pack_run(folder, source, target, packed)
    for path in ledger_files(source, target, packed):
        packed.written["ledger file"] += copy(path, source, target)
    for path in shown_files(source.root):
        packed.written["table or figure"] += copy(path, source, target)
    for kind, manifest in manifests:
        packed.written["manifest"] += pack_manifest(manifest, kind, source, target)
    return packed


def pack_run(folder: Path, source: Store, target: Store, packed: Packed) -> None:
    """Copy the record and the learning curve of a run, unless one of them is damaged or says something else there."""
    try:
        record = source.read_sealed_record(folder)
        content = read_content(source.find(folder, RECORD))
        curve = source.read_checked(folder, HISTORY, ((record and record.checksums) or {}).get(HISTORY))
    except Damaged as why:
        packed.left.append(f"{source.root / folder}: {why}")
        return
    if record is None or content is None:
        return
    before = target.read_record(folder)
    if before is not None and not says_all_of(record, before):
        packed.left.append(f"{source.root / folder}: '{target.find(folder, RECORD)}' says something else, and stays")
        return
    if curve is not None:
        packed.written["learning curve"] += write_small(target.root / folder / HISTORY, curve)
    packed.written["record"] += write_small(target.root / folder / RECORD, content)


def write_small(path: Path, content: bytes) -> bool:
    """Write a file in its smaller form, and tell whether it was not there in that form before."""
    short = compressed(content)
    best, other = (small(path), path) if len(short) < len(content) else (path, small(path))
    with suppress(Damaged):
        if as_kept(path) == best and read_content(best) == content:
            return False
    write_atomically(best, short if best != path else content)
    other.unlink(missing_ok=True)
    return True


def copy(path: Path, source: Store, target: Store) -> bool:
    """Copy a file, and tell whether it was not there before."""
    content, there = (source.root / path).read_bytes(), target.root / path
    if there.is_file() and there.read_bytes() == content:
        return False
    write_atomically(there, content)
    return True


def shown_files(root: Path) -> Iterator[Path]:
    """Yield the tables and figures below a results folder."""
    for folder, endings in SHOWN.items():
        yield from (path.relative_to(root) for path in sorted((root / folder).glob("*")) if path.suffix in endings)


def ledger_files(source: Store, target: Store, packed: Packed) -> Iterator[Path]:
    """Yield the files of the ledgers, unless the one that is there has trials of its own."""
    for path in sorted((source.root / LEDGERS).glob("*.json")):
        place = path.relative_to(source.root)
        try:
            new = source.read_json(place) or {}
        except Damaged as why:
            packed.left.append(f"{path}: {why}")
            continue
        with suppress(Damaged):
            if not has_all_trials(new, target.read_json(place) or {}):
                packed.left.append(f"{path}: '{target.root / place}' has other trials, and stays")
                continue
        yield from (each for ending in OF_LEDGERS if (source.root / (each := place.with_suffix(ending))).is_file())


def has_all_trials(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Tell whether a ledger has all trials of another, with the same results."""
    for label in old.get("methods", {}):
        known = {trial.job: trial.by_seed for trial in trials_of(new, label)}
        if any(not trial.by_seed.items() <= known.get(trial.job, {}).items() for trial in trials_of(old, label)):
            return False
    return True


def pack_manifest(manifest: Manifest, kind: str, source: Store, target: Store) -> bool:
    """Copy a manifest, with the runs that the one that is there names in addition; tell whether it was not there."""
    place = Path(kind, f"{manifest.name}.json")
    before = None
    with suppress(Damaged):
        before = target.read_manifest(target.root / place)
    if before is not None:
        known = replace(manifest, entries=(*manifest.earlier, *before.known_entries), earlier=())
        merged = with_earlier(manifest, known)
        if merged == before:
            return False
        if merged != manifest:
            target.write_manifest(merged, kind)
            return True
    return copy(place, source, target)
