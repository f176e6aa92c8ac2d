"""Every number that a user writes has a bound, and is refused in one line beyond it, before it costs memory or time."""

import dataclasses
import re
from argparse import Action
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest

from benchmark.base.errors import UserError
from benchmark.base.limits import DEFAULT_LIMITS, Within, read_number, shown
from benchmark.base.schema import coerce
from benchmark.base.units import bytes_from_text
from benchmark.cli import make_parser
from benchmark.config.load import load_task
from benchmark.config.task import TaskConfig
from benchmark.jobs.allowance import MOST_JOBS, Allowance
from benchmark.jobs.plan import plan
from methods import Registry
from tests.conftest import TINY, run_here

REGISTRY = Registry()
HUGE = ("9" * 5000, "1e300", "2147483648", "10000000000000000000000")
GRID = ",".join(str(value) for value in range(1, 200))


def refusal(*words: object, folder: Path) -> str:
    """The one line in which a command is refused."""
    result = run_here(*words, "--results", folder / "results")
    assert result.returncode == 2, result.stdout
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1, result.stderr
    assert len(result.stderr) < 500, result.stderr
    assert not (folder / "results").exists()
    return result.stderr


COMMANDS = [
    (["--seeds", "2147483648", "--dry-run"], "--seeds: .* from 1 to 10,000, got '2147483648': each seed trains"),
    (["--set", "seeds=10000000000", "--dry-run"], "seeds: .* from 1 to 10,000, got '10000000000': each seed"),
    (["--seed-list", "9" * 5000, "--dry-run"], "--seed-list: .* to 4,294,967,295, got '9+.*9+': "),
    (["--workers", "300000000"], "--workers: .* from 0 to 1,024, got '300000000': no machine can run more"),
    (["--workers", "10000000000000000000000"], "--workers: .* from 0 to 1,024"),
    (["--workers", "1024", "--device", "cpu"], "expected at most [0-9]+ processes on this machine .* got 1,024"),
    (["--gpus-per-job", "64", "--device", "cpu", "--methods", "sr"], "processes on this machine .* got 64"),
    (["--gpus-per-job", "65"], "--gpus-per-job: .* from 1 to 64"),
    (["--jobs-per-device", "65"], "--jobs-per-device: .* from 1 to 64"),
    (["--retries", "1000"], "--retries: .* from 0 to 100"),
    (["--max-steps", "1000000000"], "--max-steps: .* from 1 to 1,000,000"),
    (["tune", "digits", "ccl-sc", "--seeds", "30000000", "--dry-run"], "--seeds: .* from 1 to 10,000"),
    (["paper", "cifar10", "--seeds", "30000000", "--dry-run"], "--seeds: .* from 1 to 10,000"),
    (
        ["tune", "digits", "ccl-sc", "--grid", f"weight={GRID}", "--grid", f"temperature={GRID}", "--dry-run"],
        "the grid of CCL-SC has 39,601 settings; expected at most 10,000",
    ),
    (["tune", "digits", "ccl-sc", "--grid", f"weight={GRID}", "--seeds", "10000", "--dry-run"], "seeds × 199 jobs"),
    (["--seeds", "10000", "--methods", "all", "--dry-run"], "10,000 seeds × [0-9]+ jobs: expected at most 100,000"),
    (["--set", "epochs=1000000", "--dry-run"], "epochs: .* from 1 to 100,000, got '1000000': a training would last"),
    (["--set", "epochs=1e300", "--dry-run"], "epochs: .* got '1e300'"),
    (["--set", "method.snapshot_ensemble.cycles=100000", "--dry-run"], "cycles: .* from 1 to 1,000, got '100000'"),
    (["--set", "method.mc_dropout.passes=1e15", "--dry-run"], "passes: .* from 1 to 10,000, got '1e15': each pass"),
    (["--set", "method.selective_net.hidden=1e9", "--dry-run"], "hidden: .* from 1 to 65,536"),
    (["--set", "method.ccl_sc.queue_size=1e9", "--dry-run"], "queue_size: .* from 1 to 1,000,000"),
    (["--set", "network.widths=65536,65536", "--dry-run"], "the network has 38,6.* weights on images of 8×8"),
    (["--data-budget", "9" * 120], "--data-budget: expected at most 1000TB, got '9+...9+': no machine"),
    (["--data-budget", "9" * 400], "--data-budget: expected at most 1000TB"),
    (["--dry-run", "--cluster", "2xA", "--step-seconds", "tiny=1e308"], "--step-seconds: .* got '1e308': a step takes"),
    (["--dry-run", "--cluster", "2xA", "--step-seconds", "tiny=5e-324"], "--step-seconds: .* from 1e-09 to 86,400"),
    (["--dry-run", "--cluster", "2xA", "--speed", "A=1e308"], "--speed: .* from 1e-06 to 1,000,000, got '1e308'"),
    (["--dry-run", "--cluster", "2xA", "--speed", "A=5e-324"], "--speed: .* got '5e-324'"),
    (["--dry-run", "--cluster", "2xA", "--price", "A=1e308"], "--price: .* got '1e308': no hour costs more"),
    (["--dry-run", "--cluster", "9" * 5000 + "xA"], "--cluster: expected up to 1000 devices .* got '9+...9+xA'"),
    (["--dry-run", "--set", "data.image_size=1000000000"], "image_size: .* from 0 to 4,096, got '1000000000': a batch"),
    (["--dry-run", "--set", "data.cache_size=100000"], "cache_size: .* from 0 to 4,096"),
    (["--dry-run", "--set", "method." + "a." * 5000 + "b=1"], "at most 10 tables or lists within each other"),
    (["--dry-run", "--device", "cuda:99999999999999999999"], "device"),
    (["--seeds", "1_0", "--dry-run"], "got '1_0'; write it in the digits 0 to 9, without _ or blanks"),
    (["--seeds", " 3 ", "--dry-run"], "got ' 3 '; write it in the digits 0 to 9"),
    (["--seeds", "٣", "--dry-run"], "got '٣'; write it in the digits 0 to 9"),
    (["--set", "epochs=1_0", "--dry-run"], "epochs: .* got '1_0'; write it in the digits"),
    (["--set", "optimizer.lr=٠.٣", "--dry-run"], "lr: .* got '٠.٣'; write it in the digits"),
    (["--coverages", "9_0", "--dry-run"], "--coverages: .* got '9_0'; write it in the digits"),
    (["--data-budget", "٣GB"], "expected an amount of memory such as 500MB or 2GB, got '٣GB'"),
    (["--dry-run", "--cluster", "٣xA"], "expected up to 1000 devices"),
    (["--dry-run", "--cluster", "2xA", "--price", "A=1_0"], "--price: .* got '1_0'; write it"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), COMMANDS, ids=[" ".join(words)[:60] for words, _ in COMMANDS])
