"""The same runs from every kind of file give the same numbers."""

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmark.imports.find import name_and_seed
from benchmark.imports.npz import MAPPED_BYTES, read_npy, read_npz
from benchmark.store.store import Store
from tests.imports.runs import CLASSES, SAMPLES, imported, labels, logit_run, logits, loss_run, refused, save, softmax


def measures(results: Path) -> dict[tuple[str, int], Any]:
    return {(record.label, record.seed): record.measures for record in Store(results).records("predictions")}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Any]:
    """Two methods with two seeds each, from npz files."""
    folder = tmp_path_factory.mktemp("expected")
    runs = {f"{name}_{seed}": probable(name, seed) for name in "ab" for seed in (0, 1)}
    imported(folder / "r", *save(folder, **runs))
    return measures(folder / "r")


def probable(name: str, seed: int) -> dict[str, Any]:
    return {"labels": labels(), "probabilities": softmax(logits(10 * ord(name) + seed))}


def frame() -> pd.DataFrame:
    """The same runs with a line per sample, and columns in another order."""
    parts = []
    for name in "ab":
        for seed in (0, 1):
            p = probable(name, seed)["probabilities"]
            columns = {f"p_{index}": p[:, index] for index in reversed(range(CLASSES))}
            parts.append(pd.DataFrame({"model": name, "fold": seed, "y": labels(), "note": "x", **columns}))
    return pd.concat(parts, ignore_index=True)


