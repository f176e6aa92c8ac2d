"""One file per method, found by its file name; files with a leading underscore are shared parts.

A user's own file may define a method too, and scores, networks and sources of images.
"""

import ast
import hashlib
import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from inspect import getattr_static
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import benchmark
from benchmark.base import added
from benchmark.base.added import Added
from benchmark.base.errors import UserError, brief
from benchmark.base.limits import shown
from benchmark.base.names import canonical, is_plain
from benchmark.base.source_code import code_hash, essence
from benchmark.data import sources as image_sources
from benchmark.data.sources._own import OwnSource, own_source
from benchmark.interface import Contestant, Derived, Method, Recipe
from benchmark.jobs.code_version import suite_hash
from benchmark.jobs.plan import label_owners
from benchmark.measure.evaluate import ORACLE
from benchmark.measure.scores import TITLES
from benchmark.train import networks
from benchmark.train.pretrained.libraries import LIBRARIES

FOLDER = Path(__file__).resolve().parent
MOVED = {
    "benchmark.limits": "benchmark.base.limits",
    "benchmark.prediction": "benchmark.measure.prediction",
    "benchmark.schema": "benchmark.base.schema",
    "benchmark.scores": "benchmark.measure.scores",
}
"""Modules that plugins once imported: another import would make another file, and its jobs would be trained again."""
PREFIX = "selbench_plugin_"
TABLES = {"SCORES": added.SCORES, "NETWORKS": added.NETWORKS, "SOURCES": added.SOURCES}
"""By their names in a user's file."""
MEANT = {"SCORES": "score", "NETWORKS": "network", "SOURCES": "source"}
LONGEST_NAME = 40
BUILT_IN = {
    "SCORES": (*TITLES, ORACLE),
    "NETWORKS": (*networks.OWN, *LIBRARIES),
    "SOURCES": image_sources.SOURCES,
}
NAMED = (*TABLES, "labels")
"""Names of dicts in a file whose keys are names."""


@dataclass(frozen=True)
class Registry:
    """The methods of this folder, and what users' own files define. A worker process gets a copy and loads them."""

    plugins: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        for plugin in self.plugins:
            if plugin.suffix != ".py" or not plugin.is_file():
                raise UserError(f"plugin '{plugin}' is not a Python file that exists")
            if not is_plain(plugin.stem):
                raise UserError(f"plugin '{plugin}': its name names a folder of results; use letters, digits and _")
            if plugin.stem in built_in_names():
                raise UserError(f"plugin '{plugin}' has the name of a built-in method; rename the file")
            if [other.stem for other in self.plugins].count(plugin.stem) > 1:
                raise UserError(f"plugin '{plugin}': two files are called {plugin.name}; rename one, or name it once")
        self.load()
        if self.plugins:
            label_owners(self)

    def load(self) -> None:
        """Make the scores, networks and sources of the users' files known in this process, and those of no others.

        A registry that is sent to another process does not do so by itself: there a file that cannot be loaded is the
        failure of a job, with its reason, and not that of the process.
        """
        tables: dict[str, dict[str, Added[Any]]] = {kind: {} for kind in TABLES}
        scores_of_methods = {}
        for path in self.plugins:
            defined, version = load_plugin(path, path.read_bytes()), self.code_hash(path.stem)
            for kind, values in defined.parts.items():
                for name, value in values.items():
                    refuse_taken(name, kind, tables[kind], path)
                    tables[kind][name] = Added(value, title_of(value, name), version, path)
            if defined.method is not None:
                scores_of_methods[path.stem] = defined.method.scores, version if has_own_scores(defined.method) else ""
        added.clear()
        for kind, table in TABLES.items():
            table.update(tables[kind])
        added.SCORES_OF_METHODS.update(scores_of_methods)

    def names(self) -> list[str]:
        own = [path.stem for path in self.plugins if load_plugin(path, path.read_bytes()).method is not None]
        return sorted([*built_in_names(), *own])

    def get(self, name: str) -> type[Contestant]:
        plugin = self.plugin(name)
        if plugin is None:
            return checked(getattr(importlib.import_module(f"methods.{name}"), "METHOD", None), name)
        method = load_plugin(plugin, plugin.read_bytes()).method
        if method is None:
            raise UserError(f"plugin '{plugin}' defines no METHOD")
        return method

    def plugin(self, name: str) -> Path | None:
        return next((plugin for plugin in self.plugins if plugin.stem == name), None)

    def source_hash(self, name: str) -> str | None:
        """Return the hash of what a user's own code does, or None: the config alone identifies a built-in method."""
        plugin = self.plugin(name)
        return None if plugin is None else hashlib.sha256(essence(plugin.read_bytes()).encode()).hexdigest()

    def bytes_hash(self, name: str) -> str | None:
        """Return the hash of the file with its comments and layout: older results still go by it."""
        plugin = self.plugin(name)
        return None if plugin is None else hashlib.sha256(plugin.read_bytes()).hexdigest()

    def code_hash(self, name: str) -> str:
        """Return a hash that changes with what a method does, be it in its own file or in a shared part."""
        plugin = self.plugin(name)
        return built_in_hash(name) if plugin is None else code_hash(sources(plugin))


