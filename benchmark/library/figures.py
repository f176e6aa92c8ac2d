"""Draw the figures of a results folder from its records, as PNG and PDF. Needs no torch."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmark.base.errors import UserError
from benchmark.base.names import select_names
from benchmark.library.options import FiguresOptions
from benchmark.library.registry import load_plugins
from benchmark.library.selection import select
from benchmark.library.settings import asked_settings, no_results
from benchmark.store.manifest import Manifest
from benchmark.store.mirror import mirrored
from benchmark.store.store import Store
from benchmark.store.version_control import left_alone, place_to_write

if TYPE_CHECKING:
    from benchmark.figures.catalogue import Drawn

SENSITIVITY = ("q", "s", "w", "e_s")
"""Published tables that vary one setting, also on the small sibling of their task."""


def draw_figures(options: FiguresOptions) -> "Iterator[Drawn]":
    """Draw figures one by one, and yield what became of each. Whatever is wrong is said before the first."""
    load_plugins(options.plugin)
    asked = asked_settings(options)
    with mirrored(options.results) as here:
        store = Store(here.folder)
        manifests = {manifest.task: manifest for manifest in store.manifests()}
        published = store.paper_manifests()
        if not manifests and not published:
            raise no_results(store.root)
        tasks: list[str] = []
        if manifests or options.datasets:
            tasks = select_names(options.datasets, [*manifests], "task in this results folder:")
        wanted = (options.methods, None, options.reference, published, options.ingredients)
        chosen = [select(manifests[name], *wanted) for name in tasks]
        if not chosen and not any(map(varies_a_setting, published)):
            raise UserError(f"no task and no sensitivity table in '{store.root}', so nothing to draw")
        place = place_to_write(store.root, options.out)
        if place is None:
            raise UserError(left_alone(store.root))
        # Only now, so that errors need not wait for matplotlib.
        from benchmark.figures.catalogue import write_published_figures, write_task_figures

        for manifest in chosen:
            yield from write_task_figures(asked.applied_to(manifest), store, place, plain=options.plain)
        if not (options.datasets or options.methods or options.ingredients or options.reference or options.scores):
            varying = [*filter(varies_a_setting, published)]
            yield from write_published_figures(varying, store, place, plain=options.plain)


def varies_a_setting(manifest: Manifest) -> bool:
    return manifest.name.removesuffix("-cpu") in SENSITIVITY
