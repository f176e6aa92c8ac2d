"""Scores, networks and sources of users' own files: how they are found, and what they are part of."""

import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmark.base import added
from benchmark.base.errors import UserError
from benchmark.config.load import load_task
from benchmark.config.task import DataConfig, TaskConfig
from benchmark.config.training import NetworkConfig
from benchmark.data.cache import Folders, cache_name
from benchmark.data.cache_build import open_cache
from benchmark.data.dataset import load
from benchmark.data.sources import get_source
from benchmark.jobs.job import Job
from benchmark.jobs.plan import plan
from benchmark.measure.catalogue import OF_METHODS, Predicted, Unavailable, confidence_of, own_confidence
from benchmark.measure.labels import labels_named
from benchmark.measure.prediction import Evidence, Prediction
from benchmark.measure.versions import score_version
from benchmark.store.store import Store
from benchmark.train.context import Context
from benchmark.train.networks import build_network
from benchmark.train.run_job import run_job
from methods import Registry
from tests.conftest import NOWHERE, ROOT
from tests.own_parts import written

CPU = torch.device("cpu")
CACHED = """
import numpy as np
from benchmark.data.images import Facts, Images, Loaded

class Text:
    CACHED = True
    def describe(self, config):
        return Facts(num_classes=2, num_train=4, num_test=4, shape=(1, 2, 2))
    def load(self, config, data_dir):
        values = np.array([int(word) for word in (data_dir / "pixels.txt").read_text().split()], np.uint8)
        images = np.repeat(values, 4).reshape(-1, 1, 2, 2)
        labels = np.arange(len(values)) % 2
        return Loaded(Images.of(images[:4], labels[:4]), Images.of(images[4:], labels[4:]))
    def files(self, config, data_dir):
        return [data_dir / "pixels.txt"]

SOURCES = {"text": Text}
"""


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    Registry()
    assert not (added.SCORES or added.NETWORKS or added.SOURCES or OF_METHODS)


@pytest.fixture
def example(tmp_path: Path) -> tuple[Path, Path]:
    return written(tmp_path)


def only_job(task: TaskConfig, registry: Registry, label: str = "SR") -> Job:
    (entry,) = plan(task, [label], [0], registry, load(task.data, NOWHERE)[1])
    return entry.jobs[0]


