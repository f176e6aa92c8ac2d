"""Outline the tables of certified thresholds: one for what is guaranteed, others for what came of it."""

from collections.abc import Mapping, Sequence

from benchmark.certificates.notes import infeasible_notes, interval_notes, origin_notes, reason_notes
from benchmark.certificates.shown import Certified, Key, Read, key_of, percent
from benchmark.measure.sets.parts import Kept
from benchmark.store.record import Record
from benchmark.tables.model import Row, Value
from benchmark.tables.sets.outline import Outline


def row_of(shown: Certified, label: str, read: Read, *, lower_is_better: bool = True) -> Row:
    """Return a row of values in per cent."""
    return Row(
        label, shown.value(read), decimals=shown.manifest.decimals, lower_is_better=lower_is_better, measure=label
    )


def certified_at(risk: float) -> Read:
    return lambda run: run.at_risk[risk].coverage


def kept_at_risk(risk: float, what: str) -> Read:
    """Return how the coverage or the risk is read that a threshold for a risk has on test images."""
    return lambda run: getattr(run.realised(run.at_risk[risk].threshold), what)


def kept_at_coverage(wanted: float, what: str) -> Read:
    """Return how the coverage or the risk is read that a threshold for a coverage has on test images."""
    return lambda run: getattr(run.realised(run.at_coverage[wanted].threshold), what)


def off_by(wanted: float) -> Read:
    return lambda run: abs(run.realised(run.at_coverage[wanted].threshold).coverage - wanted)


def certified_outline(shown: Certified) -> Outline:
    """Return the table of certified coverages: more is better, and rejecting everything counts as 0."""
    risks = shown.wanted.risks
    rows = tuple(row_of(shown, percent(risk), certified_at(risk), lower_is_better=False) for risk in risks)
    return Outline(
        "certified",
        f"Certified coverage (%) on {shown.manifest.title}",
        "risk at most (%)",
        rows,
        "The share of the held-out images that is kept by the laxest threshold of which the selective risk is at most "
        f"the row's with probability {shown.chance} ({shown.wanted.bound}); each row holds by itself. Higher is "
        "better. 0: no threshold passes, so everything is rejected.",
        unit="coverage (%)",
        notes=(*origin_notes(shown), *infeasible_notes(shown), *reason_notes(shown)),
    )


def tested_outline(shown: Certified) -> Outline:
    """Return the table of what these thresholds keep of the test images."""
    rows = [
        row_of(shown, f"{what} at {percent(risk)}", kept_at_risk(risk, what))
        for risk in shown.wanted.risks
        for what in ("coverage", "risk")
    ]
    return undirected(
        "certified-test",
        f"What certified thresholds keep of the test images on {shown.manifest.title}",
        "kept at risk (%)",
        rows,
        "Coverage and selective risk in per cent. A run that keeps nothing has no risk.",
    )


def undirected(
    name: str, title: str, corner: str, rows: Sequence[Row], meaning: str, notes: tuple[str, ...] = ()
) -> Outline:
    """Return a table in which no value is better than another by itself."""
    labels = frozenset(row.label for row in rows)
    return Outline(name, title, corner, tuple(rows), meaning, undirected=labels, ranked=False, notes=notes)


def shift_outline(shown: Certified) -> Outline:
    """Return the table of what the thresholds do to evaluation sets."""
    rows = [
        Row(
            f"{name}: {what} at {percent(risk)}",
            kept_of_set(found, risk, what),
            decimals=shown.manifest.decimals,
            measure=f"{what} under shift",
        )
        for name, found in shown.shifted.items()
        for risk in shown.wanted.risks
        for what in ("coverage", "risk")
    ]
    return undirected(
        "certified-shift",
        f"What certified thresholds keep of evaluation sets of {shown.manifest.title}",
        "images, kept at risk (%)",
        rows,
        "The guarantee does not hold here: these images are not like the held-out ones, and the risk may be any. To "
        "accept an image of a new class is an error.",
        ("All images of a set together. For scores that are not a method's own, nothing is stored of a set.",),
    )


def kept_of_set(found: Mapping[Key, Mapping[float, Kept]], risk: float, what: str) -> Value:
    """Return how the coverage or the risk is read that a threshold for a risk has on an evaluation set."""

    def value(record: Record, score: str) -> float | None:
        kept = found.get(key_of(record, score), {}).get(risk)
        return None if kept is None else getattr(kept, what)

    return value


def coverage_outline(shown: Certified) -> Outline:
    """Return the table of thresholds for a wanted coverage: what they keep, how far that is off, and its risk."""
    rows, coverage_rows = [], []
    for wanted in shown.wanted.coverages:
        coverage_rows.append(row_of(shown, f"coverage at {percent(wanted)}", kept_at_coverage(wanted, "coverage")))
        rows += [
            coverage_rows[-1],
            row_of(shown, f"off by at {percent(wanted)}", off_by(wanted)),
            row_of(shown, f"risk at {percent(wanted)}", kept_at_coverage(wanted, "risk")),
        ]
    return Outline(
        "certified-coverage",
        f"Thresholds for a wanted coverage on {shown.manifest.title}",
        "kept at coverage (%)",
        tuple(rows),
        "Per cent of the test images. Off by: how far the coverage of a run is from what was wanted. Lower is better "
        "but for the coverage itself.",
        undirected=frozenset(row.label for row in coverage_rows),
        ranked=False,
        notes=(*interval_notes(shown), *origin_notes(shown), *reason_notes(shown)),
    )
