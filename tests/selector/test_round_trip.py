"""Each method of the suite, exported and loaded again: torch and onnxruntime say what the suite has stored."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import benchmark as sb
from benchmark.base.errors import UserError
from benchmark.config.load import load_task
from benchmark.data.dataset import load
from benchmark.library.guarantee_options import ExportOptions
from benchmark.library.selector import export_selector
from benchmark.measure.catalogue import own_confidence
from benchmark.measure.labels import name_at
from benchmark.selector.files import GRAPH, SELECTOR, WEIGHTS
from benchmark.selector.graph import Graph
from benchmark.store.finished import Finished
from benchmark.store.store import Store, folder_of
from methods import Registry
from tests.conftest import NOWHERE, ROOT, run_here
from tests.selector.runs import exported, refusal, train

REGISTRY = Registry()
LABELS = [next(iter(REGISTRY.get(name).labels)) for name in REGISTRY.names()]
REFUSED = {
    "MC-dropout": "draws random numbers",
    "Snapshot ensemble": "weights are not kept",
    "SPTD": "weights are not kept",
}
AVERAGED = "SR+SWA"
Pixels = NDArray[np.uint8]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of every method."""
    return train(tmp_path_factory.mktemp("methods"), "SR", *(label for label in LABELS if label != "SR"), AVERAGED)


@pytest.fixture(scope="module")
def images(results: Path) -> Pixels:
    test = load(load_task(str(results.parent / "short.toml")).data, NOWHERE)[0].test
    return np.asarray(test.pictures)[test.rows]


