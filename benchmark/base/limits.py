"""Numbers that people write: how they are read, and how large they may be.

A limit stands where its number is declared: `epochs: Annotated[int, Within(1, 100_000, "…")]` in a config, or
`type=whole(Within(0, 100, "…"))` of an option. Whoever needs more raises the limit there.
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
    """The least and the most that a number may be, and why no more."""

    least: float
    most: float
    why: str = "no setting needs more"


UNSAID: dict[type, Within] = {int: Within(-(10**9), 10**9), float: Within(-(10**12), 10**12)}
"""Of numbers that are declared without a limit."""

SEEDS = Within(1, 10_000, "each seed trains every method once more")
Epochs = Annotated[int, Within(0, 100_000, "a training would last for years")]
Weight = Annotated[float, Within(0, 10**6, "nothing else would count beside it")]
Positive = Annotated[float, Within(1e-9, 10**6)]
"""What settings of methods often are."""


def read_number(value: Any, kind: type, limit: Within | None = None) -> Any:
    """The number that a value, or a text in plain digits, stands for; a ValueError says what was expected."""
    limit, number = limit or UNSAID[kind], plain_number(value)
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
    """A text too large for a number is infinite, and so above every limit."""
    if isinstance(value, str):
        return float(value) if NUMBER.fullmatch(value) else None
    if isinstance(value, (int, bool)):
        return None if isinstance(value, bool) else value
    try:
        return float(value) if isfinite(value) else None
    except TypeError:
        return None


def looks_like_number(value: Any) -> bool:
    """Python itself reads `1_0`, blanks around it, and the digits of other scripts."""
    try:
        return isinstance(value, str) and isfinite(float(value))
    except ValueError:
        return False


class Brief(Repr):
    """A part of a line, whatever the value: endless text, nested lists, numbers of a thousand digits."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60

    def repr_int(self, value: int, level: int) -> str:
        return repr(value) if abs(value) < 10**MOST_DIGITS else f"a number of more than {MOST_DIGITS} digits"


shown = Brief().repr