def sources(path: Path) -> Iterator[bytes]:
    """Return a file and those of this folder that it imports, at any depth, in the order of their names."""
    found: dict[Path, bytes] = {}
    to_read = [path]
    while to_read:
        path = to_read.pop()
        if path not in found and path.is_file():
            found[path] = path.read_bytes()
            to_read += [FOLDER / f"{name}.py" for name in imported(found[path])]
    return (found[path] for path in sorted(found, key=lambda path: path.name))


def imported(source: bytes) -> Iterator[str]:
    """Yield the modules of this folder that a program imports, in whatever way it names them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.removeprefix(f"{__name__}.") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").removeprefix(__name__).removeprefix(".")
            if node.level or (node.module or "").partition(".")[0] == __name__:
                yield from [module] if module else [alias.name for alias in node.names]


@lru_cache
def built_in_hash(name: str) -> str:
    return suite_hash(sources(FOLDER / f"{name}.py"))


def built_in_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


@dataclass(frozen=True)
class Defined:
    """What a user's file defines."""

    method: type[Contestant] | None
    parts: dict[str, dict[str, Any]]
    """Its scores, networks and sources by name, each under the name of its table in the file."""


@lru_cache
def load_plugin(path: Path, source: bytes) -> Defined:
    """Execute a user's file, once for each state of it."""
    name = f"{PREFIX}{path.stem}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses look their module up
    for old, new in MOVED.items():
        sys.modules[old] = importlib.import_module(new)
        attribute = old.rpartition(".")[2]
        if attribute not in benchmark.__all__:  # `benchmark.scores` is public, and has the same functions
            setattr(benchmark, attribute, sys.modules[old])  # for `import benchmark.limits`
    try:
        refuse_doubled(ast.parse(source), path)
        exec(compile(source, str(path), "exec"), module.__dict__)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        reason = brief(error)
        raise UserError(f"plugin '{path}' cannot be loaded: {reason}") from error
    parts = {kind: read_table(kind, vars(module)[kind], path) for kind in TABLES if kind in vars(module)}
    if not hasattr(module, "METHOD") and any(parts.values()):
        return Defined(None, parts)
    return Defined(checked(getattr(module, "METHOD", None), str(path)), parts)


def read_table(kind: str, table: object, path: Path) -> dict[str, Any]:
    """Return a table of a user's file. Raise UserError for what cannot be used."""
    if not isinstance(table, Mapping):
        raise UserError(f"plugin '{path}': {kind} must map names to {MEANT[kind]}s, e.g. {{'my {MEANT[kind]}': …}}")
    found: dict[str, Any] = {}
    for name, value in table.items():
        plain = isinstance(name, str) and is_plain(name) and "+" not in name and name == name.strip()
        if not plain or len(name) > LONGEST_NAME:
            allowed = f"up to {LONGEST_NAME} letters, digits, blanks and - . _"
            raise UserError(f"plugin '{path}': {kind}: {shown(name)} may have {allowed} only")
        refuse_taken(name, kind, found, path)
        if kind != "SOURCES" and not callable(value):
            raise UserError(f"plugin '{path}': {kind}: '{name}' must be a function, got {shown(value)}")
        found[name] = own_source(name, value) if kind == "SOURCES" else value
    return found