def test_what_would_eat_the_machine_is_refused(words: list[str], message: str, tmp_path: Path) -> None:
    task = tmp_path / "tiny.toml"
    task.write_text(TINY)
    words = words if words[0] in ("tune", "paper") else ["--datasets", str(task), *words]
    said = refusal(*words, folder=tmp_path)
    assert re.search(message, said), said


FILES = {
    "nested lists": ("epochs = " + "[" * 5000 + "]" * 5000, "at most 10 tables or lists within each other"),
    "nested tables": ("epochs = " + "{a = " * 5000 + "1" + "}" * 5000, "at most 10 tables or lists"),
    "dotted keys": (".".join("a" * 5000) + " = 1", "at most 10 tables or lists within each other"),
    "dotted method": ("method." + ".".join("a" * 20) + " = 1", "at most 10 tables or lists within each other"),
    "a hexadecimal number": ("epochs = 0x" + "f" * 9000, "epochs: .* got a number of more than 30 digits: a training"),
    "a text": (f'epochs = "{"x" * 9000}"', "epochs: .* got 'xx.*...x+'$"),
    "a number as a parent": ("extends = 0x" + "f" * 9000, "expected the name of a task, got a number of more than 30"),
    "many values": (f"evaluate_at = {[1] * 20_000}", "evaluate_at: expected at most 10,000 values, got 20,000"),
    "blanks": ('epochs = " 3 "', "epochs: .* got ' 3 '; write it in the digits"),
    "a large file": ("#" * 2_000_000, "expected at most 1,000,000 bytes of text, got 2,000,000"),
}


@pytest.mark.parametrize("name", FILES)
def test_task_files_that_cannot_be(name: str, tmp_path: Path) -> None:
    text, message = FILES[name]
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(UserError) as caught:
        load_task(str(tmp_path / "own.toml"))
    assert re.search(message, str(caught.value)), caught.value
    assert len(str(caught.value)) < 400


def test_a_long_chain_of_tasks(tmp_path: Path) -> None:
    for number in range(1500):
        (tmp_path / f"t{number}.toml").write_text(f'extends = "t{number + 1}"\n')
    (tmp_path / "t1500.toml").write_text('extends = "digits"\n')
    with pytest.raises(UserError, match=r"t0.toml: more than 20 files extend each other; two or three should do"):
        load_task(str(tmp_path / "t0.toml"))
    assert load_task(str(tmp_path / "t1490.toml")).epochs == load_task("digits").epochs


