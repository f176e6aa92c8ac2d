"""Define the files of a prediction and of the last layer: which arrays they have. One place knows their names."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.measure.prediction import Classifier, Evidence, Floats, Prediction

AUX, GROUP = "aux.", "group."
"""Begin the names of further outputs, and of columns that group the samples."""
Arrays = dict[str, NDArray[Any]]
SMALLEST = np.finfo(np.float32).tiny
"""What smaller probabilities count as, so that no logarithm is infinite."""
LOG_OF_ZERO = float(np.log(SMALLEST))


def at_epoch(name: str, epoch: int) -> str:
    """Return the file name of a prediction that was made after so many epochs, before the end of training."""
    stem, dot, suffix = name.partition(".")
    return f"{stem}-{epoch}{dot}{suffix}"


def packed(evidence: Evidence) -> memoryview:
    """Return the content of the file of a prediction: equal predictions give equal bytes."""
    return npz(arrays_of(evidence))


def npz(arrays: Mapping[str, NDArray[Any]]) -> memoryview:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getbuffer()


def arrays_of(evidence: Evidence) -> Arrays:
    """Return the arrays by name; what is empty is left out. Imported numbers keep their precision."""
    prediction = evidence.prediction
    optional = {
        "features": prediction.features,
        "posterior": evidence.posterior,
        "ids": evidence.ids,
        "predicted": evidence.predicted,
        "loss": evidence.loss,
    }
    arrays: Arrays = {"labels": evidence.labels}
    if not evidence.given:
        arrays["logits"] = prediction.logits.astype(np.float32)
    elif prediction.probabilities is not None:
        arrays["probabilities"] = prediction.probabilities
    else:
        arrays["logits"] = prediction.logits
    arrays |= {name: value for name, value in optional.items() if value is not None}
    arrays |= {f"{AUX}{name}": value for name, value in prediction.aux.items()}
    arrays |= {f"{GROUP}{name}": value for name, value in evidence.groups.items()}
    return arrays | ({"given": np.array(evidence.given)} if evidence.given else {})


def unpacked(content: bytes | memoryview) -> Evidence:
    """Return the prediction in the content of a file. Nothing may write to its arrays: several scores read them."""
    return evidence_in(read_only_arrays(content))


def read_only_arrays(content: bytes | memoryview) -> Arrays:
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored}
    for array in arrays.values():
        array.setflags(write=False)
    return arrays


def packed_classifier(classifier: Classifier) -> memoryview:
    """Return the content of the file of a last layer."""
    return npz({"weight": classifier.weight, "bias": classifier.bias})


def unpacked_classifier(content: bytes | memoryview) -> Classifier:
    """Return the last layer in the content of a file."""
    arrays = read_only_arrays(content)
    return Classifier(arrays["weight"], arrays["bias"])


def evidence_in(arrays: Mapping[str, NDArray[Any]]) -> Evidence:
    """Return the prediction that the arrays of a file are."""
    probabilities = arrays.get("probabilities")
    logits = arrays["logits"] if probabilities is None else logarithms(probabilities)
    prediction = Prediction(logits, arrays.get("features"), with_prefix(arrays, AUX), probabilities)
    return Evidence(
        prediction,
        arrays["labels"],
        arrays.get("posterior"),
        arrays.get("ids"),
        given=str(arrays.get("given", "")),
        predicted=arrays.get("predicted"),
        loss=arrays.get("loss"),
        groups=with_prefix(arrays, GROUP),
    )


def with_prefix(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def logarithms(probabilities: Floats) -> Floats:
    """Return log p in the same precision, and a finite number for 0."""
    logits = np.maximum(probabilities, SMALLEST, dtype=probabilities.dtype)
    np.log(logits, out=logits)
    logits.setflags(write=False)
    return logits
