"""Explain a cell of a table: its seeds, values, jobs and commit, and the test behind its marker."""

from dataclasses import replace
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.base.names import canonical, match_name
from benchmark.library.options import ExplainOptions, read_coverage
from benchmark.library.registry import load_plugins
from benchmark.library.settings import asked_settings, no_results
from benchmark.measure.labels import labels_named
from benchmark.store.manifest import Manifest, with_every_run
from benchmark.store.mirror import pulled
from benchmark.store.store import Store
from benchmark.tables.build import pick_reference
from benchmark.tables.explain import explain


def explain_cell(options: ExplainOptions) -> str:
    """Return where a cell of a table comes from, in words."""
    load_plugins(options.plugin)
    store = Store(pulled(options.results))
    manifests = {manifest.name: manifest for manifest in store.manifests()}
    manifests |= {f"paper/{manifest.name}": manifest for manifest in store.paper_manifests()}
    if not manifests:
        raise no_results(store.root)
    stem = options.task if options.task.startswith("paper/") else Path(options.task).stem
    named = manifests[match_name(stem, manifests, "task in this results folder:")]
    manifest = asked_settings(options).applied_to(named)
    if not labels_named(canonical(options.method), manifest.owners) and not manifest.columns:
        manifest = with_every_run(manifest, store.paper_manifests())
    labels = [*manifest.owners, *manifest.columns]
    manifest = replace(manifest, reference=pick_reference(options.reference, manifest.reference, labels))
    return explain(manifest, options.method, read_row(options.row, manifest), store)


def read_row(text: str, manifest: Manifest) -> float | str:
    """Return a coverage in per cent; in an evaluation set, what is none is the name of a row."""
    try:
        return read_coverage(text)
    except ValueError as error:
        if manifest.set_of:
            return text
        raise UserError(f"ROW: {error}; rows have names in the tables of evaluation sets alone") from None
