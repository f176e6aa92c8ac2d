"""`tune`: the grid, the held-out images, the choice, and a ledger that forgets nothing."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmark.errors import UserError
from benchmark.metrics import aurc
from benchmark.planner import Planner, label_owners, resolve_config
from benchmark.scores import softmax_response
from benchmark.store import Store
from benchmark.tasks import load_task, task_names
from benchmark.tuning import (
    Trial,
    add_to_ledger,
    choose,
    find_grid,
    ledger_sheets,
    read_grid,
    trial_entries,
    tuned_task,
)
from methods import Registry
from tests.conftest import TINY, run_here
from tests.image_sets import write_celeba

PAPER = json.loads((Path(__file__).parent / "data" / "paper_settings.json").read_text())
REGISTRY = Registry()
GRID = "\n[tune.ccl_sc]\nweight = [0.1, 1.0]\nmomentum = [0.9]\n"


def test_the_published_grids() -> None:
    grids = PAPER["tuning"]["grids"]
    epochs = {"cifar10": "300_epochs", "cifar100": "300_epochs", "imagenet": "150_epochs", "celeba": "50_epochs"}
    for name, key in epochs.items():
        task = load_task(name)
        assert task.tune["ccl_sc"] == {"momentum": grids["q"], "weight": grids["w"], "warmup_epochs": grids["E_s"][key]}
        assert task.tune_val == PAPER["tuning"]["validation_fraction_of_training_set"]
    assert len(find_grid(load_task("cifar100"), "CCL-SC", "ccl_sc", [])) == 36


@pytest.mark.parametrize("name", task_names())
def test_every_grid_can_be_planned(name: str) -> None:
    """Methods, fields and values of all tasks' grids exist."""
    task = load_task(name)
    owners = label_owners(REGISTRY)
    for key in task.tune:
        label = key if key in owners else next(label for label, owner in owners.items() if owner == key)
        trials = find_grid(task, label, owners[label], [])
        entries = trial_entries(Planner(task, REGISTRY, "hash"), REGISTRY, label, trials, [0])
        assert len(entries) == len(trials), "every combination is another job"


def test_a_label_has_its_own_grid_before_its_file() -> None:
    task = load_task("cifar100")
    assert set(find_grid(task, "SAT", "self_adaptive", [])[0]) == {"target_momentum", "warmup_epochs"}
    assert "entropy_weight" in find_grid(task, "SAT+EM", "self_adaptive", [])[0]
    assert find_grid(task, "SAT", "self_adaptive", ["target_momentum=0.5,0.6"]) == [
        {"target_momentum": "0.5"},
        {"target_momentum": "0.6"},
    ]


def test_grids_that_cannot_be() -> None:
    assert read_grid(["weight=1,2", "q=3", "weight=4"]) == {"weight": ["1", "2", "4"], "q": ["3"]}
    with pytest.raises(UserError, match="has no grid for SR: add a table"):
        find_grid(load_task("digits"), "SR", "cross_entropy", [])
    for text in ("weight", "weight=", "weight=1,,2"):
        with pytest.raises(UserError, match="expected FIELD=VALUE,VALUE"):
            read_grid([text])
    planner = Planner(load_task("digits"), REGISTRY, "hash")
    with pytest.raises(UserError, match="expected a finite number"):
        trial_entries(planner, REGISTRY, "CCL-SC", [{"weight": "nan"}], [0])
    with pytest.raises(UserError, match="trained for one coverage at a time"):
        trial_entries(planner, REGISTRY, "SelectiveNet", [{"hidden": 8}], [0])
    with pytest.raises(UserError, match=r"unknown key in digits: method\.CCL-SC: 'wieght'"):
        trial_entries(planner, REGISTRY, "CCL-SC", [{"wieght": 8}], [0])


def trial(job: str, **by_seed: float) -> Trial:
    return Trial({"weight": 1.0}, job, {name[1:]: value for name, value in by_seed.items()})


def test_the_choice_is_fair() -> None:
    """A trial that lacks a seed, because it failed or diverged, cannot win by the seeds it has."""
    lucky, steady, worse = trial("a", s0=0.1), trial("b", s0=0.2, s1=0.4), trial("c", s0=0.3, s1=0.4)
    assert choose([lucky, worse, steady], [0, 1]) == steady
    assert choose([lucky, worse, steady], [0]) == lucky
    assert choose([lucky], [0, 1]) is None
    assert choose([worse, trial("d", s0=0.3, s1=0.4)], [0, 1]) == worse


