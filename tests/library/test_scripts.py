"""`run` in scripts and notebooks: with workers, without a guard, interrupted from outside."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import psutil
import pytest
from tqdm import tqdm

from benchmark.launch.progress import Watcher, in_notebook
from benchmark.launch.queue import Event
from tests.conftest import ROOT
from tests.launch.test_progress import jobs
from tests.store.test_damage import contents

pytestmark = pytest.mark.usefixtures("alone")

SCRIPT = """
with open({proof!r}, "a") as file:
    file.write("executed ")
from benchmark.library.run import run
run({task!r}, "sr", 2, {results!r}, workers=2, set={{"epochs": {epochs}}})
print("returned")
"""
"""Without asking whether it is the main module, as beginners write scripts and as notebooks are."""


def script_of(tiny: Path, folder: Path, results: str = "results", epochs: int = 4) -> str:
    paths = {"proof": str(folder / "proof"), "task": str(tiny), "results": str(folder / results)}
    return SCRIPT.format(**paths, epochs=epochs)


def start(words: list[str], folder: Path, **options: Any) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *words], cwd=folder, env=environment, **pipes, **options)


@pytest.mark.parametrize("way", ["a file", "-c", "stdin"])
def test_a_script_without_a_guard_runs_once(tiny: Path, tmp_path: Path, way: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(script_of(tiny, tmp_path))
    words = {"a file": [str(script)], "-c": ["-c", script.read_text()], "stdin": ["-"]}[way]
    process = start(words, tmp_path, stdin=subprocess.PIPE)
    out, err = process.communicate(script.read_text() if way == "stdin" else None, timeout=300)
    assert (process.returncode, out) == (0, "returned\n"), err
    assert (tmp_path / "proof").read_text() == "executed "
    assert "[2/2]" in err, "a line for each job, as there is no terminal"
    assert "\r" not in err


def children(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def test_interrupted_from_outside_it_saves_stops_its_workers_and_raises(tiny: Path, tmp_path: Path) -> None:
    """The whole group gets the signal, as from a terminal; the script goes on behind its except."""
    script = tmp_path / "script.py"
    text = script_of(tiny, tmp_path, epochs=3000).replace("\nrun(", "\ntry:\n  run(").replace('print("returned")', (
        "except KeyboardInterrupt:\n"
        "  import multiprocessing, signal\n"
        "  print(multiprocessing.active_children(), signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    ))  # fmt: skip
    as_in_a_terminal = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    script.write_text(as_in_a_terminal + text)  # what is started in the background may ignore the signal
    process = start([str(script)], tmp_path, start_new_session=True)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "results").rglob("checkpoint.pt")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.05)
    started = children(process)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "[] True\n"), err
    assert "stopping as soon as each job has saved its state" in err
    assert "Traceback" not in err
    assert len(started) >= 2
    assert not psutil.wait_procs(started, timeout=30)[1]


def test_a_thread_of_a_script_can_use_workers(tiny: Path, tmp_path: Path) -> None:
    text = script_of(tiny, tmp_path, "threaded").replace(
        "\nrun(", "\nimport threading\nt = threading.Thread(target=lambda: run("
    )
    text = text.replace('})\nprint("returned")', '}))\nt.start()\nt.join()\nprint("returned")')
    process = start(["-c", text], tmp_path)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (0, "returned\n"), err
    start(["-c", script_of(tiny, tmp_path, "plain")], tmp_path).communicate(timeout=300)
    assert contents(tmp_path / "threaded") == contents(tmp_path / "plain")


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tells a kernel from other processes: the shell of an application."""
    module: Any = ModuleType("IPython")
    module.get_ipython = lambda: SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", module)


def watched(capsys: pytest.CaptureFixture[str]) -> str:
    """What a person sees of two jobs, one of which fails."""
    first, second = jobs()
    watcher = Watcher([first, second])
    watcher(Event("started", first))
    for epoch in range(1, 51):
        watcher(Event("epoch", first, {"epochs_done": epoch, "loss": 1.5}))
    watcher(Event("done", first))
    watcher(Event("failed", second, {"reason": "no luck"}))
    watcher.close()
    return capsys.readouterr().err


def test_a_notebook_has_one_bar_that_is_redrawn_in_place(
    kernel: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    text = watched(capsys)
    assert in_notebook()
    assert "[1/2]" not in text, "no line for a job that went well"
    assert "[2/2] digits SR seed 0: FAILED: no luck" in text
    assert text.count("\r") < 20, "however fast the epochs"
    assert text.rstrip("\n").rpartition("\r")[2].startswith("2/2 jobs |████████|"), "it stays"


def test_a_notebook_with_widgets_has_one_of_them(
    kernel: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[dict[str, Any]] = []

    class Widget(tqdm):  # type: ignore[type-arg]
        def __init__(self, **options: Any) -> None:
            made.append(options)
            super().__init__(**options)

    module: Any = ModuleType("tqdm.notebook")
    module.tqdm = Widget
    monkeypatch.setitem(sys.modules, "tqdm.notebook", module)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    watched(capsys)
    assert "|{bar}|" in made[0]["bar_format"], "the widget draws the bar itself"


def test_elsewhere_there_are_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shell: Any = ModuleType("IPython")
    shell.get_ipython = lambda: None
    for module in (None, shell):
        monkeypatch.setitem(sys.modules, "IPython", module)
        assert not in_notebook()
        assert "[1/2] digits DG seed 0: done" in watched(capsys)
