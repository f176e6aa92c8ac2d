"""Vectors of one's own: what is read equals what pandas and numpy make of the same files, and the cache keeps it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch

from benchmark.base.errors import UserError
from benchmark.config.evaluation import EvaluationConfig
from benchmark.config.load import load_task
from benchmark.config.task import EMBEDDED, DataConfig
from benchmark.config.training import AugmentConfig
from benchmark.data import cache, cache_build
from benchmark.data.cache import Folders, cache_name
from benchmark.data.cache_build import open_cache
from benchmark.data.dataset import facts_of, load, prepare
from benchmark.data.evaluation.sets import open_set
from benchmark.data.images import Images, Loaded
from benchmark.data.sources import check_labels, describe, get_source
from tests.conftest import NOWHERE, PLENTY

COUNT = 120
CPU = torch.device("cpu")


def frame(seed: int = 0) -> pandas.DataFrame:
    random = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "weight": random.normal(150, 20, COUNT).round(2),
            "length": random.normal(70, 5, COUNT).round(3),
            "count": random.integers(0, 9, COUNT),
            "colour": random.choice(["red", "green", "blue"], COUNT),
            "kind": random.choice(["pear", "apple"], COUNT),
        }
    )


WRITERS = {
    "csv": lambda table, path: table.to_csv(path, index=False),
    "tsv": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    "csv.gz": lambda table, path: table.to_csv(path, index=False),
    "jsonl": lambda table, path: table.to_json(path, orient="records", lines=True),
    "parquet": lambda table, path: table.to_parquet(path),
    "feather": lambda table, path: table.to_feather(path),
}
TABLE = DataConfig("vectors", labels="kind", one_hot=("colour",), test_share=0.25)


def write(table: pandas.DataFrame, folder: Path, name: str = "own.csv") -> DataConfig:
    folder.mkdir(exist_ok=True)
    WRITERS[name.partition(".")[2]](table, folder / name)
    return replace(TABLE, path=str(folder / name))


def loaded_from(config: DataConfig) -> Loaded:
    loaded = get_source(config).load(config, Path())
    check_labels(loaded, config)
    return loaded


def rows(images: Images) -> np.ndarray:
    """The vectors of a split (N, D)."""
    found = np.stack([images.pictures[int(row)] for row in images.rows])
    assert found.shape[2:] == (1, 1)
    return found[:, :, 0, 0]


def expected(table: pandas.DataFrame) -> np.ndarray:
    """What pandas makes of the table: its numbers, and a column of 0 and 1 for each colour."""
    numbers = table[["weight", "length", "count"]].to_numpy(np.float64)
    return np.column_stack([numbers, pandas.get_dummies(table["colour"]).to_numpy()]).astype(np.float32)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_table_is_read_as_pandas_reads_it(tmp_path: Path, kind: str) -> None:
    table = frame()
    loaded = loaded_from(write(table, tmp_path, f"own.{kind}"))
    together = [np.concatenate(pair) for pair in zip((loaded.train.rows, rows(loaded.train), loaded.train.labels),
                                                     (loaded.test.rows, rows(loaded.test), loaded.test.labels),
                                                     strict=True)]  # fmt: skip
    order, vectors, labels = (each[np.argsort(together[0])] for each in together)
    assert np.array_equal(order, np.arange(COUNT))
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, expected(table))
    assert np.array_equal(labels, pandas.Categorical(table["kind"]).codes), "classes in sorted order"
    assert len(loaded.test) == 30


def test_files_for_training_and_testing(tmp_path: Path) -> None:
    """Two files by name, or a folder; the columns may stand in another order."""
    tables = {name: frame(seed) for seed, name in enumerate(("train", "test", "val"))}
    configs = {name: write(table, tmp_path / "all", f"{name}.csv") for name, table in tables.items()}
    tables["test"][tables["test"].columns[::-1]].to_csv(configs["test"].path, index=False)
    named = replace(configs["train"], test_path=configs["test"].path, test_share=0.0)
    folder = replace(named, path=str(tmp_path / "all"), test_path="")
    for config, splits in ((named, ("train", "test")), (folder, ("train", "test", "val"))):
        found = loaded_from(config).splits()
        assert set(found) == set(splits)
        for name in splits:
            assert np.array_equal(rows(found[name]), expected(tables[name]))


@pytest.mark.parametrize(
    ("stored", "kept"),
    [("float16", "float16"), ("float32", "float32"), ("float64", "float32"), ("int16", "float32")],
)
@pytest.mark.parametrize("form", ["npz", "npy"])
def test_arrays_keep_half_and_single_precision(tmp_path: Path, stored: str, kept: str, form: str) -> None:
    random = np.random.default_rng(1)
    arrays = {}
    for name, count in (("train", 40), ("test", 20)):
        arrays[f"{name}_vectors"] = (10 * random.normal(size=(count, 5))).astype(stored)
        arrays[f"{name}_labels"] = np.arange(count) % 4 + 7  # 7 to 10: numbers are sorted as numbers
    if form == "npz":
        np.savez(tmp_path / "own.npz", **arrays)  # type: ignore[arg-type]
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    config = DataConfig("vectors", path=str(tmp_path / "own.npz" if form == "npz" else tmp_path))
    facts = describe(config)
    assert (facts.num_classes, facts.num_train, facts.num_test, facts.shape) == (4, 40, 20, (5, 1, 1))
    assert facts.are_vectors
    folders = Folders(tmp_path, tmp_path / "cache")
    for loaded in (loaded_from(config), open_cache(config, folders)[0], open_cache(config, folders, build=False)[0]):
        for name, images in (("train", loaded.train), ("test", loaded.test)):
            assert rows(images).dtype == kept
            assert np.array_equal(rows(images), arrays[f"{name}_vectors"].astype(kept))
            assert np.array_equal(images.labels, arrays[f"{name}_labels"] - 7)
    assert facts_of(config, loaded) == facts, "a cache says the same as the file"


def test_the_pipeline_standardises_with_the_training_vectors(tmp_path: Path) -> None:
    """Also vectors far from zero or tiny: by column, with numpy's mean and std of all training vectors."""
    table = frame().assign(offset=lambda t: 1e4 + t["weight"] / 100, tiny=lambda t: t["length"] * 1e-6)
    config = replace(write(table, tmp_path), val=0.2)
    loaded, _ = load(config, Folders(tmp_path, tmp_path / "cache"))
    train = rows(loaded.train).astype(np.float64)
    assert loaded.mean == pytest.approx(train.mean(axis=0), rel=1e-5)
    assert loaded.std == pytest.approx(train.std(axis=0), rel=1e-5)
    data = prepare(config, Folders(tmp_path, tmp_path / "cache"), 0, CPU, PLENTY)
    assert data.val is not None
    assert (len(data.train), len(data.val), len(data.test)) == (72, 18, 30)
    seen = torch.cat(list(data.eval_batches(data.test, 7))).numpy()[:, :, 0, 0]
    by_hand = (rows(loaded.test).astype(np.float64) - train.mean(axis=0)) / train.std(axis=0)
    assert seen == pytest.approx(by_hand, abs=2e-3)
    batch = next(data.batches(16, 0, 0, AugmentConfig(), 1))
    assert batch.images.shape == (16, 8, 1, 1)
    assert batch.images.dtype == torch.float32