def plugin_of(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.py"
    path.write_text(text)
    return path


def test_what_a_file_adds_is_known_with_its_title_and_no_longer_than_its_registry(example: tuple[Path, Path]) -> None:
    registry = Registry((example[0],))
    everything = {**added.SCORES, **added.NETWORKS, **added.SOURCES}
    assert {name: each.title for name, each in everything.items()} == {
        "logit gap": "The difference of the two largest logits.",
        "perceptron": "One hidden layer of 32 units.",
        "stripes": "Stripes, across or upright, under so much noise that some cannot be told apart.",
    }
    assert "own_parts" not in registry.names()
    with pytest.raises(UserError, match="defines no METHOD"):
        registry.get("own_parts")
    assert labels_named("sr+logit-gap", {"SR": "cross_entropy"}) == ["SR"]
    Registry()
    assert not labels_named("sr+logit-gap", {"SR": "cross_entropy"})


def test_a_score_is_computed_and_sees_no_test_labels(tmp_path: Path) -> None:
    text = "SCORES = {'top': lambda run: run.test.prediction.logits.max(1), 'cheat': lambda run: run.test.labels == 1}"
    Registry((plugin_of(tmp_path, "mine", text),))
    run = Predicted(Evidence(Prediction(np.array([[1.0, 3.0], [2.0, 0.0]], np.float32)), np.array([1, 1])))
    assert confidence_of("top", run).tolist() == [3.0, 2.0]
    with pytest.raises(Unavailable, match=re.escape("has shape (0,), expected (2,)")):
        confidence_of("cheat", run)


@pytest.mark.parametrize(
    ("score", "reason"),
    [
        ("run.test.prediction.aux['doubt']", "no output 'doubt'"),
        ("run.validation.labels", "it needs validation images"),
        ("run.test.prediction.features.mean(1)", "mine.py fails .AttributeError"),
        ("run.test.prediction.logits", "has shape .2, 2., expected .2,."),
        ("run.test.prediction.logits[:, 0] * float('nan')", "is not finite"),
        ("__import__('sys').exit(3)", "mine.py fails .SystemExit: 3"),
    ],
)
def test_a_score_that_fails_leaves_a_dash_with_its_reason(tmp_path: Path, score: str, reason: str) -> None:
    Registry((plugin_of(tmp_path, "mine", f"SCORES = {{'mine': lambda run: {score}}}"),))
    run = Predicted(Evidence(Prediction(np.eye(2, dtype=np.float32)), np.array([1, 1])))
    with pytest.raises(Unavailable, match=reason):
        confidence_of("mine", run)


def test_the_code_of_a_score_is_its_version(tmp_path: Path) -> None:
    text = "def top(run):\n    return run.test.prediction.logits.max(1)\nSCORES = {'top': top}\n"
    Registry((plugin_of(tmp_path, "mine", text),))
    first = score_version("top")
    assert re.fullmatch("[0-9a-f]{12}", first)
    Registry((plugin_of(tmp_path, "mine", f"# a comment\n{text}"),))
    assert score_version("top") == first
    Registry((plugin_of(tmp_path, "mine", text.replace("max", "min")),))
    assert score_version("top") not in (first, "")
    Registry()
    assert score_version("top") == ""


METHOD = """
from benchmark.interface import Method
class Mine(Method):
    title, reference, labels = "mine", "me 2026", {"Mine": {}}
METHOD = Mine
"""
WITH_SCORE = METHOD.replace("METHOD =", "Mine.scores = staticmethod(lambda p: {'last': p.logits[:, -1]})\nMETHOD =")


def test_scores_of_a_method_of_ones_own_are_found_by_its_file(tmp_path: Path) -> None:
    plain = plugin_of(tmp_path, "plain", METHOD.replace('"Mine"', '"Plain"'))
    Registry((plugin_of(tmp_path, "mine", WITH_SCORE), plain))
    run = Predicted(Evidence(Prediction(np.array([[1.0, 3.0]])), np.array([1])))
    assert {name: bool(version) for name, (_, version) in OF_METHODS.items()} == {"mine": True, "plain": False}
    assert own_confidence("last", run, "mine").tolist() == [3.0]
    assert own_confidence("SR", run, "plain").tolist() == confidence_of("SR", run).tolist()
    with pytest.raises(Unavailable, match=r"of its own file fail \(IndexError"):
        own_confidence("last", Predicted(Evidence(Prediction(np.ones(2)), np.array([1]))), "mine")
    with pytest.raises(Unavailable, match="no longer has the score"):
        own_confidence("SR", run, "mine")
    with pytest.raises(Unavailable, match=re.escape("--plugin FILE.py")):
        own_confidence("last", run, "plain")


def test_a_job_knows_the_code_of_its_network_and_source(example: tuple[Path, Path]) -> None:
    plugin, path = example
    task, registry = load_task(str(path)), Registry((plugin,))
    job = only_job(task, registry)
    assert job.identity()["own_parts"] == dict.fromkeys(("network", "source"), registry.source_hash("own_parts"))
    plugin.write_text(f"# a comment\n{plugin.read_text()}")
    same = only_job(task, Registry((plugin,)))
    assert (same.id, same.code) == (job.id, job.code)
    plugin.write_text(plugin.read_text().replace("Linear(32, num", "Linear(32, 0 + num"))
    other = only_job(task, Registry((plugin,)))
    assert other.id != job.id
    assert other.code != job.code
    assert other.data_sha256 == job.data_sha256


def test_ids_of_what_is_built_in_do_not_know_of_any_file(example: tuple[Path, Path]) -> None:
    """The recorded run says what they are; a plugin that is not used changes none."""
    recorded = {entry.label: entry.job for manifest in Store(ROOT / "results" / "reference").manifests()
                if manifest.task == "digits" for entry in manifest.entries}  # fmt: skip
    registry = Registry((example[0],))
    for label in ("SR", "SAT"):
        job = only_job(load_task("digits", ["channels_last=true"]), registry, label)
        assert "own_parts" not in job.identity()
        assert job.id == recorded[label]


def test_each_task_has_only_what_it_uses(example: tuple[Path, Path]) -> None:
    plugin, path = example
    task, registry = load_task(str(path)), Registry((plugin,))
    small = replace(task, network=NetworkConfig("small_cnn", (4,)))
    assert list(only_job(small, registry).own_parts) == ["source"]
    digits = replace(load_task("digits"), network=task.network)
    assert list(only_job(digits, registry).own_parts) == ["network"]


def test_another_process_has_nothing_until_a_job_begins(example: tuple[Path, Path], tmp_path: Path) -> None:
    """A registry that was sent here is as it comes out of pickle; running a job loads its files."""
    plugin, path = example
    registry = Registry((plugin,))
    job = only_job(load_task(str(path)), registry)
    sent = pickle.dumps((job, Context(tmp_path / "r", NOWHERE, registry)))
    Registry()
    job, context = pickle.loads(sent)
    assert not added.NETWORKS
    run_job(job, context, CPU, lambda values: None)
    assert context.store.has_record(job.folder)


def test_a_file_that_has_changed_since_the_plan_trains_nothing(example: tuple[Path, Path], tmp_path: Path) -> None:
    plugin, path = example
    registry = Registry((plugin,))
    job = only_job(load_task(str(path)), registry)
    plugin.write_text(plugin.read_text().replace("ReLU", "Tanh"))
    with pytest.raises(ValueError, match="has changed since this job was planned"):
        run_job(job, Context(tmp_path / "r", NOWHERE, registry), CPU, lambda values: None)


def test_images_follow_the_code_of_their_source(example: tuple[Path, Path]) -> None:
    """Also within a process that has loaded them before."""
    plugin, path = example
    config = load_task(str(path)).data
    Registry((plugin,))
    first = load(config, NOWHERE)[1]
    plugin.write_text(plugin.read_text().replace("PCG64(0)", "PCG64(1)"))
    Registry((plugin,))
    assert load(config, NOWHERE)[1] != first


def test_a_cache_follows_the_code_of_its_source(tmp_path: Path) -> None:
    (tmp_path / "pixels.txt").write_text("1 2 3 4 5 6 7 8")
    plugin, config = plugin_of(tmp_path, "reader", CACHED), DataConfig("text", (0.5,), (0.5,))
    folders = Folders(tmp_path, tmp_path / "cache")
    Registry((plugin,))
    name, (loaded, sha256) = cache_name(config), open_cache(config, folders)
    assert np.asarray(loaded.test.pictures)[:, 0, 0, 0].tolist() == [5, 6, 7, 8]
    plugin.write_text(f"# a comment\n{CACHED}")
    Registry((plugin,))
    assert cache_name(config) == name
    plugin.write_text(CACHED.replace("np.repeat(values, 4)", "np.repeat(values + 1, 4)"))
    Registry((plugin,))
    assert cache_name(config) != name
    loaded, other = open_cache(config, folders)
    assert np.asarray(loaded.test.pictures)[:, 0, 0, 0].tolist() == [6, 7, 8, 9]
    assert other != sha256


def test_a_source_may_be_an_object_a_class_or_a_module(tmp_path: Path) -> None:
    text = CACHED + "import sys\nSOURCES = {'a': Text, 'b': Text(), 'c': sys.modules[__name__]}\n"
    text += "def describe(config):\n    return Text().describe(config)\nload = files = describe\n"
    Registry((plugin_of(tmp_path, "reader", text),))
    described = [get_source(DataConfig(name, (0.5,), (0.5,))).describe for name in "abc"]
    assert len({each(DataConfig("a", (0.5,), (0.5,))) for each in described}) == 1


BROKEN = {
    "SCORES = 5": "SCORES must map names to scores",
    "SCORES = {'mine': 5}": "'mine' must be a function, got 5",
    "SCORES = {5: len}": "5 may have up to 40 letters, digits, blanks and - . _ only",
    "SCORES = {'a+b': len}": "may have up to 40 letters",
    "NETWORKS = {'a:b': len}": "may have up to 40 letters",
    "SOURCES = {'../a': len}": "may have up to 40 letters",
    "SCORES = {'Max-Logit': len}": "there is a score 'max logit' already; rename 'Max-Logit'",
    "SCORES = {'my score': len, 'My_Score': len}": "there is a score 'my score' already",
    "NETWORKS = {'VGG16': len}": "there is a network 'vgg16' already",
    "NETWORKS = {'timm': len}": "there is a network 'timm' already",
    "SOURCES = {'cifar10': len}": "there is a source 'cifar10' already",
    "SOURCES = {'mine': 5}": "source 'mine' lacks describe, load; expected an object with describe(config)",
    CACHED.replace("def files", "def no_files"): "source 'text' lacks files",
    CACHED.replace("CACHED = True", "SETTINGS = ('pth',)"): "did you mean 'path'",
    CACHED.replace("CACHED = True", "SETTINGS = 'path'"): "SETTINGS must be a tuple",
    CACHED.replace("CACHED = True", "def __init__(self, folder): pass"): "Text() fails (TypeError",
    "NETWORKS = {}": "must end with METHOD = YourClass",
    "METHOD = 5\nSCORES = {'mine': len}": "must end with METHOD = YourClass",
    "SCORES = {'EM': len}": "the label 'SAT+EM' would mean 'SAT' read with the score EM; rename one of them",
}  # fmt: skip


@pytest.mark.parametrize("text", BROKEN, ids=list(BROKEN.values()))
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match=re.escape(BROKEN[text])):
        Registry((plugin_of(tmp_path, "mine", text),))


