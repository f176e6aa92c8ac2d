"""What people type → what it names, with the nearest valid name where it names nothing."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from benchmark.errors import UserError
from benchmark.scores import TITLES

MOST_SHOWN = 80


def canonical(name: str) -> str:
    """Names match in any case, with `-`, `_` and blanks alike."""
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def is_plain(name: str) -> bool:
    """Whether a name can stand for a folder or file, and for none outside the folder it is used in."""
    return re.fullmatch(r"\w[\w.+ -]*", name) is not None


def name_at(label: str, coverage: float | None) -> str:
    """A training that is meant for one coverage is called after it."""
    return label if coverage is None else f"{label}@{coverage:g}"


def match_name(name: str, known: Iterable[str], kind: str) -> str:
    """The one of `known` that `name` means, or an error that offers the nearest."""
    by_canonical = {canonical(candidate): candidate for candidate in known}
    if canonical(name) in by_canonical:
        return by_canonical[canonical(name)]
    raise unknown_name(name, by_canonical.values(), kind)


def match_labels(wanted: Iterable[str], owners: Mapping[str, str], kind: str = "method") -> list[str]:
    """The labels meant by a label, a column (label+score), a file (all its labels) or `all`; each once."""
    found: list[str] = []
    for name in wanted:
        matches = labels_named(canonical(name), owners)
        if not matches:
            raise unknown_name(name, [*owners, *owners.values(), "all"], kind)
        found += [label for label in matches if label not in found]
    return found


def labels_named(name: str, owners: Mapping[str, str]) -> list[str]:
    if name == "all":
        return list(owners)
    exact = [label for label in owners if canonical(label) == name]
    column = [label for label in owners for score in TITLES if canonical(f"{label}+{score}") == name]
    return exact or column or [label for label, owner in owners.items() if canonical(owner) == name]


def unknown_name(name: str, known: Iterable[str], kind: str) -> UserError:
    names = sorted(set(known))
    name = name if len(name) <= MOST_SHOWN else f"{name[:MOST_SHOWN]}…"
    nearest = get_close_matches(canonical(name), [canonical(n) for n in names], n=1, cutoff=0.5)
    hint = next((f"did you mean '{n}'? " for n in names if [canonical(n)] == nearest), "")
    known_names = f"known: {', '.join(names)}" if len(names) <= 40 else f"{len(names)} are known"
    return UserError(f"unknown {kind} '{name}': {hint}{known_names}")
