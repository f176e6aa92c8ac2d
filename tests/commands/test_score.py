"""The commands of README and docs/own-predictions.md run as they stand there, on the examples of the first one."""

import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import benchmark as sb
from benchmark.store.store import Store
from tests.conftest import ROOT, TINY, run_here
from tests.imports.runs import labels, logits, softmax

PAGE = (ROOT / "docs" / "own-predictions.md").read_text()
PREFIX = "python run_all.py "


def commands(text: str) -> list[list[str]]:
    """The commands of a page that are about the examples, without their remarks."""
    lines = [line.partition("  #")[0] for line in text.splitlines() if line.startswith(PREFIX) and " mine" in line]
    return [shlex.split(line.removeprefix(PREFIX)) for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands of the page were run, and what they printed."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for number, words in enumerate(commands(PAGE)):
            done = run_here(*words)
            assert done.returncode == 0, (words, done.stderr)
            (folder / f"{number}.txt").write_text(done.stdout)
    return folder


def test_the_readme_has_the_same_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert commands(readme) == commands(PAGE)[:2]
    assert len(commands(PAGE)) == 5


def test_the_first_prints_the_others(folder: Path) -> None:
    printed = [shlex.split(line.removeprefix(PREFIX)) for line in (folder / "0.txt").read_text().splitlines()[-3:]]
    assert printed == commands(PAGE)[1:4]


def test_two_methods_with_five_seeds(folder: Path) -> None:
    (manifest,) = [each for each in Store(folder / "mine" / "results").manifests() if each.task == "digits-of-mine"]
    assert [(entry.label, entry.seeds) for entry in manifest.entries] == [
        ("forest", (0, 1, 2, 3, 4)),
        ("logistic", (0, 1, 2, 3, 4)),
    ]
    assert "mean±std over 5 seeds" in (folder / "1.txt").read_text()


def test_losses_alone(folder: Path) -> None:
    shown = (folder / "2.txt").read_text()
    assert "one run of each method" in shown
    assert re.search(r"\| +AURC ×10³ \|", shown)
    assert "accuracy (%) |" not in shown


def test_figures_and_explanation(folder: Path) -> None:
    names = {path.name for path in (folder / "mine" / "results" / "figures").glob("*.png")}
    assert names == {
        *(f"diabetes-{kind}.png" for kind in ("risk-coverage", "expected-cost")),
        *(f"digits-of-mine-{kind}.png" for kind in ("risk-coverage", "expected-cost", "ranks")),
    }
    assert "imported from logistic-3.npz" in (folder / "4.txt").read_text()


def test_a_second_look_costs_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    again = run_here(*commands(PAGE)[1])
    assert "0 runs imported, 10 runs are there already with the same content" in again.stdout


def test_the_script_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits.toml").write_text(TINY)
    words = ("--datasets", "digits.toml", "--methods", "sr", "--seeds", 1, "-q")
    assert run_here(*words).returncode == 0
    X, truth = load_digits(return_X_y=True)
    y, frame = labels(), pd.DataFrame(softmax(logits(4)), columns=[f"p_{index}" for index in range(4)])
    names: dict[str, Any] = {
        "y": y,
        "z": logits(),
        "z_fog": logits(1, 1.0),
        "z_new": logits(2, 0.0),
        "severity": y % 2 + 3,
        "val": {"labels": y, "logits": logits(5)},
        "forest": RandomForestClassifier(5, random_state=0).fit(X[:200] % 4, truth[:200] % 4),
        "X_test": X[:120] % 4,
        "y_test": y,
        "trainer": SimpleNamespace(predict=lambda _: SimpleNamespace(predictions=logits(3), label_ids=y, metrics={})),
        "test_set": None,
        "frame": frame.assign(y=y, model="cnn"),
    }
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(block, "docs/own-predictions.md", "exec"), names)
    found = sb.load_results("mine").to_frame()
    assert set(found.label) == {"vit", "RandomForestClassifier", "bert", "cnn"}
    assert np.load("files/SR-0.npz")["logits"].shape == (200, 10)


def test_the_list_of_the_page(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    (tmp_path / "vit").mkdir()
    np.save(tmp_path / "labels.npy", labels())
    np.save(tmp_path / "vit" / "logits-0.npy", logits())
    np.save(tmp_path / "vit" / "mc-0.npy", np.arange(120))
    np.savez(tmp_path / "resnet-0.npz", logits=logits(1))
    (tmp_path / "runs.toml").write_text(block)
    done = run_here("score", tmp_path / "runs.toml", "--results", tmp_path / "r")
    assert done.returncode == 0, done.stderr
    assert "ViT-B/16+mc" in done.stdout
    assert Store(tmp_path / "r").manifests()[0].paired
