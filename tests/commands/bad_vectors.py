"""Tables and arrays of vectors with which something is wrong, for `test_bad_input.py`."""

from pathlib import Path

import numpy as np

from tests.conftest import TINY

ROWS = 40
TESTED = int(np.random.Generator(np.random.PCG64(0)).permutation(ROWS)[0])
"""A row that is kept for testing."""
TASK = (
    TINY[TINY.index("title") : TINY.index("[data]")]
    + '[network]\nname = "linear"\n[optimizer]\nname = "sgd"\nlr = 0.1\n'
)
EMBEDDED = '[data]\nsource = "wine"\nval = 0.2\n'


def lines() -> list[list[str]]:
    """A table without fault: three numbers, a colour and a kind."""
    random = np.random.default_rng(0)
    rows = [[f"{value:.2f}" for value in random.normal(size=3)] for _ in range(ROWS)]
    return [["a", "b", "c", "colour", "kind"]] + [
        [*row, ("red", "green")[index % 3 == 0], ("pear", "apple")[index % 2]] for index, row in enumerate(rows)
    ]


def changed(row: int, column: int, value: str) -> list[list[str]]:
    table = lines()
    table[row + 1][column] = value
    return table


def write_vectors(folder: Path) -> dict[str, Path]:
    """Write tables and arrays, and a task for each; return the places of the tasks by name."""
    random = np.random.default_rng(0)
    vectors, labels = random.normal(size=(ROWS, 3)), np.arange(ROWS) % 2
    with_nan, with_infinity = vectors.copy(), vectors.copy()
    with_nan[7, 1], with_infinity[7, 1] = np.nan, np.inf
    tables = {
        "good": lines(),
        "empty_cell": changed(7, 1, ""),
        "text_cell": changed(7, 1, "unknown"),
        "infinite": changed(7, 1, "inf"),
        "huge": changed(7, 1, "1e300"),
        "constant": [[*row[:2], "c" if row[2] == "c" else "1.5", *row[3:]] for row in lines()],
        "all_empty": [[*row[:2], "c" if row[2] == "c" else "", *row[3:]] for row in lines()],
        "one_row": lines()[:2],
        "no_row": lines()[:1],
        "no_class": changed(3, 4, ""),
        "rare": changed(TESTED, 4, "quince"),
        "one_kind": [[*row[:4], "kind" if row[4] == "kind" else "pear"] for row in lines()],
        "wide": [[*row, "9"] if index else row for index, row in enumerate(lines())],
        "uneven": [[*row, "9"] if index == 9 else row for index, row in enumerate(lines())],
        "numbered": [["" if not index else str(index), *row] for index, row in enumerate(lines())],
        "other_columns": [["a", "b", "d", "colour", "kind"], *lines()[1:]],
        "other_kinds": [*lines(), ["1", "2", "3", "red", "quince"]],
        "number_colour": [[*row[:3], "colour" if row[3] == "colour" else "7", row[4]] for row in lines()],
    }
    for name, table in tables.items():
        (folder / f"{name}_table.csv").write_text("".join(",".join(row) + "\n" for row in table))
    arrays = {
        "nan": {"vectors": with_nan, "labels": labels},
        "infinity": {"vectors": with_infinity, "labels": labels},
        "cube": {"vectors": vectors[:, :, None], "labels": labels},
        "words": {"vectors": vectors.astype(str), "labels": labels},
        "short": {"vectors": vectors, "labels": labels[:9]},
        "lonely": {"vectors": vectors},
        "float_labels": {"vectors": vectors, "labels": labels + 0.5},
        "good": {"vectors": vectors, "labels": labels},
        "constant": {"vectors": vectors * [1, 0, 1], "labels": labels},
        "narrower": {
            "train_vectors": vectors, "train_labels": labels, "test_vectors": vectors[:, :2], "test_labels": labels
        },
    }  # fmt: skip
    for name, own in arrays.items():
        np.savez(folder / f"{name}_vectors.npz", **own)  # type: ignore[arg-type]
    (folder / "no_table.parquet").write_text("no parquet")
    (folder / "half").mkdir()
    (folder / "half" / "train.csv").write_text((folder / "good_table.csv").read_text())
    tasks = {f"{name}_table.toml": own_task(f"{name}_table.csv") for name in tables}
    tasks |= {f"{name}_vectors.toml": own_task(f"{name}_vectors.npz", "") for name in arrays}
    tasks |= {f"{name}.toml": own_task(name) for name in ("no_table.parquet", "half", "nowhere.csv")}
    tasks["wine.toml"] = TASK + EMBEDDED
    for name, text in tasks.items():
        (folder / name).write_text(text)
    return {name: folder / name for name in (*tasks, *(f"{name}_table.csv" for name in tables))}


def own_task(file: str, columns: str = 'labels = "kind"\none_hot = ["colour"]\n') -> str:
    return TASK + f'[data]\nsource = "vectors"\npath = "{file}"\ntest_share = 0.5\nval = 0.2\n{columns}'


