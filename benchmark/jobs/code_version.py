"""Which code made a result: hashes of what programs do, whatever their comments and layout."""

import ast
import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from benchmark.base.source_code import hash_of
from benchmark.jobs.same_code import SAME_CODE

CORE = Path(__file__).resolve().parents[1]
DECIDING = ("data", "train", "train/steps", "train/outcome", "train/pretrained")
"""The packages whose code a prediction can depend on, beyond what its job's id and the hash of its data say."""
DECIDING_FILES = ("interface.py", "jobs/plan.py", "jobs/members.py", "config/ingredients.py")
INDIFFERENT = {
    "data": {"cache", "cache_build", "cache_chunks", "devices"},
    "train": {"accounting", "bound", "preflight", "provenance", "pulse"},
    "train/pretrained": {"features", "feature_files", "hub"},
}
"""Their modules that cannot change a result: the hash of the data covers it, or it only tests, watches or describes."""
OWN = ("benchmark", "methods")


def deciding_files() -> list[Path]:
    """Return the files of the core that decide results: contract, plan, constants, most of some packages."""
    found = [CORE / name for name in DECIDING_FILES]
    for package in DECIDING:
        found += [path for path in (CORE / package).glob("*.py") if path.stem not in INDIFFERENT.get(package, ())]
    return sorted(found)


@lru_cache(maxsize=1)
def core_hash() -> str:
    return suite_hash(path.read_bytes() for path in deciding_files())


def suite_hash(sources: Iterable[bytes]) -> str:
    """Return the hash of what some files of the suite do, wherever the modules lie that they import from it.

    Code that is known to compute the same bits as earlier code goes by the hash of that.
    """
    found = hash_of(WithoutOwnImports().visit(ast.parse(source)) for source in sources)
    return SAME_CODE.get(found, found)


class WithoutOwnImports(ast.NodeTransformer):
    """Drops the imports of this suite's own modules: they say where code lies, and not what it does."""

    def visit_Import(self, node: ast.Import) -> ast.Import | None:
        return None if any(alias.name.partition(".")[0] in OWN for alias in node.names) else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        return None if node.level or (node.module or "").partition(".")[0] in OWN else node


def combined(hashes: Iterable[str]) -> str:
    """Return one hash for several, in their order."""
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:12]
