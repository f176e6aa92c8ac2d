"""Mistakes a user can make."""


class UserError(Exception):
    """Bad input: shown as one line with exit code 2, never as a traceback."""

    def __str__(self) -> str:
        """One line whatever the input that it quotes."""
        return " ".join("".join(c if c.isprintable() else " " for c in super().__str__()).split())


def brief(error: BaseException) -> str:
    """What another library says is wrong, in part of a line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}" if text else type(error).__name__


class MissingData(UserError):
    """A data set is not there. A plan can still be shown."""


class Unreachable(Exception):
    """The place where results are kept does not answer; they are kept here until it does."""


class NoRoom(Exception):
    """Nothing more can be written to the results; what is there stays, and the same command goes on from it."""


class DeviceLost(Exception):
    """The device fails whatever this process asks of it; a new process, with the same command, goes on."""