def case(task: str, message: str, *settings: str) -> tuple[list[str], str]:
    changes = [word for setting in settings for word in ("--set", setting)]
    return ["--datasets", f"{{{task}.toml}}", "--methods", "sr", *changes], message


VECTOR_CASES = [
    case("empty_cell_table", "column 'b' has no value in row 7; rows count from 0; set data.missing"),
    case("text_cell_table", "column 'b' has 'unknown' in row 7, expected a number"),
    case("infinite_table", "column 'b' has inf in row 7"),
    case("huge_table", r"column 'b' has 1e\+300 in row 7, expected numbers up to 3.4e\+38"),
    case("constant_table", "column 'c' has the same value in all training rows.*data.constant"),
    case("all_empty_table", "column 'c' has no value in any training row", "data.missing=median"),
    case("one_row_table", "has 1 class, expected 2 or more|has 0 rows to train on"),
    case("no_row_table", "has no rows"),
    case("no_class_table", "label column 'kind' has no value in row 3"),
    case("rare_table", "class 'quince' is missing from the training rows"),
    case("one_kind_table", "has 1 class, expected 2 or more"),
    case("wide_table", "more values than its first line has names"),
    case("uneven_table", "is no csv file that can be read"),
    case("numbered_table", "column 0 has no name.*data.columns"),
    case("good_table", "unknown label column.*'kinds': did you mean 'kind'", "data.labels=kinds"),
    case("good_table", "labels must be classes, as whole numbers or text, got .* in row 0", "data.labels=a"),
    case("good_table", "unknown column .data.columns. .*'aa': did you mean 'a'", "data.columns=aa,b"),
    case("good_table", "unknown column .data.one_hot. .*'color': did you mean 'colour'", "data.one_hot=color"),
    case("good_table", "no column is left", "data.columns=!*"),
    case("good_table", "column 'colour' has '(red|green)' in row 0, expected a number.*data.one_hot", "data.one_hot="),
    case("good_table", "has 2 classes, expected 3", "data.classes=3"),
    case("good_table", "nothing to test on; set data.test_share", "data.test_share=0"),
    case("good_table", "data.test_path: '.*' does not exist", "data.test_path=none.csv"),
    case("good_table", "data.test_share means nothing", "data.test_path={good_table.csv}"),
    case("good_table", "has no column '[cd]', which", "data.test_share=0",
         "data.test_path={other_columns_table.csv}"),
    case("good_table", "class 'quince' is missing", "data.test_share=0",
         "data.test_path={other_kinds_table.csv}"),
    case("good_table", "is text in one file and numbers in the other", "data.one_hot=all", "data.test_share=0",
         "data.test_path={number_colour_table.csv}"),
    case("good_table", "value of .*missing: 'mean'|unknown value .*'mean'", "data.missing=mean"),
    case("nan_vectors", "column 1 has no value in row 7"),
    case("infinity_vectors", "column 1 has inf in row 7"),
    case("cube_vectors", r"vectors must be numbers \(N, D\), got float64 \(40, 3, 1\)"),
    case("words_vectors", r"vectors must be numbers \(N, D\), got <U"),
    case("short_vectors", "labels must be one class per vector, got shape .9,. for 40 vectors"),
    case("lonely_vectors", "has no array 'labels'; it has vectors"),
    case("float_labels_vectors", "labels must be classes, as whole numbers or text, got 0.5 in row 0"),
    case("constant_vectors", "column 1 has the same value in all training rows"),
    case("narrower_vectors", "has no column 2, which", "data.test_share=0"),
    case("good_vectors", "data.columns means nothing to arrays", "data.columns=a"),
    case("no_table.parquet", "is no parquet file that can be read"),
    case("half", "needs files train and test, such as train.csv"),
    case("nowhere.csv", "does not exist"),
    case("wine", "crops, flips and colour jitter are for images, and 'wine' has vectors", "augment.flip=true"),
    case("wine", "cutmix cuts boxes out of images, and 'wine' has vectors", "mixing.name=cutmix"),
    case("wine", "network small_cnn needs images; for vectors take mlp or linear", "network.name=small_cnn",
         "network.widths=8"),
    case("wine", "network.widths belongs to small_cnn and mlp, not to linear", "network.widths=8"),
    case("wine", "network mlp needs network.widths", "network.name=mlp"),
    case("wine", "data.missing means nothing to source 'wine'", "data.missing=median"),
    case("tiny", "augment.noise and augment.feature_dropout are for vectors, and 'digits' has images",
         "augment.noise=0.1"),
    case("tiny", "feature_dropout must be at least 0 and below 1, got 1", "augment.feature_dropout=1"),
    case("tiny", "data.columns means nothing to source 'digits'", "data.columns=a"),
    (["--datasets", "{wine.toml}", "--methods", "sr", "--with", "cutmix"], "cutmix cuts boxes out of images"),
    (["--datasets", "{wine.toml}", "--methods", "sr", "--evaluate", "corruptions"], "made of 8-bit images, and"),
]  # fmt: skip
