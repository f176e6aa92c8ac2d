"""Which code made a result: hashes of what programs do, whatever their comments and layout."""

import ast
import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

CORE = Path(__file__).resolve().parent
DECIDING = (
    "augment", "bound", "checkpoints", "crops", "data", "derive", "determinism", "evaluate", "interface", "metrics",
    "networks", "outputs", "pixels", "planner", "prediction", "preprocessing", "ranks", "rng",
    "runner", "scores", "trainer", "transfer",
)  # fmt: skip
"""The modules of the core that a result can depend on beyond what its job's id and data say."""


def code_hash(sources: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for source in sources:
        digest.update(essence(source).encode())
    return digest.hexdigest()[:12]


@lru_cache(maxsize=1)
def core_hash() -> str:
    return code_hash((CORE / f"{name}.py").read_bytes() for name in DECIDING)


def essence(source: bytes) -> str:
    """A program without comments, docstrings and layout, the same in all versions of Python."""
    return described(ast.parse(source))


def described(node: Any) -> str:
    if isinstance(node, list):
        return f"[{' '.join(described(part) for part in node if not is_text(part))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.JoinedStr):  # where some versions of Python add empty texts
        node.values = [part for part in node.values if not (isinstance(part, ast.Constant) and part.value == "")]
    fields = ((name, value) for name, value in ast.iter_fields(node) if value is not None and value != [])
    return f"({type(node).__name__} {' '.join(f'{name}={described(value)}' for name, value in fields)})"


def is_text(part: Any) -> bool:
    """A docstring, or another string that stands for itself."""
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)


def combined(hashes: Iterable[str]) -> str:
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:12]
