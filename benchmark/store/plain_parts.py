"""Write and read the parts of an evaluation set as they stand in a record's file."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from benchmark.measure.sets.parts import Kept, PartMeasures, SetMeasures

Plain = dict[str, Any]


def plain_set(measured: SetMeasures) -> Plain:
    """Return the content of a file; what is empty is left out."""
    parts = {score: {name: plain_part(part) for name, part in own.items()} for score, own in measured.parts.items()}
    optional = {
        "stored": list(measured.stored),
        "thresholds": {score: dict(own) for score, own in measured.thresholds.items()},
        "no_thresholds": measured.no_thresholds,
    }
    known = {name: value for name, value in optional.items() if value}
    return {"kind": measured.kind, "version": measured.version, **known, "parts": parts}


def plain_part(part: PartMeasures) -> Plain:
    values = {name: value for name, value in vars(part).items() if value not in (None, "", {})}
    if part.kept:
        values["kept"] = {coverage: [kept.coverage, kept.risk] for coverage, kept in part.kept.items()}
    return values


def read_set(plain: Mapping[str, Any]) -> SetMeasures:
    return SetMeasures(
        plain["kind"],
        {score: {name: read_part(part) for name, part in own.items()} for score, own in plain["parts"].items()},
        tuple(plain.get("stored", ())),
        plain.get("thresholds", {}),
        plain.get("no_thresholds", ""),
        plain["version"],
    )


def read_part(plain: Mapping[str, Any]) -> PartMeasures:
    """Return the measures of a part. Those that this code does not know are left out."""
    known = {name: plain[name] for name in OF_PARTS if name in plain}
    kept = {coverage: Kept(*pair) for coverage, pair in plain.get("kept", {}).items()}
    return PartMeasures(**{**known, "kept": kept})


OF_PARTS = [each.name for each in fields(PartMeasures)]
