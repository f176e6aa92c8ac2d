"""Evaluation sets with which something is wrong, for `test_bad_input.py`. Their task has digits: 1×8×8, ten classes."""

from pathlib import Path

import numpy as np

from tests.conftest import TINY
from tests.image_sets import write_levels

NUM_TEST = 1397
SET = '[[evaluate]]\nkind = "corruptions"\nkinds = ["fog"]\n'


def write_sets(folder: Path) -> dict[str, Path]:
    """Write files and folders of sets, and tasks that name some; return their places by name."""
    people, images = np.ones((NUM_TEST, 10)), np.zeros((10, 8, 8), np.uint8)
    arrays = {
        "nine.npz": {"counts": people[:, :9]},
        "few.npz": {"counts": people[:30]},
        "nan.npz": {"counts": np.where(np.arange(10) == 3, np.nan, people)},
        "below.npz": {"counts": -people},
        "nobody.npz": {"counts": 0 * people},
        "many.npz": {"place": np.arange(NUM_TEST)},
        "short.npz": {"place": np.arange(8)},
        "shares.npz": {"place": np.linspace(0, 1, NUM_TEST)},
        "colours.npz": {"images": np.zeros((10, 8, 8, 3), np.uint8), "labels": np.arange(10)},
        "large.npz": {"images": np.zeros((10, 9, 9), np.uint8), "labels": np.arange(10)},
        "eleven.npz": {"images": images, "labels": np.arange(10) + 1},
        "floats.npz": {"images": images / 255, "labels": np.arange(10)},
    }
    for name, own in arrays.items():
        np.savez(folder / name, **own)  # type: ignore[arg-type]
    (folder / "text.npz").write_text("no arrays")
    (folder / "text.csv").write_text("place\nhere\n")
    for corrupted, labels, count in (("cut-c", 10, 49), ("hundred-c", 100, 500)):
        (folder / corrupted).mkdir()
        np.save(folder / corrupted / "labels.npy", np.tile(np.arange(labels), 5))
        np.save(folder / corrupted / "fog.npy", np.zeros((count, 8, 8), np.uint8))
    write_levels(folder / "animals", {"cat": 1, "dog": 2})
    (folder / "empty").mkdir()
    tasks = {
        "twice.toml": TINY + SET + SET,
        "odd_key.toml": TINY + SET.replace("kinds", "kind_s"),
        "no_kind.toml": TINY + '[[evaluate]]\nname = "x"\n',
        "foreign_key.toml": TINY + SET.replace('"corruptions"', '"new"'),
        "no_list.toml": TINY + SET.replace("[[evaluate]]", "[evaluate]"),
        "slashed.toml": TINY + SET + 'name = "a/b"\n',
        "nowhere_set.toml": TINY + '[[evaluate]]\nkind = "shift"\nimages = "no/where"\n',
        "mine.toml": TINY + SET + 'name = "foggy"\n',
        "mine-foggy.toml": TINY,
    }
    for name, text in tasks.items():
        (folder / name).write_text(text)
    return {
        name: folder / name
        for name in (*arrays, *tasks, "text.npz", "text.csv", "cut-c", "hundred-c", "animals", "empty")
    }


def evaluate(*sets: str) -> list[str]:
    return ["--evaluate", *sets]


