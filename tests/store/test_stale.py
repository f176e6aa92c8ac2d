"""Results of other code, or of another torch, are used but never silently; or done again where that is asked for."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import methods
from benchmark.base.source_code import code_hash, essence
from benchmark.jobs.code_version import CORE, DECIDING, INDIFFERENT, core_hash, deciding_files, suite_hash
from benchmark.jobs.same_code import SAME_CODE
from benchmark.store.provenance import Provenance
from benchmark.store.record import Record
from benchmark.store.stale import installed_torch, stale_reasons
from benchmark.store.store import STALE_RECORD, Store
from benchmark.train.context import Context
from benchmark.train.run_job import run_job
from methods import FOLDER, sources
from tests.conftest import NOWHERE, TINY, run_here
from tests.store.test_damage import CPU, REGISTRY, contents, make_jobs, stopped_after, trained

BY_CODE, BY_TORCH = {"codes": ["other"]}, {"environments": ["torch 1.0.0, AVX2, cpu, 1 thread(s)"]}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("finished")
    task = folder / "tiny.toml"
    task.write_text(TINY)
    common = ("--datasets", task, "--methods", "sr", "deep-ensemble", "--seeds", 1, "--results", folder / "results")
    made = run_here(*common)
    assert made.returncode == 0
    assert "another version" not in made.stdout + made.stderr + run_here(*common).stderr
    return task, folder / "results"


def remade(results: Path, method: str, changes: dict[str, Any]) -> list[Path]:
    """Change the provenance of a method's records, as if another had made them."""
    store, folders = Store(results), []
    for path in sorted((results / "tiny" / method).rglob("record.json")):
        folders.append(path.parent.relative_to(results))
        record = store.read_record(folders[-1])
        store.write_record(folders[-1], replace(record, provenance=replace(record.provenance, **changes)))
    return folders


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        (BY_CODE, "made by another version of the code"),
        (BY_TORCH, f"made with torch 1.0.0 instead of {installed_torch()}"),
    ],
    ids=["code", "torch"],
)
def test_used_with_a_footnote_or_done_again(
    finished: tuple[Path, Path], tmp_path: Path, changes: dict[str, Any], note: str
) -> None:
    task, whole = finished
    shutil.copytree(whole, tmp_path / "results")
    (seed, *_) = remade(tmp_path / "results", "deep_ensemble", changes)
    common = ("--datasets", task, "--methods", "sr", "deep-ensemble", "--seeds", 1, "--results", tmp_path / "results")
    used = run_here(*common)
    assert "3 jobs, 3 done already" in used.stderr
    assert "1 finished job made by another version of the code or of torch: used" in used.stderr
    assert f"Deep ensemble, seed 0: {note}." in used.stdout
    assert "SR, seed" not in used.stdout
    assert f"Deep ensemble, seed 0: {note}." in run_here("tables", "--results", tmp_path / "results").stdout
    again = run_here(*common, "--redo-stale")
    assert "done again\n3 jobs, 2 done already" in again.stderr
    assert note not in again.stdout
    assert contents(tmp_path / "results") == contents(whole)
    assert not (tmp_path / "results" / seed / STALE_RECORD).exists()


def test_what_is_made_of_stale_members_is_stale(finished: tuple[Path, Path], tmp_path: Path) -> None:
    task, whole = finished
    shutil.copytree(whole, tmp_path / "results")
    remade(tmp_path / "results", "cross_entropy", BY_CODE | BY_TORCH)
    (folder,) = remade(tmp_path / "results", "deep_ensemble", {})
    (tmp_path / "results" / folder / "record.json").unlink()
    common = ("--datasets", task, "--methods", "deep-ensemble", "--seeds", 1, "--results", tmp_path / "results")
    result = run_here(*common, "--reference", "deep-ensemble")
    assert "Deep ensemble, seed 0: made by another version of the code." in result.stdout
    assert "Deep ensemble, seed 0: made with torch 1.0.0" in result.stdout


