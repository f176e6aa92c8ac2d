"""The checks of scores, networks and sources: what the suite has passes them, and each breach is found."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmark.base import added
from benchmark.base.errors import UserError
from benchmark.check.checks import Broken, checks_for
from benchmark.check.findings import Finding
from benchmark.check.harness import Candidate
from benchmark.check.networks import network_findings
from benchmark.check.scores import score_findings
from benchmark.check.sources import source_findings
from benchmark.measure.catalogue import OWN, POST_HOC
from methods import Registry
from tests.check.test_checks import GOOD
from tests.conftest import run_here
from tests.own_parts import written

NOWHERE = Path("nowhere")
NETWORK = """
import random, torch
from torch import nn
from benchmark.train.networks import Network

def net(config, num_classes, shape):
    layers = [nn.Conv2d(shape[0], 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return Network(nn.Sequential(*layers), nn.Linear(8, num_classes), 0.5)

NETWORKS = {"net": net}
"""
SOURCE = """
import random
import numpy as np
from benchmark.data.images import Facts, Images, Loaded

class Noise:
    def describe(self, config):
        return Facts(num_classes=2, num_train=6, num_test=4, shape=(1, 2, 2))
    def load(self, config, data_dir):
        images, labels = np.arange(40, dtype=np.uint8).reshape(10, 1, 2, 2), np.arange(10) % 2
        return Loaded(Images.of(images[:6], labels[:6]), Images.of(images[6:], labels[6:]))

SOURCES = {"noise": Noise}
"""


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    Registry()


def loaded(folder: Path, text: str) -> None:
    path = folder / "mine.py"
    path.write_text(text)
    Registry((path,))


def failures(findings: Iterator[Finding]) -> list[tuple[str, str]]:
    return [(finding.check, finding.remark) for finding in findings if not finding.holds]


@pytest.mark.parametrize("name", [*POST_HOC, *OWN])
def test_the_scores_of_the_suite_pass(name: str) -> None:
    assert not failures(score_findings((POST_HOC | OWN)[name]))


@pytest.mark.parametrize("name", ["small_cnn", "vgg16", "mlp", "linear", "torchvision:resnet18"])
def test_networks_of_the_suite_pass(name: str) -> None:
    assert not failures(network_findings(name, {}))


@pytest.mark.parametrize("name", ["digits", "gaussians", "breast-cancer", "wine", "digits-vectors"])
def test_sources_of_the_suite_pass(name: str) -> None:
    assert not failures(source_findings(name, {}, NOWHERE))


def test_a_source_with_settings_is_examined_with_them(tmp_path: Path) -> None:
    import numpy as np

    labels = np.arange(20) % 2
    np.savez(tmp_path / "own.npz", images=np.zeros((20, 8, 8), np.uint8), labels=labels)
    settings = {"path": str(tmp_path / "own.npz"), "test_share": "0.2"}
    found = list(source_findings("arrays", settings, NOWHERE))
    assert all(finding.holds for finding in found)
    assert "sha256" in found[-1].remark
    assert failures(source_findings("arrays", {"path": str(tmp_path / "none.npz")}, NOWHERE))[0][0] == "can be loaded"
    vectors = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float16)
    np.savez(tmp_path / "vectors.npz", vectors=vectors, labels=labels)
    own = list(source_findings("vectors", {**settings, "path": str(tmp_path / "vectors.npz")}, NOWHERE))
    assert all(finding.holds for finding in own)
    assert "sha256" in own[-1].remark


SCORES = {
    "one finite number": ("run.test.prediction.logits", "has shape (60, 5)"),
    "one finite number ": ("run.test.prediction.logits[:, 0] * float('inf')", "it is not finite"),
    " one finite number": ("0 * run.test.prediction.logits[:, 0]", "the same for all images"),
    "one finite number  ": ("run.test.prediction.logits.__imul__(2)[:, 0]", "read-only"),
    "when repeated": ("__import__('numpy').random.rand(len(run.test.prediction.logits))", "differs from call to call"),
    "without the labels": ("run.test.prediction.logits[:, 0] * run.test.labels", "reads the labels"),
    "for itself": ("run.test.prediction.logits[:, 0] / run.test.prediction.logits.sum()", "depends on the other"),
}


@pytest.mark.parametrize("breach", SCORES)
def test_each_breach_of_a_score_is_found(tmp_path: Path, breach: str) -> None:
    text, remark = SCORES[breach]
    loaded(tmp_path, f"SCORES = {{'mine': lambda run: {text}}}")
    found = failures(score_findings(added.SCORES["mine"].value))
    assert breach.strip() in found[0][0]
    assert remark in found[0][1]


def test_a_score_may_use_any_output_and_what_it_fits_on_other_images(tmp_path: Path) -> None:
    fitted = "run.test.prediction.aux['doubt'] * run.validation.prediction.logits.std() + run.train.labels.mean()"
    loaded(tmp_path, f"SCORES = {{'mine': lambda run: {fitted}}}")
    assert not failures(score_findings(added.SCORES["mine"].value))


def test_a_wrong_sign_is_remarked_upon() -> None:
    upright, upside_down = (
        list(score_findings(score))[-1].remark for score in (POST_HOC["SR"], lambda run: -POST_HOC["SR"](run))
    )
    assert upright.startswith("right above wrong in 78% of made-up pairs (SR: 78%)")
    assert upside_down.startswith("right above wrong in 22% of made-up pairs (SR: 78%)")


FLAT = "nn.AdaptiveAvgPool2d(1), nn.Flatten()]"
MODULES = """
class Couples(nn.Module):
    def forward(self, x): return x - x.mean(0)
class Detached(nn.Module):
    def forward(self, x): return x.detach()
class Hidden(nn.Module):
    factor = 1.0
    def forward(self, x):
        self.factor = self.factor + self.training
        return x * self.factor
class View(nn.Module):
    def forward(self, x): return x.view(len(x), -1)[:, :8]
class Pair(nn.Module):
    def forward(self, x): return x[:, None]
class Deaf(Network):
    def with_hidden(self, images):
        features = self.body(images)
        return self.head(features), features, features
def net("""
NETWORKS = {
    "can be built": ("8, num_classes), 0.5", "9, num_classes), 0.5", "must have same reduction dim"),
    "can be built ": ("layers = [", "torch.zeros(1).item(); layers = [", "meta tensors"),
    "features of each image": (FLAT, f"{FLAT[:-1]}, Pair()]", "logits have shape (12, 1, 5)"),
    "for itself": (FLAT, f"{FLAT[:-1]}, Couples()]", "depend on its neighbours"),
    "whole network": (FLAT, f"{FLAT[:-1]}, Detached()]", "no gradient reaches body"),
    "equal networks": ("return Network(", "nn.init.constant_(layers[0].weight, random.random())\n    return Network(",
                       "two networks of one seed differ in body.0.weight"),
    "whole state": (FLAT, f"{FLAT[:-1]}, Hidden()]", "after loading its state it predicts something else"),
    "beyond the K classes": ("return Network(", "return Deaf(", "with 2 more outputs it has shape (12, 5)"),
    "channels last": (FLAT, "View()]", "view size is not compatible"),
}  # fmt: skip


@pytest.mark.parametrize("breach", NETWORKS)
def test_each_breach_of_a_network_is_found(tmp_path: Path, breach: str) -> None:
    old, new, remark = NETWORKS[breach]
    text = NETWORK.replace("\ndef net(", MODULES)
    assert old in text
    loaded(tmp_path, text)
    assert not failures(network_findings("net", {}))
    loaded(tmp_path, text.replace(old, new))
    found = dict(failures(network_findings("net", {})))
    (check,) = [name for name in found if breach.strip() in name]
    assert remark in found[check]


def test_a_network_is_examined_on_images_and_with_settings_that_it_takes(tmp_path: Path) -> None:
    text = NETWORK.replace("layers = [", "assert shape == (1, 28, 28); layers = [")
    loaded(tmp_path, text.replace("8, 3)", "config.widths[0], 3)").replace("(8", "(config.widths[0]"))
    found = list(network_findings("net", {}))
    assert all(finding.holds for finding in found)
    assert found[0].remark == "141 weights for images of 1×28×28"  # 8·9 + 8, 2·8, 8·5 + 5
    assert next(network_findings("net", {"widths": "4"})).remark == "73 weights for images of 1×28×28"
    with pytest.raises(UserError, match="did you mean 'widths'"):
        next(network_findings("net", {"width": "4"}))


SOURCES = {
    "can be loaded": ("def load(self, config", "def load(self, nothing, config", "load fails (TypeError"),
    "can be loaded ": ("return Facts(", "return dict(", "describe must return Facts"),
    "as many images": ("num_test=4", "num_test=5", "announces 5 test images and loads 4"),
    "labels in range": ("labels[6:]", "labels[6:] + 1", "has a label 2 among its test images"),
    "as it announces them": ("(10, 1, 2, 2)", "(10, 1, 4, 1)", "shape (1, 4, 1), and it announces (1, 2, 2)"),
    "as it announces them ": ("dtype=np.uint8", "dtype=np.float32", "is float32, expected uint8"),
    "a place of its own": ("Images.of(images[6:], labels[6:])", "Images(images, labels[6:], np.array([1, 1, 2, 2]))",
                           "an image of the test split is there twice"),
    "every time": ("(10, 1, 2, 2)", "(10, 1, 2, 2) + random.randrange(1, 200)", "the train images differ"),
    "a distribution": ("labels[6:]))", "labels[6:]), np.ones((4, 2)))", "its rows are no probabilities"),
}  # fmt: skip


@pytest.mark.parametrize("breach", SOURCES)
def test_each_breach_of_a_source_is_found(tmp_path: Path, breach: str) -> None:
    old, new, remark = SOURCES[breach]
    assert old in SOURCE
    loaded(tmp_path, SOURCE)
    assert not failures(source_findings("noise", {}, NOWHERE))
    loaded(tmp_path, SOURCE.replace(old, new))
    found = dict(failures(source_findings("noise", {}, NOWHERE)))
    (check,) = [name for name in found if breach.strip() in name]
    assert remark in found[check]


FILES = """
    CACHED = True
    def files(self, config, data_dir):
        return [data_dir / "there.txt"]
    def describe"""


def test_what_is_cached_must_have_files(tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("")
    loaded(tmp_path, SOURCE.replace("\n    def describe", FILES))
    assert not failures(source_findings("noise", {}, tmp_path))
    assert failures(source_findings("noise", {}, NOWHERE)) == [
        ("can be cached", "files() names a file that does not exist")
    ]
    loaded(tmp_path, SOURCE.replace("\n    def describe", FILES.replace('[data_dir / "there.txt"]', "[]")))
    assert "files() names no file" in failures(source_findings("noise", {}, tmp_path))[0][1]


def test_a_score_of_a_method_that_has_the_name_of_another_must_be_it(tmp_path: Path) -> None:
    """Results are measured again by the name of a score, also where the file is not at hand."""
    names = {"softmax_response(p.logits)": True, "p.logits.max(1)": False}
    for formula, holds in names.items():
        text = GOOD.replace("METHOD =", f"Mine.scores = staticmethod(lambda p: {{'SR': {formula}}})\nMETHOD =")
        path = tmp_path / "mine.py"
        path.write_text(text.replace("Method, Prediction", "softmax_response, Method, Prediction"))
        candidate = Candidate(Registry((path,)).get("mine"), "Mine")
        check = checks_for(candidate.method)["scores are finite, one per image, pure"]
        with nullcontext() if holds else pytest.raises(Broken, match="is not what SR means in this suite"):
            check(candidate)


def test_the_command_examines_all_that_a_file_adds(tmp_path: Path) -> None:
    plugin, _ = written(tmp_path)
    good = run_here("check", plugin)
    assert good.returncode == 0, good.stdout + good.stderr
    headings = [line.partition(":")[0] for line in good.stdout.splitlines() if not line.startswith("  ")]
    assert headings == ["score logit gap", "network perceptron", "source stripes", "the contract holds"]
    plugin.write_text(GOOD + plugin.read_text().replace("ordered[:, -1] -", "ordered -"))
    bad = run_here("check", plugin)
    assert bad.returncode == 1
    assert bad.stdout.startswith("Mine: mine\n  holds  can be planned")
    assert "FAILS  one finite number per image" in bad.stdout
    wrong = run_here("check", plugin, "--set", "network.width=5")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "did you mean 'widths'" in wrong.stderr
