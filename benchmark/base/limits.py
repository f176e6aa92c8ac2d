"""Read the numbers that people write, and check how large they are.

A limit stands where its number is declared: `epochs: Annotated[int, Within(1, 100_000, "…")]` in a config, or
`type=whole(Within(0, 100, "…"))` of an option. Raise the limit there where more is needed.
"""

import re
from dataclasses import dataclass
from math import isfinite
from reprlib import Repr
from typing import Annotated, Any

NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
WORDS: dict[type, str] = {int: "a whole number", float: "a number"}
MOST_DIGITS = 30


@dataclass(frozen=True)
class Within:
    """The smallest and the largest value of a number, and why it may not be larger."""

    least: float
    most: float
    why: str = "no setting needs more"


DEFAULT_LIMITS: dict[type, Within] = {int: Within(-(10**9), 10**9), float: Within(-(10**12), 10**12)}
"""For numbers that are declared without a limit."""

SEED = Within(0, 2**32 - 1, "a larger seed has no advantage over a smaller one")
SEEDS = Within(1, 10_000, "each seed trains every method once more")
Epochs = Annotated[int, Within(0, 100_000, "a training would last for years")]
Weight = Annotated[float, Within(0, 10**6, "nothing else would count beside it")]
Positive = Annotated[float, Within(1e-9, 10**6)]
"""The last three: types of settings that many methods have."""


def read_number(value: Any, kind: type, limit: Within | None = None) -> Any:
    """Return a value, or a text in plain digits, as a number; raise a ValueError that says what was expected."""
    limit, number = limit or DEFAULT_LIMITS[kind], plain_number(value)
    if number is not None and limit.least <= number <= limit.most and kind(number) == number:
        return kind(number)
    reason = ""
    if number is None and looks_like_number(value):
        reason = "; write it in the digits 0 to 9, without _ or blanks"
    elif number is not None and number > limit.most:
        reason = f": {limit.why}"
    expected = f"{WORDS[kind]} from {limit.least:,} to {limit.most:,}"
    raise ValueError(f"expected {expected}, got {shown(value)}{reason}")


def plain_number(value: Any) -> float | None:
    """Return the number or None. A text too large for a number gives infinity, which is above every limit."""
    if isinstance(value, str):
        return float(value) if NUMBER.fullmatch(value) else None
    if isinstance(value, (int, bool)):
        return None if isinstance(value, bool) else value
    try:
        return float(value) if isfinite(value) else None
    except TypeError:
        return None


def looks_like_number(value: Any) -> bool:
    """Return whether Python reads a text as a number: also `1_0`, blanks around it, digits of other scripts."""
    try:
        return isinstance(value, str) and isfinite(float(value))
    except ValueError:
        return False


class Brief(Repr):
    """Shows any value in part of a line: endless text, nested lists, numbers of a thousand digits."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60

    def repr_int(self, value: int, level: int) -> str:
        return repr(value) if abs(value) < 10**MOST_DIGITS else f"a number of more than {MOST_DIGITS} digits"


shown = Brief().repr
