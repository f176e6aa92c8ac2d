"""Take predictions from a program: arrays, tensors, lists, frames, a Trainer's output, an estimator with its data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.limits import shown
from benchmark.imports.fields import ImportedRun, field_name, known_fields
from benchmark.imports.find import Reading, arrays_sha256, read_seed, table_runs
from benchmark.imports.listing import Listing, runs_of_files

Array = NDArray[Any]
AGREEMENT = 0.99
"""The share of samples whose largest decision value must be that of the predicted class; ties may go either way."""
UNNAMED = "mine"
"""What a method without a name is called."""
NESTED = {"confidence": "confidence.", "outputs": "output.", "groups": "group."}
"""Arguments that hold several fields by name, and how the names of these begin."""


@dataclass(frozen=True)
class Told:
    """What a program says of its runs, beside their arrays."""

    method: str = ""
    seed: int | None = None
    scores: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    given: str | None = None

    def of_run(self, run: ImportedRun) -> ImportedRun:
        """Return a run with what was said of it in the place of what its file says."""
        seed = run.seed if self.seed is None else read_seed(self.seed, "score")
        return replace(run, method=self.method or run.method, seed=seed, scores=self.scores or run.scores)


def runs_of_objects(given: Any, told: Told, arguments: Mapping[str, Any]) -> Listing:
    """Return the runs that a program brings: in files, in a frame, as the output of a Trainer, or as named arrays."""
    if is_files(given):
        names = [fspath(given)] if isinstance(given, (str, PathLike)) else [fspath(name) for name in given]
        labels = arguments.get("labels")
        named_file = isinstance(labels, (str, PathLike))
        refuse_others([name for name in arguments if not (name == "labels" and named_file)], "files")
        listing = runs_of_files(names, Reading(labels and Path(labels), told.given, told.columns))
        return replace(listing, runs=tuple(map(told.of_run, listing.runs)))
    if hasattr(given, "groupby"):
        refuse_others([*arguments, *(["given"] if told.given else [])], "a frame")
        runs = table_runs(given, Reading(columns=told.columns), "frame", (UNNAMED, 0))
        return Listing(tuple(map(told.of_run, runs)))
    refuse_others([name for name in ("given", "columns") if getattr(told, name)], "arrays")
    if is_trainer_output(given):
        arguments = {**trainer_fields(given), **arguments}
    elif isinstance(given, Mapping):
        arguments = {**given, **arguments}
    elif given is not None:
        raise UserError(f"score: expected files, a frame, a mapping or named arrays, got {type(given).__name__}")
    known = known_fields(flat_fields(arguments), "score")
    run = ImportedRun(UNNAMED, 0, "Python", partial(dict, known), partial(arrays_sha256, known))
    return Listing((told.of_run(run),))


def is_files(given: Any) -> bool:
    """Tell whether a value is the name of a file, or a list of them."""
    several = isinstance(given, (list, tuple)) and bool(given)
    return isinstance(given, (str, PathLike)) or (several and all(isinstance(f, (str, PathLike)) for f in given))


def refuse_others(names: Sequence[str], what: str) -> None:
    if names:
        raise UserError(f"score: {names[0]}: expected nothing beside {what}; put it in there, or bring all as arrays")


def flat_fields(arguments: Mapping[str, Any], part: str = "") -> dict[str, Array]:
    """Return arrays by the names of their fields, of arguments some of which are mappings.

    `part` begins the names of what belongs to validation or training samples, or to an evaluation set.
    """
    found: dict[str, Array] = {}
    for name, value in arguments.items():
        if value is None:
            continue
        if name == "sets" and not part:
            for of_set, fields in mapping(value, name).items():
                found |= flat_fields(mapping(fields, of_set), f"set.{of_set}.")
        elif name in ("val", "train") and not part:
            found |= flat_fields(mapping(value, name), f"{name}.")
        elif name in NESTED and (isinstance(value, Mapping) or name != "confidence"):
            inner = mapping(value, name)
            found |= {f"{part}{NESTED[name]}{each}": as_numpy(own, f"{name} {each}") for each, own in inner.items()}
        else:
            found[field_name(f"{part}{name}", "score")] = as_numpy(value, name)
    return found


def mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"{name}: expected arrays by name, e.g. {{'NAME': array}}, got {shown(value)}")
    return value


def as_numpy(value: Any, name: str) -> Array:
    """Return an array in its own precision, of what has one: numpy, pandas, torch on any device, lists."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.float() if "bfloat16" in str(value.dtype) else value).numpy()
    if isinstance(value, np.ma.MaskedArray):
        value = np.ma.filled(value.astype(np.float64), np.nan)
    try:
        array = value.to_numpy() if hasattr(value, "to_numpy") else np.asarray(value)
    except (ValueError, TypeError):
        raise UserError(f"{name}: expected rows of one length, got rows of several") from None
    if array.dtype == object:
        return from_objects(array, name)
    return np.asarray(array)


