"""`run` from Python: what the command does, as a call that returns, raises, and can be interrupted."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from benchmark.base.errors import JobsFailed, UserError
from benchmark.launch import supervise
from benchmark.launch.queue import Event
from benchmark.library.options import PlanningOptions, RunOptions
from benchmark.library.run import plan_tasks, run
from benchmark.store.store import Store
from tests.conftest import run_here
from tests.store.test_damage import contents

BAD = """
from benchmark.interface import Batch, Method, Progress, Step

class Bad(Method):
    title, reference, labels = "fails", "nobody", {"Bad": {}}

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        raise RuntimeError("it breaks")

METHOD = Bad
"""


def test_it_writes_what_the_command_writes(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--methods",
        "sr",
        "sat",
        "--seed-list",
        0,
        2,
        "--set",
        "epochs=3",
        "--coverages",
        90,
        "--scores",
        "margin",
    ]
    assert run_here("--datasets", tiny, *words, "--results", tmp_path / "command").returncode == 0
    capsys.readouterr()
    run(tiny, ["sr", "sat"], [0, 2], tmp_path / "call", set={"epochs": 3}, coverages=[90], scores="Margin", workers=0)
    said = capsys.readouterr()
    assert said.out == "", "whoever calls it gets values"
    assert "4 jobs, 0 done already" in said.err
    assert contents(tmp_path / "call") == contents(tmp_path / "command")
    manifests = [(tmp_path / name / "manifests" / "tiny.json").read_bytes() for name in ("call", "command")]
    assert manifests[0] == manifests[1]
    assert (tmp_path / "call" / "report.html").exists()
    run(str(tiny), "sr", 1, tmp_path / "call", set=["epochs=3"], workers=0, quiet=True)
    assert capsys.readouterr() == ("", "")


def test_a_plan_trains_nothing(tiny: Path, tmp_path: Path) -> None:
    grid = RunOptions(datasets=(str(tiny),), methods=("sr",), seeds=3, results=str(tmp_path / "r"))
    plan = plan_tasks(grid, PlanningOptions(step_seconds=(("tiny", 0.5),)))
    assert [job["state"] for job in plan.described["tasks"][0]["jobs"]] == ["new"] * 3
    assert not (tmp_path / "r").exists()
    with pytest.raises(UserError, match="has no price for B"):
        plan_tasks(grid, PlanningOptions(cluster=((1, "A"), (1, "B")), price=(("A", 1),)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": "srr"}, "unknown method 'srr': did you mean 'SR'"),
        ({"wokers": 2}, "unknown option of run: 'wokers': did you mean 'workers'"),
        ({"seeds": 0}, "seeds: expected a whole number from 1 to 10,000, got 0"),
        ({"scores": ["marginn"]}, "unknown score 'marginn': did you mean 'margin'"),
        ({"set": {"bound.c": 1}}, "needs --track-bound"),
        ({"plugins": "nowhere.py"}, "is not a Python file that exists"),
        ({"methods": []}, "methods: expected at least one, got none; leave it out for the default"),
        ({"seeds": []}, "seed_list: expected at least one, got none"),
        ({"datasets": "digits"}, "unknown option of run: 'datasets'"),
    ],
)
def test_bad_input_is_one_line(tiny: Path, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run(tiny, results=tmp_path / "r", **options)
    assert not (tmp_path / "r").exists()


def test_failed_jobs_are_named_after_the_tables_of_the_others_are_written(tiny: Path, tmp_path: Path) -> None:
    plugin, results = tmp_path / "bad.py", tmp_path / "r"
    plugin.write_text(BAD)
    with pytest.raises(JobsFailed, match="failed: tiny Bad seed 0: RuntimeError: it breaks") as caught:
        run(tiny, ["sr", "bad"], 1, results, plugins=plugin, workers=0, quiet=True)
    (line,) = str(caught.value).splitlines()
    assert "– (0/1)" in (results / "tables" / "tiny.md").read_text()
    assert (results / "tables" / "tiny.md").read_text() in caught.value.outcome.text()
    words = ["--datasets", tiny, "--methods", "sr", "bad", "--seeds", 1, "--plugin", plugin, "--results", results]
    said = run_here(*words)
    assert said.returncode == 1
    assert said.stdout.startswith(caught.value.outcome.text())
    assert said.stderr.splitlines()[-1] == line


def interrupt_after_first_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    real = supervise.run_watched

    def interrupting(job: Any, context: Any, device: str, watch: Any, asked: Any) -> None:
        def tell(event: Event) -> None:
            watch(event)
            if event.kind == "epoch":
                os.kill(os.getpid(), signal.SIGINT)

        real(job, context, device, tell, asked)

    monkeypatch.setattr(supervise, "run_watched", interrupting)


def test_an_interrupt_is_an_exception_and_the_same_call_goes_on(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is trained so far is saved. The handlers of signals are those of before."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with monkeypatch.context() as patch:
        interrupt_after_first_epoch(patch)
        with pytest.raises(KeyboardInterrupt):
            run(tiny, "sr", 1, tmp_path / "broken", workers=0, quiet=True)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    (entry,) = Store(tmp_path / "broken").manifests()[0].entries
    folder = Path("tiny", entry.method, entry.job, "seed-0")
    assert Store(tmp_path / "broken").state(folder) == "partial"
    run(tiny, "sr", 1, tmp_path / "broken", workers=0, quiet=True)
    run(tiny, "sr", 1, tmp_path / "whole", workers=0, quiet=True)
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


def test_a_thread_can_call_it(tiny: Path, tmp_path: Path) -> None:
    """Only the main thread may set handlers of signals."""
    caught: list[BaseException] = []

    def work() -> None:
        try:
            run(tiny, "sr", 1, tmp_path / "r", workers=0, quiet=True)
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not caught
    assert (tmp_path / "r" / "tables" / "tiny.md").exists()


def test_a_task_and_an_evaluation_set_of_another_do_not_share_a_folder(tiny: Path, tmp_path: Path) -> None:
    """TASK-SET may be the name of a task, which an earlier command may have trained."""
    own, other = tiny.with_name("own.toml"), tiny.with_name("own-foggy.toml")
    own.write_text(tiny.read_text() + '[[evaluate]]\nkind = "corruptions"\nname = "foggy"\nkinds = ["fog"]\n')
    other.write_text(tiny.read_text())
    run(other, "sr", 1, tmp_path / "r", set=["epochs=3"], workers=0, quiet=True)
    before = contents(tmp_path / "r")
    with pytest.raises(
        UserError, match="'own-foggy' would be those of the task 'own-foggy' and the evaluation set 'fo"
    ):
        run(own, "sr", 1, tmp_path / "r", set=["epochs=3"], workers=0, quiet=True)
    assert contents(tmp_path / "r") == before
