"""Define what can be asked of the tour."""

from dataclasses import dataclass

from benchmark.library.options import Options


@dataclass(frozen=True, kw_only=True)
class TourOptions(Options):
    """Where the results of the tour lie: by default apart from all others."""

    results: str = "results/tour"