SET_CASES = [
    (evaluate("corupt"), "unknown kind of evaluation set 'corupt': did you mean 'corruptions'"),
    (evaluate("corruptions=fgo"), "unknown corruption 'fgo': did you mean 'fog'"),
    (evaluate("corruptions", "corruptions=fog"), "the evaluation set 'corruptions' is named twice"),
    (["--datasets", "gaussians", *evaluate("corruptions")], "corruptions are made of 8-bit images"),
    (evaluate("shift"), "a set of kind 'shift' needs images: a task, folder or file"),
    (evaluate("shift=nothere"), "there is no file or folder 'nothere', and unknown task 'nothere'"),
    (evaluate("new=svnh"), "there is no file or folder 'svnh', and unknown task 'svnh': did you mean 'svhn'"),
    (evaluate("shift=no/where.npz"), "no/where.npz' does not exist"),
    (evaluate("shift=gaussians"), "'gaussians' has images of 1×16×16 floats, and the task of 1×8×8 pixels"),
    (evaluate("shift={colours.npz}"), "has images of 3×8×8 pixels, and the task of 1×8×8 pixels; they must be alike"),
    (evaluate("shift={large.npz}"), "has images of 1×9×9 pixels, and the task of 1×8×8 pixels; they must be alike"),
    (evaluate("shift={floats.npz}"), "must be uint8"),
    (evaluate("shift={eleven.npz}"), "class lists that do not match: .* labels 1 to 10, and the task's 10 classes are"),
    (evaluate("shift={text.npz}"), "cannot be read as an npz file"),
    (evaluate("shift={cut-c}"), "fog.npy' has 49 images, expected 50, one for each label in labels.npy"),
    (evaluate("shift={hundred-c}"), "class lists that do not match: .* labels 0 to 99"),
    (evaluate("shift={animals}"), "class lists that do not match: .* such as 'cat', and the task such as '0'"),
    (evaluate("shift={empty}"), "has no class folders"),
    (evaluate("new={empty}"), "has no images"),
    (evaluate("new"), r"the task must leave out classes \(data.leave_out\)"),
    (evaluate("new={tiny.toml}"), "has the images of the task itself"),
    (["--set", "data.leave_out=10"], "data.leave_out: 10 is no class of 'digits'; its 10 classes are 0 to 9"),
    (["--set", "data.leave_out=0,1,2,3,4,5,6,7,8"], "data.leave_out leaves 1 class of 10"),
    (["--set", "data.leave_out=3,3"], "leave_out must name each class once"),
    (evaluate("humans"), "needs a file of label counts"),
    (evaluate("humans=nothere.npz"), "nothere.npz' does not exist"),
    (evaluate("humans={empty}"), "is no regular file"),
    (evaluate("humans={text.npz}"), "cannot be read as an npz, npy or csv file"),
    (evaluate("humans={nine.npz}"), "class lists that do not match: .* counts of 9 classes, the task 10"),
    (evaluate("humans={few.npz}"), "has counts of 30 images, expected those of all 1,397 test images"),
    (evaluate("humans={nan.npz}"), "the counts of image 0 must be numbers from 0 on"),
    (evaluate("humans={below.npz}"), "the counts of image 0 must be numbers from 0 on"),
    (evaluate("humans={nobody.npz}"), "nobody gave test image .* a class of the task"),
    (evaluate("humans={text.csv}"), "needs one table of counts"),
    (evaluate("groups=Male"), "columns without a file are attributes of celeba, and the task has images of 'digits'"),
    (evaluate("groups={many.npz}"), "column 'place' has 1,397 values, expected at most 100"),
    (evaluate("groups={short.npz}"), r"column 'place' has the shape \(8,\), expected a value for each of the 1,397"),
    (evaluate("groups={shares.npz}"), "column 'place' must be text or whole numbers, got float64"),
    (evaluate("groups={text.csv}"), r"column 'place' has the shape \(1,\)"),
    (["--datasets", "{twice.toml}"], "a set named twice: 'corruptions'; give one of them another name"),
    (["--datasets", "{odd_key.toml}"], "unknown key in .*evaluate: 'kind_s': did you mean 'kinds'"),
    (["--datasets", "{no_kind.toml}"], "evaluate: 'kind' is missing"),
    (["--datasets", "{foreign_key.toml}"], "kinds belong"),
    (["--datasets", "{no_list.toml}"], "evaluate: expected a list"),
    (["--datasets", "{slashed.toml}"], "name 'a/b' cannot be the name of a folder"),
    (["--datasets", "{nowhere_set.toml}"], "/no/where' does not exist; a path in a task file is relative to it"),
    (
        ["--datasets", "{mine-foggy.toml}", "{mine.toml}"],
        "results called 'mine-foggy' would be those of the task 'mine-foggy' and the evaluation set 'foggy' of 'mine'",
    ),
    (["evaluate", "--results", "{nowhere}", *evaluate("corruptions")], "no results in"),
    (["prepare", "{nowhere_set.toml}"], "/no/where' does not exist"),
]
"""Arguments, and what the one line says."""
