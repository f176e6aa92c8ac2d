"""`tune`: the grid, the held-out images, the choice, and a ledger that forgets nothing."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmark.base.errors import UserError
from benchmark.config.load import load_task, task_names
from benchmark.config.task import TaskConfig
from benchmark.data.dataset import divide, load
from benchmark.jobs.earlier_ids import before_held_out
from benchmark.jobs.job import PREDICTION_HELD_OUT
from benchmark.jobs.plan import Planner, label_owners, resolve_config
from benchmark.measure.metrics import aurc
from benchmark.measure.scores import softmax_response
from benchmark.store.store import Store
from benchmark.tune.ledger import (
    Choice,
    Trial,
    add_to_ledger,
    choices_of,
    choose,
    ledger_sheets,
    trials_of,
    tuned_tasks,
)
from benchmark.tune.search import PlannedTrial, find_grid, make_trials, read_grid, without_idle_validation
from methods import Registry
from tests.conftest import NOWHERE, ROOT, TINY, plain_content, run_here
from tests.image_sets import write_celeba

PAPER = json.loads((ROOT / "tests" / "expected" / "paper_settings.json").read_text())
REFERENCE = ROOT / "results" / "reference"
REGISTRY = Registry()
GRID = "\n[tune.ccl_sc]\nweight = [0.1, 1.0]\nmomentum = [0.9]\n"


def tried(task: TaskConfig, label: str, trials: list[dict[str, Any]]) -> list[PlannedTrial]:
    return make_trials(lambda changes: Planner(task, REGISTRY, "hash", held_out=0.2), REGISTRY, label, trials, [0])


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
        assert len(tried(task, label, trials)) == len(trials), "every combination is another job"


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
    task = load_task("digits")
    with pytest.raises(UserError, match="expected a number from 0 to 1,000,000, got 'nan'"):
        tried(task, "CCL-SC", [{"weight": "nan"}])
    with pytest.raises(UserError, match="trained for one coverage at a time"):
        tried(task, "SelectiveNet", [{"hidden": 8}])
    with pytest.raises(UserError, match=r"unknown key in digits: method\.CCL-SC: 'wieght'"):
        tried(task, "CCL-SC", [{"wieght": 8}])
    with pytest.raises(UserError, match=r"data\.val cannot be searched: .* use --set data\.val=VALUE"):
        tried(task, "CCL-SC", [{"data.val": 0.3}])


def trial(job: str, /, made_by: str = "", settings: dict[str, Any] | None = None, **by_seed: float) -> Trial:
    seeds = {name[1:]: value for name, value in by_seed.items()}
    return Trial(settings or {"weight": job}, job, seeds, made_by=dict.fromkeys(seeds, made_by))


def chosen(trials: list[Trial], seeds: list[int], before: str = "") -> tuple[str, str]:
    """Who wins, where all are asked for, and what is remarked."""
    found = choose(trials, [each.job for each in trials], seeds, Choice(before))
    return found.job, " ".join(found.remarks)


def test_the_choice_is_fair() -> None:
    """A trial that lacks a seed, because it failed or diverged, cannot win by the seeds it has."""
    lucky, steady, worse = trial("a", s0=0.1), trial("b", s0=0.2, s1=0.4), trial("c", s0=0.3, s1=0.4)
    lacks = "1 of 3 settings lack a result and cannot win: weight=a."
    assert chosen([lucky, worse, steady], [0, 1]) == ("b", lacks)
    assert chosen([lucky, worse, steady], [0]) == ("a", "")
    assert chosen([lucky], [0, 1])[0] == ""
    assert chosen([lucky], [0, 1], before="z")[0] == "z"


def test_a_tie_is_said() -> None:
    """Exactly equal settings are no evidence for the first of them; who they are is told."""
    equal = [trial("a", s0=0.3, s1=0.5), trial("b", s0=0.3, s1=0.5), trial("c", s0=0.3, s1=0.6)]
    found = choose(equal, "abc", [0, 1])
    assert (found.job, found.tied) == ("a", ("b",))
    assert found.remarks == (
        "weight=a is one of 2 settings with exactly the same result, and was chosen as the first of them; "
        "the others: weight=b.",
    )
    ledger = {**add_to_ledger({"task": "t"}, "A", [], equal, [0, 1]), "extends": "digits", "title": "d"}
    summary, sheet = ledger_sheets(ledger)
    assert summary.rows[0][6:] == ("weight=a (or 1 equal)", "400.00")
    assert [row[-1] for row in sheet.rows] == ["chosen", "equal to the chosen", ""]
    assert sheet.notes == found.remarks
    assert f"# {found.remarks[0]}" in tuned_tasks(ledger)["t-tuned"]


def test_only_trials_of_one_code_are_compared() -> None:
    """The choice is among those that one code and one torch made; what is left out is told, with the best of it."""
    old, new, newer = trial("a", "x", s0=0.1), trial("b", "y", s0=0.4), trial("c", "y", s0=0.3)
    found, remarks = chosen([old, new, newer], [0], before="z")
    assert (found, "several versions of the code or of torch" in remarks) == ("z", True)
    found = choose([old, new, newer], ["b", "c"], [0])
    assert found.job == "c"
    assert "another version of the code or of torch has made, the best of them weight=a with 100.00" in found.remarks[0]
    unknown = trial("d", s0=0.2)
    assert choose([unknown, new, newer], ["b", "c"], [0]).job == "d", "what is not known is not held against it"


def test_who_was_never_beaten_stays() -> None:
    """A comment, an update or another number of seeds must not put a worse setting in the place of the best."""
    best, worse = trial("a", "x", s0=0.0033), trial("b", "y", s0=0.01095, s1=0.01)
    found = choose([best, worse], ["b"], [0], Choice("a", ("0",)))
    assert (found.job, found.seeds) == ("a", ("0",))
    assert "The choice stays weight=a, which was not tried with this code and these seeds" in found.remarks[-1]
    assert choose([best, worse], ["b"], [0, 1], Choice("a")).job == "a"
    again = trial("c", "y", settings={"weight": "a"}, s0=0.02)
    assert choose([best, worse, again], ["b", "c"], [0], Choice("a")).job == "b", "tried again, and beaten"


def test_the_ledger_forgets_nothing() -> None:
    """Trials stay, the best of all comparable ones is chosen, and a search that finds nothing changes nothing."""

    def add(ledger: dict[str, Any], label: str, trials: list[Trial], seeds: list[int]) -> dict[str, Any]:
        return json.loads(json.dumps(add_to_ledger(ledger, label, trials_of(ledger, label), trials, seeds)))

    first = add({"task": "t"}, "A", [trial("a", s0=0.2)], [0])
    second = add(first, "A", [trial("b", s0=0.1), trial("a", s1=0.3)], [0])
    third = add(second, "B", [trial("c")], [0])
    assert [(t["job"], t["by_seed"]) for t in third["methods"]["A"]["trials"]] == [
        ("a", {"0": 0.2, "1": 0.3}),
        ("b", {"0": 0.1}),
    ]
    assert third["methods"]["A"]["chosen"] == "b"
    worse = add(third, "A", [trial("d", s0=0.5)], [0])
    assert worse["methods"]["A"]["chosen"] == "b"
    nothing = add(third, "A", [trial("e")], [0, 1, 2])
    assert nothing["methods"]["A"]["chosen"] == "b"
    (text,) = tuned_tasks({**third, "extends": "digits", "title": "digits"}).values()
    assert '[method."A"]\nweight = "b"\n' in text
    assert '[method."B"]' not in text
    moved = add(third, "A", [replace(trial("f", s1=0.4), former="b")], [0])
    assert choices_of(moved["methods"]["A"])[""].job == "f", "an older id of the same trial"
    assert [(t["job"], t["by_seed"]) for t in moved["methods"]["A"]["trials"]][1:] == [("f", {"0": 0.1, "1": 0.4})]


def test_trials_of_another_recipe_are_not_compared() -> None:
    """Each recipe has its own winner; the task file has the latest."""
    first = add_to_ledger({"task": "t"}, "A", [], [replace(trial("a", s0=0.1), recipe="x", split="20 %")], [0])
    other = [replace(trial("b", s0=0.9), recipe="y", split="40 %")]
    second = add_to_ledger(first, "A", trials_of(first, "A"), other, [0])
    assert second["methods"]["A"]["chosen"] == "b"
    summary, sheet = ledger_sheets(second)
    assert [(row[1], row[4], row[5], row[6]) for row in summary.rows] == [
        ("1", "20 %", "x", "weight=a"),
        ("1", "40 %", "y", "weight=b"),
    ]
    assert sheet.notes == ("Not compared: 1 trial of another recipe (data, network, training).",)
    (text,) = tuned_tasks({**second, "extends": "digits", "title": "digits"}).values()
    assert 'weight = "b"' in text


def test_an_older_ledger_is_read() -> None:
    """That of the recorded run: its trials, its choices, and its ids, by which its results would still be found."""
    ledger = json.loads((REFERENCE / "tune" / "cifar100-cpu.json").read_text())
    assert all(choices_of(entry)[recipe_of(entry)].job == entry["chosen"] for entry in ledger["methods"].values())
    assert len(ledger_sheets(ledger)) == 1 + len(ledger["methods"])
    record = next((REFERENCE / "cifar100-cpu-tuned").rglob("record.json.gz"))
    sha256 = plain_content(record)["identity"]["data_sha256"]
    then = ("channels_last=true", "method.ccl_sc.momentum=0.99")
    task = replace(load_task("cifar100-cpu-tuned", then), name="cifar100-cpu")
    judged = without_idle_validation(task, REGISTRY.get("ccl_sc"), REGISTRY)
    planner = Planner(judged, REGISTRY, sha256, held_out=task.tune_val)
    known = {trial.job: trial for trial in trials_of(ledger, "CCL-SC")}
    found = make_trials(lambda changes: planner, REGISTRY, "CCL-SC", [{"weight": 0.5, "warmup_epochs": 5}], [0])
    assert known[found[0].former].settings["weight"] == 0.5
    assert found[0].recipe == known[found[0].former].recipe, "they are still compared"


def recipe_of(entry: dict[str, Any]) -> str:
    return next(trial["recipe"] for trial in entry["trials"] if trial["job"] == entry["chosen"])


def test_a_tuned_task_trains_what_won_and_nothing_else(tmp_path: Path) -> None:
    """CCL-SC is also the name of its file: the winner must not reach the file's other labels."""
    ledger: dict[str, Any] = {"task": "t", "title": "t", "extends": "digits"}
    winners = {"CCL-SC": {"momentum": 0.5, "warmup_epochs": 3}, "CCL-SC2": {"weight": 0.25}, "Focal": {"gamma": 1.5}}
    for label, settings in winners.items():
        ledger = add_to_ledger(ledger, label, [], [Trial(settings, label, {"0": 0.1})], [0])
    path = tmp_path / "tuned.toml"
    path.write_text(tuned_tasks(ledger)["t-tuned"])
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
            evidence = store.read_prediction(Path("tiny", "ccl_sc", found["job"], f"seed-{seed}"), PREDICTION_HELD_OUT)
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
    assert (
        "37 jobs: 0 done, 0 partial, 37 new; 6,500 epochs to train (10,800 without shared warm-ups)" in planned.stdout
    )
    refused = run_here("tune", "cifar100", "sr", "--dry-run")
    assert (refused.returncode, "has no grid for SR" in refused.stderr) == (2, True)
    assert run_here("tune", "cifar1000", "sr").returncode == 2