def numbers(hint: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every number within a config, by its place."""
    if hint in (int, float) or (get_origin(hint) is Annotated and get_args(hint)[0] in (int, float)):
        yield name, hint
    elif dataclasses.is_dataclass(hint):
        for field, inner in get_type_hints(hint, include_extras=True).items():
            yield from numbers(inner, f"{name}.{field}")
    else:
        for inner in get_args(hint):
            yield from numbers(inner, name)


CONFIGS = [TaskConfig, *(REGISTRY.get(name).Config for name in REGISTRY.names())]
NUMBERS = [found for config in CONFIGS for found in numbers(config, f"{config.__module__}.{config.__qualname__}")]


@pytest.mark.parametrize(("name", "hint"), NUMBERS, ids=[name for name, _ in NUMBERS])
def test_every_setting_has_a_bound(name: str, hint: Any) -> None:
    """And every whole number, which may count memory or time, one of its own."""
    for text in HUGE:
        with pytest.raises(UserError, match=r"expected a (whole )?number from .* to .*, got "):
            coerce(text if text != "2147483648" else "1e13", hint, name)
    assert hint is not int, f"{name}: Annotated[int, Within(…)] says how large it may be"


def options() -> Iterator[tuple[str, Action]]:
    for command, parser in make_parser("")[1].items():
        for action in parser._actions:
            if action.type is not None and action.metavar in ("N", "SEED", "SIZE", "C", "COVERAGE"):
                yield f"{command} {action.dest}", action


OPTIONS = list(options())


@pytest.mark.parametrize(("name", "action"), OPTIONS, ids=[name for name, _ in OPTIONS])
def test_every_option_has_a_bound(name: str, action: Action) -> None:
    assert callable(action.type)
    for text in (*HUGE[:2], "1_0", " 3 ", "٣", "nan", "inf", ""):
        with pytest.raises(Exception, match=r"expected|coverages are"):
            action.type(text)


def test_there_are_options_to_look_at() -> None:
    found = {name for name, _ in OPTIONS}
    assert {"run seeds", "run seed_list", "tune seeds", "paper seeds", "run workers", "run data_budget"} <= found


@pytest.mark.parametrize(
    ("text", "number"), [("3", 3), ("+3", 3), ("1e3", 1000), ("3.0", 3), ("300.", 300), ("-2", -2), (7, 7), (4.0, 4)]
)
def test_how_whole_numbers_may_be_written(text: object, number: int) -> None:
    found = read_number(text, int, DEFAULT_LIMITS[int])
    assert (found, type(found)) == (number, int)


@pytest.mark.parametrize(
    "text", ["", "1_0", " 3", "3 ", "٣", "३", "0x10", "1e", "e3", ".", "1.5", "3\n", True, None, [3]]
)
def test_how_whole_numbers_may_not_be_written(text: object) -> None:
    with pytest.raises(ValueError, match=r"expected a whole number from -1,000,000,000 to 1,000,000,000, got "):
        read_number(text, int)


def test_blanks_within_lists_and_around_the_sign_are_no_part_of_a_number() -> None:
    assert load_task("digits", ["network.widths = [8, 16]", "epochs = 300"]).network.widths == (8, 16)


def test_a_schedule_too_large_to_draw_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmark.forecast.dry_run.MOST_SCHEDULED", 3)
    words = ["--datasets", "digits", "--methods", "sr", "--dry-run", "--cluster", "2xA", "--step-seconds", "digits=1"]
    result = run_here(*words, "--seeds", 4, "--results", tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "--cluster: expected at most 3 jobs to simulate and draw, got 4; ask for fewer seeds" in result.stderr


def test_many_states_of_one_training_are_planned_once() -> None:
    """The number of cycles is a number too: 1,000 of them were 1,000 jobs of 1,000 checked epochs each."""
    task = load_task("digits", ["epochs=1000", "method.snapshot_ensemble.cycles=1000"])
    (entry,) = plan(task, ["Snapshot ensemble"], [0], REGISTRY, "hash")
    needs = entry.jobs[0].needs
    assert (len(needs), len({id(need) for need in needs})) == (1000, 1)


def test_the_edges_are_within() -> None:
    limit = Within(2, 5, "five is a lot")
    assert [read_number(str(value), int, limit) for value in (2, 5)] == [2, 5]
    for value in (1, 6):
        with pytest.raises(ValueError, match=f"expected a whole number from 2 to 5, got {value}"):
            read_number(value, int, limit)
    assert bytes_from_text("1000TB") == 10**15


def test_what_is_quoted_is_brief() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    for value in (deep, "x" * 10**6, 1 << 10**6, list(range(10**5)), {str(key): 1 for key in range(10**4)}):
        assert len(shown(value)) < 200


def test_a_plan_is_counted_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all tasks of a command; what has been refused was made for one seed only."""
    made = []
    original = type(REGISTRY).code_hash
    monkeypatch.setattr(Registry, "code_hash", lambda self, name: made.append(name) or original(self, name))
    task, allowance = load_task("digits"), Allowance()
    per_seed = 1 + 3
    with pytest.raises(UserError, match=f"{MOST_JOBS:,} seeds × {per_seed} jobs: expected at most {MOST_JOBS:,} more"):
        plan(task, ["Deep ensemble"], range(MOST_JOBS), REGISTRY, "hash", allowance=allowance)
    assert len(made) < 20
    (entry,) = plan(task, ["Deep ensemble"], range(3), REGISTRY, "hash", allowance=allowance)
    assert (len(entry.jobs), allowance.left) == (3, MOST_JOBS - 3 * per_seed)
    allowance.left = 5
    with pytest.raises(UserError, match="expected at most 5 more jobs, as a command plans at most 100,000"):
        plan(task, ["SR"], range(6), REGISTRY, "hash", allowance=allowance)
