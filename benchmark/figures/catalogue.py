"""List all figures and write them. A figure that cannot be drawn says why, and the others are still drawn."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmark.figures import bound, cost, gain, ranks, risk_coverage, sensitivity, tsne
from benchmark.figures.runs import Runs, load_runs
from benchmark.figures.style import NotDrawn, house_style, save
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store

OF_A_TASK: dict[str, Callable[[Runs], Figure]] = {
    "risk-coverage": risk_coverage.draw,
    "ranks": ranks.draw,
    "cost": cost.draw,
    "gain": gain.draw,
    "tsne": tsne.draw,
    "bound": bound.draw,
}


def write_task_figures(
    manifest: Manifest, store: Store, folder: Path | None = None, *, plain: bool = False
) -> list[Path]:
    runs = load_runs(manifest, store, plain=plain)
    return [path for name, draw in OF_A_TASK.items() for path in write_figure(draw, runs, name, folder)]


def write_published_figures(
    manifests: Sequence[Manifest], store: Store, folder: Path | None = None, *, plain: bool = False
) -> list[Path]:
    """Write the figures of published tables that vary one setting; return their paths."""
    return [
        path
        for manifest in manifests
        for path in write_figure(sensitivity.draw, load_runs(manifest, store, plain=plain), "sensitivity", folder)
    ]


def write_figure(
    draw: Callable[[Runs], Figure], runs: Runs, figure_name: str, folder: Path | None = None
) -> list[Path]:
    """Write the files of a figure and print their paths, or print why it cannot be drawn.

    The caption of a plain figure, which does not stand below it, is printed too.
    """
    name = f"{runs.manifest.name}-{figure_name}"
    try:
        with house_style():
            figure = draw(runs)
            paths = save(figure, (folder or runs.store.root) / "figures", name)
    except NotDrawn as reason:
        print(f"no {name}: {reason}")
        return []
    print(*paths, *filter(None, [figure.get_label()]), sep="\n", flush=True)
    return paths
