"""Errors that the suite raises: mistakes of the user, and what a machine can lack."""

from collections.abc import Sequence
from typing import Any


class UserError(Exception):
    """Bad input: shown as one line with exit code 2, never as a traceback."""

    def __str__(self) -> str:
        """Return the message as one line, whatever input it quotes."""
        return " ".join("".join(c if c.isprintable() else " " for c in super().__str__()).split())


def brief(error: BaseException) -> str:
    """Return the type and the message of an error from another library, cut to part of a line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}" if text else type(error).__name__


class MissingData(UserError):
    """A data set is missing. A plan can still be shown."""


class Unreachable(Exception):
    """The URL of the results does not answer. New results stay on this disk until it does."""

    outcome: Any = None
    """What was done before, for those who would show it."""


class JobsFailed(Exception):
    """Some jobs have no result; the message says which, and why. The tables of all others are written."""

    def __init__(self, failures: Sequence[str], outcome: Any) -> None:
        super().__init__("\n".join(failures))
        self.outcome = outcome
        """What was made all the same."""


class NoRoom(Exception):
    """Nothing more can be written to the results. What is written stays, and the same command continues from it."""


class DeviceLost(Exception):
    """The device fails at everything in this process. The same command in a new process continues."""