def refuse_doubled(program: ast.AST, path: Path) -> None:
    """Raise UserError where a table of a file names something twice: Python would keep the last without a word."""
    for node in ast.walk(program):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            kind = next((each.id for each in targets if isinstance(each, ast.Name) and each.id in NAMED), "")
            names = [key.value for key in node.value.keys if isinstance(key, ast.Constant)] if kind else []
            for name in names:
                if names.count(name) > 1:
                    raise UserError(f"plugin '{path}': {kind} names {shown(name)} twice; rename one of them")


def refuse_taken(name: str, kind: str, others: Iterable[str], path: Path) -> None:
    """Raise UserError where a name is that of another score, network or source."""
    for known in (*BUILT_IN[kind], *others):
        if canonical(name) == canonical(known):
            raise UserError(f"plugin '{path}': there is a {MEANT[kind]} '{known}' already; rename '{name}'")


def has_own_scores(method: type[Contestant]) -> bool:
    return getattr_static(method, "scores") is not vars(Contestant)["scores"]


def title_of(value: Any, name: str) -> str:
    """Return the first line of what a score, network or source says of itself; its name if it says nothing."""
    described = value.given if isinstance(value, OwnSource) else value
    if not isinstance(described, (type, FunctionType, ModuleType)):
        described = type(described)
        if not described.__module__.startswith(PREFIX):  # functools.partial says nothing of what it calls
            return name
    text = described.__doc__
    return ((text or "").strip() or name).splitlines()[0]


def checked(found: object, where: str) -> type[Contestant]:
    """Return the class that a method's file ends with; raise an error if it lacks what the core asks for."""
    if not (isinstance(found, type) and issubclass(found, (Method, Derived, Recipe))):
        raise UserError(
            f"'{where}' must end with METHOD = YourClass, a subclass of benchmark.interface.Method (or Derived), or "
            "define SCORES, NETWORKS or SOURCES"
        )
    wanted = ["title", "reference", "labels", *(("of", "changes") if issubclass(found, Recipe) else ())]
    wanted += ["starts_from"] if issubclass(found, Method) and found.second_stage else []
    missing = [name for name in wanted if not getattr(found, name, None)]
    if missing:
        raise UserError(f"'{where}': class {found.__name__} lacks {', '.join(missing)}")
    labels_ok = isinstance(found.labels, Mapping) and all(isinstance(v, Mapping) for v in found.labels.values())
    if not labels_ok:
        raise UserError(f"'{where}': labels must map each name to its settings, e.g. {{'My method': {{}}}}")
    for label in found.labels:
        if not re.fullmatch(r"[\w +.()/-]+", label, re.ASCII) or label != label.strip():
            raise UserError(f"'{where}': label '{label}' may have plain letters, digits, blanks and + - . _ ( ) / only")
    if not is_dataclass(found.Config):
        raise UserError(f"'{where}': Config must be a dataclass: write @dataclass(frozen=True) above it")
    for declared, needed in needed_fields(found):
        if needed not in {field.name for field in fields(found.Config)}:
            raise UserError(f"'{where}': a method with {declared} needs a field {needed} in its Config")
    return found


def needed_fields(found: type[Contestant]) -> Iterator[tuple[str, str]]:
    """Yield what a class declares, with the field of its Config that the core then reads or sets."""
    if issubclass(found, Method) and found.warmup is not None:
        yield "a warm-up", "warmup_epochs"
    if issubclass(found, Method) and found.second_stage:
        yield from (("a second stage", name) for name in ("epochs", "lr", "images"))
    if issubclass(found, Method) and found.one_per_coverage is not None:
        yield "one training per coverage", found.one_per_coverage
