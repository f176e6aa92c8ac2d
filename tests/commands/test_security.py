"""Loading runs no code, names stay in their folder, downloads are verified, licences are what we say."""

import ast
import io
import json
import os
import pickle
import re
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from packaging.requirements import Requirement

from benchmark.base.errors import MissingData
from benchmark.base.names import is_plain
from benchmark.config.task import DataConfig
from benchmark.data.sources import get_source
from benchmark.launch.queue import Event
from benchmark.launch.repair import repair
from benchmark.launch.supervise import outcome
from benchmark.measure.versions import MadeBy
from benchmark.store.manifest import plain_entry, plain_manifest
from benchmark.store.store import Store, folder_of
from benchmark.train.context import Context
from tests.conftest import NOWHERE, ROOT, TINY, run_here
from tests.store.test_damage import REGISTRY, make_jobs
from tests.tables.test_build import MANIFEST, fill, record

ONE_RUN = replace(MANIFEST, entries=(replace(MANIFEST.entries[0], seeds=(0,)),))
SOURCES = [ROOT / "run_all.py", *(ROOT / "benchmark").rglob("*.py"), *(ROOT / "methods").rglob("*.py")]
FORBIDDEN = {"eval", "exec", "__import__", "os.system", "os.popen", "subprocess.getoutput"}
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml", "joblib"}
REQUIRED = {"torch.load": ("weights_only", True), "np.load": ("allow_pickle", False)}


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_source_runs_what_it_reads(path: Path) -> None:
    """But for one place: that which runs a user's own file, for --plugin and check."""
    tree = ast.parse(path.read_text())
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {module.partition(".")[0] for module in modules} & UNSAFE_MODULES
    for name, call in calls(tree):
        if path == ROOT / "methods" / "__init__.py" and name == "exec":
            continue
        assert name not in FORBIDDEN, f"line {call.lineno}"
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert given.get("shell") != "True", f"line {call.lineno}"
        if name in REQUIRED:
            key, value = REQUIRED[name]
            assert given.get(key) == str(value), f"line {call.lineno}: {name} without {key}={value}"


class Exploit:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_a_checkpoint_that_carries_code_is_not_run(tiny: Path, tmp_path: Path) -> None:
    """Even where its checksum is right, because an attacker can compute one."""
    (job,) = make_jobs(tiny, ["SR"], seeds=1)
    context, proof = Context(tmp_path / "r", NOWHERE, REGISTRY), tmp_path / "executed"
    buffer = io.BytesIO()
    torch.save({"epoch": Exploit(proof)}, buffer)
    for payload in (buffer.getvalue(), pickle.dumps(Exploit(proof), protocol=2)):
        context.store.write_checkpoint(job.folder, payload)
        event: Event = outcome(job, context, "cpu", lambda event: None, lambda: False)
        assert event.kind == "failed"
        assert "Weights only load failed" in event.values["reason"]
    assert not proof.exists()
    torch.load(io.BytesIO(buffer.getvalue()), weights_only=False)
    assert proof.exists(), "the exploit works where it is let"


def test_a_prediction_that_carries_code_is_not_run(tmp_path: Path) -> None:
    """Neither where a score is asked for, nor where other code has measured the run."""
    store, proof = Store(tmp_path / "r"), tmp_path / "executed"
    run = record(0, {"SR": (0.1, 0.1)})
    fill(store, "ours", [run])
    buffer = io.BytesIO()
    np.savez(buffer, logits=np.array([Exploit(proof)], dtype=object), labels=np.zeros(1))
    folder = folder_of("toy", "ours", "id", 0)
    (store.root / folder / "prediction.npz").write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match="allow_pickle"):
        store.read_prediction(folder)
    store.write_manifest(ONE_RUN)
    assert run_here("tables", "--results", store.root, "--scores", "margin").returncode == 0
    fill(store, "ours", [replace(run, made_by=MadeBy())])
    assert run_here("tables", "--results", store.root).returncode == 0
    assert not proof.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../outside"},
        {"name": "/tmp/outside"},
        {"task": "../outside"},
        {"task": ".."},
        {"entries": [{**plain_entry(ONE_RUN.entries[0]), "method": "../.."}]},
        {"entries": [{**plain_entry(ONE_RUN.entries[0]), "job": "/etc"}]},
    ],
    ids=str,
)
def test_a_manifest_cannot_name_what_lies_outside(tmp_path: Path, change: dict[str, Any]) -> None:
    store = Store(tmp_path / "deep" / "results")
    fill(store, "ours", [record(0, {"SR": (0.1, 0.1)})])
    store.replace_json(Path("manifests", "toy.json"), {**plain_manifest(ONE_RUN), **change})
    before = sorted(tmp_path.rglob("*"))
    result = run_here("tables", "--results", store.root)
    assert result.returncode == 2
    assert "it names what cannot be in this folder" in result.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_record_cannot_have_files_outside_moved(tmp_path: Path) -> None:
    store, mine = Store(tmp_path / "results"), tmp_path / "mine.npz"
    mine.write_bytes(b"mine")
    folder = folder_of("toy", "ours", "id", 0)
    store.write_record(folder, record(0, {"SR": (0.1, 0.1)}, checksums={"../../../../../mine.npz": "0"}))
    assert list(store.damage(folder)) == ["record.json"]
    repair(folder, store)
    assert mine.read_bytes() == b"mine"
    assert not store.has_record(folder)


