"""List what can be named: methods, tasks, published tables and scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark.config.load import load_task, task_names
from benchmark.library.registry import load_methods
from benchmark.measure.catalogue import POST_HOC
from benchmark.measure.scores import TITLES
from benchmark.paper.table_files import load_tables


def list_names(plugins: Sequence[Path] = ()) -> dict[str, list[dict[str, Any]]]:
    """Return what can be named, by kind; each as plain data."""
    methods = load_methods(plugins)
    found = [(label, name, methods.get(name)) for name in methods.names() for label in methods.get(name).labels]
    return {
        "methods": [
            {
                "label": label,
                "file": name,
                "settings": " ".join(f"{field}={value}" for field, value in method.labels[label].items()),
                "title": method.title,
                "reference": method.reference,
            }
            for label, name, method in found
        ],
        "tasks": [{"task": name, "title": load_task(name).title} for name in task_names()],
        "published tables": [
            {"table": table.name, "task": table.task, "title": table.title} for table in load_tables(["all"])
        ],
        "scores": [
            {"score": name, "read from": "any method" if name in POST_HOC else "its own method", "title": title}
            for name, title in TITLES.items()
        ],
    }
