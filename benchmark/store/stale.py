"""Results that other code, or another torch, has made: still used, but never silently mixed with the rest."""

from importlib.metadata import version
from typing import Any


def reasons(record: dict[str, Any], code: str, torch: str) -> list[str]:
    """How a record was made otherwise than by this code and this version of torch; what is not known is not held
    against it."""
    provenance = record.get("provenance", {})
    found = []
    if code and provenance.get("codes", [code]) != [code]:
        found.append("made by another version of the code")
    others = sorted({name for name in map(torch_of, provenance.get("environments", [])) if torch and name != torch})
    if others:
        found.append(f"made with torch {', '.join(others)} instead of {torch}")
    return found


def torch_of(environment: str) -> str:
    """The version in a line of provenance, which begins with it; how it was built does not count."""
    return environment.partition(",")[0].removeprefix("torch ").partition("+")[0]


def installed_torch() -> str:
    """Without importing it, which takes seconds."""
    return version("torch").partition("+")[0]