@pytest.mark.parametrize("budget", [0, PLENTY], ids=["streamed", "resident"])
def test_half_precision_reaches_the_network_in_single(tmp_path: Path, budget: int) -> None:
    vectors = np.random.default_rng(2).normal(3, 2, (50, 6)).astype(np.float16)
    np.savez(tmp_path / "own.npz", vectors=vectors, labels=np.arange(50) % 2)
    config = DataConfig("vectors", path=str(tmp_path / "own.npz"), test_share=0.2)
    data = prepare(config, Folders(tmp_path, tmp_path / "cache"), 0, CPU, budget)
    seen = torch.cat(list(data.eval_batches(data.train, 9)))
    assert seen.dtype == torch.float32
    train = np.sort(np.random.Generator(np.random.PCG64(0)).permutation(50)[10:])
    own = vectors[train].astype(np.float64)
    assert seen.numpy()[:, :, 0, 0] == pytest.approx((own - own.mean(axis=0)) / own.std(axis=0), abs=1e-4)


def test_missing_numbers_are_filled_with_the_median_of_the_training_rows(tmp_path: Path) -> None:
    table, lost = frame(), np.random.default_rng(3).random((COUNT, 2)) < 0.1
    for index, name in enumerate(("weight", "length")):
        table.loc[lost[:, index], name] = np.nan
    table.loc[5, "colour"] = None
    loaded = loaded_from(replace(write(table, tmp_path), missing="median"))
    medians = table[["weight", "length"]].iloc[loaded.train.rows].median()
    for images in (loaded.train, loaded.test):
        filled = table[["weight", "length"]].fillna(medians).to_numpy(np.float32)[images.rows]
        assert np.array_equal(rows(images)[:, :2], filled)
        colours = rows(images)[:, 3:].sum(axis=1)
        assert np.array_equal(colours == 0, images.rows == 5), "no colour is known, so all are 0"