def test_the_ledger_forgets_nothing() -> None:
    """Trials stay, the best of all comparable ones is chosen, and a search that finds nothing changes nothing."""
    first = add_to_ledger({"task": "t"}, "A", [trial("a", s0=0.2)], [0])
    second = add_to_ledger(first, "A", [trial("b", s0=0.1), trial("a", s1=0.3)], [0])
    third = add_to_ledger(second, "B", [trial("c")], [0])
    assert [(t["job"], t["by_seed"]) for t in third["methods"]["A"]["trials"]] == [
        ("a", {"0": 0.2, "1": 0.3}),
        ("b", {"0": 0.1}),
    ]
    assert third["methods"]["A"]["chosen"] == "b"
    worse = add_to_ledger(third, "A", [trial("d", s0=0.5)], [0])
    assert worse["methods"]["A"]["chosen"] == "b"
    nothing = add_to_ledger(third, "A", [trial("e")], [0, 1, 2])
    assert nothing["methods"]["A"]["chosen"] == "b"
    text = tuned_task({**third, "extends": "digits", "title": "digits"})
    assert '[method."A"]\nweight = 1.0\n' in text
    assert '[method."B"]' not in text


def test_trials_of_another_recipe_are_not_compared() -> None:
    first = add_to_ledger({"task": "t"}, "A", [replace(trial("a", s0=0.1), recipe="x", split="20 %")], [0])
    second = add_to_ledger(first, "A", [replace(trial("b", s0=0.9), recipe="y", split="40 %")], [0])
    assert second["methods"]["A"]["chosen"] == "b"
    rows = ledger_sheets(second)[0].rows
    assert [(row[1], row[4], row[5], row[6]) for row in rows] == [
        ("1", "20 %", "x", "–"),
        ("1", "40 %", "y", "weight=1.0"),
    ]


def test_a_tuned_task_trains_what_won_and_nothing_else(tmp_path: Path) -> None:
    """CCL-SC is also the name of its file: the winner must not reach the file's other labels."""
    ledger: dict[str, Any] = {"task": "t", "title": "t", "extends": "digits"}
    winners = {"CCL-SC": {"momentum": 0.5, "warmup_epochs": 3}, "CCL-SC2": {"weight": 0.25}, "Focal": {"gamma": 1.5}}
    for label, settings in winners.items():
        ledger = add_to_ledger(ledger, label, [Trial(settings, label, {"0": 0.1})], [0])
    path = tmp_path / "tuned.toml"
    path.write_text(tuned_task(ledger))
    owners, plain, tuned = label_owners(REGISTRY), load_task("digits"), load_task(str(path))
    for label in ("CCL-SC", "CCL-SC2", "CCL-SC unweighted", "Focal", "Adaptive Focal"):
        method = REGISTRY.get(owners[label])
        before, after = (vars(resolve_config(task, label, owners[label], method)) for task in (plain, tuned))
        assert after == {**before, **winners.get(label, {})}, label


def test_from_the_command_to_a_task_that_runs(tmp_path: Path) -> None:
    task, results = tmp_path / "tiny.toml", tmp_path / "results"
    task.write_text(TINY + GRID)
    made = run_here("tune", task, "ccl-sc", "--results", results, "--seeds", 2, "--workers", 0)
    assert made.returncode == 0, made.stderr
    ledger = json.loads((results / "tune" / "tiny.json").read_text())
    entry = ledger["methods"]["CCL-SC"]
    assert {t["split"] for t in entry["trials"]} == {"20% of the training images (34), drawn by the seed"}
    assert [t["settings"] for t in entry["trials"]] == [{"weight": w, "momentum": 0.9} for w in (0.1, 1.0)]
    store = Store(results)
    for found in entry["trials"]:
        for seed, value in found["by_seed"].items():
            evidence = store.read_prediction(Path("tiny", "ccl_sc", found["job"], f"seed-{seed}"), "prediction-val.npz")
            logits = evidence.prediction.logits
            assert len(logits) == 34
            assert value == pytest.approx(aurc(softmax_response(logits), logits.argmax(axis=1) != evidence.labels))
    means = {t["job"]: np.mean(list(t["by_seed"].values())) for t in entry["trials"]}
    assert entry["chosen"] == min(means, key=means.get)
    assert "chosen" in made.stdout
    assert "4 jobs, 0 done already; shared warm-ups to train first: 2" in made.stderr, "two settings, two seeds"
    text = (results / "tune" / "tiny.md").read_text()
    assert "Selection ledger of tiny" in text
    again = run_here("tune", task, "dg", "--grid", "reward=1.5,2.2", "--results", results, "--workers", 0, "-q")
    assert (again.returncode, again.stdout) == (0, "")
    tuned = results / "tune" / "tiny-tuned.toml"
    chosen = next(t for t in entry["trials"] if t["job"] == entry["chosen"])["settings"]
    assert load_task(str(tuned)).method["CCL-SC"] == chosen
    assert load_task(str(tuned)).method["DG"]["reward"] in (1.5, 2.2)
    assert load_task(str(tuned)).data.val == 0.1, "the winner trains on all images that the task trains on"
    planned = run_here("--datasets", tuned, "--dry-run", "--results", results)
    assert planned.returncode == 0, planned.stderr


