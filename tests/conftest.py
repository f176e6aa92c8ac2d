"""Shared fixtures: a tiny task that trains in seconds, and the command line as a function.

What needs torch is imported where it is used: the process that only deals out the tests would hold it in memory, too.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock
from hypothesis import settings

from benchmark.base.files import read_content
from benchmark.cli import main
from benchmark.config.task import TaskConfig
from benchmark.data.cache import Folders
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables.build import build_tables
from benchmark.tables.columns import load_columns
from benchmark.tables.model import Table

if TYPE_CHECKING:
    from methods import Registry

settings.register_profile("suite", deadline=None)  # a slow moment of the machine is no fault
settings.load_profile("suite")
ROOT = Path(__file__).resolve().parent.parent
NOWHERE = Folders(Path("nowhere"), Path("nowhere"))
"""For tasks whose images are made in memory."""
PLENTY = 10**12
NEEDS = {
    "latex": "pdflatex installed",
    "browser": "Chromium and playwright installed",
    "ray": "Ray, s3fs and moto installed",
    "crash": "minutes to spare",
    "docs": 'mkdocs installed (pip install -e ".[docs]") and three minutes',
    "device": "a C++ compiler, or a GPU that SELBENCH_TEST_DEVICE names",
}
"""What the tests of a marker need."""
SR_LABELS = 'labels = {"SR": {}, "Label smoothing": {"smoothing": 0.05}}'
"""A line of methods/cross_entropy.py, for files of users that are made of it."""
AT_ONCE = 2
"""Processes for the whole default suite. More would take more memory than a laptop has."""
LEFT_OUT = pytest.StashKey[Counter[str]]()

TINY = """
title = "tiny digits"
methods = ["CCL-SC", "SAT+EM", "SAT", "DG", "SR"]
reference = "CCL-SC"
coverages = [100, 90, 80]
seeds = 2
epochs = 4
batch_size = 32
checkpoint_seconds = 0
model_coverages = [90, 80]

[data]
source = "digits"
val = 0.1
mean = [0.287]
std = [0.353]
train_images = 170
test_images = 200

[network]
name = "small_cnn"
widths = [8, 16]
dropout = 0.3

[augment]
crop_padding = 1

[optimizer]
name = "sgd"
lr = 0.2
momentum = 0.9

[method.deep_gamblers]
warmup_epochs = 2

[method.self_adaptive]
warmup_epochs = 2

[method.ccl_sc]
warmup_epochs = 1
queue_size = 16

[method.ccl_sc_sat_em]
warmup_epochs = 1
queue_size = 16

[method.selective_net]
hidden = 16

[method.mc_dropout]
passes = 3

[method.deep_ensemble]
size = 2

[method.snapshot_ensemble]
cycles = 2
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=30, help="how often to kill a grid (with -m crash; default: 30)")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """The whole default suite uses two cores. Single files would only wait for a second process to start."""
    whole = config.args_source != pytest.Config.ArgsSource.ARGS and not config.option.markexpr
    return AT_ONCE if whole and not config.option.keyword and (os.cpu_count() or 1) > 1 else 0


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every process collects all tests, so any of them knows what was left out."""
    node.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that need more than Python, or much time, run only where they are asked for."""
    keep_together(items)
    if config.option.markexpr:
        return
    needs = {item: marker for item in items for marker in NEEDS if item.get_closest_marker(marker)}
    items[:] = [item for item in items if item not in needs]
    config.hook.pytest_deselected(items=list(needs))
    config.stash[LEFT_OUT] = Counter(needs.values())
    getattr(config, "workeroutput", {})["left_out"] = dict(config.stash[LEFT_OUT])


def keep_together(items: list[pytest.Item]) -> None:
    """One process has the tests of a file, and one all files that must run alone: none waits for another."""
    alone = {item.path for item in items if "alone" in getattr(item, "fixturenames", ())}
    for item in items:
        item.add_marker(pytest.mark.xdist_group("alone" if item.path in alone else str(item.path)))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for marker, count in config.stash.get(LEFT_OUT, Counter()).items():
        terminalreporter.write_line(f"{count} {marker} tests were left out; with {NEEDS[marker]}: pytest -m {marker}")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let one file at a time start processes that train: several at once need more memory than a laptop may have."""
    beside_others = "PYTEST_XDIST_WORKER" in os.environ
    with FileLock(tmp_path_factory.getbasetemp().parent / "alone.lock") if beside_others else contextlib.nullcontext():
        yield


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A task file of digits with a small network that has dropout, augmentation and a validation split."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Path]:
    """A folder to stand in, with modules of the names that are imported; none may be."""
    folder, proof = tmp_path / "hostile", tmp_path / "executed"
    text = f"with open({str(proof)!r}, 'a') as file:\n    file.write(__name__ + ' ')\nraise SystemExit(66)\n"
    for name in ("benchmark", "methods", "multiprocessing", "numpy", "ray", "torch"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(text)
    yield folder
    assert not proof.exists(), f"{proof.read_text()}of the current folder was executed"


@pytest.fixture(scope="session")
def registry() -> "Registry":
    from methods import Registry

    return Registry()


@pytest.fixture(autouse=True, scope="session")
def own_caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What commands keep of a user for later, also those in other processes, does not leave the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("caches")))
        yield


@pytest.fixture(autouse=True)
def one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def pretend_gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Have torch say that there are so many GPUs."""
    import torch

    from benchmark.data import devices

    monkeypatch.setattr(devices, "accelerator_kind", lambda: "cuda")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: count)


def data_hash(task: TaskConfig) -> str:
    from benchmark.data.dataset import load

    return load(task.data, NOWHERE)[1]


def plain_content(path: Path) -> dict[str, Any]:
    """The object in a JSON file, be it compressed or not."""
    return dict(json.loads(read_content(path) or b""))


def tables_of(manifest: Manifest, store: Store) -> list[Table]:
    return build_tables(manifest, load_columns(manifest, store))


def run_here(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The same in this process: no start-up to wait for."""
    words = [str(word) for word in arguments]
    if words[0].startswith("-") and "--workers" not in words:
        words += ["--workers", "0"]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def run_all(*arguments: object, cwd: Path = ROOT, **options: object) -> subprocess.CompletedProcess[str]:
    """`python run_all.py …` as a user would call it."""
    command = [sys.executable, str(ROOT / "run_all.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, **options)  # type: ignore[call-overload,no-any-return]