@pytest.mark.parametrize("text", ["SCORES = {'a': len, 'b': max, 'a': min}", "NETWORKS: dict = {'a': len, 'a': max}"])
def test_a_file_cannot_name_something_twice(tmp_path: Path, text: str) -> None:
    """Python itself would keep the last one without a word."""
    with pytest.raises(UserError, match=r"mine\.py': [A-Z]+ names 'a' twice; rename one of them"):
        Registry((plugin_of(tmp_path, "mine", text),))


@pytest.mark.parametrize("kind", ["SCORES", "NETWORKS"])
def test_two_files_cannot_define_one_name(tmp_path: Path, kind: str) -> None:
    first = plugin_of(tmp_path, "a", f"{kind} = {{'my own': len}}")
    second = plugin_of(tmp_path, "b", f"{kind} = {{'My-own': len}}")
    Registry((first,))
    Registry((second,))
    with pytest.raises(UserError, match=r"b\.py': there is a .* 'my own' already; rename 'My-own'"):
        Registry((first, second))
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError, match=r"two files are called a\.py"):
        Registry((first, plugin_of(tmp_path / "other", "a", "SCORES = {'x': len}")))


NETWORKS = {
    "lambda *_: 5": "must be a Network(body, head) of benchmark/train/networks.py whose head is nn.Linear, got int",
    "lambda config, classes, shape: 1 / 0": "cannot be built for images of 1×8×8 (ZeroDivisionError",
    "lambda config, classes, shape: Network(nn.Flatten(), nn.Linear(64, 7))": "has 7 outputs for 3 classes",
}  # fmt: skip