def test_a_category_that_training_does_not_know_is_none_of_its_columns(tmp_path: Path) -> None:
    first, second = write(frame(), tmp_path / "a"), write(frame(1).assign(colour="violet"), tmp_path / "b")
    loaded = loaded_from(replace(first, test_path=second.path, test_share=0.0))
    assert rows(loaded.test).shape == (COUNT, 6)
    assert (rows(loaded.test)[:, 3:] == 0).all()


def test_columns_by_name_and_pattern(tmp_path: Path) -> None:
    config = write(frame(), tmp_path)
    table = expected(frame())
    for columns, kept in (
        (("weight", "count"), [0, 2]),
        (("*t",), [0, 2]),
        (("!colour", "!length"), [0, 2]),
        (("w*", "colour"), [0, 3, 4, 5]),
    ):
        categories = ("colour",) if "colour" in columns else ()
        loaded = loaded_from(replace(config, columns=columns, one_hot=categories))
        assert np.array_equal(rows(loaded.train), table[np.ix_(loaded.train.rows, kept)]), columns
    every = loaded_from(replace(config, one_hot=("all",)))
    assert np.array_equal(rows(every.train), table[every.train.rows])
    numbers = loaded_from(replace(config, columns=("count",), one_hot=("count",)))
    counts = frame()["count"].to_numpy()[numbers.train.rows]
    assert np.array_equal(rows(numbers.train), counts[:, None] == np.unique(counts)), "numbers can be categories"


def test_constant_columns_are_dropped_on_request(tmp_path: Path) -> None:
    config = write(frame().assign(same=3.5), tmp_path)
    with pytest.raises(UserError, match="column 'same' has the same value"):
        loaded_from(config)
    loaded = loaded_from(replace(config, constant="drop"))
    assert np.array_equal(rows(loaded.train), expected(frame())[loaded.train.rows])
    kept = loaded_from(replace(config, mean=(0.0,) * 7, std=(1.0,) * 7))
    assert rows(kept.train).shape[1] == 7, "nothing is divided by what is measured"


def test_another_reading_is_another_cache_and_the_same_data_the_same_hash(tmp_path: Path) -> None:
    folders = Folders(tmp_path, tmp_path / "cache")
    csv, parquet = (write(frame(), tmp_path, f"own.{kind}") for kind in ("csv", "parquet"))
    assert cache_name(csv) != cache_name(replace(csv, missing="median"))
    assert cache_name(csv) != cache_name(replace(csv, test_path=parquet.path))
    hashes = [open_cache(config, folders)[1] for config in (csv, parquet, replace(csv, missing="median"))]
    assert len(set(hashes)) == 1
    assert open_cache(replace(csv, columns=("weight",), one_hot=()), folders)[1] != hashes[0]


