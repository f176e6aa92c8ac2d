"""Mistakes a user can make."""


class UserError(Exception):
    """Bad input: shown as one line with exit code 2, never as a traceback."""


class MissingData(UserError):
    """A data set is not there. A plan can still be shown."""