@pytest.mark.parametrize("text", NETWORKS)
def test_a_network_that_is_none_says_so(tmp_path: Path, text: str) -> None:
    imports = "from torch import nn\nfrom benchmark.train.networks import Network\n"
    Registry((plugin_of(tmp_path, "mine", f"{imports}NETWORKS = {{'mine': {text}}}"),))
    with pytest.raises(UserError, match=re.escape(NETWORKS[text])):
        build_network(NetworkConfig("mine"), 3, (1, 8, 8))


def test_a_network_gets_the_settings_of_its_task(tmp_path: Path) -> None:
    seen: list[object] = []
    table = {"mine": lambda *given: seen.append(given)}
    Registry()
    added.NETWORKS["mine"] = added.Added(table["mine"], "", "", tmp_path / "mine.py")
    config = NetworkConfig("mine", (4, 8), 0.5, "flatten")
    with pytest.raises(UserError, match="got NoneType"):
        build_network(config, 3, (1, 8, 8))
    assert seen == [(config, 3, (1, 8, 8))]


def test_a_source_that_fails_says_so_in_a_line() -> None:
    from benchmark.data.sources._own import own_source

    def fails(*_: object) -> None:
        raise OSError("no disk")

    source = own_source("mine", SimpleNamespace(describe=fails, load=lambda *_: "text"))
    with pytest.raises(UserError, match=r"^source 'mine': describe fails .OSError: no disk.$"):
        source.describe(DataConfig("mine", (0.5,), (0.5,)))
    with pytest.raises(UserError, match=r"^source 'mine': load must return Loaded, got 'text'$"):
        source.load(DataConfig("mine", (0.5,), (0.5,)), Path())
