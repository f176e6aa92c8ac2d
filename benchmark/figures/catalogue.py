"""List all figures and write them. A figure that cannot be drawn says why, and the others are still drawn."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from benchmark.figures import bound, cost, effects, gain, ranks, risk_coverage, sensitivity, tsne
from benchmark.figures.runs import Runs, load_runs
from benchmark.figures.sets import abstention, groups, severity, shift
from benchmark.figures.style import NotDrawn, house_style, save
from benchmark.figures.thresholds import expected_cost
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store

OF_A_TASK: dict[str, Callable[[Runs], Figure]] = {
    "risk-coverage": risk_coverage.draw,
    "ranks": ranks.draw,
    "cost": cost.draw,
    "expected-cost": expected_cost.draw,
    "gain": gain.draw,
    "effects": effects.draw,
    "tsne": tsne.draw,
    "bound": bound.draw,
}
OF_A_SET: dict[str, Callable[[Runs], Figure]] = {
    "severity": severity.draw,
    "abstention": abstention.draw,
    "shift": shift.draw,
    "groups": groups.draw,
}
"""Of an evaluation set, in addition."""


@dataclass(frozen=True)
class Drawn:
    """The files of a figure, and the caption of a plain one, which does not stand below it; or why there is none."""

    name: str
    paths: tuple[Path, ...] = ()
    caption: str = ""
    reason: str = ""

    def text(self) -> str:
        lines = [*map(str, self.paths), *filter(None, [self.caption])]
        return f"no {self.name}: {self.reason}" if self.reason else "\n".join(lines)


def write_task_figures(
    manifest: Manifest, store: Store, folder: Path | None = None, *, plain: bool = False
) -> Iterator[Drawn]:
    """Write the figures of a task or of an evaluation set one by one, and yield what became of each."""
    runs = load_runs(manifest, store, plain=plain)
    kinds = OF_A_TASK | (OF_A_SET if manifest.set_of else {})
    return (write_figure(draw, runs, name, folder) for name, draw in kinds.items())


def write_published_figures(
    manifests: Sequence[Manifest], store: Store, folder: Path | None = None, *, plain: bool = False
) -> Iterator[Drawn]:
    """Write the figures of published tables that vary one setting, and yield what became of each."""
    for manifest in manifests:
        yield write_figure(sensitivity.draw, load_runs(manifest, store, plain=plain), "sensitivity", folder)


def write_figure(draw: Callable[[Runs], Figure], runs: Runs, figure_name: str, folder: Path | None = None) -> Drawn:
    """Write the files of a figure; return where they are, or why it cannot be drawn."""
    name = f"{runs.manifest.name}-{figure_name}"
    try:
        with house_style():
            figure = draw(runs)
            paths = save(figure, (folder or runs.store.root) / "figures", name)
    except NotDrawn as reason:
        return Drawn(name, reason=str(reason))
    return Drawn(name, tuple(paths), str(figure.get_label()))
