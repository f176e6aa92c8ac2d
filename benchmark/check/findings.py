"""Make checks and tell what each of them finds.

A check returns a remark worth printing, or raises: `Broken` with what is wrong, or whatever the code under test raised.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from benchmark.base.errors import brief

T = TypeVar("T")
Check = Callable[[T], str | None]


class Broken(AssertionError):
    """What the code under test does against the contract."""


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


@dataclass(frozen=True)
class Finding:
    check: str
    holds: bool
    remark: str


def make_checks(checks: Mapping[str, Check[T]], subject: T) -> Iterator[Finding]:
    """Make every check in turn, whatever the others found."""
    for name, check in checks.items():
        try:
            yield Finding(name, True, check(subject) or "")
        except Broken as broken:
            yield Finding(name, False, str(broken))
        except Exception as error:
            yield Finding(name, False, brief(error))
