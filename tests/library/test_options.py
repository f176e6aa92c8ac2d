"""Options are checked when they are made, and the command line makes the same ones."""

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from benchmark.base.errors import UserError
from benchmark.cli import parse
from benchmark.commands.options import make_options
from benchmark.library.folder_options import PackOptions, SummaryOptions
from benchmark.library.options import (
    CheckOptions,
    DiffOptions,
    ExplainOptions,
    FiguresOptions,
    Options,
    PaperOptions,
    PlanningOptions,
    PrepareOptions,
    RunOptions,
    TablesOptions,
    TuneOptions,
)

WORDS: dict[str, tuple[list[str], Options]] = {
    "run": ([], RunOptions()),
    "tables": ([], TablesOptions()),
    "figures": ([], FiguresOptions()),
    "explain": (["digits", "sr", "90"], ExplainOptions(task="digits", method="sr", row="90")),
    "summary": ([], SummaryOptions()),
    "pack": (["a", "--to", "b"], PackOptions(results="a", to="b")),
    "diff": (["a", "b"], DiffOptions(old="a", new="b")),
    "prepare": (["digits"], PrepareOptions(tasks=["digits"])),  # type: ignore[arg-type]
    "check": (["focal"], CheckOptions(method="focal")),
    "paper": (["all"], PaperOptions(tables=("all",))),
    "tune": (["digits", "sr"], TuneOptions(task="digits", method="sr")),
}


@pytest.mark.parametrize("command", WORDS)
def test_a_command_without_options_and_a_call_without_options_ask_for_the_same(command: str) -> None:
    words, options = WORDS[command]
    arguments = parse([command, *words], "")
    assert make_options(type(options), arguments) == options
    if hasattr(arguments, "dry_run"):
        assert make_options(PlanningOptions, arguments) == PlanningOptions()


def test_what_the_command_line_says_arrives() -> None:
    words = "run --datasets a b --seed-list 3 7 --coverages 90 80.5 --no-shared-warmup --data-budget 2GB --amp bf16"
    options = make_options(RunOptions, parse(words.split(), ""))
    assert (options.datasets, options.seed_list, options.coverages) == (("a", "b"), (3, 7), (90.0, 80.5))
    assert (options.share_warmups, options.data_budget, options.amp) == (False, 2 * 10**9, "bf16")
    words = "run --dry-run --cluster 2xA,1xB --price A=2 B=0.5 --step-seconds a=0.1"
    ahead = make_options(PlanningOptions, parse(words.split(), ""))
    assert ahead.cluster == ((2, "A"), (1, "B"))
    assert (ahead.price, ahead.step_seconds) == ((("A", 2.0), ("B", 0.5)), (("a", 0.1),))


def test_values_take_the_form_of_their_field() -> None:
    options = RunOptions(datasets="digits", methods=["sr"], results=Path("x"), plugin="m.py", data_budget="4GB")  # type: ignore[arg-type]
    assert (options.datasets, options.methods, options.results) == (("digits",), ("sr",), "x")
    assert (options.plugin, options.data_budget) == ((Path("m.py"),), 4 * 10**9)
    assert RunOptions(seed_list=range(2)) == RunOptions(seed_list=(0, 1))  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        options.results = "y"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"retries": -1}, "retries: expected a whole number from 0 to 100, got -1"),
        ({"workers": 2.5}, "workers: expected a whole number from 0 to 1,024, got 2.5"),
        ({"seeds": True}, "seeds: expected a whole number from 1 to 10,000, got True"),
        ({"seed_list": [0, -3]}, "seed_list: expected a whole number from 0 to"),
        ({"seed_list": 3}, "seed_list: expected a list, got 3"),
        (
            {"coverages": [90, 33.3]},
            "coverages: coverages are per cent above 0 and up to 100 in steps of 0.5, got 33.3",
        ),
        ({"amp": "fp8"}, "unknown value of amp: 'fp8': did you mean 'fp16'?"),
        ({"test": "exat"}, "unknown value of test: 'exat': did you mean 'exact'?"),
        ({"quiet": "yes"}, "quiet: expected true or false, got 'yes'"),
        ({"data_budget": "a lot"}, "data_budget: expected an amount of memory such as 500MB or 2GB, got 'a lot'"),
        ({"methods": 3}, "methods: expected a list, got 3"),
        ({"device": 0}, "device: expected text, got 0"),
        ({"cluster": [(1, 2)]}, "cluster: expected text, got 2"),
    ],
)
def test_bad_values_are_refused_in_one_line(values: dict[str, Any], message: str) -> None:
    kind = PlanningOptions if "cluster" in values else RunOptions
    with pytest.raises(UserError) as caught:
        kind(**values)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
