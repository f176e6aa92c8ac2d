"""A table of plain text, for whatever is not mean±std: what people read, and the unrounded numbers behind it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sheet:
    name: str
    caption: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    numbers: tuple[dict[str, Any], ...] = ()
    """One for each line of the CSV file."""
    modified: str = ""
    """What the runs were made with that the file of their task does not say."""
    label: str = ""
    """What LaTeX refers to it by."""
