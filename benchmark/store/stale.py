"""Find results made by other code or another torch: they are used, but never mixed silently with the rest."""

from importlib.metadata import version

from benchmark.store.record import Record


def stale_reasons(record: Record, code: str, torch: str) -> list[str]:
    """Return how a record differs from this code and this version of torch; what is not known does not count.

    Only code that decides predictions counts: a measure is made again from the stored prediction.
    """
    reasons = []
    if code and record.provenance.codes is not None and list(record.provenance.codes) != [code]:
        reasons.append("made by another version of the code")
    others = sorted({name for name in map(torch_of, record.provenance.environments) if torch and name != torch})
    if others:
        reasons.append(f"made with torch {', '.join(others)} instead of {torch}")
    return reasons


def torch_of(environment: str) -> str:
    """Return the version of torch at the start of a line of provenance, without how it was built."""
    return environment.partition(",")[0].removeprefix("torch ").partition("+")[0]


def installed_torch() -> str:
    """Return the installed version of torch without importing it, which takes seconds."""
    return version("torch").partition("+")[0]
