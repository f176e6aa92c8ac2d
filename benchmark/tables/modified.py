"""What runs were made with that the file of their task does not say. A table shows it, or it hides what made it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from benchmark.cells import Table
from benchmark.columns import Column, load_columns, single, some
from benchmark.recipe import recipe_differences, recipe_of
from benchmark.sheet import Sheet
from benchmark.store import Store
from benchmark.tables import complete
from benchmark.tasks import load_task, task_names

Shown = TypeVar("Shown", bound=Table | Sheet)


def open_table(manifest: dict[str, Any], store: Store) -> tuple[dict[str, Any], list[Column]]:
    """The columns of a manifest, and the manifest with every setting and with what was modified."""
    manifest = complete(manifest)
    columns = load_columns(manifest, store)
    text = modified_text(manifest, columns)
    title = f"{manifest['title']} (modified)" if text else manifest["title"]
    return {**manifest, "title": title, "modified": text}, columns


def modified_text(manifest: dict[str, Any], columns: Sequence[Column]) -> str:
    """A sentence with the values of both, or nothing. What holds of some columns only names them."""
    begun = [column for column in single(columns) if column.records or column.diverged]
    trained = [column for column in begun if column.published and not column.is_oracle]
    said = manifest.get("standard") or shipped_recipe(manifest["task"])
    found: dict[str, list[str]] = {}
    for column in trained:
        for line in dict.fromkeys(recipe_lines(said, manifest, column)):
            found.setdefault(line, []).append(column.name)
    shared = [line for line, names in found.items() if len(names) == len(trained)]
    apart = [f"{some(names)}: {line}" for line, names in found.items() if len(names) < len(trained)]
    own = [f"{column.name}: {line}" for column in trained for line in map(both, column.modified.items())]
    return f"Modified: {'; '.join([*shared, *apart, *own])}." if found or own else ""


def recipe_lines(said: dict[str, Any], manifest: dict[str, Any], column: Column) -> Iterator[str]:
    for record in (*column.records, *column.diverged) if said else ():
        used = record.get("identity", {})
        yield from map(both, recipe_differences(said | left_to_the_device(manifest, used), used).items())


def both(change: tuple[str, Sequence[Any]]) -> str:
    name, (old, new) = change
    return f"{name} = {plain(new)} (task file: {plain(old)})"


def shipped_recipe(task: str) -> dict[str, Any]:
    """For manifests from before they kept what the file says."""
    return recipe_of(load_task(task)) if task in task_names() else {}


def left_to_the_device(manifest: dict[str, Any], used: dict[str, Any]) -> dict[str, Any]:
    """What no file says, and older manifests do not tell from what a user asked for."""
    return {} if "standard" in manifest else {"channels_last": used.get("channels_last", False)}


def plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(plain, value))}]"
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def noted(shown: Sequence[Shown], manifest: dict[str, Any]) -> list[Shown]:
    """Tables and sheets that tell what was modified."""
    text = manifest["modified"]
    return [replace(each, notes=(*each.notes, text), modified=text) for each in shown] if text else list(shown)