COLUMNS = ("--columns", "method=model", "seed=fold", "label=y", "probabilities=p_*")
WRITERS: dict[str, Any] = {
    "t.csv": lambda table, path: table.to_csv(path, index=False, float_format="%.17g"),
    "t.csv.gz": lambda table, path: table.to_csv(path, index=False, float_format="%.17g"),
    "t.tsv": lambda table, path: table.to_csv(path, index=False, sep="\t", float_format="%.17g"),
    "t.jsonl": lambda table, path: table.to_json(path, orient="records", lines=True, double_precision=15),
    "t.ndjson.gz": lambda table, path: table.to_json(path, orient="records", lines=True, double_precision=15),
    "t.parquet": lambda table, path: table.to_parquet(path),
    "t.feather": lambda table, path: table.to_feather(path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_tables(name: str, expected: dict[Any, Any], tmp_path: Path) -> None:
    WRITERS[name](frame(), tmp_path / name)
    imported(tmp_path / "r", tmp_path / name, *COLUMNS)
    found = measures(tmp_path / "r")
    assert found.keys() == expected.keys()
    exact = not name.startswith(("t.json", "t.ndjson"))
    for key in expected:
        if exact:
            assert found[key] == expected[key]
        assert found[key].classifier.nll == pytest.approx(expected[key].classifier.nll, rel=1e-9)


def test_columns_go_by_their_own_names(expected: dict[Any, Any], tmp_path: Path) -> None:
    table = frame().rename(columns={"model": "method", "fold": "seed", "y": "label"})
    table.columns = [name.replace("p_", "probabilities_") for name in table.columns]
    table.to_parquet(tmp_path / "t.parquet")
    imported(tmp_path / "r", tmp_path / "t.parquet")
    assert measures(tmp_path / "r") == expected


def test_only_numbered_columns_are_classes(tmp_path: Path) -> None:
    """`logits_max` beside `logits_0` … is no class."""
    table = pd.DataFrame(logits(), columns=[f"logits_{index}" for index in range(CLASSES)])
    table.assign(label=labels(), logits_max=9.0, logits_a0=9.0).to_csv(tmp_path / "a-0.csv", index=False)
    imported(tmp_path / "r", tmp_path / "a-0.csv")
    imported(tmp_path / "q", *save(tmp_path, a_0=logit_run()))
    ours, theirs = (next(iter(measures(tmp_path / name).values())) for name in "rq")
    assert ours.classifier.nll == pytest.approx(theirs.classifier.nll)


def test_numbers_are_read_as_they_are_written(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random(SAMPLES)
    lines = [{"loss": 0.5, "confidence": value, "id": f"{index:03}"} for index, value in enumerate(values.tolist())]
    (tmp_path / "a-0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pd.DataFrame(lines).to_csv(tmp_path / "b-0.csv", index=False)
    imported(tmp_path / "r", tmp_path / "a-0.jsonl", tmp_path / "b-0.csv")
    store = Store(tmp_path / "r")
    for folder in store.finished():
        stored = store.read_prediction(folder)
        assert np.array_equal(stored.prediction.aux["confidence.confidence"], values)
        assert stored.ids is not None and stored.ids[7] == "007"


def test_names_that_look_like_numbers_stay_text(tmp_path: Path) -> None:
    table = pd.DataFrame(loss_run()).assign(sample=[f"{index:03}" for index in range(SAMPLES)])
    table["group.site"] = "007"
    table.to_csv(tmp_path / "a-0.csv", index=False)
    imported(tmp_path / "r", tmp_path / "a-0.csv", "--columns", "id=sample")
    store = Store(tmp_path / "r")
    stored = store.read_prediction(store.finished()[0])
    assert stored.ids is not None
    assert (stored.ids[7], stored.groups["site"][0]) == ("007", "007")


def test_lists_in_one_column(tmp_path: Path) -> None:
    lines = [
        {"label": int(y), "logits": [float(z) for z in row], "id": f"q{index}"}
        for index, (y, row) in enumerate(zip(labels(), logits(3), strict=True))
    ]
    (tmp_path / "llm-7.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    imported(tmp_path / "r", tmp_path / "llm-7.jsonl")
    imported(tmp_path / "q", *save(tmp_path, llm_7=logit_run(3)))
    (ours,), (theirs,) = measures(tmp_path / "r").values(), measures(tmp_path / "q").values()
    assert list(measures(tmp_path / "r")) == [("llm", 7)]
    assert ours.classifier.nll == pytest.approx(theirs.classifier.nll)
    assert ours.scores["SR"].aurc == pytest.approx(theirs.scores["SR"].aurc)


def test_classes_by_name(tmp_path: Path) -> None:
    names = ["cat", "dog", "cow", "ant"]
    p = softmax(logits())
    table = pd.DataFrame({f"p({name})": p[:, index] for index, name in enumerate(names)})
    table["truth"] = [names[label] for label in labels()]
    table.to_csv(tmp_path / "a-0.csv", index=False, float_format="%.17g")
    imported(tmp_path / "r", tmp_path / "a-0.csv", "--columns", "labels=truth", "probabilities=p(*)")
    (found,) = measures(tmp_path / "r").values()
    assert found.classifier.accuracy == pytest.approx((p.argmax(1) == labels()).mean())


def test_predicted_classes_by_name(tmp_path: Path) -> None:
    names = np.array(["cat", "dog", "cow", "ant"])
    guess = logits().argmax(1)
    table = pd.DataFrame({"label": names[labels()], "predicted": names[guess], "confidence": np.arange(SAMPLES)})
    table.to_csv(tmp_path / "a-0.csv", index=False)
    imported(tmp_path / "r", tmp_path / "a-0.csv")
    (found,) = measures(tmp_path / "r").values()
    assert found.classifier.accuracy == pytest.approx((guess == labels()).mean())


def test_ten_columns_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """p_10 follows p_9, not p_1."""
    y = np.arange(60) % 12
    p = softmax(4 * np.eye(12)[y])
    table = pd.DataFrame({f"p_{index}": p[:, index] for index in sorted(range(12), key=str)})
    table["label"] = y
    table.to_csv(tmp_path / "a-0.csv", index=False)
    imported(tmp_path / "r", tmp_path / "a-0.csv", "--columns", "probabilities=p_*")
    assert next(iter(measures(tmp_path / "r").values())).classifier.accuracy == 1


def test_parts_of_a_table(tmp_path: Path) -> None:
    """A column says which lines are test samples, validation samples, or of an evaluation set."""
    parts = []
    for part, noise in (("test", 0), ("val", 1), ("fog", 2)):
        table = pd.DataFrame(logits(noise), columns=[f"logits_{index}" for index in range(CLASSES)])
        parts.append(table.assign(label=labels(), part=part))
    pd.concat(parts).to_csv(tmp_path / "a-0.csv", index=False)
    imported(tmp_path / "r", tmp_path / "a-0.csv", "--scores", "pNorm")
    store = Store(tmp_path / "r")
    (folder,) = store.finished("predictions")
    assert np.allclose(store.read_prediction(folder, "prediction-val.npz").prediction.logits, logits(1))
    (foggy,) = store.finished("predictions-fog")
    assert np.allclose(store.read_prediction(foggy).prediction.logits, logits(2))


def test_npy_with_labels_beside(tmp_path: Path) -> None:
    np.save(tmp_path / "a-0.npy", logits())
    np.save(tmp_path / "p-0.npy", softmax(logits()))
    np.save(tmp_path / "y.npy", labels())
    (tmp_path / "y.txt").write_text("\n".join(map(str, labels())))
    imported(tmp_path / "r", tmp_path / "a-0.npy", "--labels", tmp_path / "y.npy")
    imported(tmp_path / "q", tmp_path / "p-0.npy", "--labels", tmp_path / "y.txt", "--given", "probabilities")
    imported(tmp_path / "n", *save(tmp_path, a_0=logit_run()))
    assert measures(tmp_path / "r") == measures(tmp_path / "n")
    (given,) = measures(tmp_path / "q").values()
    assert given.classifier.nll == pytest.approx(next(iter(measures(tmp_path / "n").values())).classifier.nll)


def test_a_list_of_runs(tmp_path: Path) -> None:
    (tmp_path / "arrays").mkdir()
    np.save(tmp_path / "arrays" / "y.npy", labels())
    for seed in (0, 1):
        np.save(tmp_path / "arrays" / f"z{seed}.npy", logits(seed))
        np.save(tmp_path / "arrays" / f"mc{seed}.npy", np.arange(SAMPLES))
    save(tmp_path, b_0=logit_run(7), b_1=logit_run(8))
    listed = "".join(
        f'[[run]]\nmethod = "ViT-B/16"\nseed = {seed}\nlogits = "arrays/z{seed}.npy"\n'
        f'confidence.mc = "arrays/mc{seed}.npy"\nscores = ["SR", "mc"]\n'
        for seed in (0, 1)
    )
    head = 'task = "pets"\ntitle = "Pets"\npaired = true\nreference = "b"\nlabels = "arrays/y.npy"\n'
    (tmp_path / "runs.toml").write_text(head + listed + '[[run]]\nfile = "b-*.npz"\n')
    said = imported(tmp_path / "r", tmp_path / "runs.toml")
    (manifest,) = Store(tmp_path / "r").manifests()
    assert (manifest.task, manifest.title, manifest.paired, manifest.reference) == ("pets", "Pets", True, "b")
    assert [(e.label, e.method, e.seeds) for e in manifest.entries] == [
        ("ViT-B/16", "imported-ViT-B_16", (0, 1)),
        ("b", "imported-b", (0, 1)),
    ]
    assert "ViT-B/16+mc" in said


def test_what_an_entry_says_counts_more_than_its_file(tmp_path: Path) -> None:
    save(tmp_path, a_0=logit_run() | {"labels": labels()[::-1]})
    np.save(tmp_path / "y.npy", labels())
    (tmp_path / "runs.toml").write_text('[[run]]\nfile = "a-0.npz"\nlabels = "y.npy"\n')
    imported(tmp_path / "r", tmp_path / "runs.toml")
    imported(tmp_path / "q", *save(tmp_path, a_0=logit_run()))
    assert measures(tmp_path / "r") == measures(tmp_path / "q")


def test_what_a_trainer_of_hugging_face_saves(tmp_path: Path) -> None:
    imported(tmp_path / "r", *save(tmp_path, a_0={"predictions": logits(), "label_ids": labels()}))
    imported(tmp_path / "q", *save(tmp_path, a_0=logit_run()))
    assert measures(tmp_path / "r") == measures(tmp_path / "q")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("vit-3.npz", ("vit", 3)),
        ("vit-large-12.npz", ("vit-large", 12)),
        ("vit.npz", ("vit", 0)),
        ("vit-b.csv.gz", ("vit-b", 0)),
        ("v1.5-2.npy", ("v1.5", 2)),
    ],
)
def test_file_names_say_method_and_seed(name: str, meant: tuple[str, int]) -> None:
    assert name_and_seed(Path(name)) == meant


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_arrays_are_mapped(order: Any, tmp_path: Path) -> None:
    table = np.asarray(np.random.default_rng(0).standard_normal((4000, 100)), np.float32, order=order)
    assert table.nbytes > MAPPED_BYTES
    np.savez(tmp_path / "a.npz", other=np.arange(3), logits=table)
    np.save(tmp_path / "a.npy", table)
    np.savez_compressed(tmp_path / "c.npz", logits=table)
    tracemalloc.start()
    mapped = [read_npz(tmp_path / "a.npz")["logits"], read_npy(tmp_path / "a.npy")]
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < table.nbytes / 4
    for array in (*mapped, read_npz(tmp_path / "c.npz")["logits"]):
        assert np.array_equal(array, table)
    assert all(isinstance(array, np.memmap) and not array.flags.writeable for array in mapped)


def test_what_to_install_for_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: Any, **__: Any) -> None:
        raise ImportError("Missing optional dependency 'pyarrow'")

    monkeypatch.setattr(pd, "read_parquet", lacking)
    (tmp_path / "t.parquet").touch()
    said = refused(tmp_path / "t.parquet")
    assert 'pyarrow is needed to read it; install it with: pip install "selbench[parquet]"' in said


def test_losses_from_a_table(tmp_path: Path) -> None:
    run = loss_run()
    with gzip.open(tmp_path / "qa-0.csv.gz", "wt") as file:
        pd.DataFrame(run).to_csv(file, index=False, float_format="%.17g")
    imported(tmp_path / "r", tmp_path / "qa-0.csv.gz")
    imported(tmp_path / "q", *save(tmp_path, qa_0=run))
    assert measures(tmp_path / "r") == measures(tmp_path / "q")