@pytest.mark.parametrize("name", ["..", ".", "", "../x", "/x", "a/b", "a\\b", ".hidden", "-flag", "a\0b", "a\nb"])
def test_names_that_are_not_plain(name: str) -> None:
    assert not is_plain(name)


@pytest.mark.parametrize("name", ["digits", "cifar100-cpu", "e_s", "my task", "größe", "v1.2+x", "名"])
def test_names_that_are_plain(name: str) -> None:
    assert is_plain(name)


@pytest.mark.parametrize("source", ["cifar10", "cifar100", "svhn", "fashion-mnist"])
def test_a_download_that_is_not_the_official_file_is_refused(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = []

    def bring_something_else(url: str, filename: Any, *_: object, **__: object) -> None:
        fetched.append(url)
        Path(filename).write_bytes(b"not what was asked for")

    monkeypatch.setattr("torchvision.datasets.utils._urlretrieve", bring_something_else)
    monkeypatch.setattr("torchvision.datasets.utils._get_redirect_url", lambda url, max_hops: url)
    monkeypatch.setattr("benchmark.data.sources.fashion_mnist.DEBIAN", tmp_path / "nowhere")
    config = DataConfig(source, (0.5,) * 3, (0.5,) * 3)
    with pytest.raises(MissingData, match=re.compile("could not be downloaded")):
        get_source(config).load(config, tmp_path)
    assert fetched


def test_celeba_is_verified_too() -> None:
    """Its downloader asks for a checksum of every file, and is not reached from here."""
    from torchvision.datasets import CelebA

    assert all(len(md5) == 32 for _, md5, _ in CelebA.file_list)


def test_who_runs_a_users_file_says_so() -> None:
    from benchmark.cli import make_parser

    _, by_name = make_parser("")
    with_plugins = (
        *("run", "factorial", "evaluate", "prepare", "list", "tables", "figures", "measure", "explain", "diff", "tune"),
        *("certify", "export", "features", "summary", "watch"),
    )
    for command in with_plugins:
        assert "--plugin" in by_name[command].format_help()
        assert "the file is executed" in " ".join(by_name[command].format_help().split())
    assert "which is executed" in " ".join(by_name["check"].format_help().split())
    others = [name for name in by_name if name not in (*with_plugins, "check")]
    assert not any("--plugin" in by_name[name].format_help() for name in others)


def test_no_other_command_runs_a_file_that_lies_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not from the folder one stands in, nor from the results."""
    store = Store(tmp_path / "results")
    fill(store, "ours", [record(0, {"SR": (0.1, 0.1)})])
    store.write_manifest(ONE_RUN)
    for folder in (tmp_path, store.root, store.root / "toy" / "ours"):
        (folder / "ours.py").write_text("raise SystemExit('executed')\n")
    monkeypatch.chdir(tmp_path)
    for words in (["tables"], ["list"], ["explain", "toy", "ours", "50"], ["diff", "results", "results"]):
        result = run_here(*words)
        assert "executed" not in result.stdout + result.stderr


def required(name: str, seen: dict[str, str]) -> dict[str, str]:
    """Every package that this one cannot do without → its licence."""
    found = distribution(name)
    meta = found.metadata
    classified = [line.rpartition(" :: ")[2] for line in meta.get_all("Classifier", []) if line.startswith("License")]
    seen[canonical(name)] = meta.get("License-Expression") or ", ".join(classified) or (meta.get("License") or "")
    for line in found.requires or []:
        wanted = Requirement(line)
        if (wanted.marker is None or wanted.marker.evaluate({"extra": ""})) and canonical(wanted.name) not in seen:
            required(wanted.name, seen)
    return seen


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_nothing_copyleft_is_required_but_what_we_say() -> None:
    licences = required("selbench", {})
    assert len(licences) > 20
    strong = re.compile(r"\b[AL]?GPL|GNU|EUPL|SSPL|CC-BY-SA", re.IGNORECASE)
    assert not {name for name, licence in licences.items() if strong.search(licence)}
    weak = {name for name, licence in licences.items() if re.search(r"MPL|Mozilla|EPL|CDDL", licence)}
    assert weak <= {"tqdm", "certifi"}


def test_the_list_of_dependencies_is_whole() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = (ROOT / "docs" / "dependencies.md").read_text()
    for line in project["dependencies"]:
        assert f"| {Requirement(line).name} | " in listed
    for line in project["optional-dependencies"]["dev"]:
        assert f"{Requirement(line).name} (" in listed


def test_results_can_be_read_by_anyone_and_moved(tmp_path: Path) -> None:
    """A whole results folder keeps its seals when it is copied or renamed."""
    task = tmp_path / "tiny.toml"
    task.write_text(TINY)
    assert run_here("--datasets", task, "--methods", "sr", "--seeds", 1, "--results", tmp_path / "a").returncode == 0
    shutil.move(tmp_path / "a", tmp_path / "b")
    again = run_here("--datasets", task, "--methods", "sr", "--seeds", 1, "--results", tmp_path / "b")
    assert "1 job, 1 done already" in again.stderr
    assert "damaged" not in again.stderr
    assert json.loads(next((tmp_path / "b").rglob("record.json")).read_text())["provenance"]["seal"]
