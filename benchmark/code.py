"""Which code made a result: hashes of what programs do, whatever their comments and layout."""

import ast
import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

CORE = Path(__file__).resolve().parent
DECIDING = (
    "augment", "crops", "data", "derive", "evaluate", "interface", "metrics", "networks", "outputs", "pixels", "rng",
    "scores", "trainer", "transfer",
)  # fmt: skip
"""The modules of the core that a result can depend on."""


def code_hash(sources: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for source in sources:
        digest.update(essence(source).encode())
    return digest.hexdigest()[:12]


@lru_cache(maxsize=1)
def core_hash() -> str:
    return code_hash((CORE / f"{name}.py").read_bytes() for name in DECIDING)


def essence(source: bytes) -> str:
    """A program without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = [part for part in node.body if not is_text(part)] or [ast.Pass()]
    return ast.unparse(tree)


def is_text(part: ast.stmt) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)


def combined(hashes: Iterable[str]) -> str:
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:12]
