"""Check what a run brings, before anything is written. Each mistake is one line that says how to mend it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from benchmark.base.errors import UserError
from benchmark.base.limits import shown
from benchmark.base.units import counted
from benchmark.imports.fields import KINDS, TABLES, TRAIN, WIDE, Arrays, named
from benchmark.measure.metrics import blocks

Array = NDArray[Any]
SUM_TOLERANCE, HALF_TOLERANCE = 1e-3, 1e-2
"""How far the probabilities of a sample may be from 1 in sum; of float16 numbers."""
LARGEST = 1e30
"""Of logits: the difference of two, and its exponential, must be a number."""
ROUNDING = 1e-6
"""What a probability may be below 0."""
MOST_CLASSES = 100_000
MOST_TIES = 0.01
"""The share of float16 probabilities that may share the largest value."""
NEW = "new"
"""The part of a run that is images of new classes: they have no labels."""
BOTH_CLASSES = "for two classes bring both, e.g. 1 − p and p"
IDS = "iuU"
"""Kinds of numpy types that can name samples: whole numbers and text."""


@dataclass(frozen=True)
class Allowed:
    """What a user has said to be meant."""

    normalise: bool = False
    """Probabilities are to be divided by their sum."""
    ties: bool = False
    """Float16 probabilities that tie are to be taken as they are."""


def check_part(fields: Arrays, part: str, where: str, allowed: Allowed) -> None:
    """Refuse the fields of one part of a run where they cannot be right, alone or together."""
    kind = check_fields(fields, part, where)
    check_shapes(fields, where)
    for name, array in fields.items():
        if not name.startswith("group.") and name != "ids":
            check_numbers(array, name, where, infinite_counts=name != "log_probabilities")
    num_classes = fields[kind].shape[1] if kind in TABLES else None
    if "labels" in fields:
        check_classes(fields["labels"], "labels", where, num_classes)
    if kind == "predicted":
        check_classes(fields["predicted"], "predicted", where, None)
    if kind == "loss":
        check_range(fields["loss"], "loss", where)
    if kind in TABLES:
        TABLE_CHECKS[kind](scan_table(fields[kind], logarithms=kind == "log_probabilities"), where, allowed)
        check_ties(fields[kind], kind, where, allowed)
    if "posterior" in fields:
        check_width(fields["posterior"], "posterior", num_classes, where)
        check_probabilities(scan_table(fields["posterior"]), where, Allowed(), "posterior")
    if "ids" in fields:
        check_ids(fields["ids"], where)


def check_width(table: Array, name: str, num_classes: int | None, where: str) -> None:
    """Refuse a table of other classes than are predicted."""
    if table.shape[1] != num_classes:
        expected = f"{num_classes} columns, one for each class" if num_classes else "logits or probabilities beside it"
        raise UserError(f"{where}: {name}: expected {expected}, got {counted(table.shape[1], 'column')}")


def check_fields(fields: Arrays, part: str, where: str) -> str:
    """Return which of the kinds a part has; empty for training outputs without any. Refuse none, or several."""
    kinds = [kind for kind in KINDS if kind in fields]
    if len(kinds) > 1:
        raise UserError(
            f"{where}: expected one of {', '.join(KINDS)}, got {' and '.join(kinds)}; leave all but one out"
        )
    if not kinds and part != TRAIN:
        hint = "; for a confidence alone add `predicted` classes or a `loss`" if has_confidence(fields) else ""
        raise UserError(f"{where}: expected one of {', '.join(KINDS)}, got {', '.join(fields) or 'nothing'}{hint}")
    kind = kinds[0] if kinds else ""
    if "labels" not in fields and kind != "loss" and part != NEW:
        raise UserError(
            f"{where}: the true classes are missing; add them as `labels`, or name their file with --labels FILE"
        )
    if kind in ("predicted", "loss") and not has_confidence(fields):
        raise UserError(
            f"{where}: `{kind}` needs a confidence, larger = kept first; add `confidence`, or `confidence.NAME`"
        )
    return kind


def has_confidence(fields: Arrays) -> bool:
    return "confidence" in fields or bool(named(fields, "confidence"))


def check_shapes(fields: Arrays, where: str) -> None:
    """Refuse arrays of another shape than their field has, and of other lengths than the first."""
    for name, array in fields.items():
        wide = name in WIDE
        if array.ndim != (2 if wide else 1):
            hint = shape_hint(name, array)
            raise UserError(f"{where}: {name}: expected {shape_text(wide)}, got the shape {array.shape}{hint}")
        if name in TABLES and array.shape[1] < 2:
            columns = counted(array.shape[1], "column")
            raise UserError(f"{where}: {name}: expected a column for each class, got {columns}; {BOTH_CLASSES}")
        if not len(array):
            raise UserError(f"{where}: {name} has no samples; expected at least one")
    first, *others = fields
    for other in others:
        lengths = len(fields[first]), len(fields[other])
        if lengths[0] != lengths[1]:
            got = f"got {lengths[0]:,} and {lengths[1]:,}"
            raise UserError(f"{where}: {first} and {other}: expected as many samples in both, {got}")


def shape_text(wide: bool) -> str:
    return "two dimensions, samples × columns" if wide else "one dimension, a value per sample"


def shape_hint(name: str, array: Array) -> str:
    if name in TABLES and array.ndim == 1:
        return f"; {BOTH_CLASSES}"
    if name == "labels" and array.ndim == 2 and array.shape[1] > 1:
        return "; labels that are one-hot become classes with .argmax(1)"
    return "; flatten it, e.g. with .ravel()" if array.ndim > 1 and max(array.shape) == array.size else ""


def check_numbers(array: Array, name: str, where: str, *, infinite_counts: bool) -> None:
    """Refuse what is no number, NaN or infinite. The logarithm of a probability may be minus infinity."""
    if array.dtype.kind not in "biuf":
        row, value = first_text(array)
        raise UserError(f"{where}: {name}: expected numbers, got {shown(value)} in row {row}; rows count from 0")
    if array.dtype.kind != "f":
        return
    count, first = 0, -1
    table = array if array.ndim == 2 else array[:, None]
    for rows in blocks(table):
        block = np.require(table[rows], requirements=["ALIGNED"])
        wrong = ~np.isfinite(block) if infinite_counts else np.isnan(block) | np.isposinf(block)
        if wrong.any():
            at = np.flatnonzero(wrong.any(axis=1))
            count, first = count + int(wrong.sum()), rows.start + int(at[0]) if first < 0 else first
    if count:
        wrong_values = counted(count, "value is", "values are")
        raise UserError(f"{where}: {name}: {wrong_values} NaN or infinite, first in row {first}; rows count from 0")


def first_text(array: Array) -> tuple[int, Any]:
    """Return the first value that is no number, not even as text, and its row."""
    for row, values in enumerate(array):
        for value in np.atleast_1d(values):
            try:
                float(value)
            except (TypeError, ValueError):
                return row, value.item()
    return 0, np.atleast_1d(array[0])[0].item()


def refuse(wrong: NDArray[np.bool_], array: Array, what: str, hint: str = "") -> None:
    """Raise an error if any value is wrong: how many are, and what the first is and where."""
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise UserError(
            f"{what}, got {array[first].item():.10g} in row {first} ({counted(int(wrong.sum()), 'such row')}){hint}"
        )


def check_classes(array: Array, name: str, where: str, num_classes: int | None) -> None:
    """Refuse classes that are not whole numbers from 0, and below their number where that is known."""
    array = np.asarray(array, np.float64)
    refuse(array != np.floor(array), array, f"{where}: {name}: expected classes as whole numbers")
    most = np.inf if num_classes is None else num_classes - 1
    expected = "classes counted from 0" if num_classes is None else f"classes from 0 to {num_classes - 1}"
    hint = "; count them from 0" if array.min() == 1 and array.max() == num_classes else ""
    refuse((array < 0) | (array > most), array, f"{where}: {name}: expected {expected}", hint)
    refuse(array >= MOST_CLASSES, array, f"{where}: {name}: expected at most {MOST_CLASSES:,} classes")


def check_range(array: Array, name: str, where: str) -> None:
    hint = "; divide it by its largest possible value" if array.min() >= 0 else ""
    refuse((array < 0) | (array > 1), array, f"{where}: {name}: expected values from 0 to 1", hint)


def check_ids(ids: Array, where: str) -> None:
    if ids.dtype.kind not in IDS:
        raise UserError(f"{where}: ids: expected whole numbers or text, got {shown(ids.flat[0].item())}")
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < len(ids):
        twice, times = values[counts > 1], counts[counts > 1]
        got = f"got {shown(twice[0].item())} {times[0]} times ({counted(len(twice), 'such id')})"
        raise UserError(f"{where}: ids: expected each sample once, {got}")


@dataclass(frozen=True)
class Scan:
    """What is known of a table after one look at all of its numbers."""

    lowest: float
    highest: float
    sums: Array
    """Of each row."""
    log_sums: Array
    """log Σ exp of each row, of what should be logarithms; else nothing."""
    tolerance: float

    @property
    def is_probable(self) -> bool:
        """Tell whether every number is one from 0 to 1."""
        return self.lowest >= -ROUNDING and self.highest <= 1 + self.tolerance

    @property
    def sums_to_one(self) -> bool:
        return bool((np.abs(self.sums - 1) <= self.tolerance).all())

    @property
    def range_text(self) -> str:
        return f"values from {self.lowest:.4g} to {self.highest:.4g}"


def scan_table(table: Array, *, logarithms: bool = False) -> Scan:
    """Look once at all numbers of a table."""
    lowest, highest = np.inf, -np.inf
    sums, log_sums = [], [np.zeros(0)]
    for rows in blocks(table):
        block = np.require(table[rows], requirements=["ALIGNED"])
        lowest, highest = min(lowest, float(block.min())), max(highest, float(block.max()))
        sums.append(block.sum(axis=1, dtype=np.float64))
        if logarithms:
            log_sums.append(logsumexp(block.astype(np.float64), axis=1))
    tolerance = HALF_TOLERANCE if table.dtype == np.float16 else SUM_TOLERANCE
    return Scan(lowest, highest, np.concatenate(sums), np.concatenate(log_sums), tolerance)


def refuse_probabilities(scan: Scan, name: str, where: str) -> None:
    """Refuse numbers under another name that can only be probabilities."""
    if scan.is_probable and scan.sums_to_one:
        why = "every value lies from 0 to 1 and every row sums to 1"
        raise UserError(f"{where}: {name} look like probabilities: {why}; bring them as `probabilities`")


def check_logits(scan: Scan, where: str, _: Allowed) -> None:
    """Refuse logits that look like probabilities, or are too large to compute with."""
    refuse_probabilities(scan, "logits", where)
    if max(-scan.lowest, scan.highest) > LARGEST:
        raise UserError(f"{where}: logits: expected values up to {LARGEST:g}, got {scan.range_text}")


def check_probabilities(scan: Scan, where: str, allowed: Allowed, name: str = "probabilities") -> None:
    """Refuse probabilities that are none, or do not sum to 1. Those to be normalised may also be counts."""
    if allowed.normalise and scan.lowest >= 0:
        refuse(scan.sums <= 0, scan.sums, f"{where}: {name}: expected rows with a sum above 0")
        return
    if not scan.is_probable:
        percent = scan.lowest >= 0 and (np.abs(scan.sums - 100) <= 100 * scan.tolerance).all()
        hint = "they look like per cent: divide by 100" if percent else "they look like logits: bring them as `logits`"
        if scan.highest <= 0:
            hint = "they look like log-probabilities: bring them as `log_probabilities`"
        raise UserError(f"{where}: {name}: expected values from 0 to 1, got {scan.range_text}; {hint}")
    if scan.sums_to_one:
        return
    off = np.abs(scan.sums - 1)
    worst = int(off.argmax())
    number = counted(int((off > scan.tolerance).sum()), "row does not", "rows do not")
    raise UserError(
        f"{where}: {name}: {number} sum to 1, the worst is row {worst} with {scan.sums[worst]:.6g}; "
        "add --normalise to divide each row by its sum, or bring `logits`"
    )


def check_log_probabilities(scan: Scan, where: str, _: Allowed) -> None:
    """Refuse logarithms of what are no probabilities, or do not sum to 1."""
    refuse_probabilities(scan, "log_probabilities", where)
    expected = f"{where}: log_probabilities: expected"
    if scan.highest > scan.tolerance:
        hint = "they look like logits: bring them as `logits`"
        raise UserError(f"{expected} values up to 0, got {scan.range_text}; {hint}")
    off = np.abs(np.expm1(scan.log_sums))
    if (off > scan.tolerance).any():
        worst = int(off.argmax())
        total = f"row {worst} sums to {np.exp(scan.log_sums[worst]):.6g}"
        raise UserError(f"{expected} probabilities that sum to 1, {total}; bring them as `logits`, which need not")


TABLE_CHECKS: dict[str, Callable[[Scan, str, Allowed], None]] = {
    "logits": check_logits,
    "log_probabilities": check_log_probabilities,
    "probabilities": check_probabilities,
}


def check_ties(table: Array, kind: str, where: str, allowed: Allowed) -> None:
    """Refuse float16 probabilities of which many share the largest value: a ranking among them means nothing."""
    if table.dtype != np.float16 or kind == "logits" or allowed.ties:
        return
    largest = np.asarray(table).max(axis=1)
    tied = int((largest == largest.max()).sum())
    if tied > MOST_TIES * len(table) and tied > 1:
        share = f"{tied:,} of {len(table):,} samples share the top value {float(largest.max()):g}"
        raise UserError(
            f"{where}: {kind} are float16, and {share}, so nothing ranks them; compute them in float32, bring "
            "`logits`, or add --allow-ties"
        )


def check_parts(parts: Mapping[str, Arrays], where: str) -> None:
    """Refuse parts of a run that do not fit its test samples: other classes, or other features."""
    for what, names in (("classes", set(TABLES)), ("features", {"features"})):
        widths = {
            part or "test": fields[name].shape[1] for part, fields in parts.items() for name in names & fields.keys()
        }
        for part, width in widths.items():
            if width != widths.get("test", width):
                raise UserError(
                    f"{where}, {part}: expected {widths['test']} {what}, as the test samples have, got {width}"
                )
