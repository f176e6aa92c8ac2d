"""Which code made a measure: for each measure and each score, a hash of its formula and of all that this calls.

A record keeps these hashes. Where one differs from today's, the measure is made again from the stored prediction.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from benchmark.base.programs import hash_of
from benchmark.measure.catalogue import ADDED, OF_METHODS

FOLDER = Path(__file__).resolve().parent
MODULES = ("metrics", "scores", "catalogue", "evaluate")
"""In which formulas and what they call are defined."""
SAME_MEASURE: dict[str, str] = {}
"""Hashes of present formulas that compute the same bits as an earlier one, and the hash of that."""


@dataclass(frozen=True)
class MadeBy:
    """Hashes of the code that made the measures of a record, by measure and by score."""

    measures: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, str] = field(default_factory=dict)


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
    found = {}
    for key, formula in entries_of(entries):
        version = hash_of([formula, *(node for name in sorted(needed(formula, known)) for node in known[name])])
        found[key] = SAME_MEASURE.get(version, version)
    return found


def entries_of(table: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the keys and the formulas of a table."""
    if isinstance(table, ast.Dict):
        for key, formula in zip(table.keys, table.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), formula


@lru_cache(maxsize=1)
def definitions() -> Definitions:
    """Return what the modules define, by name: functions, constants, and the functions of what formulas are given."""
    found: dict[str, list[ast.AST]] = {}
    for module in MODULES:
        for statement in ast.parse((FOLDER / f"{module}.py").read_bytes()).body:
            parts = statement.body if isinstance(statement, ast.ClassDef) and module == "evaluate" else [statement]
            for part in parts:
                for name, node in defined(part):
                    found.setdefault(name, []).append(node)
    return found


def defined(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what a statement defines."""
    if isinstance(node, ast.FunctionDef):
        yield node.name, node
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


OF_VERSION_1 = MadeBy(
    {
        "accuracy": "82c99c5f8a15",
        "nll": "ed4fa78e128e",
        "brier": "b3702a542cee",
        "ece": "5529a073917f",
        "risk": "523fc8865b55",
        "aurc": "9ba165d89b3c",
        "e_aurc": "2a74120ac35d",
        "augrc": "011078edf386",
        "auroc": "073d18664e9c",
        "top_ties": "ce13ec6f9b3b",
        "expected_risk": "ee8678eb371b",
        "expected_aurc": "114f2804411d",
        "percentile_risk": "f047b0fcf914",
        "percentile_coverage": "f3991064ee82",
        "class_coverage": "f73956bdd2fe",
    },
    {
        "SR": "67ec1b0fe3cd",
        "margin": "d8a16b2193c6",
        "entropy": "0637c9b1fd8e",
        "max logit": "b841dd87b1e9",
        "energy": "2f81459e1110",
        "DOCTOR": "973e7c2e0c39",
        "pNorm": "cb7ebeced45b",
        "kNN": "2e69c05f7720",
        "Mahalanobis": "7b0b940d3375",
        "abstention": "2552ed67dc33",
        "selection": "feabc1e022f2",
        "variance": "2b2e62d5d916",
        "mutual information": "a7e042056ceb",
    },
)
"""The hashes at the end of version 1 of records, which did not keep them."""
