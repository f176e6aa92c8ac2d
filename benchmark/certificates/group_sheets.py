"""Write the sheets of thresholds that were certified for each class or group."""

from collections.abc import Sequence

import numpy as np

from benchmark.certificates.groups import all_groups
from benchmark.certificates.shown import Certified, percent
from benchmark.measure.sets.parts import Kept
from benchmark.tables.columns import abbreviate
from benchmark.tables.model import Sheet


def group_sheets(shown: Certified) -> list[Sheet]:
    """Return a sheet for each wanted risk: a threshold for each group, and what came of it."""
    return [group_sheet(shown, risk) for risk in shown.wanted.risks] if shown.groups else []


def group_sheet(shown: Certified, risk: float) -> Sheet:
    rows, numbers, lost = [], [], {}
    for column, by_risk in shown.groups.items():
        runs = by_risk[risk]
        for name in dict.fromkeys(name for run in runs for name in run):
            own = [run[name] for run in runs if name in run]
            given = [each for each in own if each.certificate.threshold is not None]
            if len(given) < len(own):
                lost[f"{column} {name} {len(own) - len(given)} of {len(own)}"] = own[0].certificate.needed
            kept = [each.realised for each in own]
            line = (mean_text([each.certificate.coverage for each in own]), *kept_texts(kept))
            rows.append((column, name, f"{np.mean([each.certificate.num_images for each in own]):.0f}", *line))
            risks = [each.risk for each in kept if each.risk is not None]
            numbers.append(
                {
                    "column": column,
                    "row": f"{shown.by} {name} at {percent(risk)}",
                    "certified_coverage": float(np.mean([each.certificate.coverage for each in own])),
                    "coverage": float(np.mean([each.coverage for each in kept])),
                    "risk": float(np.mean(risks)) if risks else np.nan,
                    "n": len(given),
                    "wanted": len(own),
                }
            )
        rows.append((column, "all together", "", "", *kept_texts([all_groups(run) for run in runs])))
    count = len({name for by_risk in shown.groups.values() for run in by_risk[risk] for name in run})
    notes = (
        [
            f"No threshold passes, so everything is rejected: {abbreviate(list(lost))} runs; "
            f"{max(lost.values()):,} kept images of a group without an error are the fewest that it takes."
        ]
        if lost
        else []
    )
    return Sheet(
        f"certified-by-{shown.by}",
        f"A threshold for each {shown.by} on {shown.manifest.title}: of what is kept of each, at most {percent(risk)} "
        f"% is wrong, for all {count} together with probability {shown.chance}: each has an equal share of the "
        "chance to fail. Means over runs, in per cent. "
        + ("A class is the one that is predicted." if shown.by == "class" else ""),
        ("method", shown.by, "held out", "certified coverage", "coverage of test images", "their risk"),
        tuple(rows),
        tuple(notes),
        tuple(numbers),
    )


def kept_texts(kept: Sequence[Kept]) -> tuple[str, str]:
    risks = [each.risk for each in kept if each.risk is not None]
    return mean_text([each.coverage for each in kept]), mean_text(risks)


def mean_text(values: Sequence[float]) -> str:
    return f"{100 * np.mean(values):.2f}" if len(values) else "–"