def test_a_name_means_one_label() -> None:
    for name in ("all", "self_adaptive", "sat+sr"):
        refused = run_here("tune", "cifar100", name, "--dry-run")
        assert (refused.returncode, "unknown method" in refused.stderr) == (2, True), name


def test_an_interrupted_search_is_in_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials are entered before they run, so that those that were given up count too."""
    from benchmark.launch import supervise

    task, results = tmp_path / "tiny.toml", tmp_path / "results"
    task.write_text(TINY + GRID)
    finished = supervise.run_watched

    def interrupt(job: Any, *rest: Any) -> None:
        if job.config.get("weight") == 1.0:
            raise KeyboardInterrupt
        finished(job, *rest)

    monkeypatch.setattr(supervise, "run_watched", interrupt)
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


def test_a_trial_never_sees_the_test_images(tmp_path: Path) -> None:
    """It is measured on training images that nothing else looks at, under names that no table reads."""
    task, results = tmp_path / "tiny.toml", tmp_path / "results"
    task.write_text(TINY)
    common = ("tune", task, "temperature-scaling", "--grid", "optimizer.lr=0.1", "--results", results, "--workers", 0)
    made = run_here(*common)
    assert made.returncode == 0, made.stderr
    records = [json.loads(path.read_text()) for path in results.rglob("record.json")]
    assert {record["method"] for record in records} == {"cross_entropy", "temperature_scaling"}
    for record in records:
        assert not {"scores", "classifier", "num_test"} & record.keys()
        assert record["held_out"]["images"] == 34
    stored = {path.name for path in results.rglob("*.npz")}
    assert stored == {"prediction-held-out.npz", "prediction-val.npz"}, "the temperature is fitted on other images"


@pytest.mark.parametrize("val", [0.0, 0.1])
def test_what_judges_a_trial_is_seen_by_nothing_else(val: float) -> None:
    config = replace(load_task("digits").data, val=val, train_images=200)
    loaded = load(config, NOWHERE)[0]
    train, validation, judged, posterior = divide(loaded, config, 3, held_out=0.2)
    splits = [split for split in (train, validation, judged) if split is not None]
    assert [len(split) for split in splits] == ([160, 40] if not val else [144, 16, 40])
    assert sorted(np.concatenate([split.rows for split in splits])) == sorted(loaded.train.rows), "each image once"
    assert all(split.pictures is loaded.train.pictures for split in splits)
    assert posterior is None


def test_older_trials_stand(tmp_path: Path) -> None:
    """They were the same training, judged on the same images, which were called validation."""
    task, results = tmp_path / "tiny.toml", tmp_path / "results"
    task.write_text(TINY)
    common = ("tune", task, "focal", "--grid", "gamma=1", "--workers", 0)
    older = run_here("--datasets", task, "--methods", "focal", "--seeds", 1, "--set", "data.val=0.2", "--set",
                     "method.focal.gamma=1", "--results", results, "--workers", 0)  # fmt: skip
    assert older.returncode == 0, older.stderr
    assert "1 job, 1 done already" in run_here(*common, "--results", results).stderr
    assert "1 job, 0 done already" in run_here(*common, "--results", tmp_path / "new").stderr
    ledgers = [json.loads((folder / "tune" / "tiny.json").read_text()) for folder in (results, tmp_path / "new")]
    (old,), (new,) = (trials_of(ledger, "Focal") for ledger in ledgers)
    assert (old.by_seed, old.recipe) == (new.by_seed, new.recipe)
    assert new.former == old.job


def test_where_validation_picks_the_epoch_older_trials_do_not_stand() -> None:
    planner = Planner(load_task("celeba-cpu"), REGISTRY, "hash", held_out=0.2)
    (found,) = make_trials(lambda changes: planner, REGISTRY, "SAT", [{"target_momentum": 0.9}], [0])
    assert (found.former, before_held_out(found.entry.jobs[0])) == ("", [])
    with pytest.raises(UserError, match=r"needs validation images beside those .* add --set data\.val=0\.1"):
        without_idle_validation(load_task("cifar10"), REGISTRY.get("adafocal"), REGISTRY)


def test_the_images_that_pick_the_epoch_do_not_judge_it(tmp_path: Path) -> None:
    """CelebA: the set's own validation split picks, as in every run; 20 % of the training images judge."""
    write_celeba(tmp_path / "data", (60, 20, 12))
    common = ("--data-dir", tmp_path / "data", "--results", tmp_path / "r", "--workers", 0, "--max-steps", 1)
    made = run_here("tune", "celeba-cpu", "sat", "--grid", "target_momentum=0.9", *common)
    assert made.returncode == 0, made.stderr
    assert "validation split is not used" not in made.stderr
    (record,) = (tmp_path / "r" / "celeba-cpu" / "self_adaptive").glob("*/seed-0/record.json")
    identity = json.loads(record.read_text())["identity"]
    assert (identity["held_out"], identity["data"]["official_val"]) == (0.2, True)
    store, folder = Store(tmp_path / "r"), record.parent.relative_to(tmp_path / "r")
    names = ("prediction-val.npz", PREDICTION_HELD_OUT)
    assert [len(store.read_prediction(folder, name).labels) for name in names] == [20, 12]


