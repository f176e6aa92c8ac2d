"""Find the evaluation sets that a run brings: of which kind each is, and what is judged in it. Check them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.limits import shown
from benchmark.base.names import match_name
from benchmark.base.units import counted
from benchmark.imports.checks import (
    NEW,
    Allowed,
    check_numbers,
    check_part,
    check_parts,
    check_probabilities,
    check_shapes,
    check_width,
    refuse,
    scan_table,
)
from benchmark.imports.fields import KINDS as FORMS
from benchmark.imports.fields import SET, TABLES, TEST, TOLD_OF_SETS, TRAIN, VAL, Arrays, named
from benchmark.measure.sets.formulas import SHIFTED
from benchmark.measure.sets.parts import CLEAN, KINDS, SHARE

AllParts = Mapping[str, Arrays]
"""The fields of a run by part."""
SHIFT, HUMANS, GROUPS = "shift", "humans", "groups"
SHIFTS = ("corruptions", SHIFT)
OWNERS = {"corruption": SHIFTS, "severity": SHIFTS, "share": (NEW,), "counts": (HUMANS,)}
"""The kinds of sets that have a field."""
OF_PARTS = ("corruption", "severity")
"""Columns that say which part of a set a sample belongs to. They are kept as groups until the parts are numbered."""
MOST_VALUES, MOST_SEVERITIES = 100, 5


@dataclass(frozen=True)
class Origin:
    """The run that a set is brought with, and the name of the set."""

    loaded: AllParts
    file: str
    name: str
    allowed: Allowed

    @property
    def test(self) -> Arrays:
        return self.loaded[TEST]

    @property
    def where(self) -> str:
        return f"{self.file}, set {self.name}"


@dataclass(frozen=True)
class BroughtSet:
    """An evaluation set of a run, checked."""

    kind: str
    fields: Arrays
    """What is judged: of people and groups, the test samples with what is said of them."""
    share: float = SHARE

    @property
    def is_shift(self) -> bool:
        return self.kind in SHIFTS

    @property
    def has_own_samples(self) -> bool:
        """Tell whether it has predictions of its own, and not those of the test samples."""
        return self.kind not in (HUMANS, GROUPS)

    def parts(self, loaded: AllParts) -> dict[str, Arrays]:
        """Return what is judged in the place of the test samples, with validation and training samples."""
        return {TEST: self.fields, **{part: loaded[part] for part in (VAL, TRAIN) if part in loaded}}


def brought_sets(loaded: AllParts, file: str, allowed: Allowed) -> dict[str, BroughtSet]:
    """Return the sets of a run by name, whose test samples were checked. Columns of groups are one too."""
    found = {part.removeprefix(f"{SET}."): fields for part, fields in loaded.items() if part.startswith(f"{SET}.")}
    columns = {name: each for name, each in group_columns(loaded[TEST]).items() if not no_groups(each)}
    if columns and GROUPS not in map(str.lower, found):
        found[GROUPS] = columns
    check_set_names(found, file)
    return {name: brought_set(fields, Origin(loaded, file, name, allowed)) for name, fields in found.items()}


def check_set_names(names: Mapping[str, Any], file: str) -> None:
    """Refuse two sets that would share a folder."""
    for name in names:
        if twins := [other for other in names if other != name and other.lower() == name.lower()]:
            raise UserError(f"{file}: a set named twice: '{name}' and '{twins[0]}'; give one of them another name")


def brought_set(fields: Arrays, origin: Origin) -> BroughtSet:
    """Return a set of a run. Refuse it where it cannot be right."""
    where, kind = origin.where, kind_of(fields, origin)
    for field, kinds in OWNERS.items():
        if field in fields and kind not in kinds:
            owners = f"sets of kind {' or '.join(kinds)} have it"
            raise UserError(
                f"{where}: {field}: {owners}, and this one is of kind {kind}; leave it out, or say its `kind`"
            )
    rest = {field: array for field, array in fields.items() if field not in TOLD_OF_SETS}
    return BroughtSet(kind, JUDGED.get(kind, of_shift)(rest, origin), share_of(fields, where))


def kind_of(fields: Arrays, origin: Origin) -> str:
    """Return the kind of a set: as it says itself, else as its name says, else a shift."""
    if "kind" in fields:
        said = str(one_value(fields["kind"], "kind", origin.where))
        return match_name(said, KINDS, f"kind of {origin.where}:")
    return origin.name.lower() if origin.name.lower() in KINDS else SHIFT


def share_of(fields: Arrays, where: str) -> float:
    """Return the share of new images among all that are judged together."""
    value = one_value(fields["share"], "share", where) if "share" in fields else SHARE
    if isinstance(value, str) or not 0 < value < 1:
        raise UserError(f"{where}: share: expected a number between 0 and 1, got {shown(value)}")
    return float(value)


def one_value(array: NDArray[Any], name: str, where: str) -> Any:
    values = np.unique(array)
    if len(values) != 1:
        raise UserError(f"{where}: {name}: expected one value for the whole set, got {counted(len(values), 'value')}")
    return values[0].item()


def of_shift(fields: Arrays, origin: Origin) -> Arrays:
    """Return the fields of shifted images; corruption and severity of each are columns of groups."""
    columns = {field: array for field, array in fields.items() if field in OF_PARTS}
    judged = {field: array for field, array in fields.items() if field not in OF_PARTS}
    check_samples(judged, TEST, origin)
    check_shapes({**judged, **columns}, origin.where)
    if "corruption" in columns:
        check_corruption(columns["corruption"], origin.where)
    if "severity" in columns:
        check_severity(columns["severity"], origin.where)
    return judged | {f"group.{field}": array for field, array in columns.items()}


def check_samples(fields: Arrays, part: str, origin: Origin) -> None:
    """Refuse the predictions of a set where they cannot be right, or are of another form than the test samples'."""
    check_part(fields, part, origin.where, origin.allowed)
    check_parts({TEST: origin.test, f"set {origin.name}": fields}, origin.file)
    own, of_test = (next(form for form in FORMS if form in each) for each in (fields, origin.test))
    if own != of_test:
        expected = f"expected {of_test}, as the test samples have, with which they are compared, got {own}"
        raise UserError(f"{origin.where}: {expected}")


