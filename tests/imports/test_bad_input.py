"""Whatever is wrong with predictions that people bring is said in one line, exit code 2, before anything is written."""

# ruff: noqa: E501 (a case is a line)

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.imports.runs import (
    CLASSES,
    SAMPLES,
    Arrays,
    grid,
    imported,
    labels,
    logit_run,
    logits,
    loss_run,
    refused,
    save,
    snapshot,
    softmax,
)

NAN = logits()
NAN[7, 1] = np.nan
NAN[9, 0] = np.inf
OFF = softmax(logits())
OFF[3] *= 0.9
SATURATED = softmax(40 * logits()).astype(np.float16)
TEXT = np.array(["cat", "dog"] * (SAMPLES // 2))
CONFIDENCE = np.linspace(0, 1, SAMPLES)
FLOAT_LABELS = labels() + 0.5
ONE_BASED = labels() + 1
PREDICTED = {"labels": labels(), "predicted": labels(), "confidence": CONFIDENCE}
VAL = {"val.labels": labels(), "val.logits": logits(1)}


def probable(**more: Any) -> Arrays:
    return {"labels": labels(), "probabilities": softmax(logits()), **more}


def without(name: str, arrays: Arrays) -> Arrays:
    return {key: array for key, array in arrays.items() if key != name}


FILES: dict[str, tuple[Arrays, str]] = {
    "lengths differ": (logit_run() | {"labels": labels()[:-1]}, "labels and logits: expected as many samples in both, got 119 and 120"),
    "too few ids": (logit_run(ids=np.arange(3)), "labels and ids: expected as many samples in both, got 120 and 3"),
    "labels too large": (logit_run() | {"labels": labels() * 2}, "labels: expected classes from 0 to 3, got 4 in row 2 (60 such rows)"),
    "labels from one": (logit_run() | {"labels": ONE_BASED}, "got 4 in row 3 (30 such rows); count them from 0"),
    "labels below zero": (logit_run() | {"labels": labels() - 1}, "expected classes from 0 to 3, got -1 in row 0"),
    "labels not whole": (logit_run() | {"labels": FLOAT_LABELS}, "labels: expected classes as whole numbers, got 0.5 in row 0 (120 such rows)"),
    "labels one-hot": (logit_run() | {"labels": np.eye(CLASSES)[labels()]}, "labels: expected one dimension, a value per sample, got the shape (120, 4); labels that are one-hot become classes with .argmax(1)"),
    "labels text": (logit_run() | {"labels": TEXT}, "labels: expected numbers, got 'cat' in row 0"),
    "labels missing": ({"logits": logits()}, "the true classes are missing; add them as `labels`, or name their file with --labels FILE"),
    "NaN": (logit_run() | {"logits": NAN}, "logits: 2 values are NaN or infinite, first in row 7; rows count from 0"),
    "NaN confidence": (PREDICTED | {"confidence": np.full(SAMPLES, np.nan)}, "confidence: 120 values are NaN or infinite, first in row 0"),
    "sums": (probable(probabilities=OFF), "probabilities: 1 row does not sum to 1, the worst is row 3 with 0.9; add --normalise"),
    "logits as probabilities": (probable(probabilities=logits()), "expected values from 0 to 1, got values from -3.899 to 4.027; they look like logits: bring them as `logits`"),
    "per cent": (probable(probabilities=100 * softmax(logits())), "they look like per cent: divide by 100"),
    "logarithms as probabilities": (probable(probabilities=np.log(softmax(logits()))), "they look like log-probabilities: bring them as `log_probabilities`"),
    "probabilities as logits": (logit_run() | {"logits": softmax(logits())}, "logits look like probabilities: every value lies from 0 to 1 and every row sums to 1; bring them as `probabilities`"),
    "logits as logarithms": ({"labels": labels(), "log_probabilities": logits()}, "expected values up to 0, got values from -3.899 to 4.027; they look like logits"),
    "probabilities as logarithms": ({"labels": labels(), "log_probabilities": softmax(logits())}, "log_probabilities look like probabilities"),
    "logarithms that do not sum": ({"labels": labels(), "log_probabilities": logits() - 20}, "expected probabilities that sum to 1, row"),
    "two kinds": (probable(logits=logits()), "expected one of logits, log_probabilities, probabilities, predicted, loss, got logits and probabilities; leave all but one out"),
    "no kind": ({"labels": labels()}, "expected one of logits, log_probabilities, probabilities, predicted, loss, got labels"),
    "confidence alone": ({"labels": labels(), "confidence": CONFIDENCE}, "for a confidence alone add `predicted` classes or a `loss`"),
    "predicted without confidence": (without("confidence", PREDICTED), "`predicted` needs a confidence, larger = kept first"),
    "loss without confidence": (without("confidence", loss_run()), "`loss` needs a confidence"),
    "predicted not whole": (PREDICTED | {"predicted": FLOAT_LABELS}, "predicted: expected classes as whole numbers, got 0.5 in row 0"),
    "predicted below zero": (PREDICTED | {"predicted": labels() - 1}, "predicted: expected classes counted from 0, got -1 in row 0"),
    "loss too large": (loss_run(loss=np.full(SAMPLES, 3.0)), "loss: expected values from 0 to 1, got 3 in row 0 (120 such rows); divide it by its largest possible value"),
    "loss below zero": (loss_run(loss=-CONFIDENCE), "loss: expected values from 0 to 1, got -"),
    "ids twice": (logit_run(ids=np.r_[0, np.arange(SAMPLES - 1)]), "ids: expected each sample once, got 0 2 times (1 such id)"),
    "ids not whole": (logit_run(ids=CONFIDENCE), "ids: expected whole numbers or text, got"),
    "one column": (logit_run() | {"logits": logits()[:, :1]}, "logits: expected a column for each class, got 1 column; for two classes bring both, e.g. 1 − p and p"),
    "no columns": (logit_run() | {"logits": logits()[:, 0]}, "logits: expected two dimensions, samples × columns, got the shape (120,); for two classes bring both"),
    "confidence of two dimensions": (PREDICTED | {"confidence": CONFIDENCE[:, None]}, "confidence: expected one dimension, a value per sample, got the shape (120, 1); flatten it, e.g. with .ravel()"),
    "no samples": ({"labels": labels()[:0], "logits": logits()[:0]}, "has no samples; expected at least one"),
    "float16 ties": (probable(probabilities=SATURATED), "probabilities are float16, and 1"),
    "unknown field": (logit_run(logit=logits()), "unknown field of vit-0.npz: 'logit': did you mean 'logits'?"),
    "unknown named field": (logit_run(**{"confidences.mc": CONFIDENCE}), "unknown field of vit-0.npz: 'confidences.mc'"),
    "a name that leads out": (logit_run(**{"confidence.a/b": CONFIDENCE}), "unknown field of vit-0.npz: 'confidence.a/b'"),
    "a field twice": (logit_run(label_ids=labels()), "'label_ids' is the field labels, which is there already"),
    "taken score": (logit_run(**{"confidence.margin": CONFIDENCE}), "confidence.margin: the suite computes margin from the logits; leave it out, or give it another name"),
    "score that is not there": (logit_run(scores=np.array(["abstention"])), "no score 'abstention': its predictions have no output 'abstain'"),
    "validation of other length": (logit_run(**VAL, **{"val.ids": np.arange(2)}), "vit-0.npz, val: labels and ids: expected as many samples in both, got 120 and 2"),
    "validation without labels": (logit_run(**{"val.logits": logits()}), "vit-0.npz, val: the true classes are missing"),
    "set without labels": (logit_run(**{"set.fog.logits": logits()}), "vit-0.npz, set fog: the true classes are missing"),
    "posterior of other classes": (logit_run(posterior=np.full((SAMPLES, 2), 0.5)), "posterior: expected 4 columns, one for each class, got 2 columns"),
    "logits beyond all bounds": (logit_run() | {"logits": 1e300 * logits().astype(float)}, "logits: expected values up to 1e+30"),
    "too many classes": (PREDICTED | {"predicted": labels() + 10**6}, "predicted: expected at most 100,000 classes, got 1000000 in row 0"),
    "validation of other classes": (logit_run(**{"val.labels": labels(), "val.logits": np.c_[logits(), logits()]}), "vit-0.npz, val: expected 4 classes, as the test samples have, got 8"),
    "training of other features": (logit_run(features=logits(), **{"train.features": logits()[:, :2], "train.labels": labels()}), "vit-0.npz, train: expected 4 features, as the test samples have, got 2"),
    "seed that is none": (logit_run(seed=np.array(-1)), "vit-0.npz: seed: expected a whole number from 0 to"),
    "method that is none": (logit_run(method=np.array([1, 2])), "method: expected one text, got the shape (2,)"),
    "method without a name": (logit_run(method=np.array(" ")), "method ' ': expected a name of 1 to 80 letters"),
}  # fmt: skip


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A results folder with a run of the same task."""
    results = tmp_path / "mine"
    imported(results, *save(tmp_path, first_0=logit_run(50)))
    return results


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_cannot_be_right(case: str, mine: Path, tmp_path: Path) -> None:
    arrays, said = FILES[case]
    before = snapshot(mine)
    (path,) = save(tmp_path, vit_0=arrays)
    assert said in refused(path, "--results", mine)
    assert snapshot(mine) == before


def text(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def csv_file(folder: Path, header: str, *lines: str) -> Path:
    return text(folder / "table.csv", "\n".join([header, *lines]) + "\n")


def objects(folder: Path) -> Path:
    np.savez(folder / "vit-0.npz", labels=np.array([{"a": 1}, None]), logits=logits())
    return folder / "vit-0.npz"


def saved(folder: Path, name: str, array: Any) -> Path:
    np.save(folder / name, array)
    return folder / name


COMMANDS: dict[str, tuple[Callable[[Path], list[Any]], str]] = {
    "no file": (lambda f: [f / "nothing-*.npz"], "no file '"),
    "no files": (lambda f: [], "expected files with predictions, e.g. score vit-*.npz"),
    "a folder": (lambda f: [f], "is a folder; name the files in it"),
    "a pickle": (lambda f: [text(f / "a.pkl", "x")], "is a pickle, which may execute anything and is never loaded"),
    "an unknown ending": (lambda f: [text(f / "a.doc", "x")], "expected .npz, .npy, .toml, .csv"),
    "objects": (lambda f: [objects(f)], "labels is an array of Python objects, which only pickle can store"),
    "no zip": (lambda f: [text(f / "a-0.npz", "hello")], "is no npz file that can be read"),
    "no npy": (lambda f: [text(f / "a-0.npy", "hello"), "--labels", saved(f, "y.npy", labels())], "is no npy file that can be read"),
    "npy without labels": (lambda f: [saved(f, "a-0.npy", logits())], "the true classes are missing; add them as `labels`, or name their file with --labels FILE"),
    "labels that are text": (lambda f: [saved(f, "a-0.npy", logits()), "--labels", text(f / "y.txt", "cat\n")], "expected a number per line"),
    "no labels file": (lambda f: [saved(f, "a-0.npy", logits()), "--labels", f / "y.npy"], "No such file"),
    "a seed twice": (lambda f: [*save(f, a_0=logit_run(), b_0=logit_run(method=np.array("a")))], "both are a with seed 0; name them METHOD-SEED"),
    "names alike": (lambda f: [*save(f, a_0=logit_run(), A_1=logit_run())], "a method of this table is called"),
    "other labels": (lambda f: [*save(f, a_0=logit_run(), b_0=logit_run() | {"labels": (labels() + 1) % CLASSES})], "b-0.npz and a-0.npz: 120 labels differ of 120, first in row 0: 1 and 0"),
    "other order": (lambda f: [*save(f, a_0=logit_run(), b_0={"labels": labels()[::-1], "logits": logits()[::-1]})], "the samples seem to stand in another order: bring `ids` in both, or sort them"),
    "other ids": (lambda f: [*save(f, a_0=logit_run(ids=np.arange(SAMPLES)), b_0=logit_run(ids=np.arange(1, SAMPLES + 1)))], "expected the same ids in both; the first lacks 1 id, e.g. '0'"),
    "other samples": (lambda f: [*save(f, a_0=logit_run(), b_0={"labels": labels()[:9], "logits": logits()[:9]})], "expected the same samples, got 9 and 120"),
    "other classes": (lambda f: [*save(f, a_0=logit_run(), b_0=logit_run() | {"logits": np.c_[logits(), logits()]})], "expected as many classes in both, got 8 and 4"),
    "loss beside classes": (lambda f: [*save(f, a_0=logit_run(), b_0=loss_run())], "b-0.npz has a loss and no labels, the other has labels"),
    "no column": (lambda f: [csv_file(f, "y,p_0,p_1", "0,0.5,0.5"), "--columns", "label=z", "probabilities=p_*"], "unknown column of table.csv: 'z'"),
    "no such field": (lambda f: [csv_file(f, "y,p_0,p_1", "0,0.5,0.5"), "--columns", "truth=y"], "unknown field of table.csv: 'truth'"),
    "no mapping": (lambda f: [csv_file(f, "y,p", "0,0.5"), "--columns", "label"], "--columns 'label': expected FIELD=COLUMN"),
    "an empty table": (lambda f: [csv_file(f, "label,probabilities_0")], "has no lines; expected one for each sample"),
    "a seed of text": (lambda f: [csv_file(f, "label,seed,loss,confidence", "0,x,0.5,1")], "seed: expected a whole number"),
    "unknown class": (lambda f: [csv_file(f, "label,p_cat,p_dog", "cow,0.5,0.5"), "--columns", "probabilities=p_*"], "labels: expected one of cat, dog, got 'cow'"),
    "one column for all classes": (lambda f: [csv_file(f, "label,logits", "0,0.5")], "expected a column for each class, e.g. logits=logits*, or lists in one column"),
    "ragged lists": (lambda f: [text(f / "t.jsonl", '{"label": 0, "logits": [1, 2]}\n{"label": 0, "logits": [1]}\n')], "expected lists of one length, got 1 to 2 values"),
    "no JSON": (lambda f: [text(f / "t.jsonl", "{")], "is no jsonl file that can be read"),
    "no Parquet": (lambda f: [text(f / "t.parquet", "x")], "is no parquet file that can be read"),
    "no Feather": (lambda f: [text(f / "t.feather", "x")], "is no feather file that can be read"),
    "no TOML": (lambda f: [text(f / "runs.toml", "= 3")], "is no TOML file"),
    "a list without runs": (lambda f: [text(f / "runs.toml", 'task = "x"')], "expected runs, each as [[run]]"),
    "a list of nothing": (lambda f: [text(f / "runs.toml", '[[run]]\nmethod = "a"\n')], "a [[run]] needs `method`, and its arrays"),
    "a list with a lost file": (lambda f: [text(f / "runs.toml", '[[run]]\nmethod = "a"\nlogits = "x.npy"\n')], "logits: no file '"),
    "a list with a wrong key": (lambda f: [text(f / "runs.toml", 'logit = "runs.toml"\n[[run]]\nmethod = "a"\n')], "unknown field of"),
    "a list that is not paired": (lambda f: [text(f / "runs.toml", 'paired = "yes"\n[[run]]\nmethod = "a"\n')], "paired: expected true or false, got 'yes'"),
    "two lists": (lambda f: [text(f / "runs.toml", ""), *grid(f)], "lists all runs of a command; name it alone"),
    "a task that cannot be": (lambda f: [*grid(f), "--task", "a/b"], "--task 'a/b': expected a name of letters"),
    "a task with a reserved name": (lambda f: [*grid(f), "--task", "tables"], "--task 'tables': expected a name of letters"),
    "another reference": (lambda f: [*grid(f), "--reference", "c"], "--reference c: not among the methods shown"),
    "pairs that are none": (lambda f: [*grid(f), "--test", "paired"], "--test paired: nothing says that runs of predictions with one seed are pairs"),
    "an unknown score": (lambda f: [*grid(f), "--scores", "energi"], "unknown score 'energi': did you mean 'energy'?"),
    "a method named as a column": (lambda f: [*save(f, a_0=logit_run(**{"confidence.x": CONFIDENCE}), b_0=logit_run(method=np.array("a+x")))], "method 'a+x' is the column of a with the score x; give one of them another name"),
    "a method named as a score of another": (lambda f: [*save(f, B_0=logit_run(), C_0=logit_run(method=np.array("b+Margin")))], "method 'b+Margin' is the column of B with the score margin"),
    "a list within a list": (lambda f: [text(f / "runs.toml", '[[run]]\nfile = "runs.toml"\n')], "file: expected predictions, got the list"),
    "columns of no table": (lambda f: [*grid(f), "--columns", "labels=y"], "--columns: it is for tables"),
    "kind of no array": (lambda f: [*grid(f), "--given", "probabilities"], "--given probabilities: it is for npy files"),
    "a field of two columns": (lambda f: [csv_file(f, "y,ya,p_0,p_1", "0,1,0.5,0.5"), "--columns", "labels=y*", "probabilities=p_*"], "labels=y*: expected one column, got y, ya"),
    "a field named twice": (lambda f: [csv_file(f, "y,p_0,p_1", "0,0.5,0.5"), "--columns", "labels=y", "labels=p_0"], "labels is y already; name it once"),
    "a gap in the classes": (lambda f: [csv_file(f, "label,logits_0,logits_2", "0,0.5,0.5")], "logits: expected columns numbered without gaps, got 0, 2"),
    "a line without part": (lambda f: [csv_file(f, "label,part,logits_0,logits_1", "0,test,1,2", "0,,1,2")], "part: 1 line has no value, first in row 1"),
    "a line without method": (lambda f: [csv_file(f, "label,method,logits_0,logits_1", ",a,1,2", "0,,1,2")], "method: 1 line has no value, first in row 1"),
    "a label that is missing": (lambda f: [csv_file(f, "label,p_cat,p_dog", "cat,0.5,0.5", ",0.5,0.5"), "--columns", "probabilities=p_*"], "labels: 1 line has no value, first in row 1"),
    "text and numbers": (lambda f: [csv_file(f, "label,predicted,confidence", "0,cat,1")], "predicted: expected classes as whole numbers from 0, got 'cat'"),
    "a question mark": (lambda f: [csv_file(f, "label,logits_0,logits_1", "0,1,2", "0,?,2")], "logits: expected numbers, got '?' in row 1"),
    "a packed npz": (lambda f: [text(f / "a-0.npz.gz", "x")], "what it is must be seen from its name"),
    "pairs within a run": (lambda f: [text(f / "runs.toml", '[[run]]\nmethod = "a"\npaired = true\nfile = "a-0.npz"\n')], "paired: it belongs above all runs"),
    "a seed for all runs": (lambda f: [text(f / "runs.toml", 'seed = 3\n[[run]]\nmethod = "a"\nfile = "a-0.npz"\n')], "seed: it belongs into a [[run]]"),
    "a list as a name": (lambda f: [text(f / "runs.toml", '[[run]]\nmethod = ["a"]\nfile = "a-0.npz"\n')], "method: expected text, got ['a']"),
    "an unknown option": (lambda f: [*grid(f), "--normalize"], "unknown argument '--normalize'; did you mean --normalise?"),
}  # fmt: skip


@pytest.mark.parametrize("case", COMMANDS)
def test_a_command_that_cannot_be_right(case: str, tmp_path: Path) -> None:
    words, said = COMMANDS[case]
    results = tmp_path / "results"
    assert said in refused(*words(tmp_path), "--results", results)
    assert not results.exists() or not snapshot(results)


def test_enough_cases() -> None:
    assert len(FILES) + len(COMMANDS) >= 40


def test_other_content_is_refused(mine: Path, tmp_path: Path) -> None:
    before = snapshot(mine)
    said = refused(*save(tmp_path, first_0=logit_run(51)), "--results", mine)
    assert (
        said
        == "first-0.npz: first with seed 0 is in the task predictions already, with other content; add --replace to replace it"
    )
    assert snapshot(mine) == before


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    """Not even where a file has another name."""
    proof = tmp_path / "executed"

    class Trap:
        def __reduce__(self) -> Any:
            return Path.touch, (proof,)

    for name in ("a-0.npz", "a-0.npy"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        refused(tmp_path / name, "--labels", saved(tmp_path, "y.npy", labels()))
    np.savez(tmp_path / "b-0.npz", labels=np.array([Trap()], dtype=object), logits=logits())
    refused(tmp_path / "b-0.npz")
    assert not proof.exists()


def test_a_damaged_member_is_found(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a-0.npz", **logit_run())
    content = bytearray((tmp_path / "a-0.npz").read_bytes())
    content[400:440] = bytes(40)
    (tmp_path / "a-0.npz").write_bytes(content)
    assert "is no npz file that can be read" in refused(tmp_path / "a-0.npz", "--results", tmp_path / "r")


def test_a_manifest_names_only_what_is_in_its_folder(mine: Path) -> None:
    (path,) = (mine / "manifests").glob("*.json")
    entry = json.loads(path.read_text())["entries"][0]
    assert (mine / "predictions" / entry["method"] / entry["job"] / "seed-0" / "record.json").is_file()
