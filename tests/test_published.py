"""The published tables as files: what they ask for is what the paper did."""

import json
from pathlib import Path

import pytest

from benchmark.config import load_task
from benchmark.errors import UserError
from benchmark.jobs import Job
from benchmark.published import load_tables, table_entries, table_names
from methods import Registry
from tests.conftest import run_here

PAPER = json.loads((Path(__file__).parent / "data" / "paper_settings.json").read_text())
REGISTRY = Registry()
TASK = load_task("cifar100")


def jobs(name: str) -> dict[str, Job]:
    return {
        entry.label: entry.jobs[0]
        for table in load_tables([name])
        for entry in table_entries(table, TASK, [0], REGISTRY, "hash")
    }


def plain(label: str, **settings: object) -> Job:
    """The run of the main task with these settings and no others."""
    from benchmark.planner import plan

    overrides = [f"method.{label}.{name}={value}" for name, value in settings.items()]
    return plan(load_task("cifar100", overrides), [label], [0], REGISTRY, "hash")[0].jobs[0]


def test_the_eleven_tables_of_cifar100() -> None:
    columns = {table.published: len(table.columns) for table in load_tables(["all"]) if table.task == "cifar100"}
    assert columns == {
        "table_cifar100": 8,
        "table_related": 7,
        "ablation_unweighted": 2,
        "ablation_ccl_sc2": 4,
        "ablation_ccl_sc3": 4,
        "ablation_supcon": 4,
        "sensitivity_q": 4,
        "sensitivity_s": 5,
        "sensitivity_w": 4,
        "sensitivity_es": 5,
        "combination_cifar100": 2,
    }


@pytest.mark.parametrize(
    ("name", "symbol", "field"),
    [("q", "q", "momentum"), ("s", "s", "queue_size"), ("w", "w", "weight"), ("e_s", "E_s", "warmup_epochs")],
)
def test_sensitivity_tables_vary_one_setting(name: str, symbol: str, field: str) -> None:
    values = PAPER["ablations"]["sensitivity"][symbol]
    found = jobs(name)
    assert [job.config[field] for job in found.values()] == values
    assert [job.id for job in found.values()] == [plain("CCL-SC", **{field: value}).id for value in values]


@pytest.mark.parametrize(
    ("name", "label"), [("ccl-sc2", "CCL-SC2"), ("ccl-sc3", "CCL-SC3"), ("supcon", "CCL-SC+SupCon")]
)
def test_ablations_at_two_queue_sizes(name: str, label: str) -> None:
    ids = [job.id for job in jobs(name).values()]
    assert ids == [plain(each, queue_size=size).id for size in (300, 3000) for each in ("CCL-SC", label)]


def test_runs_that_tables_share_are_one_job() -> None:
    ours = plain("CCL-SC").id
    for name, label in (("cifar100", "CCL-SC"), ("q", "q=0.99"), ("s", "s=3000"), ("unweighted", "SR-weighted")):
        assert jobs(name)[label].id == ours
    assert list(jobs("cifar100")) == ["CCL-SC", "SAT+EM", "SAT", "DG", "SR"]


def test_all_of_cifar100_needs_59_per_cent_of_the_epochs() -> None:
    """33 settings; 300 (trunk) + 6·300 + 3·100 + 19·150 + 250 + 200 + 100 + 50 epochs per seed."""
    planned = json.loads(run_here("paper", "all", "--dry-run", "--json", "--seeds", 2).stdout)
    (task,) = [task for task in planned["tasks"] if task["task"] == "cifar100"]
    assert len(task["jobs"]) == 2 * 33
    assert (task["epochs"], task["epochs_naive"]) == (2 * 5850, 2 * 9900)
    assert planned["epochs"] <= 0.6 * planned["epochs_naive"]
    alone = json.loads(run_here("paper", "all", "--dry-run", "--json", "--seeds", 1, "--no-shared-warmup").stdout)
    assert alone["epochs"] == alone["epochs_naive"] == 9900


def test_a_plan_for_people() -> None:
    result = run_here("paper", "q", "w", "--dry-run", "--seeds", 1)
    assert result.returncode == 0
    assert "warm-up (SR)" in result.stdout
    assert "8 jobs: 0 done, 0 partial, 8 new; 1200 epochs to train (2100 without shared warm-ups)" in result.stdout


def test_bad_names() -> None:
    with pytest.raises(UserError, match="did you mean 'unweighted'"):
        load_tables(["unweigthed"])
    assert "cifar100" in table_names()
    result = run_here("paper", "q")
    assert result.returncode == 2
    assert "add --dry-run" in result.stderr
