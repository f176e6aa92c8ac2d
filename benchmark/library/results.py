"""Read the results of a folder."""

from dataclasses import dataclass
from os import PathLike, fspath


@dataclass(frozen=True)
class Results:
    """The results of a folder."""

    place: str


def load_results(place: str | PathLike[str] = "results") -> Results:
    """Return the results of a folder."""
    return Results(fspath(place))
