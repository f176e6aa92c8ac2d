"""Define what can be asked of the page that follows a run."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from benchmark.base.errors import UserError
from benchmark.base.limits import Within
from benchmark.library.options import Options

PORT = Within(0, 65_535, "there are no more ports")
TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")


@dataclass(frozen=True, kw_only=True)
class WatchOptions(Options):
    """A results folder to follow, and where its page is served."""

    results: str = "results"
    host: str = "127.0.0.1"
    port: Annotated[int, PORT] = 8321
    """0: any that is free."""
    token: str | None = None
    """What a reader must know. None: nothing on this machine, and a new one for any other."""
    plugin: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.token is not None and not TOKEN.fullmatch(self.token):
            raise UserError("--token: expected 16 to 200 letters, digits, - or _; leave it out to have one made")
