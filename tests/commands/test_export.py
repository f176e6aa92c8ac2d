"""The command `export`: what it says, and that bad input is one line, exit code 2, and leaves nothing behind."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import benchmark as sb
from benchmark.store.store import Store
from tests.conftest import run_here
from tests.selector.runs import SHORT, train

NETWORK = '''
"""A network of a user's own file."""
import math
from torch import nn
from benchmark.train.networks import Network


def flat(config, num_classes, shape):
    """One layer."""
    return Network(nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 8), nn.ReLU()), nn.Linear(8, num_classes))


def gap(run):
    """The difference of the two largest logits."""
    return -run.test.prediction.logits[:, 0]


NETWORKS = {"flat": flat}
SCORES = {"gap": gap}
'''
OWN_PREDICT = """
import torch
from benchmark.interface import Prediction
from methods.cross_entropy import METHOD as Base


class Doubled(Base):
    labels = {"Doubled": {}}

    def predict(self, images):
        logits, features = self.network(images)
        return Prediction(2 * logits, features)


METHOD = Doubled
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results with and without weights, and one of predictions made elsewhere."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "own.py").write_text(NETWORK)
    (folder / "doubled.py").write_text(OWN_PREDICT)
    train(folder, "SR", "MC-dropout", "SelectiveNet@90".partition("@")[0], "Temperature scaling")
    (folder / "light").mkdir()
    train(folder / "light", "SR", keep=())
    task = str(folder / "short.toml")
    more = ("--seeds", 1, "-q", "--keep-weights", "--datasets")
    own = (folder / "own.toml", "--methods", "SR", "--plugin", folder / "own.py", "--results", folder / "own")
    (folder / "own.toml").write_text(
        SHORT.replace('name = "small_cnn"\nwidths = [8, 16]\ndropout = 0.3', 'name = "flat"')
    )
    assert run_here(*more, *own).returncode == 0
    doubled = (task, "--methods", "Doubled", "--reference", "Doubled", "--plugin", folder / "doubled.py")
    assert run_here(*more, *doubled, "--results", folder / "doubled").returncode == 0
    random = np.random.default_rng(0)
    np.savez(folder / "mine-0.npz", logits=random.normal(size=(40, 3)), labels=random.integers(3, size=40))
    assert run_here("score", folder / "mine-0.npz", "--results", folder / "mine", "-q").returncode == 0
    return folder


def words(folder: Path, method: str = "sr", *more: object) -> list[object]:
    """An export that works but for what `more` changes."""
    return ["export", folder / "short.toml", method, "--results", folder / "results", "--to", folder / "new", *more]


HALF = ("--coverage", 50, "--from-test", "50%")
CASES: dict[str, tuple[Sequence[object], str]] = {
    "seed": (("sr", *HALF, "--seed", 7), "has no run with seed 7; its seeds: 0"),
    "seed of text": (("sr", *HALF, "--seed", "x"), "expected a whole number"),
    "method": (("srr", *HALF), "unknown method of short: 'srr'"),
    "no such run": (("sat", *HALF), "unknown method of short: 'sat'"),
    "random passes": (("mc-dropout", *HALF), "MC-dropout cannot be exported: each prediction draws random numbers"),
    "neighbours": (("sr", *HALF, "--score", "knn"), "kNN cannot be exported: it compares an image with all"),
    "score": (("sr", *HALF, "--score", "margn"), "unknown score 'margn': did you mean 'margin'?"),
    "score without output": (("sr", *HALF, "--score", "abstention"), "unknown score 'abstention'"),
    "infeasible": (("sr", "--risk", 0.5), "it takes at least 598 that are kept without an error"),
    "everything kept": (("sr", "--coverage", 99.5), "keeps everything"),
    "used validation": (("temperature-scaling", "--risk", 50), "so they certify nothing"),
    "nothing asked": (("sr",), "one of the arguments --risk --coverage is required"),
    "both asked": (("sr", "--risk", 2, "--coverage", 50), "not allowed with"),
    "no risk": (("sr", "--risk", 0), "expected a number from 0.001 to 100"),
    "too sure": (("sr", "--risk", 20, "--confidence", 100), "expected a number from 1 to 99.9999"),
    "bound": (("sr", "--risk", 20, "--bound", "hoefding"), "invalid choice"),
    "device": (("sr", *HALF, "--device", "gpu"), "unknown device 'gpu'"),
    "settings": (("sr", *HALF, "--set", "epochs=9"), "was made with these settings"),
}


def refused(result_of: Sequence[object], to: Path) -> str:
    """Run a command; return the line with which it ends."""
    before = sorted(to.parent.iterdir())
    result = run_here(*result_of)
    last = result.stderr.strip().splitlines()[-1]
    assert (result.returncode, last[:7]) == (2, "error: "), result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(to.parent.iterdir()) == before
    return last


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_line(case: str, folder: Path) -> None:
    more, expected = CASES[case]
    assert expected in refused(words(folder, *map(str, more[:1]), *more[1:]), folder / "new")


def test_other_folders(folder: Path) -> None:
    def asked(task: object, results: str, *more: object) -> list[object]:
        return ["export", task, *more, "--results", folder / results, "--to", folder / "new", *HALF]

    task, new = folder / "short.toml", folder / "new"
    assert "was imported" in refused(asked("predictions", "mine", "mine"), new)
    assert "unknown task with results" in refused(asked("digits", "results", "sr"), new)
    assert "no results in" in refused(asked(task, "nowhere", "sr"), new)
    own = asked(folder / "own.toml", "own", "sr", "--plugin", folder / "own.py")
    assert "the network 'flat' is the code of a file of your own" in refused(own, new)
    doubled = asked(task, "doubled", "doubled", "--plugin", folder / "doubled.py")
    assert "it predicts with code of its own" in refused(doubled, new)
    scored = words(folder, "sr", *HALF, "--score", "gap", "--plugin", folder / "own.py")
    assert "gap cannot be exported: it is the code of a file of your own" in refused(scored, new)


def test_what_is_there_stays(folder: Path, tmp_path: Path) -> None:
    for name in ("full", "empty", "file"):
        (tmp_path / name).mkdir() if name != "file" else (tmp_path / name).write_text("x")
    (tmp_path / "full" / "x").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("full", "empty", "file", "link"):
        asked = ["export", folder / "short.toml", "sr", "--results", folder / "results", "--to", tmp_path / name, *HALF]
        assert "is there already" in refused(asked, tmp_path / name)


def test_lost_weights_come_back_with_the_command_that_is_named(folder: Path, tmp_path: Path) -> None:
    light = folder / "light"
    asked = ["export", light / "short.toml", "sr", "--results", light / "results", "--to", tmp_path / "new", *HALF]
    said = refused(asked, tmp_path / "new")
    again = shlex.split(said.partition("with: ")[2])
    start = next(index for index, word in enumerate(again) if word.startswith("--"))
    assert run_here(*again[start:]).returncode == 0
    first, second = (Store(light / name) for name in ("results", "results-with-weights"))
    (one,), (other,) = first.finished(), second.finished()
    assert one == other
    hashes = [store.read_record(one).checksums["prediction.npz"] for store in (first, second)]  # type: ignore[union-attr,index]
    assert hashes[0] == hashes[1], "the same bits"
    asked[4] = light / "results-with-weights"
    assert run_here(*asked).returncode == 0


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "onnxscript", "safetensors"])
def test_a_missing_package_is_named(package: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    said = refused(words(folder, "sr", *HALF), folder / "new")
    assert f"the package {package}, which is not installed" in said
    assert 'pip install "selbench[export]"' in said


def test_a_graph_that_does_not_agree_is_not_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmark.selector import agreement

    true_margin = agreement.Graph.decide

    def wrong(self: agreement.Graph, images: object) -> object:
        found = true_margin(self, images)  # type: ignore[arg-type]
        return found._replace(confidence=found.confidence + 1e-3)

    monkeypatch.setattr(agreement.Graph, "decide", wrong)
    assert "the ONNX graph does not agree with the exported network" in refused(words(folder, "sr", *HALF), folder)


def test_a_prediction_that_is_not_the_networks_is_not_exported(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmark.selector import model

    true_mean = model.normalise
    monkeypatch.setattr(model, "normalise", lambda images, mean, std: true_mean(images, mean + 1e-3, std))
    asked = [*words(folder, "sr", *HALF)[:-6], "--to", tmp_path / "new", *HALF]
    assert "the exported network does not agree with the suite's own prediction" in refused(asked, tmp_path / "new")


def test_one_line_says_where_it_is_and_what_agreed(folder: Path, tmp_path: Path) -> None:
    asked = ["export", folder / "short.toml", "SelectiveNet@90", "--results", folder / "results", "--risk", "80%"]
    result = run_here(*asked, "--from-test", "50%", "--to", tmp_path / "deep" / "new", "--confidence", 80)
    assert result.returncode == 0, result.stderr
    (line,) = result.stdout.splitlines()
    assert line.startswith(f"Selector: {tmp_path / 'deep' / 'new'} (")
    assert line.count("90 images agree to") == 2
    assert [path.name for path in tmp_path.rglob("*")].count("new") == 1
    assert not list((tmp_path / "deep").glob(".*"))
    promised = sb.Selector.load(tmp_path / "deep" / "new").guarantee
    assert promised is not None
    assert (promised.risk, promised.delta, promised.num_images) == (0.8, 0.2, 45)
