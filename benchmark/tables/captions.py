"""Write the text above and below a table: how to read it, and what its numbers cannot show."""

import re
from collections.abc import Sequence

from benchmark.base.units import counted
from benchmark.measure.statistics import DRAWS, LEVEL, TESTS, seeds_needed, smallest_p_for
from benchmark.store.manifest import Manifest
from benchmark.tables.columns import Column, abbreviate, split_by_coverage
from benchmark.tables.markers import FAMILIES, compared_keys, family_sizes, reachable_p, test_of
from benchmark.tables.model import Cells, Row

KEPT = {
    "percentile_risk": " Kept are all at or above a percentile of the float32 confidence, as in the public codes: on "
    "ties more than the coverage says (next table)."
}

INTERVAL = (
    f"[{1 - LEVEL:.0%} interval over test images: {DRAWS:,} bootstrap draws, stratified by class where there are "
    "classes]"
)

HIGHER = {
    "auroc": "AUROC (a right prediction is more confident than a wrong one)",
    "aupr": "AUPR (of errors)",
    "coverage_at_risk_1": "SAC",
    "accuracy": "accuracy",
}
"""Measures of which more is better, as a caption names them."""
MEANINGS = {
    "naurc": "NAURC: 0 is a perfect ranking, 1 a random one.",
    "fpr95": "FPR95: wrong predictions kept with 95 % of the right ones.",
    "coverage_at_risk_1": "SAC99: the largest coverage at which at least 99 % are right, or coverage at 1 % risk.",
}


def caption(manifest: Manifest, cells: Cells, kept: str = "") -> str:
    """Return how to read a table; `kept` is a sentence on what a coverage keeps."""
    wanted = sorted({len(entry.seeds) for entry in manifest.entries if entry.seeds})
    seeds = " or ".join(str(n) for n in wanted) + (" seed" if wanted == [1] else " seeds")
    if any(cell.missing for cell in cells.values()):
        kept += " (k/n): only k of n seeds are there, or have a value."
    best = "Best bold" + (" within its group" if manifest.groups else "")
    best += ", second underlined" if "second" in manifest.shows else ""
    kind = {0: "population", 1: "sample"}[manifest.ddof]
    text = f"mean±std over {seeds} ({kind} std, ddof {manifest.ddof}). {best}"
    if manifest.judged_by_images:
        text = f"one run of each method, {INTERVAL}. {best}"
    if "markers" not in manifest.shows:
        return f"{text}.{kept}"
    corrected = f", Holm-corrected over {FAMILIES[manifest.holm]}" if manifest.holm else ""
    return (
        f"{text}; •/◦: {manifest.reference} is significantly better/worse ({TESTS[test_of(manifest)]}, level "
        f"{LEVEL:g}{corrected}).{kept}{seeds_sentence(manifest)}"
    )


def measures_text(rows: Sequence[Row]) -> str:
    """Return how to read these measures."""
    shown = {row.measure for row in rows}
    higher = [text for name, text in HIGHER.items() if name in shown]
    named = " and ".join(filter(None, [", ".join(higher[:-1]), *higher[-1:]]))
    direction = f"Higher is better for {named}, lower for the rest." if higher else "Lower is better."
    return " ".join([direction, *(text for name, text in MEANINGS.items() if name in shown)])


def seeds_sentence(manifest: Manifest) -> str:
    """Return what runs of one seed have in common, as far as that is known, and what the test makes of it."""
    if manifest.judged_by_images:
        return " Markers hold for these runs; other trainings of the same methods may differ more."
    if manifest.has_imported and not manifest.paired:
        return ""
    effect = "; the test ignores this, and with positive correlation it is conservative"
    effect = ", so they are paired" if manifest.test == "paired" else effect
    if manifest.has_imported:
        return f" Runs of one seed belong together, as those say who brought them{effect}."
    return f" Runs of one seed share initialisation, batches and warm-up across methods{effect}."


def split_caption(caption: str) -> tuple[str, str]:
    """Split a caption into its title, up to the first colon or full stop, and how to read the table."""
    title, *rest = re.split(r"(?<=\S)[:.](?: |$)", caption, maxsplit=1)
    meaning = rest[0] if rest else ""
    return title, meaning[:1].upper() + meaning[1:]


def test_notes(manifest: Manifest, columns: Sequence[Column], cells: Cells) -> list[str]:
    """Return notes on the smallest p that this many runs can reach, and on how many seeds a marker needs."""
    if "markers" not in manifest.shows:
        return []
    reference, test = manifest.reference, test_of(manifest)
    names = [column.name for column in columns if column.records]
    if reference not in names:
        if any(name.startswith(f"{reference}@") for name in names):
            return [f"{reference} is trained for one coverage at a time: no comparison."]
        return [f"No run of the reference method {reference} is there: no comparison."]
    keys = compared_keys(cells)
    reachable, sizes = reachable_p(cells, keys, reference, test, manifest.holm), family_sizes(keys, manifest.holm)
    notes = []
    if "w/t/l" in manifest.shows:
        meaning = f"{reference} is significantly better / not different / worse than the column's method"
        notes.append(f"w/t/l: rows in which {meaning}.")
    for key in sorted(keys, key=lambda key: reachable[key]):
        ours, theirs = cells[key[0], reference].by_seed, cells[key].by_seed
        p, pairs = smallest_p_for(test, ours, theirs), len(set(ours) & set(theirs))
        against = counted(pairs, "pair") if test == "paired" else f"{len(ours)} against {len(theirs)}"
        against = f"{DRAWS:,} draws" if test == "bootstrap" else against
        times = f", corrected for {counted(sizes[key], 'comparison')} {reachable[key]:.4f}" if manifest.holm else ""
        possible = reachable[key] < LEVEL
        needed = "" if possible else f"; no marker is possible before {seeds_needed(test, sizes[key])} seeds"
        notes.append(f"Smallest attainable p, {against}: {p:.4f}{times}{needed}.")
    return list(dict.fromkeys(notes))


def is_provisional(columns: Sequence[Column]) -> bool:
    """Tell whether some runs are not finished."""
    judged = [column for column in split_by_coverage(columns) if not column.is_oracle and not column.reason]
    return any(column.wanted > len(column.records) + len(column.diverged) for column in judged)


def table_notes(manifest: Manifest, columns: Sequence[Column]) -> list[str]:
    """Return notes that runs are missing, and what the task remarks on its data."""
    missing = "Provisional: not all runs are there; means, markers and ranks may still change."
    remarks = [f"Data: {manifest.remark}."] if manifest.remark else []
    unpaired = [entry.label for entry in manifest.entries if entry.unpaired]
    if unpaired and any(entry.imported and not entry.unpaired for entry in manifest.entries):
        remarks.append(f"No paired statistics: nothing says that runs of {abbreviate(unpaired)} are pairs (--paired).")
    return [missing, *remarks] if is_provisional(columns) else remarks
