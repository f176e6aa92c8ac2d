"""Read a source of a user's own file: any object that has `describe` and `load`, as the modules beside this one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmark.base.errors import UserError, brief
from benchmark.base.limits import shown
from benchmark.base.names import unknown_name
from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Loaded

OPTIONAL = (
    "path",
    "classes",
    "folders",
    "attribute",
    "cache_size",
    "test_share",
    "channels",
    "test_path",
    "labels",
    "columns",
    "missing",
    "constant",
    "one_hot",
)
"""Settings that only some sources read; each source lists its own in SETTINGS."""
T = TypeVar("T")


@dataclass
class OwnSource:
    """A source of a user's own file. Whatever goes wrong in it becomes an error of one line."""

    name: str
    given: Any
    SETTINGS: tuple[str, ...] = ()
    CACHED: bool = False

    def describe(self, config: DataConfig) -> Facts:
        return self.call("describe", Facts, config)

    def load(self, config: DataConfig, data_dir: Path) -> Loaded:
        return self.call("load", Loaded, config, data_dir)

    def files(self, config: DataConfig, data_dir: Path) -> Sequence[Path]:
        found = self.call("files", object, config, data_dir)
        if not isinstance(found, (list, tuple)):
            raise UserError(f"source '{self.name}': files must return a list of paths, got {shown(found)}")
        return [Path(path) for path in found]

    def call(self, function: str, expected: type[T], *arguments: object) -> T:
        try:
            found = getattr(self.given, function)(*arguments)
        except (UserError, MemoryError):
            raise
        except Exception as error:
            raise UserError(f"source '{self.name}': {function} fails ({brief(error)})") from error
        if not isinstance(found, expected):
            raise UserError(f"source '{self.name}': {function} must return {expected.__name__}, got {shown(found)}")
        return found


def own_source(name: str, given: Any) -> OwnSource:
    """Return the source that a user's file gives as an object, a class or a module. Raise UserError if it is none."""
    if isinstance(given, type):
        try:
            given = given()
        except Exception as error:
            raise UserError(f"source '{name}': {given.__name__}() fails ({brief(error)})") from error
    settings, cached = getattr(given, "SETTINGS", ()), bool(getattr(given, "CACHED", False))
    needed = ("describe", "load", "files") if cached else ("describe", "load")
    if missing := [function for function in needed if not callable(getattr(given, function, None))]:
        raise UserError(
            f"source '{name}' lacks {', '.join(missing)}; expected an object with describe(config) and "
            "load(config, data_dir), and with files(config, data_dir) where CACHED = True"
        )
    if not isinstance(settings, (tuple, list)):
        raise UserError(f"source '{name}': SETTINGS must be a tuple of names, e.g. ('path',), got {shown(settings)}")
    for setting in settings:
        if setting not in OPTIONAL:
            raise unknown_name(str(setting), OPTIONAL, f"setting in SETTINGS of source '{name}':")
    return OwnSource(name, given, tuple(settings), cached)
