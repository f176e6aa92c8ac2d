"""`tune`: the grid, the held-out images, the choice, and a ledger that forgets nothing."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmark.config import load_task, task_names
from benchmark.errors import UserError
from benchmark.metrics import aurc
from benchmark.planner import Planner, label_owners
from benchmark.scores import softmax_response
from benchmark.store import Store
from benchmark.tuning import Trial, add_to_ledger, choose, find_grid, read_grid, trial_entries, tuned_task
from methods import Registry
from tests.conftest import TINY, run_here

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
    with pytest.raises(UserError, match="has no grid for SR: add a table"):
        find_grid(load_task("digits"), "SR", "cross_entropy", [])
    for text in ("weight", "weight=", "weight=1,,2"):
        with pytest.raises(UserError, match="expected FIELD=VALUE,VALUE"):
            read_grid([text])
    planner = Planner(load_task("digits"), REGISTRY, "hash")
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
    first = add_to_ledger({"task": "t"}, "A", "20 %", [trial("a", s0=0.2)], trial("a", s0=0.2))
    second = add_to_ledger(first, "A", "20 %", [trial("b", s0=0.1), trial("a", s1=0.3)], trial("b", s0=0.1))
    third = add_to_ledger(second, "B", "20 %", [trial("c")], None)
    assert [(t["job"], t["by_seed"]) for t in third["methods"]["A"]["trials"]] == [
        ("a", {"0": 0.2, "1": 0.3}),
        ("b", {"0": 0.1}),
    ]
    assert third["methods"]["A"]["chosen"] == "b"
    text = tuned_task({**third, "extends": "digits", "title": "digits"})
    assert '[method."A"]\nweight = 1.0\n' in text
    assert '[method."B"]' not in text


def test_from_the_command_to_a_task_that_runs(tmp_path: Path) -> None:
    task, results = tmp_path / "tiny.toml", tmp_path / "results"
    task.write_text(TINY + GRID)
    made = run_here("tune", task, "ccl-sc", "--results", results, "--seeds", 2, "--workers", 1)
    assert made.returncode == 0, made.stderr
    ledger = json.loads((results / "tune" / "tiny.json").read_text())
    entry = ledger["methods"]["CCL-SC"]
    assert entry["split"] == "20% of the training images (34), drawn by the seed"
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
    text = (results / "tune" / "tiny.md").read_text()
    assert "Selection ledger of tiny" in text
    again = run_here("tune", task, "dg", "--grid", "reward=1.5,2.2", "--results", results, "--workers", 1, "-q")
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
