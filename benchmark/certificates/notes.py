"""Say below a table which images certified its thresholds, and where no threshold can be certified."""

from benchmark.base.units import counted
from benchmark.certificates.shown import Certified, percent
from benchmark.measure.guarantees import needed_without_errors
from benchmark.tables.columns import abbreviate


def interval_notes(shown: Certified) -> list[str]:
    """Return between which values the coverage of further images lies, as the number of held-out images has it."""
    found: dict[str, None] = {}
    for run in shown.runs.values():
        for wanted, each in run.at_coverage.items():
            ends = f"{100 * each.low:.2f} and {100 * each.high:.2f} %"
            text = f"Wanted {percent(wanted)} %, set by {counted(each.num_images, 'held-out image')}"
            found[
                f"{text}: of further images between {ends} with probability {shown.chance}, more where scores tie."
            ] = None
    return list(found)


def origin_notes(shown: Certified) -> list[str]:
    """Return which images were held out, by column; and that nobody here knows it of imported runs."""
    names: dict[str, dict[str, None]] = {}
    for column in shown.columns:
        for run in column.runs:
            names.setdefault(run.held_out.origin, {})[column.name] = None
    notes = [f"Held out: {origin} ({abbreviate(list(columns))})." for origin, columns in names.items()]
    imported = [column.name for column in shown.columns if any(run.record.is_imported for run in column.runs)]
    if imported and shown.wanted.source.from_test is None:
        notes.append(
            f"{abbreviate(imported)}: made elsewhere. The guarantee holds only if its validation images trained, tuned "
            "and chose nothing."
        )
    return notes


def infeasible_notes(shown: Certified) -> list[str]:
    """Return at which risks no threshold passes, and whether more images could change that."""
    notes = []
    for risk in shown.wanted.risks:
        names, most = [], 0
        for column in shown.columns:
            lost = [run for run in column.runs if run.at_risk[risk].threshold is None]
            names += [f"{column.name} {len(lost)} of {len(column.runs)}"] if lost else []
            most = max([most, *(run.at_risk[risk].num_images for run in lost)])
        if names:
            why = lack_of_images(needed_without_errors(risk, shown.wanted.delta), most, shown)
            notes.append(f"No threshold passes at {percent(risk)} %: {abbreviate(names)} runs; {why}.")
    return notes


def lack_of_images(needed: int, held_out: int, shown: Certified) -> str:
    """Return why no threshold passes: too few images, or too many errors among those of which a run is most sure."""
    if held_out >= needed:
        return "too many of their most confident images are errors"
    more = "" if shown.wanted.source.from_test else "; --from-test 50% or a larger data.val brings more"
    return f"it takes {needed:,} kept images without an error at least, and {held_out:,} are held out{more}"


def reason_notes(shown: Certified) -> list[str]:
    """Return why columns cannot be certified."""
    names: dict[str, list[str]] = {}
    for column in shown.columns:
        if column.reason and not column.column.reason:
            names.setdefault(column.reason, []).append(column.name)
    return [f"{abbreviate(columns)}: {reason}." for reason, columns in names.items()]