def test_the_grid_can_be_planned_first(tmp_path: Path) -> None:
    planned = run_here("tune", "cifar100", "ccl-sc", "--dry-run", "--results", tmp_path)
    assert "37 jobs: 0 done, 0 partial, 37 new; 6500 epochs to train (10800 without shared warm-ups)" in planned.stdout
    refused = run_here("tune", "cifar100", "sr", "--dry-run")
    assert (refused.returncode, "has no grid for SR" in refused.stderr) == (2, True)
    assert run_here("tune", "cifar1000", "sr").returncode == 2


def test_a_name_means_one_label() -> None:
    for name in ("all", "self_adaptive", "sat+sr"):
        refused = run_here("tune", "cifar100", name, "--dry-run")
        assert (refused.returncode, "unknown method" in refused.stderr) == (2, True), name


def test_an_interrupted_search_is_in_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials are entered before they run, so that those that were given up count too."""
    from benchmark import launch

    task, results = tmp_path / "tiny.toml", tmp_path / "results"
    task.write_text(TINY + GRID)
    finished = launch.run_watched

    def interrupt(job: Any, *rest: Any) -> None:
        if job.config.get("weight") == 1.0:
            raise KeyboardInterrupt
        finished(job, *rest)

    monkeypatch.setattr(launch, "run_watched", interrupt)
    assert run_here("tune", task, "ccl-sc", "--results", results, "--workers", 0).returncode == 130
    trials = json.loads((results / "tune" / "tiny.json").read_text())["methods"]["CCL-SC"]["trials"]
    assert [(t["settings"]["weight"], len(t["by_seed"])) for t in trials] == [(0.1, 1), (1.0, 0)]


def test_one_ledger_belongs_to_one_task(tmp_path: Path) -> None:
    paths = [tmp_path / "tiny.toml", tmp_path / "other" / "tiny.toml"]
    paths[1].parent.mkdir()
    for path in paths:
        path.write_text(TINY + GRID)
    results = ("--results", tmp_path / "results", "--workers", 0, "-q")
    assert run_here("tune", paths[0], "ccl-sc", "--grid", "weight=1", *results).returncode == 0
    refused = run_here("tune", paths[1], "ccl-sc", "--grid", "weight=1", *results)
    assert refused.returncode == 2
    assert f"is the ledger of {paths[0]}; use another --results" in refused.stderr


def test_an_official_validation_split_is_not_what_trials_are_judged_on(tmp_path: Path) -> None:
    """20 % of the training images, as for every task."""
    write_celeba(tmp_path / "data", (60, 20, 12))
    common = ("--data-dir", tmp_path / "data", "--results", tmp_path / "r", "--workers", 0, "--max-steps", 1)
    made = run_here("tune", "celeba-cpu", "sat", "--grid", "target_momentum=0.9", *common)
    assert made.returncode == 0, made.stderr
    assert "validation split is not used" not in made.stderr
    (record,) = (tmp_path / "r" / "celeba-cpu" / "self_adaptive").glob("*/seed-0/record.json")
    data = json.loads(record.read_text())["identity"]["data"]
    assert (data["val"], data["official_val"]) == (0.2, False)
    validation = Store(tmp_path / "r").read_prediction(record.parent.relative_to(tmp_path / "r"), "prediction-val.npz")
    assert len(validation.labels) == 12
