"""Hash what programs do, whatever their comments and layout."""

import ast
import hashlib
from collections.abc import Iterable
from typing import Any


def code_hash(sources: Iterable[bytes]) -> str:
    """Return the hash of what some programs do, their imports included: where those lie is up to their authors."""
    return hash_of(map(ast.parse, sources))


def hash_of(programs: Iterable[ast.AST]) -> str:
    return hashlib.sha256("".join(map(described, programs)).encode()).hexdigest()[:12]


def essence(source: bytes) -> str:
    """Return a program without comments, docstrings and layout, the same in all versions of Python."""
    return described(ast.parse(source))


def described(node: Any) -> str:
    """Return a node of a program, or a list of them, as text."""
    if isinstance(node, list):
        return f"[{' '.join(described(part) for part in node if not is_text(part))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.JoinedStr):  # where some versions of Python add empty texts
        node.values = [part for part in node.values if not (isinstance(part, ast.Constant) and part.value == "")]
    fields = ((name, value) for name, value in ast.iter_fields(node) if value is not None and value != [])
    return f"({type(node).__name__} {' '.join(f'{name}={described(value)}' for name, value in fields)})"


def is_text(part: Any) -> bool:
    """Tell whether a statement is a docstring, or another string that stands for itself."""
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)
