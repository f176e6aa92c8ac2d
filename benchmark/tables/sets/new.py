"""Outline the table of new classes."""

from dataclasses import replace

from benchmark.measure.sets.formulas import NEW, WITH_NEW
from benchmark.measure.sets.parts import CLEAN
from benchmark.store.manifest import Manifest
from benchmark.tables.sets.outline import Outline
from benchmark.tables.sets.values import Seen, aurc_of, aurc_row, of_part, part_row

RIGHT, WRONG = "AUROC right | new (%)", "AUROC wrong | new (%)"


def new_outlines(manifest: Manifest, seen: Seen) -> list[Outline]:
    """Return the table of how well confidences tell images of new classes from others."""
    decimals = manifest.decimals
    new, together = seen.num_images(NEW), seen.num_images(WITH_NEW)
    right = part_row(RIGHT, of_part(NEW, lambda part: part.auroc_right), decimals)
    rows = (
        aurc_row(f"AURC ×10³, {WITH_NEW}", aurc_of(WITH_NEW), decimals),
        aurc_row(f"AURC ×10³, {CLEAN}", aurc_of(CLEAN), decimals),
        replace(right, lower_is_better=False),
        part_row(WRONG, of_part(NEW, lambda part: part.auroc_wrong), decimals),
    )
    meaning = (
        f"Clean: the {seen.num_images(CLEAN):,} test images; {WITH_NEW}: {together - new:,} of them and {new:,} of "
        f"classes that the classifier cannot know, a share of {new / together:.0%}, where to accept a new one is an "
        "error. AUROC: how often a rightly (wrongly) classified test image is more confident than a new one. Higher is "
        "better for the right ones; wrong ones should not be kept either, so nothing is marked there."
    )
    title = f"New classes on {manifest.title}"
    return [Outline("new", title, "measure", rows, meaning, unit="value", undirected=frozenset({WRONG}), ranked=False)]
