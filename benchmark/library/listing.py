"""List what can be named: methods, ingredients, tasks, evaluation sets, tables, scores, networks, sources of images."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark.base import added
from benchmark.base.added import Added
from benchmark.config.evaluation import KINDS, USAGE
from benchmark.config.ingredient_names import INGREDIENTS
from benchmark.data.sources import source_titles
from benchmark.library.names import methods, tasks
from benchmark.measure.catalogue import OWN, all_titles
from benchmark.paper.table_files import load_tables
from benchmark.train.networks import network_titles


def list_names(plugins: Sequence[Path] = ()) -> dict[str, list[dict[str, Any]]]:
    """Return what can be named, by kind; each as plain data."""
    return {
        "methods": [vars(method) | {"settings": method.settings_text} for method in methods(plugins).values()],
        "ingredients": [
            {"with": name, "label": f"+{each.title}", "factor": each.factor, "title": each.about}
            for name, each in INGREDIENTS.items()
        ],
        "tasks": [{"task": name, "title": task.title} for name, task in tasks().items()],
        "evaluation sets": [{"evaluate": kind, "as": USAGE[kind], "title": title} for kind, title in KINDS.items()],
        "published tables": [
            {"table": table.name, "task": table.task, "title": table.title} for table in load_tables(["all"])
        ],
        "scores": [
            {
                "score": name,
                "read from": "its own method" if name in OWN else "any method",
                **described(title, added.SCORES.get(name)),
            }
            for name, title in all_titles().items()
        ],
        "networks": [
            {"network": name, **described(title, added.NETWORKS.get(name))} for name, title in network_titles().items()
        ],
        "sources": [
            {"source": name, **described(title, added.SOURCES.get(name))} for name, title in source_titles().items()
        ],
    }


def described(title: str, own: Added[Any] | None) -> dict[str, Any]:
    """Return what is said of a score, network or source: its title, and the user's own file that it comes from."""
    return {"file": str(own.file) if own else "", "title": title}
