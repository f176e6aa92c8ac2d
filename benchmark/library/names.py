"""List what can be named in a run: tasks and methods."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmark.config.load import load_task, task_names
from benchmark.config.task import TaskConfig
from benchmark.library.registry import load_methods

T = TypeVar("T")


class Catalogue(dict[str, T]):
    """A dict that prints as one line for each of its names."""

    def __init__(self, items: Mapping[str, T], describe: Callable[[T], str]) -> None:
        super().__init__(items)
        self.describe = describe

    def __repr__(self) -> str:
        """Return the names with what they mean, in two columns."""
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {self.describe(item)}" for name, item in self.items())


@dataclass(frozen=True)
class MethodInfo:
    """A method as tables show it: a file of methods/, or a plugin, with certain settings."""

    label: str
    file: str
    settings: Mapping[str, Any]
    """What the label sets; all else has the values of the file, or of the task."""
    title: str
    reference: str

    @property
    def settings_text(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.settings.items())

    def __str__(self) -> str:
        """Return title, source and settings in one line."""
        settings = f" [{self.settings_text}]" if self.settings else ""
        return f"{self.title} ({self.reference}){settings}"


def tasks() -> Catalogue[TaskConfig]:
    """Return the tasks of the suite by name, each with all its settings. A path to a task file can be run as well."""
    return Catalogue({name: load_task(name) for name in task_names()}, lambda task: task.title)


def methods(plugins: str | Path | Iterable[str | Path] = ()) -> Catalogue[MethodInfo]:
    """Return the methods by label, also those of your own files. This imports torch, and executes the files."""
    several = [plugins] if isinstance(plugins, (str, Path)) else plugins
    known = load_methods([Path(plugin) for plugin in several])
    found: dict[str, MethodInfo] = {}
    for name in known.names():
        method = known.get(name)
        for label, settings in method.labels.items():
            found[label] = MethodInfo(label, name, dict(settings), method.title, method.reference)
    return Catalogue(found, str)