def check_corruption(names: NDArray[Any], where: str) -> None:
    if names.dtype.kind != "U":
        raise UserError(f"{where}: corruption: expected text, such as fog, got {shown(names[0].item())}")
    for name in np.unique(names).tolist():
        if not name.strip() or not name.isprintable() or name in (CLEAN, SHIFTED):
            raise UserError(f"{where}: corruption: expected the name of a corruption, such as fog, got {shown(name)}")


def check_severity(values: NDArray[Any], where: str) -> None:
    check_numbers(values, "severity", where, infinite_counts=True)
    wrong = (values < 1) | (values > MOST_SEVERITIES) | (values != np.floor(values))
    refuse(wrong, values, f"{where}: severity: expected whole numbers from 1 to {MOST_SEVERITIES}")


def of_new(fields: Arrays, origin: Origin) -> Arrays:
    """Return the fields of images of new classes."""
    for field in ("labels", "posterior"):
        if field in fields:
            hint = "leave it out, or add the `kind` shift if these are the classes of the test samples"
            raise UserError(f"{origin.where}: {field}: images of new classes have no class that is known; {hint}")
    if "loss" in origin.test:
        raise UserError(f"{origin.where}: the test samples have a loss and no classes, and so none is new")
    check_samples(fields, NEW, origin)
    return fields


def of_humans(fields: Arrays, origin: Origin) -> Arrays:
    """Return the test samples with the share of people who say each class."""
    where, name = origin.where, next((field for field in ("counts", "posterior") if field in fields), "")
    if not name or len(fields) > 1:
        got = ", ".join(fields) or "nothing"
        raise UserError(f"{where}: expected `counts` or `posterior` alone, a row for each test sample, got {got}")
    check_beside_test(fields, origin)
    table = fields[name]
    num_classes = next((origin.test[form].shape[1] for form in TABLES if form in origin.test), None)
    check_width(table, name, num_classes, where)
    check_numbers(table, name, where, infinite_counts=True)
    refuse(table.min(axis=1) < 0, table.min(axis=1), f"{where}: {name}: expected numbers from 0 on")
    check_probabilities(scan_table(table), where, Allowed(normalise=name == "counts"), name)
    shares = np.asarray(table, np.float64)
    return {**origin.test, "posterior": shares / shares.sum(axis=1, keepdims=True) if name == "counts" else shares}


def of_groups(fields: Arrays, origin: Origin) -> Arrays:
    """Return the test samples with columns that group them."""
    columns = group_columns(fields)
    if not columns or len(columns) < len(fields):
        got = ", ".join(fields) or "nothing"
        raise UserError(f"{origin.where}: expected `group.NAME` alone, a value for each test sample, got {got}")
    check_beside_test(fields, origin)
    for name, column in columns.items():
        if reason := no_groups(column):
            raise UserError(f"{origin.where}: {name}: {reason}")
    others = {field: array for field, array in origin.test.items() if field not in group_columns(origin.test)}
    return others | {name: yes_or_no(column) for name, column in columns.items()}


JUDGED: dict[str, Callable[[Arrays, Origin], Arrays]] = {NEW: of_new, HUMANS: of_humans, GROUPS: of_groups}


def check_beside_test(fields: Arrays, origin: Origin) -> None:
    """Refuse fields that are not of the form or the length of the test samples."""
    first = next(iter(origin.test))
    check_shapes({first: origin.test[first], **fields}, origin.where)


def group_columns(fields: Arrays) -> dict[str, NDArray[Any]]:
    return {field: fields[field] for field in named(fields, "group").values()}


def no_groups(column: NDArray[Any]) -> str:
    """Return why the values of a column cannot be groups; empty where they can."""
    if column.dtype.kind not in "biuU":
        return f"expected text or whole numbers, got {column.dtype}"
    values = np.unique(column)
    if len(values) > MOST_VALUES:
        return f"{counted(len(values), 'value')}, and tables have groups of at most {MOST_VALUES}; put some together"
    odd = [each for each in values.tolist() if isinstance(each, str) and not (each and each.isprintable())]
    return f"the value {shown(odd[0])}; write a word for it, such as 'unknown'" if odd else ""


def yes_or_no(column: NDArray[Any]) -> NDArray[Any]:
    return np.where(column, "yes", "no") if column.dtype.kind == "b" else column


def group_warnings(test: Arrays, where: str) -> list[str]:
    """Return a warning for each column of the test samples that no table can show."""
    reasons = {name: no_groups(column) for name, column in group_columns(test).items()}
    return [f"{where}: {name} is stored, and has no table: {reason}" for name, reason in reasons.items() if reason]
