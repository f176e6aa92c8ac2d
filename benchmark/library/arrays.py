"""Read the numbers that people have, whatever holds them, and check them. Each mistake is one clear ValueError."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmark.base.limits import shown
from benchmark.base.units import counted

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
NUMBERS = "biuf"
"""Kinds of numpy types that are real numbers."""
PER_CENT = "; this looks like per cent: divide by 100"


def as_array(values: Any, name: str) -> Array:
    """Return numbers as float64: of lists, arrays, pandas columns, and tensors on any device and of any precision."""
    if isinstance(values, (list, tuple)):
        values = [as_array(each, name) if hasattr(each, "detach") else each for each in values]
    if hasattr(values, "detach"):
        try:
            values = values.detach().cpu()
            values = (values.double() if values.is_floating_point() else values).numpy()  # numpy knows no bfloat16
        except (TypeError, RuntimeError, NotImplementedError):
            raise ValueError(f"{name}: expected a dense tensor of numbers, got {shown(str(values))}") from None
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        found = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name}: expected rows of one length, got rows of several") from None
    if found.dtype == object:
        return from_objects(found, name)
    if found.dtype.kind not in NUMBERS:
        raise ValueError(f"{name}: expected numbers, got {shown(found.flat[0].item()) if found.size else found.dtype}")
    return found.astype(np.float64)


def from_objects(found: NDArray[Any], name: str) -> Array:
    """Return numbers that are Python objects each; a missing value counts as NaN."""
    if found.ndim == 0:
        raise ValueError(f"{name}: expected a list or an array of numbers, got {shown(found.item())}")
    numbers = np.empty(found.shape)
    for place, value in np.ndenumerate(found):
        try:
            if isinstance(value, (str, bytes)):
                raise TypeError
            numbers[place] = np.nan if is_missing(value) else value
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{name}: expected numbers, got {shown(value)} at position {position(place)}") from None
    return numbers


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for none: None, or what pandas has in its place."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def position(place: tuple[int, ...]) -> str:
    """Return where a value stands, counted from 0: `3`, or `(3, 1)` in a table."""
    return str(int(place[0])) if len(place) == 1 else str(tuple(map(int, place)))


def refuse(wrong: NDArray[np.bool_], values: Array, name: str, expected: str, hint: str = "") -> None:
    """Raise a ValueError if any value is wrong. Say what the first one is and where, and how many there are."""
    count = int(wrong.sum())
    if not count:
        return
    first = tuple(np.argwhere(wrong)[0])
    where = f" at position {position(first)}" if values.ndim else ""
    others = f" ({count:,} such values out of {wrong.size:,})" if count > 1 else ""
    raise ValueError(f"{name}: expected {expected}, got {number_text(values[first])}{where}{others}{hint}")


def number_text(value: float) -> str:
    """Return a number with all its digits, so that 1.0000001 is seen to be above 1."""
    return repr(float(value)).removesuffix(".0")


def finite(values: Any, name: str) -> Array:
    """Return numbers of any shape, none of them NaN or infinite."""
    found = as_array(values, name)
    refuse(~np.isfinite(found), found, name, "numbers that are neither NaN nor infinite")
    return found


def vector(values: ArrayLike, name: str) -> Array:
    """Return one finite number per sample, for one sample or more."""
    found = as_array(values, name)
    if found.ndim == 0:
        raise ValueError(f"{name}: expected a list or an array, a number per sample, got {number_text(found.item())}")
    if found.ndim > 1:
        hint = "; flatten it, e.g. with .ravel()" if max(found.shape) == found.size else ""
        raise ValueError(f"{name}: expected one dimension, a number per sample, got the shape {found.shape}{hint}")
    if not len(found):
        raise ValueError(f"{name}: expected at least one value, got none")
    return finite(found, name)


def matrix(values: ArrayLike, name: str, columns: str, least: int = 1) -> Array:
    """Return a finite table with a row per sample; `columns` are what its columns stand for."""
    found = as_array(values, name)
    if found.ndim != 2:
        raise ValueError(f"{name}: expected two dimensions, samples × {columns}, got the shape {found.shape}")
    if not len(found) or found.shape[1] < least:
        expected = f"at least one sample and {least} {columns}"
        raise ValueError(f"{name}: expected {expected}, got the shape {found.shape}")
    return finite(found, name)


def logits_table(logits: ArrayLike) -> Array:
    """Return finite logits of at least two classes."""
    return matrix(logits, "logits", "classes", 2)


def same_length(**values: Array | Labels) -> None:
    """Raise a ValueError unless all have as many samples as the first."""
    first, *others = values
    for other in others:
        if len(values[other]) != len(values[first]):
            raise ValueError(
                f"{first} and {other}: expected as many samples in both, "
                f"got {len(values[first]):,} and {len(values[other]):,}"
            )


def within(values: Array, name: str, least: float, most: float, hint: str = "") -> Array:
    """Return the values; raise a ValueError if one lies outside."""
    refuse((values < least) | (values > most), values, name, f"values from {least:g} to {most:g}", hint)
    return values


def loss_vector(loss: ArrayLike) -> Array:
    """Return losses from 0 to 1: errors, or expected errors."""
    return within(vector(loss, "loss"), "loss", 0, 1)


def error_vector(error: ArrayLike) -> Array:
    """Return errors: 1 or True where a prediction is wrong, else 0."""
    found = vector(error, "error")
    refuse((found != 0) & (found != 1), found, "error", "0 (right) or 1 (wrong)")
    return found


def label_vector(labels: ArrayLike, num_classes: int | None = None) -> Labels:
    """Return classes as whole numbers, from 0 and below `num_classes` if that is known."""
    found = vector(labels, "labels")
    refuse(found != np.floor(found), found, "labels", "classes as whole numbers")
    if num_classes is None:
        refuse(found < 0, found, "labels", "classes counted from 0")
    else:
        hint = "; count classes from 0" if found.min() == 1 and found.max() == num_classes else ""
        within(found, "labels", 0, num_classes - 1, hint)
    return found.astype(np.int64)


def coverages(coverage: ArrayLike) -> Array:
    """Return one coverage or several, as shares above 0 and up to 1."""
    found = numbers(coverage, "coverage")
    hint = PER_CENT if (found > 1).any() and (found > 0).all() else ""
    refuse((found <= 0) | (found > 1), found, "coverage", "shares above 0 and up to 1", hint)
    return found


def shares(values: ArrayLike, name: str) -> Array:
    """Return one share or several, from 0 to 1."""
    found = numbers(values, name)
    return within(found, name, 0, 1, PER_CENT if (found > 1).any() and (found >= 0).all() else "")


def numbers(values: ArrayLike, name: str) -> Array:
    """Return one finite number or several."""
    found = finite(values, name)
    if found.ndim > 1 or not found.size:
        raise ValueError(f"{name}: expected a number or a list of numbers, got the shape {found.shape}")
    return found


def one(found: Array, name: str) -> float:
    """Return the only number of those that were checked."""
    if found.ndim:
        raise ValueError(f"{name}: expected one number, got {counted(len(found), 'number')}")
    return float(found)


def one_coverage(value: float) -> float:
    return one(coverages(value), "coverage")


def one_share(value: float, name: str) -> float:
    return one(shares(value, name), name)


def whole(value: Any, name: str, least: int) -> int:
    """Return one whole number that is not below `least`."""
    try:
        if int(value) == value and value >= least and not isinstance(value, (bool, np.bool_)):
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name}: expected a whole number, at least {least}, got {shown(value)}")
