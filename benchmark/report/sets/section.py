"""Put together what the page shows of the parts of an evaluation set. One legend hides lines in all plots."""

from collections.abc import Iterator, Sequence

from benchmark.report.curves import Curve
from benchmark.report.markup import Markup, tag
from benchmark.report.plot import FEW, legend_entry
from benchmark.report.sets.curves import curve_views
from benchmark.report.sets.groups import group_views
from benchmark.report.sets.panels import panel_views
from benchmark.store.manifest import Manifest
from benchmark.tables.columns import Column
from benchmark.tables.sets.panels import (
    kind_of,
    reason_for_no_thresholds,
    risk_panels,
    severities,
    threshold_panels,
    wanted_coverages,
    with_parts,
)

HEADINGS = {"corruptions": "By severity", "shift": "Under shift", "new": "New classes", "groups": "By group"}
"""Kinds of evaluation sets that have parts to show, and what the page calls these."""
THRESHOLDS = (
    "A threshold is set on clean validation images, so that it keeps the dotted share of them. Of shifted images it "
    "should keep less, and the less the more severe the shift is."
)
NEW = "A threshold is set on clean validation images. To keep an image of a new class is an error."
KEYS = "Point at a line, or focus a plot and use the arrow keys, for its values; a click on a name hides it."
KEYS_OF_GROUPS = "Point at a row for its values; a click on a name hides it."


def set_topics(manifest: Manifest, columns: Sequence[Column]) -> dict[str, Markup]:
    """Return what is shown of an evaluation set alone, by heading; nothing of any other task."""
    shown = with_parts(columns)
    heading = HEADINGS.get(kind_of(shown)) if manifest.set_of else None
    return {heading: set_section(manifest, shown)} if heading else {}


def set_section(manifest: Manifest, columns: Sequence[Column]) -> Markup:
    """Return the legend of all columns and the plots, block by block."""
    legend = [Curve(column, {}, column.name == manifest.reference) for column in columns]
    keys = tag("ul", (legend_entry(curve, index) for index, curve in enumerate(legend)), class_="legend")
    return tag("div", keys, how_to_read(columns), blocks(legend), class_="plot crowded sets")


def how_to_read(columns: Sequence[Column]) -> Markup:
    """Return a note on lines and bands, and on what the page's script does."""
    if kind_of(columns) == "groups":
        return tag("p", KEYS_OF_GROUPS, class_="note needs-script")
    bands = "" if len(columns) <= FEW else " (of the reference, and of the line pointed at)"
    lines = f"Lines: mean over seeds; bands: from the lowest to the highest seed{bands}. "
    return tag("p", lines, tag("span", KEYS, class_="needs-script"), class_="note")


def blocks(legend: Sequence[Curve]) -> Iterator[Markup]:
    """Yield each block of plots, under a heading of its own."""
    columns = [curve.column for curve in legend]
    kind = kind_of(columns)
    if kind == "groups":
        yield block(*group_views(legend, (wanted_coverages(columns) or [100.0])[-1]))
        return
    if severities(columns):
        yield block("Risk by severity; clean images have severity 0", "", panel_views(risk_panels(columns), legend))
    panels = threshold_panels(columns)
    note = (NEW if kind == "new" else THRESHOLDS) if panels else f"There are none: {reason_for_no_thresholds(columns)}."
    yield block("Thresholds carried along", note, panel_views(panels, legend), "multiples pairs")
    yield block(*curve_views(legend))


def block(title: str, note: str, views: Sequence[Markup], class_: str = "multiples") -> Markup:
    said = tag("p", note, class_="note") if note else ""
    return tag("div", tag("h4", title), said, tag("div", views, class_=class_), class_="block")