@pytest.mark.parametrize(("only_fresh", "left"), [(False, [2, 3]), (True, [0, 1, 2, 3])])
@pytest.mark.parametrize("other", ["code", "torch"])
def test_a_checkpoint_of_another(
    tiny: Path, tmp_path: Path, only_fresh: bool, left: list[int], other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = make_jobs(tiny, ["SAT"], seeds=1)
    context = Context(tmp_path / "r", NOWHERE, REGISTRY, only_fresh=only_fresh)
    with monkeypatch.context() as patch:
        if other == "torch":
            patch.setattr("torch.__version__", "1.0.0+cu9")
        stopped_after(replace(job, code="other") if other == "code" else job, context, 2)
    assert trained(job, context) == left
    record = context.store.read_record(job.folder)
    assert bool(stale_reasons(record, job.code, installed_torch())) == (not only_fresh)


def test_a_run_that_diverged_is_done_again_by_other_code(tiny: Path, tmp_path: Path) -> None:
    """The mistake may have been mended."""
    common = ("--datasets", tiny, "--methods", "sr", "--seeds", 1, "--results", tmp_path, "--set", "optimizer.lr=1e9")
    assert run_here(*common).returncode == 1
    remade(tmp_path, "cross_entropy", BY_CODE)
    used = run_here(*common)
    assert "SR, seed 0: made by another version of the code." in used.stdout
    assert "diverged in an earlier run" in used.stderr
    again = run_here(*common, "--redo-stale")
    assert "1 job, 0 done already" in again.stderr
    assert "another version" not in again.stdout


def test_a_trunks_code_is_part_of_its_childrens(tiny: Path) -> None:
    sat, sr = make_jobs(tiny, ["SAT", "SR"], seeds=1)
    assert sat.trunk is not None
    assert sat.trunk.code == sr.code != sat.code


def test_what_is_not_known_is_not_held_against_a_record() -> None:
    older = Record("toy", "m", "id", 0, {})
    assert not stale_reasons(older, "code", "2.0")
    other = replace(older, provenance=Provenance(**BY_CODE, **BY_TORCH))
    assert not stale_reasons(other, "", "")
    assert len(stale_reasons(other, "code", "2.0")) == 2


def test_only_what_a_program_does_counts() -> None:
    plain = b"def f(x):\n    return x + 1\n"
    commented = b'"""Module."""\n# note\n\ndef f(x):\n    """Doc."""\n\n    return (x + 1)  # why\n'
    assert code_hash([plain]) == code_hash([commented])
    assert code_hash([plain]) != code_hash([plain.replace(b"1", b"2")])
    assert essence(b'class C:\n    """Only words."""\n') == essence(b'class C:\n    "Others."\n')


def test_a_hash_is_the_same_in_all_versions_of_python() -> None:
    """Computed with 3.9 to 3.13; Python's own ways to print a program differ in quotes and new fields."""
    source = b"""
@wraps
def f(x, *, y=1.5e-3, **rest):
    text = f'{x!r:>{y}} and "{rest["a"]}"'
    return lambda z: [text for _ in range(z) if _ is not None]
"""
    assert code_hash([source]) == "1882605d7fda"


def test_a_shared_part_counts_for_those_that_import_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "methods"
    shutil.copytree(FOLDER, folder)
    monkeypatch.setattr(methods, "FOLDER", folder)

    def hashes() -> dict[str, str]:
        return {path.stem: suite_hash(sources(path)) for path in folder.glob("[a-z]*.py")}

    before = hashes()
    with (folder / "_queues.py").open("a") as file:
        file.write("\nCHANGED = True\n")
    changed = {name for name, value in hashes().items() if value != before[name]}
    assert changed == {"ccl_sc", "ccl_sc_sat_em", "typicalness"}


def test_where_code_lies_does_not_count() -> None:
    """A module may move: what is imported from this suite, and how, is no part of what a program does."""
    here = b"from benchmark.base.units import counted\nimport numpy\n\ndef f(x):\n    return counted(x)\n"
    there = b"import numpy\n\ndef f(x):\n    from benchmark.elsewhere import counted\n    return counted(x)\n"
    assert suite_hash([here]) == suite_hash([there])
    assert suite_hash([here]) != suite_hash([here.replace(b"numpy", b"scipy")])


def test_code_that_computes_the_same_goes_by_its_earlier_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = b"def f(x):\n    return x + 1\n", b"def plus_one(x):\n    return x + 1\n"
    monkeypatch.setitem(SAME_CODE, suite_hash([new]), suite_hash([old]))
    assert suite_hash([new]) == suite_hash([old])
    assert suite_hash([new + b"A = 1\n"]) != suite_hash([old])


def test_no_entry_is_kept_for_code_that_has_changed_since() -> None:
    """An entry whose code is gone says nothing any more; a hash that it leads to belongs to one piece of code."""
    assert len(set(SAME_CODE.values())) == len(SAME_CODE)
    now = {core_hash(), *(REGISTRY.code_hash(name) for name in REGISTRY.names())}
    assert set(SAME_CODE.values()) <= now


def test_a_users_own_file_keeps_its_hash() -> None:
    """Computed before the packages were made: results of plugins do not turn stale by a move."""
    source = b"from benchmark.interface import Method\n\n\nclass Own(Method):\n    pass\n\n\nMETHOD = Own\n"
    assert code_hash([source]) == "e834819ae574"


BESIDE = {"base", "config", "interface", "jobs", "measure", "store"}
"""Packages that training uses, but a job's id says what they gave, or they only measure, store and tell."""


def test_whatever_training_uses_is_known_to_decide_or_not_to() -> None:
    files = deciding_files()
    used = {name for path in files for name in re.findall(r"^ *from benchmark\.(\w+)", path.read_text(), re.MULTILINE)}
    assert used - set(DECIDING) == BESIDE
    for package, names in INDIFFERENT.items():
        assert names <= {path.stem for path in (CORE / package).glob("*.py")}
    decide = {path.relative_to(CORE).with_suffix("").as_posix() for path in files}
    assert {"interface", "data/augment", "train/trainer"} <= decide
    assert not decide & {"train/bound", "measure/metrics", "data/cache"}


def test_a_resumed_job_is_the_same_whatever_the_code_says(tiny: Path, tmp_path: Path) -> None:
    """The code is no part of a job's id: its folder, and what is in it, stays where it is."""
    (job,) = make_jobs(tiny, ["SR"], seeds=1)
    assert replace(job, code="other").folder == job.folder
    run_job(job, Context(tmp_path, NOWHERE, REGISTRY), CPU, lambda values: None)
    assert Store(tmp_path).read_record(job.folder).provenance.codes == [job.code]
