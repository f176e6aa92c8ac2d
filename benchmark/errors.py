"""Mistakes a user can make, said in one line."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Bad input: shown as one line with exit code 2, never as a traceback."""


def canonical(name: str) -> str:
    """Names match in any case, with `-`, `_` and blanks alike."""
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def match_name(name: str, known: Iterable[str], kind: str) -> str:
    """The one of `known` that `name` means, or an error that offers the nearest."""
    by_canonical = {canonical(candidate): candidate for candidate in known}
    if canonical(name) in by_canonical:
        return by_canonical[canonical(name)]
    raise unknown_name(name, by_canonical.values(), kind)


def unknown_name(name: str, known: Iterable[str], kind: str) -> UserError:
    names = sorted(set(known))
    nearest = get_close_matches(canonical(name), [canonical(n) for n in names], n=1, cutoff=0.5)
    hint = next((f"did you mean '{n}'? " for n in names if [canonical(n)] == nearest), "")
    known_names = f"known: {', '.join(names)}" if len(names) <= 40 else f"{len(names)} are known"
    return UserError(f"unknown {kind} '{name}': {hint}{known_names}")