PLUGIN = """
from dataclasses import dataclass
from torch.nn.functional import cross_entropy
from benchmark.interface import Method, Step

class Mine(Method):
    title, reference, labels = "mine", "nobody", {"Mine": {}}

    @dataclass(frozen=True)
    class Config:
        factor: float = 1.0
        idle: int = 0

    def training_step(self, batch, progress):
        return Step(self.config.factor * cross_entropy(self.network(batch.images)[0], batch.labels))

METHOD = Mine
"""


def test_a_comment_in_a_plugin_changes_no_choice(tmp_path: Path) -> None:
    """What was reported: 10.95 chosen over 3.30 after a comment."""
    task, plugin, results = tmp_path / "tiny.toml", tmp_path / "mine.py", tmp_path / "results"
    task.write_text(TINY)
    common = ("tune", task, "mine", "--plugin", plugin, "--results", results, "--workers", 0)
    plugin.write_text(PLUGIN)
    assert run_here(*common, "--grid", "factor=1,0.05").returncode == 0
    assert load_task(str(results / "tune" / "tiny-tuned.toml")).method["Mine"] == {"factor": 1}
    plugin.write_text(PLUGIN.replace("METHOD", "# a comment\nMETHOD"))
    again = run_here(*common, "--grid", "factor=0.05")
    assert "1 job, 1 done already" in again.stderr
    assert load_task(str(results / "tune" / "tiny-tuned.toml")).method["Mine"] == {"factor": 1}
    plugin.write_text(PLUGIN.replace("self.config.factor *", "1 * self.config.factor *"))
    other = run_here(*common, "--grid", "factor=0.05")
    assert "1 job, 0 done already" in other.stderr
    assert "The choice stays factor=1.0" in other.stdout
    assert load_task(str(results / "tune" / "tiny-tuned.toml")).method["Mine"] == {"factor": 1}


