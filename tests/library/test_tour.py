"""The tour: its steps do what its commands do, and it goes on where it was stopped."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark.cli import parse
from benchmark.commands.options import make_options
from benchmark.config.load import load_task
from benchmark.data.sources import describe
from benchmark.library import tour
from benchmark.library.options import RunOptions
from benchmark.library.run import train_tasks
from benchmark.library.tour_options import TourOptions
from tests.conftest import run_here

pytestmark = pytest.mark.usefixtures("alone")


@pytest.mark.parametrize("results", ["results/tour", "a folder/of mine"])
def test_each_step_does_what_its_command_says(results: str) -> None:
    for step in tour.tour_steps(TourOptions(results=results)):
        words = shlex.split(step.command)
        assert words[-len(step.words) :] == list(step.words)
        assert make_options(type(step.options), parse(step.words, "")) == step.options
        assert step.options.results == results  # type: ignore[attr-defined]


def test_what_is_said_of_the_data_is_so() -> None:
    task = load_task(tour.TASK)
    facts = describe(task.data)
    assert f"{facts.num_train} to train on and {facts.num_test:,} to test on" in tour.TRAIN
    assert f"holds out {round(task.data.val * facts.num_train)}." in tour.CERTIFY
    assert (1 - tour.RISK / 100) ** 149 < 0.05 < (1 - tour.RISK / 100) ** 148, "about 150 without an error"


def test_what_to_try_next_can_be_tried(tmp_path: Path) -> None:
    commands = tour.next_steps(TourOptions(results=str(tmp_path))).values()
    ours = [shlex.split(command)[2:] for command in commands if "run_all.py" in command]
    assert len(ours) >= 5
    for words in ours:
        parse(words, "")


def test_a_tour_and_the_same_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one seed, in this process. The second one trains nothing."""

    def train_here(options: RunOptions) -> object:
        return train_tasks(replace(options, workers=0))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tour, "SEEDS", 1)
    monkeypatch.setattr(tour, "train_tasks", train_here)
    first, second = run_here("tour"), run_here("tour")
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert "3 jobs, 0 done already" in first.stderr
    assert "3 jobs, 3 done already" in second.stderr
    assert first.stdout == second.stdout
    assert [*Path("results").iterdir()] == [Path("results/tour")], "apart from results of one's own"
    assert Path("results/tour/report.html").is_file()
    commands = re.findall(r"^  \$ (.*)$", first.stdout, re.MULTILINE)
    assert commands[:4] == [step.command for step in tour.tour_steps(TourOptions())]
    for shown in (
        "Selective risk (%) on digits",
        "Report: results/tour/report.html",
        "at coverage 90",
        "Certified coverage",
    ):
        assert shown in first.stdout, shown
    kept = re.search(r"^\| +2 \| +[^\d|]*([\d.]+)", first.stdout, re.MULTILINE)
    assert kept, "a threshold is certified"
    assert float(kept[1]) > 50
