"""What `pip install .` leaves works without the clone, and gives way to a clone that one stands in."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from benchmark import __main__ as door
from benchmark.base.program import program
from benchmark.jobs.code_version import combined, core_hash
from methods import Registry
from tests.conftest import ROOT

pytestmark = pytest.mark.usefixtures("alone")

NEEDED = ("benchmark", "methods", "configs", "run_all.py", "pyproject.toml", "setup.py", "README.md", "LICENSE")
SUFFIXES = (".py", ".css", ".js", ".toml", ".csv", ".txt")
EXTRA_TASK = 'extends = "digits"\ntitle = "digits once more"\n'


def copy_clone(folder: Path) -> Path:
    """Copy what makes a clone, so that builds leave nothing in this one and changes can be made."""
    folder.mkdir()
    for path in map(ROOT.joinpath, NEEDED):
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, folder / path.name)
    for cache in list(folder.rglob("__pycache__")):
        shutil.rmtree(cache)
    return folder


def call(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Call a program that finds nothing of this clone on its path."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([*map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True)


def succeed(*words: object, cwd: Path) -> str:
    result = call(*words, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with a task that this one has not, and with what a build of an earlier version has left."""
    folder = copy_clone(tmp_path_factory.mktemp("source") / "clone")
    (folder / "configs" / "of-the-wheel.toml").write_text(EXTRA_TASK)
    left = folder / "build" / "lib" / "methods" / "no_longer.py"
    left.parent.mkdir(parents=True)
    left.write_text("METHOD = None\n")
    return folder


