"""Name what a run may bring: arrays with one row per sample, for its test samples and for further parts.

`logits` are those of the test samples, `val.logits` of the validation samples, `set.fog.logits` of the evaluation set
`fog`. `confidence.NAME`, `output.NAME` and `group.NAME` are as many as one likes. A set may say more: of which kind it
is, and which corruption and severity each of its samples has.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.names import is_plain, unknown_name

Arrays = Mapping[str, NDArray[Any]]
TABLES = ("logits", "log_probabilities", "probabilities")
"""What tells everything about classes: a column for each of them."""
KINDS = (*TABLES, "predicted", "loss")
"""A run brings one of these."""
WIDE = (*TABLES, "features", "posterior", "counts")
"""Fields with several columns."""
SINGLE = ("labels", *KINDS, "confidence", "features", "ids", "posterior")
TOLD_OF_SETS = ("kind", "share")
"""One value for all samples of an evaluation set."""
OF_SETS = (*TOLD_OF_SETS, "corruption", "severity", "counts")
"""Fields that only evaluation sets have."""
NAMED = ("confidence", "output", "group")
"""Fields of which there may be several, each with a name."""
ALIASES = {"label": "labels", "label_ids": "labels", "predictions": "logits", "id": "ids"}
"""Other names: `label` and `id` are columns of a table, the rest is what the Trainer of Hugging Face returns."""
VAL, TRAIN, SET = "val", "train", "set"
TEST = ""


@dataclass(frozen=True)
class ImportedRun:
    """A run that was made elsewhere. Its arrays are read when they are needed, and may be mapped into memory."""

    method: str
    seed: int
    file: str
    """What messages call it: the name of its file, or of its lines in one."""
    load: Callable[[], Arrays]
    sha256: Callable[[], str]
    scores: tuple[str, ...] = ()
    """The confidences that become columns, the method's own first; empty for all that it has."""


def field_name(name: str, where: str) -> str:
    """Return the name of a field, whichever of its names it goes by. Refuse one that means nothing."""
    part, field = split_name(name)
    field = ALIASES.get(field, field)
    kind, dot, own = field.partition(".")
    of_set = part.startswith(f"{SET}.")
    known = field in SINGLE or (of_set and field in OF_SETS) or (dot and kind in NAMED and is_plain(own))
    if of_set and not is_plain(part.removeprefix(f"{SET}.")):
        raise UserError(f"{where}: '{name}': expected a set named by letters, digits, - and _")
    if known:
        return f"{part}.{field}" if part else field
    if field in OF_SETS:
        raise UserError(f"{where}: '{name}': only evaluation sets have it; call it set.NAME.{field}")
    raise unknown_name(name, [*SINGLE, *(f"{each}.NAME" for each in NAMED)], f"field of {where}:")


def split_name(name: str) -> tuple[str, str]:
    """Return the part that a field belongs to, and its name there: `set.fog.logits` is `logits` of `set.fog`."""
    first, dot, rest = name.partition(".")
    if dot and first in (VAL, TRAIN):
        return first, rest
    if dot and first == SET:
        of_set, dot, field = rest.partition(".")
        if dot:
            return f"{SET}.{of_set}", field
    return TEST, name


def known_fields(arrays: Arrays, where: str) -> dict[str, NDArray[Any]]:
    """Return arrays by the names of their fields. Refuse what means nothing, or the same twice."""
    found: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        field = field_name(name, where)
        if field in found:
            raise UserError(f"{where}: '{name}' is the field {field}, which is there already; leave one of them out")
        found[field] = array
    return found


def parts_of(arrays: Arrays) -> dict[str, dict[str, NDArray[Any]]]:
    """Return the fields of each part: of the test samples (with an empty name), val, train and set.NAME."""
    parts: dict[str, dict[str, NDArray[Any]]] = {TEST: {}}
    for name, array in arrays.items():
        part, field = split_name(name)
        parts.setdefault(part, {})[field] = array
    return parts


def named(fields: Iterable[str], kind: str) -> dict[str, str]:
    """Return the fields of a kind that have a name of their own, by it: `confidence.mc` is the confidence `mc`."""
    return {field.removeprefix(f"{kind}."): field for field in fields if field.startswith(f"{kind}.")}
