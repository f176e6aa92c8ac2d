"""Whose images are rejected: the share of each class that is not kept, at a few coverages."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmark.columns import Column, single
from benchmark.report.markup import Markup, data_block, plain_table, tag

MOST_CLASSES = 30
ENDS = 10
"""Of more classes, so many of the most and of the least rejected are shown."""


def classes_section(manifest: dict[str, Any], columns: Sequence[Column]) -> Markup:
    """Reference and baseline beside each other."""
    shares = {column.name: found for column in single(columns) if (found := rejected(column))}
    if not shares:
        return tag("p", "The records do not say what is kept of each class.", class_="note")
    kept = {name: chosen(found) for name, found in shares.items()}
    wanted = [manifest["reference"], manifest.get("baseline")]
    shown = list(dict.fromkeys(name for name in wanted if name in kept)) or list(kept)[:1]
    coverages = list(shares[shown[0]])
    panels = (panel(name, kept, coverages) for name in shown)
    note = tag("p", tag("strong", "Rejected by class"), f": {caption(shares[shown[0]])}", class_="caption")
    return tag("div", note, tag("div", panels, class_="panels"), data_block({"classes": kept}), class_="classes")


def rejected(column: Column) -> dict[str, list[float | None]]:
    """Per cent by coverage and class, averaged over the seeds that have it; None for a class without test images."""
    kept = [] if column.is_oracle else [r["scores"][column.score].get("class_coverage") for r in column.records]
    found = [shares for shares in kept if shares]
    if not found:
        return {}
    common = [key for key in found[0] if all(key in shares for shares in found)]
    means = {key: np.mean(np.array([shares[key] for shares in found], dtype=np.float64), axis=0) for key in common}
    return {
        key: [None if np.isnan(share) else round(100 * (1 - share), 1) + 0.0 for share in mean.tolist()]
        for key, mean in means.items()
    }


def caption(shares: dict[str, list[float | None]]) -> str:
    text = (
        "share of each class that is not kept (%), by coverage, mean over seeds. Without regard to class it would be "
    )
    text += f"{', '.join(f'{100 - float(coverage):g}' for coverage in shares)}."
    left_out = len(whole_rows(shares)) - len(chosen(shares))
    if left_out:
        text += f" The {ENDS} most and the {ENDS} least rejected classes of each; {left_out} between them are left out."
    return text


def whole_rows(shares: dict[str, list[float | None]]) -> list[list[float]]:
    """[class, share at each coverage] of the classes with test images."""
    rows = [[index, *values] for index, values in enumerate(zip(*shares.values(), strict=True))]
    return [[float(value) for value in row if value is not None] for row in rows if None not in row]


def chosen(shares: dict[str, list[float | None]]) -> list[list[float]]:
    """All classes, or both ends of their order by mean share."""
    rows = whole_rows(shares)
    if len(rows) <= MOST_CLASSES:
        return rows
    ordered = sorted(rows, key=lambda row: (-sum(row[1:]), row[0]))
    return [*ordered[:ENDS], *ordered[-ENDS:]]


def panel(name: str, kept: dict[str, list[list[float]]], coverages: Sequence[str]) -> Markup:
    """One column's bars; with the script another column can be chosen."""
    options = (tag("option", other, selected=other == name) for other in kept)
    choice = tag("select", options, class_="needs-script", aria_label="Column to show")
    rows = ([f"{row[0]:g}", *map(bar, row[1:])] for row in kept[name])
    table = plain_table(["class", *coverages], rows, f"Rejected by class, {name}")
    return tag("div", tag("h4", name), choice, table, class_="panel")


def bar(share: float) -> Markup:
    return tag("span", f"{share:.1f}", class_="bar", style=f"--share:{share / 100:.3g}")