@pytest.fixture(scope="module")
def wheel(clone: Path) -> Path:
    succeed(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", ".", cwd=clone)
    return next(clone.glob("*.whl"))


@pytest.fixture(scope="module")
def programs(wheel: Path, clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin/ of an environment with nothing but the wheel and, from here, the libraries it needs.

    It lies in somebody's git repository. The clone goes on after the wheel was built: a task is renamed, a method gone.
    """
    project = tmp_path_factory.mktemp("project")
    (project / "README").write_text("mine")
    me = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    for words in (["init", "-q"], ["add", "README"], [*me, "commit", "-q", "-m", "mine"]):
        succeed("git", *words, cwd=project)
    venv.create(project / "env", symlinks=True)
    installing = ("install", "--no-deps", "--no-index", "--no-compile", wheel)
    succeed(sys.executable, "-m", "pip", "--python", project / "env" / "bin" / "python", *installing, cwd=project)
    libraries = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (next(project.glob("env/lib/*/site-packages")) / "libraries.pth").write_text("\n".join(libraries))
    (clone / "configs" / "of-the-wheel.toml").rename(clone / "configs" / "of-the-clone.toml")
    (clone / "methods" / "mmce.py").unlink()
    return project / "env" / "bin"


@pytest.fixture(scope="module")
def elsewhere(programs: Path) -> Path:
    folder = programs.parents[1] / "elsewhere"
    folder.mkdir()
    return folder


def files_below(name: str) -> set[str]:
    """The paths of what this clone has in a folder, but for what Python or an editor left there."""
    found = (path for path in (ROOT / name).rglob("*.*") if path.suffix in SUFFIXES)
    return {path.relative_to(ROOT).as_posix() for path in found}


def test_the_wheel_has_what_a_clone_has_and_nothing_else(wheel: Path) -> None:
    configs = {f"benchmark/_{path}" for path in (*files_below("configs"), "configs/of-the-wheel.toml")}
    found = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert found == files_below("benchmark") | files_below("methods") | configs


def test_list_from_elsewhere(programs: Path, elsewhere: Path) -> None:
    listed = succeed(programs / "selbench", "list", cwd=elsewhere)
    assert "of-the-wheel" in listed
    assert "MMCE" in listed
    assert "combination-imagenet" in listed, "a published table"
    assert "no_longer" not in listed


def test_a_run_from_elsewhere(programs: Path, elsewhere: Path) -> None:
    """By its workers' processes too: no other code knows the second task."""
    words = ("--methods", "sr", "--seeds", 1, "--set", "epochs=2", "--workers", 2, "--results", "here")
    said = succeed(programs / "selbench", "--datasets", "digits", "of-the-wheel", *words, cwd=elsewhere)
    assert "Report: here/report.html" in said
    records = [json.loads(path.read_text()) for path in (elsewhere / "here").rglob("record.json")]
    assert sorted(record["task"] for record in records) == ["digits", "of-the-wheel"]
    for record in records:
        assert record["provenance"]["commit"] is None, "that of the project around it is not the suite's"
        assert record["provenance"]["codes"] == [combined([core_hash(), Registry().code_hash("cross_entropy")])]


@pytest.mark.parametrize("below", ["", "methods"])
def test_a_clone_wins_as_a_whole(programs: Path, clone: Path, below: str) -> None:
    for command in ([programs / "selbench"], [programs / "python", "-m", "benchmark"]):
        listed = succeed(*command, "list", cwd=clone / below)
        assert "of-the-clone" in listed
        assert "of-the-wheel" not in listed
        assert "MMCE" not in listed


def test_help_names_the_program_that_was_called(programs: Path, elsewhere: Path) -> None:
    for name, command in {
        "selbench": [programs / "selbench"],
        "python -m benchmark": [programs / "python", "-m", "benchmark"],
        "python run_all.py": [programs / "python", ROOT / "run_all.py"],
    }.items():
        text = succeed(*command, "--help", cwd=elsewhere)
        assert text.startswith(f"usage: {name} [-h] [--version] COMMAND")
        assert f"\n  {name} paper all --dry-run " in text
        refused = call(*command, "tables", "--results", "nowhere", cwd=elsewhere)
        assert refused.stderr == f"error: no results in 'nowhere'; make some with: {name} --results DIR\n"


def test_other_programs_name_the_script_of_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/lib/pytest/__main__.py"])
    assert program() == "python run_all.py"


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The programs that would have taken the place of this one."""
    found: list[list[str]] = []

    def execv(path: str, words: list[str]) -> None:
        found.append(words)
        raise SystemExit

    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr(sys, "argv", ["selbench", "tables", "--results", "no where"])
    return found


@pytest.fixture
def other_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another clone, as far as one can see from outside. One stands in it."""
    for name in door.CLONE:
        (tmp_path / "other" / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "other" / "configs")
    return tmp_path / "other"


def test_a_clone_gets_all_arguments(
    other_clone: Path, monkeypatch: pytest.MonkeyPatch, handed_over: list[list[str]]
) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    with pytest.raises(SystemExit):
        door.main()
    assert handed_over == [[sys.executable, str(other_clone / "run_all.py"), "tables", "--results", "no where"]]
    assert "PYTHONSAFEPATH" not in os.environ, "Python would take the installed code, and not that of the clone"


def test_the_own_clone_needs_no_other_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handed_over: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NEEDED:
        (tmp_path / name).symlink_to(ROOT / name)
    for folder in (ROOT, ROOT / "configs", tmp_path):
        monkeypatch.chdir(folder)
        assert door.main() == 2
        assert "no results in 'no where'; make some with: selbench" in capsys.readouterr().err
    assert handed_over == []


def test_a_clone_of_somebody_else_is_not_run(
    other_clone: Path,
    monkeypatch: pytest.MonkeyPatch,
    handed_over: list[list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever may write above the current folder can have put it there. What is root's is trusted."""
    if os.geteuid() == 0:
        os.chown(other_clone / "benchmark", 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert door.main() == 2
    assert f"'{other_clone}' is a clone of the suite that is not yours" in capsys.readouterr().err
    assert handed_over == []


def test_a_folder_that_is_gone_lies_in_no_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handed_over: list[list[str]]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert door.main() == 2
    assert handed_over == []