def from_objects(array: Array, name: str) -> Array:
    """Return text or numbers that are Python objects each; a missing value counts as NaN."""
    if array.ndim == 1 and all(isinstance(value, str) for value in array):
        return array.astype(str)
    try:
        return np.array([np.nan if value is None else value for value in array.ravel()], np.float64).reshape(
            array.shape
        )
    except (TypeError, ValueError):
        odd = next((value for value in array.ravel() if not isinstance(value, (int, float))), array.flat[0])
        raise UserError(f"{name}: expected numbers, or text alone, got {shown(odd)}") from None


def is_trainer_output(value: Any) -> bool:
    """Tell whether a value is what `Trainer.predict` of Hugging Face returns."""
    return hasattr(value, "predictions") and hasattr(value, "label_ids")


def trainer_fields(output: Any) -> dict[str, Any]:
    """Return logits and labels; a model with several outputs has its logits first."""
    predictions = output.predictions
    return {"logits": predictions[0] if isinstance(predictions, tuple) else predictions, "labels": output.label_ids}


def estimator_fields(estimator: Any, samples: Any, labels: Any) -> dict[str, Array]:
    """Return what an estimator of scikit-learn says of samples: its probabilities, or its decision values as logits."""
    if samples is None or labels is None:
        raise UserError("estimator: expected X and y too: the samples, and their true classes")
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        raise UserError(
            f"estimator: expected a fitted classifier with classes_, got {type(estimator).__name__}; call .fit first"
        )
    if isinstance(classes, list):
        raise UserError("estimator: expected one output, got several; bring the probabilities of one of them")
    classes, y = np.asarray(classes), np.asarray(labels)
    unknown = ~np.isin(y, classes)
    if unknown.any():
        raise UserError(f"y: expected classes that the estimator was fitted on, got {shown(y[unknown][0].item())}")
    numbers = np.searchsorted(classes, y)
    if hasattr(estimator, "predict_proba"):
        return {"probabilities": np.asarray(estimator.predict_proba(samples)), "labels": numbers}
    if not hasattr(estimator, "decision_function"):
        raise UserError(
            f"estimator: expected predict_proba or decision_function, and {type(estimator).__name__} has neither"
        )
    values = np.asarray(estimator.decision_function(samples), np.float64)
    logits = np.stack([np.zeros(len(values)), values], axis=1) if values.ndim == 1 else values
    is_its_own = (
        logits.shape[1] == len(classes) and (classes[logits.argmax(axis=1)] == estimator.predict(samples)).mean()
    )
    if is_its_own < AGREEMENT:
        got = f"{logits.shape[1]} decision values for {len(classes)} classes, the largest not that of its prediction"
        raise UserError(f"estimator: expected one value for each class, got {got}; use decision_function_shape='ovr'")
    return {"logits": logits, "labels": numbers}