def test_a_build_that_stopped_goes_on_and_damage_is_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "CHUNK_BYTES", 500)
    config, folders = write(frame(), tmp_path), Folders(tmp_path, tmp_path / "cache")
    whole, sha256 = open_cache(config, Folders(tmp_path, tmp_path / "other"))
    decode, seen = cache_build.decode, []

    def stops(part: np.ndarray) -> tuple[bytes, np.ndarray]:
        seen.append(part)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return decode(part)

    monkeypatch.setattr(cache_build, "decode", stops)
    with pytest.raises(KeyboardInterrupt):
        open_cache(config, folders)
    loaded, again = open_cache(config, folders)
    chunks = len(seen) - 1
    assert (again, loaded.mean, loaded.std) == (sha256, whole.mean, whole.std)
    assert np.array_equal(rows(loaded.train), rows(whole.train))
    pixels = folders.cache / cache_name(config) / "train.pixels"
    content = bytearray(pixels.read_bytes())
    content[700] ^= 1
    pixels.write_bytes(content)
    mended, again = open_cache(config, folders)
    assert again == sha256
    assert np.array_equal(rows(mended.train), rows(whole.train))
    assert len(seen) == chunks + 2, "one chunk was damaged"


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_tables(name: str) -> None:
    from sklearn import datasets

    task = load_task(name)
    loaded, _ = load(task.data, NOWHERE)
    facts = facts_of(task.data, loaded)
    loader = {"digits-vectors": "digits"}.get(name, name).replace("-", "_")
    values, labels = getattr(datasets, f"load_{loader}")(return_X_y=True)
    train, test = rows(loaded.train), rows(loaded.test)
    assert (facts.num_train, facts.num_test, facts.shape) == (len(train), len(test), (train.shape[1], 1, 1))
    assert facts.num_classes == labels.max() + 1
    assert loaded.mean == pytest.approx(train.mean(axis=0, dtype=np.float64), rel=1e-5)
    assert loaded.std == pytest.approx(train.std(axis=0, dtype=np.float64), rel=1e-5)
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(labels))
    kept = np.flatnonzero(np.ptp(values[order[: len(train)]], axis=0))
    assert np.array_equal(np.concatenate([train, test]), values[np.ix_(order, kept)].astype(np.float32))
    assert np.array_equal(np.concatenate([loaded.train.labels, loaded.test.labels]), labels[order])
    if name == "digits-vectors":
        images, _ = load(load_task("digits").data, NOWHERE)
        assert np.array_equal(images.test.labels, loaded.test.labels), "the same test images as the task digits"


def test_an_evaluation_set_of_vectors_has_the_columns_of_the_task(tmp_path: Path) -> None:
    """A task that differs in its test rows alone fits; one with other training rows may have other categories."""
    elsewhere, other = frame(1), frame(2)
    home = write(frame(), tmp_path / "a")
    home = replace(home, test_path=write(frame(3), tmp_path / "b").path, test_share=0.0)
    paths = {"fits": (home.path, write(elsewhere, tmp_path / "c").path)}
    paths["differs"] = (write(other, tmp_path / "d").path, home.test_path)
    data = 'source = "vectors"\nlabels = "kind"\none_hot = ["colour"]'
    for name, (train, test) in paths.items():
        text = f'extends = "wine"\n[data]\n{data}\npath = "{train}"\ntest_path = "{test}"\n'
        (tmp_path / f"{name}.toml").write_text(text)
    folders, task = Folders(tmp_path, tmp_path / "cache"), replace(load_task("wine"), data=replace(home, val=0.2))
    sets = {name: EvaluationConfig("shift", images=str(tmp_path / f"{name}.toml")) for name in paths}
    (part,) = open_set(sets["fits"], task, folders).parts
    assert part.images is not None
    assert np.array_equal(rows(part.images), expected(elsewhere))
    with pytest.raises(UserError, match="makes its columns from other training rows than the task"):
        open_set(sets["differs"], task, folders)