def test_fields_of_the_task_are_searched_and_written_out(tmp_path: Path) -> None:
    """With --set; a tie is said, and the tuned task trains the very recipe that won."""
    task, plugin, results = tmp_path / "tiny.toml", tmp_path / "mine.py", tmp_path / "results"
    task.write_text(TINY)
    plugin.write_text(PLUGIN)
    common = ("tune", task, "mine", "--plugin", plugin, "--results", results, "--workers", 0)
    made = run_here(*common, "--grid", "optimizer.lr=0.2,0.1", "--grid", "idle=0,1", "--set", "epochs=5", "--set",
                    "method.mine.factor=0.9", "--set", "data.val=0.2")  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "one of 2 settings with exactly the same result" in made.stdout
    assert made.stdout.count("equal to the chosen") == 1
    (path,) = (results / "tune").glob("*.toml")
    assert f"--datasets {path}" in made.stdout
    tuned, plain = load_task(str(path)), load_task(str(task))
    assert tuned.method["Mine"] == {"factor": 0.9, "idle": 0}
    data, optimizer = replace(plain.data, val=0.2), replace(plain.optimizer, lr=tuned.optimizer.lr)
    expected = replace(plain, name=tuned.name, title=tuned.title, method=tuned.method, epochs=5, data=data,
                       optimizer=optimizer)  # fmt: skip
    assert tuned == expected
    assert f"optimizer.lr={tuned.optimizer.lr}" in tuned.title
    assert run_here(*common, "--grid", "idle=0").returncode == 0
    assert {each.name for each in (results / "tune").glob("*.toml")} == {path.name, "tiny-tuned.toml"}
    for grid, message in {
        "optimizer.rl=1": "did you mean 'lr'",
        "optimizer.lr=fast": "expected a number from 1e-12 to 1,000,000,000",
    }.items():
        refused = run_here(*common, "--grid", grid)
        assert (refused.returncode, message in refused.stderr) == (2, True), grid
