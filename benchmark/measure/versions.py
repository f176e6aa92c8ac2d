"""Which code made a measure: for each measure and each score, a hash of its formula and of all that this calls.

A record keeps these hashes. Where one differs from today's, the measure is made again from the stored prediction.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from benchmark.base.programs import hash_of
from benchmark.measure.catalogue import ADDED, OF_METHODS

FOLDER = Path(__file__).resolve().parent
MODULES = ("metrics", "scores", "catalogue", "evaluate")
"""In which formulas and what they call are defined."""
SAME_MEASURE: dict[str, str] = {}
"""Hashes of present formulas that compute the same bits as an earlier one, and the hash of that."""
Definitions = Mapping[str, list[ast.AST]]
"""By name; two modules may use one name."""


def measure_versions() -> dict[str, str]:
    """Return the hash of the code of each measure."""
    return table_versions("OF_CLASSIFIERS") | table_versions("OF_SCORES")


def score_version(name: str, method: str = "") -> str:
    """Return the hash of the code of a score, for runs of this method; empty where it is in a file not loaded."""
    if name in ADDED:
        return ADDED[name].version
    built_in = table_versions("POST_HOC") | table_versions("OWN")
    if name in built_in:
        return built_in[name]
    return OF_METHODS[method][1] if method in OF_METHODS else ""


@lru_cache
def table_versions(table: str) -> dict[str, str]:
    """Return the hash of each entry of a table of formulas, with the definitions that it needs."""
    known = definitions()
    (entries,) = known[table]
    assert isinstance(entries, ast.Dict)
    found = {}
    for key, formula in zip(entries.keys, entries.values, strict=True):
        assert isinstance(key, ast.Constant)
        version = hash_of([formula, *(node for name in sorted(needed(formula, known)) for node in known[name])])
        found[str(key.value)] = SAME_MEASURE.get(version, version)
    return found


@lru_cache(maxsize=1)
def definitions() -> Definitions:
    """Return what the modules define, by name: functions, constants, and the functions of classes."""
    found: dict[str, list[ast.AST]] = {}
    for module in MODULES:
        for statement in ast.parse((FOLDER / f"{module}.py").read_bytes()).body:
            for name, node in defined(statement):
                found.setdefault(name, []).append(node)
    return found


def defined(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what a statement defines."""
    if isinstance(node, ast.FunctionDef):
        yield node.name, node
    elif isinstance(node, ast.ClassDef):
        for part in node.body:
            yield from defined(part) if isinstance(part, ast.FunctionDef) else ()
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name):
                yield target.id, node.value


def needed(formula: ast.AST, known: Definitions) -> set[str]:
    """Return the names of all definitions that a formula uses, directly or through others."""
    found: set[str] = set()
    to_read = [formula]
    while to_read:
        for part in ast.walk(to_read.pop()):
            name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
            if name in known and name not in found:
                found.add(name)
                to_read += known[name]
    return found
