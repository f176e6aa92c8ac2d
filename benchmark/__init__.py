"""A benchmark suite for selective classification. From Python: `import benchmark as sb` (see docs/python.md).

Every name is imported when it is first used: `import benchmark` alone brings in neither torch nor numpy.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmark.base.errors import JobsFailed as JobsFailed
    from benchmark.base.errors import UserError as UserError
    from benchmark.library import costs as costs
    from benchmark.library import metrics as metrics
    from benchmark.library import scores as scores
    from benchmark.library.certify import certify as certify
    from benchmark.library.compare import compare as compare
    from benchmark.library.evaluate import evaluate as evaluate
    from benchmark.library.names import methods as methods
    from benchmark.library.names import tasks as tasks
    from benchmark.library.results import load_results as load_results
    from benchmark.library.run import run as run
    from benchmark.library.score import score as score
    from benchmark.selector.selector import Selector as Selector

__version__ = "0.2.0"
"""The only place: the package is built with it, and a test compares what else names it."""
MODULES = ("costs", "metrics", "scores")
FUNCTIONS = {
    "JobsFailed": "benchmark.base.errors",
    "Selector": "benchmark.selector.selector",
    "UserError": "benchmark.base.errors",
    "certify": "benchmark.library.certify",
    "compare": "benchmark.library.compare",
    "evaluate": "benchmark.library.evaluate",
    "load_results": "benchmark.library.results",
    "methods": "benchmark.library.names",
    "run": "benchmark.library.run",
    "score": "benchmark.library.score",
    "tasks": "benchmark.library.names",
}
"""By public name, the module that has it."""
__all__ = sorted([*FUNCTIONS, *MODULES])


def __getattr__(name: str) -> Any:
    """Return what a public name means, and import it now."""
    if name in MODULES:
        return importlib.import_module(f"benchmark.library.{name}")
    if name in FUNCTIONS:
        return getattr(importlib.import_module(FUNCTIONS[name]), name)
    raise AttributeError(f"module 'benchmark' has no attribute '{name}'; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
