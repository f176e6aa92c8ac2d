"""Show which classes are rejected: the share of each class that is not kept, at a few coverages."""

from collections.abc import Sequence

import numpy as np

from benchmark.report.markup import Markup, data_block, plain_table, tag
from benchmark.store.manifest import Manifest
from benchmark.tables.columns import Column, split_by_coverage

MOST_CLASSES = 30
ENDS = 10
"""Where there are more classes, only this many of the most and of the least rejected ones are shown."""


def classes_section(manifest: Manifest, columns: Sequence[Column]) -> Markup:
    """Show the reference and the baseline beside each other."""
    shares = {column.name: parts for column in split_by_coverage(columns) if (parts := rejected_shares(column))}
    if not shares:
        return tag("p", "The records do not say what is kept of each class.", class_="note")
    rows = {name: shown_rows(parts) for name, parts in shares.items()}
    wanted = [manifest.reference, manifest.baseline]
    shown = list(dict.fromkeys(name for name in wanted if name in rows)) or list(rows)[:1]
    coverages = list(shares[shown[0]])
    panels = (panel(name, rows, coverages) for name in shown)
    note = tag("p", tag("strong", "Rejected by class"), f": {caption(shares[shown[0]])}", class_="caption")
    return tag("div", note, tag("div", panels, class_="panels"), data_block({"classes": rows}), class_="classes")


def rejected_shares(column: Column) -> dict[str, list[float | None]]:
    """Return per cent by coverage and class, as mean over the seeds that have it; None for a class without images."""
    kept = [] if column.is_oracle else [r.score(column.score).class_coverage for r in column.records]
    by_seed = [shares for shares in kept if shares]
    if not by_seed:
        return {}
    common = [key for key in by_seed[0] if all(key in shares for shares in by_seed)]
    means = {key: np.mean(np.array([shares[key] for shares in by_seed], dtype=np.float64), axis=0) for key in common}
    return {
        key: [None if np.isnan(share) else round(100 * (1 - share), 1) + 0.0 for share in mean.tolist()]
        for key, mean in means.items()
    }


def caption(shares: dict[str, list[float | None]]) -> str:
    text = (
        "share of each class that is not kept (%), by coverage, mean over seeds. Without regard to class it would be "
    )
    text += f"{', '.join(f'{100 - float(coverage):g}' for coverage in shares)}."
    left_out = len(complete_rows(shares)) - len(shown_rows(shares))
    if left_out:
        text += f" The {ENDS} most and the {ENDS} least rejected classes of each; {left_out} between them are left out."
    return text


def complete_rows(shares: dict[str, list[float | None]]) -> list[list[float]]:
    """Return [class, share at each coverage] for the classes with test images."""
    rows = [[index, *values] for index, values in enumerate(zip(*shares.values(), strict=True))]
    return [[float(value) for value in row if value is not None] for row in rows if None not in row]


def shown_rows(shares: dict[str, list[float | None]]) -> list[list[float]]:
    """Return the rows of all classes, or of the most and the least rejected ones."""
    rows = complete_rows(shares)
    if len(rows) <= MOST_CLASSES:
        return rows
    ordered = sorted(rows, key=lambda row: (-sum(row[1:]), row[0]))
    return [*ordered[:ENDS], *ordered[-ENDS:]]


def panel(name: str, rows: dict[str, list[list[float]]], coverages: Sequence[str]) -> Markup:
    """Show the bars of one column; the page's script lets the reader choose another."""
    options = (tag("option", other, selected=other == name) for other in rows)
    choice = tag("select", options, class_="needs-script", aria_label="Column to show")
    bars = ([f"{row[0]:g}", *map(bar, row[1:])] for row in rows[name])
    table = plain_table(["class", *coverages], bars, f"Rejected by class, {name}")
    return tag("div", tag("h4", name), choice, table, class_="panel")


def bar(share: float) -> Markup:
    return tag("span", f"{share:.1f}", class_="bar", style=f"--share:{share / 100:.3g}")
