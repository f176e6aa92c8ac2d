"""Find what a typed name means; offer the nearest valid name where it means nothing."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from benchmark.base.errors import UserError

MOST_SHOWN = 80


def canonical(name: str) -> str:
    """Return the form in which names are compared: any case, with `-`, `_` and blanks alike."""
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def is_plain(name: str) -> bool:
    """Return whether a name can be a file or folder, and cannot lead out of the folder it is used in."""
    return re.fullmatch(r"\w[\w.+ -]*", name) is not None


def match_name(name: str, known: Iterable[str], kind: str) -> str:
    """Return the one of `known` that `name` means, or raise an error that offers the nearest."""
    by_canonical = {canonical(candidate): candidate for candidate in known}
    if canonical(name) in by_canonical:
        return by_canonical[canonical(name)]
    raise unknown_name(name, by_canonical.values(), kind)


def select_names(wanted: Iterable[str] | None, known: Sequence[str], kind: str) -> list[str]:
    """Return those of `known` that are meant by names or paths of files, each once; all where none are named."""
    if wanted is None:
        return list(known)
    return list(dict.fromkeys(match_name(Path(name).stem, known, kind) for name in wanted))


def unknown_name(name: str, known: Iterable[str], kind: str) -> UserError:
    """Return an error that names the nearest known name, and all of them where they are few."""
    names = sorted(set(known))
    name = name if len(name) <= MOST_SHOWN else f"{name[:MOST_SHOWN]}…"
    nearest = get_close_matches(canonical(name), [canonical(n) for n in names], n=1, cutoff=0.5)
    hint = next((f"did you mean '{n}'? " for n in names if [canonical(n)] == nearest), "")
    known_names = f"known: {', '.join(names)}" if len(names) <= 40 else f"{len(names)} are known"
    return UserError(f"unknown {kind} '{name}': {hint}{known_names}")
