"""Runs whose settings are not those of the task's file: every table, figure and page says what differs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmark.base.errors import UserError
from benchmark.base.schema import identity
from benchmark.config.load import CONFIG_DIR, load_task
from benchmark.config.recipe import FIELDS, NEUTRAL, flatten, recipe_differences, recipe_of, recipe_text
from benchmark.figures.runs import load_runs
from benchmark.report.page import build_page, make_part
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables.assemble import assemble
from benchmark.tables.explain import explain
from benchmark.tables.modified import modified_lines
from benchmark.tables.render.write import write_tables
from tests.conftest import run_here
from tests.tables.test_build import MANIFEST, fill, record

CHANGES = [
    ("epochs=1", {"epochs": (20, 1)}),
    ("optimizer.lr=0.1", {"optimizer.lr": (0.05, 0.1)}),
    ("network.widths=4,8", {"network.widths": ([16, 32], [4, 8])}),
    ("tf32=true", {"tf32": (False, True)}),
    ("augment.crop_scale=0.5,1", {"augment.crop_scale": ([0.08, 1.0], [0.5, 1.0])}),
    ("seeds=3", {}),
]


@pytest.mark.parametrize(("override", "expected"), CHANGES, ids=[override for override, _ in CHANGES])
def test_differences_from_the_file(override: str, expected: dict[str, Any]) -> None:
    file, changed = recipe_of(load_task("digits")), recipe_of(load_task("digits", [override]))
    assert recipe_differences(file, changed) == expected


def test_what_a_record_leaves_out_is_neutral() -> None:
    task = load_task("digits")
    assert all(name.partition(".")[0] in FIELDS for name in NEUTRAL)
    for name, value in NEUTRAL.items():
        own: Any = task
        for part in name.split("."):
            own = getattr(own, part)
        assert (name in flatten(recipe_of(task))) == (identity(own) != value), name


def test_a_recipe_in_words() -> None:
    words = recipe_text(recipe_of(load_task("cifar100")))
    assert words["network"] == "vgg16"
    assert words["optimiser"] == "sgd, learning rate 0.1, momentum 0.9, weight decay 0.0005"
    assert words["schedule"] == "×0.5 every 25 epochs"
    assert words["augmentation"] == "crop (padding 4), flip"
    with pytest.raises(UserError):
        recipe_text({"data": {"source": "digits", "unknown": 1}})


def stored(tmp_path: Path, changed: dict[str, list[str]], **manifest: Any) -> tuple[Store, Manifest]:
    """Runs of a toy table whose records say that they were made from `digits` with some changes by method."""
    store = Store(tmp_path)
    for method in ("ours", "theirs"):
        recipe = recipe_of(load_task("digits", changed.get(method, [])))
        made = {**recipe, "config": {}}
        fill(store, method, [record(s, {"SR": (0.1, 0.01 + 0.001 * s)}, identity=made) for s in range(5)])
    found = replace(MANIFEST, standard=recipe_of(load_task("digits")), **manifest)
    store.write_manifest(found)
    return store, found


def test_every_place_tells(tmp_path: Path) -> None:
    store, manifest = stored(tmp_path, {"ours": ["epochs=1"], "theirs": ["epochs=1"]})
    said = "Modified: epochs = 1 (task file: 20)."
    shown = assemble(manifest, store)
    assert all(said in table.notes for table in (*shown.tables, *shown.statistics))
    for path in write_tables(shown, store.root):
        assert "epochs = 1 (task file: 20)" in path.read_text(encoding="utf-8"), path
    assert shown.title == f"{MANIFEST.title} (modified)"
    assert said in explain(manifest, "ours", 50, store)
    assert said in load_runs(manifest, store).remarks
    page = build_page([make_part("task", shown, store)])
    assert page.partition(">Provenance<")[2].count(said) >= 1
    assert "sgd, learning rate" in page
    assert "(modified)" in page


def test_nothing_is_said_where_nothing_differs(tmp_path: Path) -> None:
    store, manifest = stored(tmp_path, {})
    shown = assemble(manifest, store)
    assert (shown.title, shown.manifest.modified) == (MANIFEST.title, "")


def test_what_holds_of_one_column_names_it(tmp_path: Path) -> None:
    entries = (replace(MANIFEST.entries[0], modified={"weight": [0.5, 1.0]}), MANIFEST.entries[1])
    store, manifest = stored(tmp_path, {"theirs": ["batch_size=8"]}, entries=entries)
    text = assemble(manifest, store).manifest.modified
    assert text == "Modified: Theirs: batch_size = 8 (task file: 32); Ours: weight = 1 (task file: 0.5)."


def test_older_manifests_are_compared_with_the_file_of_their_name(tmp_path: Path) -> None:
    changes = ["epochs=1", "channels_last=true"]
    store, manifest = stored(tmp_path, {"ours": changes, "theirs": changes})
    older = replace(manifest, standard=None)
    assert assemble(older, store).manifest.modified == ""  # no file is called toy
    columns = assemble(manifest, store).columns
    assert modified_lines(replace(older, task="digits"), columns) == ["epochs = 1 (task file: 20)"]


def test_a_command_notes_what_it_changes(tiny: Path, tmp_path: Path) -> None:
    asked = ["--methods", "dg", "sr", "--seeds", "1", "--set", "epochs=3", "--set", "method.deep_gamblers.reward=3"]
    done = run_here("--datasets", tiny, *asked, "--results", tmp_path / "r")
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "r" / "tables" / f"{tiny.stem}.md").read_text(encoding="utf-8")
    assert "Selective risk (%) on tiny digits (modified):" in table
    assert "Modified: epochs = 3 (task file: 4); DG: reward = 3 (task file: " in table


def test_a_file_of_your_own_with_a_name_of_ours(tmp_path: Path) -> None:
    own = tmp_path / "digits.toml"
    own.write_text((CONFIG_DIR / "digits.toml").read_text(encoding="utf-8").replace("epochs = 20", "epochs = 9"))
    done = run_here("--datasets", own, "--methods", "sr", "--seeds", "1", "--results", tmp_path / "r")
    assert done.returncode == 0, done.stderr
    assert "epochs = 9 (task file: 20)" in (tmp_path / "r" / "tables" / "digits.md").read_text(encoding="utf-8")
