"""Make published tables with our own numbers beside the published ones. A run that several need is one job."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmark.base.units import counted
from benchmark.forecast.dry_run import Plan
from benchmark.launch.suites import paper_grids
from benchmark.library.options import PaperOptions, PlanningOptions
from benchmark.library.registry import load_methods
from benchmark.library.settings import asked_settings
from benchmark.library.tables import Tables, write_results
from benchmark.library.training import Request, Trained, plan, suite_maker, train
from benchmark.paper.settings_tables import settings_sheets
from benchmark.paper.table_files import load_tables
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables import render


def train_paper(options: PaperOptions) -> Trained:
    """Train what published tables lack, and write them. Raise JobsFailed where some jobs have no result."""
    return train(options, request_paper)


def plan_paper(options: PaperOptions, ahead: PlanningOptions) -> Plan:
    """Return the plan of some published tables. Nothing is trained."""
    return plan(options, request_paper, ahead)


def settings_text(scale: str = "paper") -> str:
    """Return the settings tables of the configs as Markdown."""
    return render.markdown(settings_sheets(load_methods(), scale))


def request_paper(options: PaperOptions, store: Store, ahead: PlanningOptions | None) -> Request:
    """Return the suites of published tables, and how their manifests and files are written."""
    methods = load_methods()
    maker = suite_maker(options, methods, range(options.seeds or 0), ahead)
    grids = paper_grids(load_tables(options.tables), options.scale, maker)
    asked = asked_settings(options)
    manifests = [asked.applied_to(manifest) for grid in grids for manifest in grid.manifests]

    def remark(paths: Sequence[Path], report: str) -> str:
        return f"{counted(len(paths), 'file')} in {store.root / 'paper'}/\n{report}"

    def finish() -> Tables:
        return write_results("paper", manifests, store, remark)

    return Request([grid.suite for grid in grids], methods, manifests_noted(manifests, store), finish)


@contextmanager
def manifests_noted(manifests: Sequence[Manifest], store: Store) -> Iterator[None]:
    """Write manifests before the training begins."""
    for manifest in manifests:
        store.write_manifest(manifest, "paper")
    yield