@pytest.fixture(scope="module")
def selector(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported selector."""
    to = tmp_path_factory.mktemp("one") / "selector"
    exported(results, "SR", to)
    return to


@pytest.fixture
def copied(selector: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(selector, tmp_path / "copy"))


def stored_run(results: Path, label: str) -> tuple[Finished, str]:
    """The stored predictions of a run, and its method."""
    store = Store(results)
    (manifest,) = store.manifests()
    (entry,) = [each for each in manifest.entries if each.label == label and each.epoch is None]
    folder = folder_of("short", entry.method, entry.job, 0)
    return Finished(folder, store), entry.method


def session(content: bytes) -> Any:
    return Graph(content, 1).session


@pytest.mark.parametrize("label", [*(label for label in LABELS if label not in REFUSED), AVERAGED])
def test_a_method_says_the_same_after_export(label: str, results: Path, images: Pixels, tmp_path: Path) -> None:
    found = exported(results, label, tmp_path / "selector")
    assert found.network.difference < 1e-12, "network and suite are the same operations in the same order"
    assert found.graph.difference < 1e-5
    loaded = sb.Selector.load(tmp_path / "selector")
    finished, method = stored_run(results, label)
    expected = own_confidence(loaded.score, finished, method)
    classes, kept = loaded(images)
    confidence = loaded.confidence(images)
    assert classes.tolist() == finished.test.prediction.logits.argmax(1).tolist()
    assert confidence == pytest.approx(expected, rel=1e-9, abs=1e-9)
    sure = np.abs(expected - loaded.threshold) > 1e-5 * np.abs(expected).max()
    assert kept[sure].tolist() == (expected >= loaded.threshold)[sure].tolist()
    runtime = session((tmp_path / "selector" / GRAPH).read_bytes())
    by_graph = runtime.run(["class", "confidence", "kept"], {"images": images})
    assert [each.dtype for each in by_graph] == [np.int64, np.float64, np.bool_]
    assert by_graph[0].tolist() == classes.tolist()
    assert by_graph[1] == pytest.approx(expected, rel=0, abs=1e-5 * np.abs(expected).max())
    assert by_graph[2][sure].tolist() == kept[sure].tolist()


@pytest.mark.parametrize("label", REFUSED)
def test_a_method_that_cannot_be_exported_says_why(label: str, results: Path, tmp_path: Path) -> None:
    assert REFUSED[label] in refusal(results, label, tmp_path / "selector")


@pytest.mark.parametrize("score", ["ViM", "pNorm", "delta Mahalanobis", "Rel-U", "normalised margin"])
def test_a_fitted_score_is_exported_with_what_was_fitted(
    score: str, results: Path, images: Pixels, tmp_path: Path
) -> None:
    exported(results, "SR", tmp_path / "selector", score=score)
    loaded = sb.Selector.load(tmp_path / "selector")
    finished, method = stored_run(results, "SR")
    expected = own_confidence(score, finished, method)
    assert loaded.confidence(images) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("score", ["kNN", "delta kNN"])
def test_scores_that_need_all_images_say_so(score: str, results: Path, tmp_path: Path) -> None:
    assert "compares an image with all" in refusal(results, "SR", tmp_path / "selector", score=score)


def test_what_certified_the_threshold_fitted_nothing(results: Path, tmp_path: Path) -> None:
    """Half of the validation images fit the temperature, which is then exported; the other half certify."""
    exported(results, "SR", tmp_path / "selector", score="temperature", from_test=None)
    promised = sb.Selector.load(tmp_path / "selector").guarantee
    assert promised is not None
    assert promised.num_images == 15
    assert "the other half" in promised.held_out


def test_the_threshold_of_the_graph_can_be_replaced(selector: Path, images: Pixels) -> None:
    loaded, runtime = sb.Selector.load(selector), session((selector / GRAPH).read_bytes())
    confidence = loaded.confidence(images)
    middle = float(np.sort(confidence)[20:22].mean())
    (kept,) = runtime.run(["kept"], {"images": images, "threshold": np.array(middle)})
    assert kept.sum() == len(images) - 21
    (default,) = runtime.run(["kept"], {"images": images})
    assert abs(int(default.sum()) - int((confidence >= loaded.threshold).sum())) <= 1, "the held-out image of it"
    assert default.sum() < kept.sum() - 2


def test_the_threshold_can_be_edited_and_is_then_without_guarantee(
    copied: Path, images: Pixels, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sb.Selector.load(copied)
    assert before.guarantee is not None
    assert not capsys.readouterr().err
    plain = json.loads((copied / SELECTOR).read_text())
    plain["threshold"] = float(before.confidence(images).min())
    (copied / SELECTOR).write_text(json.dumps(plain))
    after = sb.Selector.load(copied)
    assert after.guarantee is None
    assert "nothing is guaranteed" in capsys.readouterr().err
    assert after(images).kept.all()


def test_images_are_checked(selector: Path, images: Pixels) -> None:
    loaded = sb.Selector.load(selector)
    one, many = loaded(images[:1]), loaded(np.tile(images, (7, 1, 1, 1)))
    assert one.classes.tolist() == many.classes[:1].tolist()
    assert len(many.kept) == 7 * len(images)
    assert [len(each) for each in loaded(images[:0])] == [0, 0]
    assert loaded(torch.from_numpy(images)).kept.tolist() == loaded(images).kept.tolist()
    for wrong in (images.astype(np.float32), images[:, 0], images[0], images[:, :, :7], "images", None, [[1, 2], [3]]):
        with pytest.raises(UserError, match=r"expected uint8 images \(N, 1, 8, 8\), got"):
            loaded(wrong)


def test_a_graph_takes_one_image_and_many(selector: Path, images: Pixels) -> None:
    runtime = session((selector / GRAPH).read_bytes())
    whole = runtime.run(["confidence"], {"images": images})[0]
    single = np.concatenate([runtime.run(["confidence"], {"images": images[i : i + 1]})[0] for i in range(5)])
    assert single == pytest.approx(whole[:5], abs=1e-5)


def test_the_example_runs_with_onnxruntime_and_numpy_alone(copied: Path, images: Pixels) -> None:
    loaded = sb.Selector.load(copied)
    np.save(copied / "images.npy", images[:6])
    program = (
        "import runpy, sys\n"
        "sys.modules.update(dict.fromkeys(('torch', 'onnx', 'benchmark', 'safetensors', 'scipy')))\n"
        f"sys.argv = ['example.py', *sys.argv[1:]]\nrunpy.run_path({str(copied / 'example.py')!r})"
    )
    for arguments in ([], [str(copied / "images.npy")]):
        result = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, "")
    classes, kept = loaded(images[:6])
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [line[1] for line in lines] == [str(each) for each in classes]
    assert [line[3] == "kept" for line in lines] == kept.tolist()


def test_the_card_tells_what_was_measured(results: Path, selector: Path) -> None:
    text = (selector / "README.md").read_text()
    promised = sb.Selector.load(selector).guarantee
    assert promised is not None
    assert promised.realised is not None
    assert f"keeps {100 * promised.realised.coverage:.2f} %" in text
    assert f"{100 * (promised.realised.risk or 0):.2f} % of these are wrong" in text
    assert f"{promised.num_images} held-out images" in text
    table = [line for line in text.splitlines() if line.startswith("| ") and "kept" not in line][:10]
    coverages = [float(line.split("|")[3].strip(" %")) for line in table]
    counts = [int(line.split("|")[2]) for line in table]
    assert coverages == sorted(coverages)
    assert sum(counts) == promised.realised.num_images
    kept = sum(count * coverage for count, coverage in zip(counts, coverages, strict=True))
    assert kept / sum(counts) == pytest.approx(100 * promised.realised.coverage, abs=0.01)


def changed(path: Path, change: dict[str, Any], *inside: str) -> None:
    """Change some values in selector.json."""
    plain = json.loads(path.read_text())
    target = plain
    for name in inside:
        target = target[name]
    target.update(change)
    path.write_text(json.dumps(plain))


SPOILT = {
    "another version": lambda folder: changed(folder / SELECTOR, {"version": 2}),
    "no version": lambda folder: changed(folder / SELECTOR, {"version": None}),
    "unknown key": lambda folder: changed(folder / SELECTOR, {"thresold": 1.0}),
    "no number": lambda folder: changed(folder / SELECTOR, {"threshold": "high"}),
    "not finite": lambda folder: changed(folder / SELECTOR, {"threshold": float("nan")}),
    "other score": lambda folder: changed(folder / SELECTOR, {"score": "margin"}),
    "other mean": lambda folder: changed(folder / SELECTOR, {"mean": [0.5]}, "network"),
    "too few classes": lambda folder: changed(folder / SELECTOR, {"classes": ["a"]}),
    "tampered weights": lambda folder: (folder / WEIGHTS).write_bytes(
        (folder / WEIGHTS).read_bytes()[:-4] + b"\0\0\0\1"
    ),
    "tampered graph": lambda folder: (folder / GRAPH).write_bytes((folder / GRAPH).read_bytes() + b"\0"),
    "no weights": lambda folder: (folder / WEIGHTS).unlink(),
    "no JSON": lambda folder: (folder / SELECTOR).write_text("{"),
    "a list": lambda folder: (folder / SELECTOR).write_text("[]"),
    "no selector": lambda folder: (folder / SELECTOR).unlink(),
}
EXPECTED = {
    "another version": "is a selector of version 2",
    "no version": "version must be",
    "unknown key": "unknown key in",
    "no number": "threshold: expected a number",
    "not finite": "threshold: expected a number",
    "other score": "only the threshold may be",
    "other mean": "only the threshold may be",
    "too few classes": "names of all 10 classes",
    "tampered weights": "its checksum is wrong",
    "tampered graph": "its checksum is wrong",
    "no weights": "has no model.safetensors",
    "no JSON": "is no JSON",
    "a list": "must have a JSON object",
    "no selector": "is no selector",
}


@pytest.mark.parametrize("what", SPOILT)
def test_what_is_not_as_exported_is_refused(what: str, copied: Path) -> None:
    SPOILT[what](copied)
    with pytest.raises(UserError) as raised:
        sb.Selector.load(copied)
    assert EXPECTED[what] in str(raised.value)


def test_names_of_columns(results: Path, tmp_path: Path) -> None:
    """A training for one coverage goes by its name in the table, or by its label where there is one alone."""
    exported(results, name_at("SelectiveNet", 90.0), tmp_path / "selector")
    assert sb.Selector.load(tmp_path / "selector").score == "selection"


def test_the_caller_draws_the_same_random_numbers(selector: Path) -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    sb.Selector.load(selector)
    assert torch.equal(torch.rand(3), expected)


def test_floats_go_in_where_the_task_has_floats(tmp_path: Path) -> None:
    task = tmp_path / "waves.toml"
    task.write_text(
        'extends = "gaussians"\ntitle = "waves"\nepochs = 1\nseeds = 1\n[data]\ntrain_images = 300\ntest_images = 80\n'
    )
    words = ("--datasets", task, "--methods", "SR", "--results", tmp_path / "r", "-q", "--keep-weights")
    made = run_here(*words, "--reference", "SR")
    assert made.returncode == 0, made.stderr
    asked: dict[str, Any] = {"coverage": 50.0, "from_test": 50.0, "quiet": True}
    to = tmp_path / "selector"
    found = export_selector(ExportOptions(task=str(task), method="SR", to=to, results=str(tmp_path / "r"), **asked))
    assert (found.network.num_images, found.graph.num_images) == (80, 80)
    loaded = sb.Selector.load(to)
    waves = np.random.default_rng(0).normal(size=(5, 1, 16, 16)).astype(np.float32)
    by_graph = session((to / GRAPH).read_bytes()).run(["confidence"], {"images": waves})[0]
    assert by_graph == pytest.approx(loaded.confidence(waves), abs=1e-5)
    with pytest.raises(UserError, match="expected float32 images"):
        loaded(waves.astype(np.float64))
    ended = subprocess.run([sys.executable, str(to / "example.py")], capture_output=True, text=True)
    assert (ended.returncode, len(ended.stdout.splitlines())) == (0, 4)


def test_neither_methods_nor_data_are_needed(selector: Path, images: Pixels, tmp_path: Path) -> None:
    """In a process of its own, in an empty folder, without pickle."""
    np.save(tmp_path / "images.npy", images)
    script = (
        "import pickle, sys, numpy as np, benchmark as sb\n"
        "def refuse(*_, **__): raise AssertionError('unpickled')\n"
        "pickle.load = pickle.loads = pickle.Unpickler = refuse\n"
        f"found = sb.Selector.load({str(selector)!r})(np.load('images.npy'))\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('methods', 'onnx', 'onnxruntime')]\n"
        "assert 'benchmark.library' not in sys.modules\n"
        "print(*found.classes)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == [str(each) for each in sb.Selector.load(selector)(images).classes]
