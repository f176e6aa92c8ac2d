"""Hash the code of each measure and of each score: its formula, and all that this calls.

A record keeps these hashes. Where one differs from today's, the measure is made again from the stored prediction.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from benchmark.base.source_code import hash_of
from benchmark.measure.catalogue import ADDED

FOLDER = Path(__file__).resolve().parent
MODULES = ("metrics", "scores", "fitted", "catalogue", "evaluate")
"""In which formulas and what they call are defined."""
SAME_MEASURE: dict[str, str] = {
    "abae3a66770b": "c067dc8094e8",
    "eb5b1b3df6cd": "3c5d0cfc4c89",
    "045edc3f81a5": "281bf3c00111",
    "46c7498428b2": "7b32f65ced2d",
    "60ce138412b4": "078b25ef011c",
    "55f532f5d34a": "2e601d483529",
    "f4a718b10f9c": "e084a3e9f4a2",
    "377ccd6b3e5c": "8c5b882f5108",
    "1556253a966d": "a878c6fb30b6",
    "a41e9ac7d8e2": "11aada4bc381",
    "3e1eab415286": "4f281b6eb224",
    "98e3248c29d0": "0a85a7f975f2",
    "5b54ae33a598": "0e64e651d963",
    "addaa3509c61": "985affc68d4b",
    "41e1d98966ea": "9dc2987a9ebe",
    "519b121e28e5": "cf75d377b773",
    "f2ada75f5eed": "caa452977b2c",
    "1b0cd47a1f10": "24c6af7ef442",
    "d9c6f02394ba": "dd87832381ee",
    "1c09ccba8096": "81f215043bb8",
    "8c8b3a38ef38": "3a91518a3c5f",
    "5ea5d9fab04c": "394085fd938a",
    "245d94d5ed0a": "8aaf06eb5024",
    "11284b4907f2": "4b38cf8c2b65",
    "3478b581a4c1": "1fdd062f6773",
    "1286554078b6": "fd01d47cf1a2",
    "90d21abc22e6": "3d6c251eb9f7",
    "b5da2097f702": "a35d1262ad06",
    "6b0ff9f0fe8c": "c21a13de8dc3",
    "50de66ffefbb": "284dc472b88b",
    "fbf89b689e5e": "fd67500a5344",
}
"""Hashes of present formulas that compute the same bits as an earlier one, and the hash of that."""


@dataclass(frozen=True)
class MadeBy:
    """Hashes of the code that made the measures of a record, by measure and by score."""

    measures: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, str] = field(default_factory=dict)


TABLES = ("OF_CLASSIFIERS", "OF_SCORES", "POST_HOC", "OWN")
SHARED = {
    "OF_CLASSIFIERS": {"measure_classifier"},
    "OF_SCORES": {"measure_scores", "measure_ranking", "measure_oracle"},
}
"""By table of formulas: the functions that give all of them their input."""
Definitions = Mapping[str, list[ast.AST]]
"""By name; two modules may use one name."""


def measure_versions() -> dict[str, str]:
    """Return the hash of the code of each measure."""
    return table_versions("OF_CLASSIFIERS") | table_versions("OF_SCORES")


def score_version(name: str) -> str:
    """Return the hash of the code of a score; empty where it is in a file that is not loaded."""
    if name in ADDED:
        return ADDED[name].version
    return (table_versions("POST_HOC") | table_versions("OWN")).get(name, "")


@lru_cache
def table_versions(table: str) -> dict[str, str]:
    """Return the hash of each entry of a table of formulas, with the definitions that it needs."""
    known = definitions()
    (entries,) = known[table]
    found = {}
    for key, formula in entries_of(entries):
        names = needed(formula, known, SHARED.get(table, set()))
        version = hash_of([formula, *(node for name in sorted(names) for node in known[name])])
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
        for statement in WithoutTypes().visit(ast.parse((FOLDER / f"{module}.py").read_bytes())).body:
            parts = statement.body if isinstance(statement, ast.ClassDef) and module == "evaluate" else [statement]
            for part in parts:
                for name, node in defined(part):
                    found.setdefault(name, []).append(node)
    return found


class WithoutTypes(ast.NodeTransformer):
    """Drops the types of arguments and results, which say nothing about what is computed."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


def defined(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what a statement defines."""
    if isinstance(node, ast.FunctionDef):
        yield node.name, node
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name):
                yield target.id, node.value


def needed(formula: ast.AST, known: Definitions, shared: set[str]) -> set[str]:
    """Return the names of all definitions that a formula uses, directly or through others; tables are none."""
    found = set(shared)
    to_read = [formula, *(node for name in shared for node in known[name])]
    while to_read:
        for part in ast.walk(to_read.pop()):
            name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
            if name in known and name not in found and name not in TABLES:
                found.add(name)
                to_read += known[name]
    return found


OF_VERSION_1 = MadeBy(
    {
        "accuracy": "c067dc8094e8",
        "nll": "3c5d0cfc4c89",
        "brier": "281bf3c00111",
        "ece": "7b32f65ced2d",
        "risk": "2e601d483529",
        "aurc": "e084a3e9f4a2",
        "e_aurc": "8c5b882f5108",
        "augrc": "a878c6fb30b6",
        "auroc": "11aada4bc381",
        "top_ties": "e89d0c646b34",
        "expected_risk": "4f281b6eb224",
        "expected_aurc": "0a85a7f975f2",
        "percentile_risk": "0e64e651d963",
        "percentile_coverage": "985affc68d4b",
        "class_coverage": "9dc2987a9ebe",
    },
    {
        "SR": "cf75d377b773",
        "margin": "caa452977b2c",
        "entropy": "24c6af7ef442",
        "max logit": "dd87832381ee",
        "energy": "81f215043bb8",
        "DOCTOR": "3a91518a3c5f",
        "pNorm": "1fdd062f6773",
        "kNN": "394085fd938a",
        "Mahalanobis": "fd01d47cf1a2",
        "abstention": "8aaf06eb5024",
        "selection": "40195fc743f1",
        "variance": "4d21a55025f2",
        "mutual information": "18b0fc85d169",
    },
)
"""The hashes at the end of version 1 of records, which did not keep them."""
