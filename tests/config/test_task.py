"""Task files, overrides, and what a job's identity depends on."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest

from benchmark.base.errors import UserError
from benchmark.base.names import match_name
from benchmark.base.schema import build, identity, later
from benchmark.config.load import load_task, load_tasks, task_names
from benchmark.config.training import AugmentConfig, NetworkConfig
from benchmark.jobs.job import Job
from benchmark.jobs.plan import label_owners, plan, resolve_config
from benchmark.measure.labels import match_labels
from methods import Registry

REGISTRY = Registry()


@dataclass(frozen=True)
class Sample:
    rate: float
    count: int = 1
    form: Literal["a", "b"] = "a"
    sizes: tuple[int, ...] = ()
    on: bool = False
    name: str | None = None


def test_values_are_coerced_to_their_fields_type() -> None:
    sample = build(Sample, {"rate": "5e-4", "count": "3", "sizes": "1, 2", "on": "true", "name": "x"}, "here")
    assert sample == Sample(5e-4, 3, "a", (1, 2), True, "x")
    assert isinstance(build(Sample, {"rate": 1}, "here").rate, float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rat": 1.0}, "did you mean 'rate'"),
        ({"rate": "fast"}, "expected a number from -1,000,000,000,000 to 1,000,000,000,000, got 'fast'"),
        ({"rate": 1, "count": 1.5}, "expected a whole number"),
        ({"rate": 1, "count": True}, "expected a whole number"),
        ({"rate": 1, "on": "yes"}, "expected true or false"),
        ({"rate": 1, "form": "c"}, "unknown value of here: form: 'c'"),
        ({"rate": 1, "sizes": 3}, "expected a list"),
        ({"count": 1}, "'rate' is missing"),
    ],
)
def test_bad_values_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message.replace("(", r"\(")):
        build(Sample, values, "here")


def test_every_task_resolves_with_all_its_methods() -> None:
    for name in task_names():
        task = load_task(name)
        entries = plan(task, task.methods, range(2), REGISTRY, "0")
        assert [entry.label for entry in entries] == list(task.methods)


def test_extends_merges_tables() -> None:
    parent, child = load_task("cifar10"), load_task("cifar10-cpu")
    assert child.optimizer == parent.optimizer
    assert child.data == replace(parent.data, val=0.1, train_images=30_000)
    assert child.data.mean == parent.data.mean
    assert child.augment == parent.augment


@pytest.mark.parametrize("parent", ["base", "base.toml"])
def test_a_parent_lies_beside_the_file_that_extends_it(tmp_path: Path, parent: str) -> None:
    (tmp_path / "base.toml").write_text('extends = "digits"\nepochs = 3\n')
    (tmp_path / "child.toml").write_text(f'extends = "{parent}"\n')
    assert load_task(str(tmp_path / "child.toml")).epochs == 3


@pytest.mark.parametrize("name", ["torchvision:resnet18", "timm:resnet18", "vgg16"])
def test_another_network_comes_without_the_settings_of_the_old_one(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'extends = "cifar10-cpu"\n[network]\nname = "{name}"\n')
    expected = NetworkConfig(name)
    assert load_task(str(path)).network == load_task("cifar10-cpu", [f"network.name={name}"]).network == expected
    own = load_task("cifar10-cpu", [f"network.name={name}", "network.dropout=0.5"])
    assert own.network == replace(expected, dropout=0.5), "what the same command names is kept, and refused later"
    assert load_task("cifar10-cpu", ["network.name=small_cnn"]).network == load_task("cifar10-cpu").network


@pytest.mark.parametrize("source", ["folder", "arrays"])
def test_own_images_take_neither_statistics_nor_augmentation_of_others(tmp_path: Path, source: str) -> None:
    """But what their own files name, also to files that extend these."""
    for name, text in {
        "plain": f'extends = "cifar10-cpu"\n[data]\nsource = "{source}"\n',
        "named": f'extends = "plain"\naugment.flip = true\n[data]\nsource = "{source}"\nmean = [0.5]\nstd = [0.1]\n',
        "child": 'extends = "named"\nepochs = 3\n',
    }.items():
        (tmp_path / f"{name}.toml").write_text(text)
    plain, named, child = (load_task(str(tmp_path / f"{name}.toml")) for name in ("plain", "named", "child"))
    assert (plain.data.mean, plain.data.std, plain.augment) == ((), (), AugmentConfig())
    assert plain.optimizer == load_task("cifar10-cpu").optimizer
    assert (named.data.mean, named.augment) == ((0.5,), AugmentConfig(flip=True))
    assert child == replace(named, name="child", epochs=3)
    assert set(identity(named.data)) == set(identity(load_task("cifar10").data)), (
        "results of earlier versions keep their id"
    )
    assert load_task("cifar10-cpu", [f"data.source={source}"]).augment == AugmentConfig()
    assert load_task("cifar10-cpu", ["data.source=cifar100"]).augment == load_task("cifar10-cpu").augment
    with pytest.raises(UserError, match="mean and std are missing"):
        load_task(str(tmp_path / "plain.toml"), ["data.source=cifar10"])


def test_a_users_file_may_extend_a_task(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('extends = "digits"\nepochs = 33\n')
    task = load_task(str(path))
    assert (task.name, task.epochs, task.data.source) == ("mine", 33, "digits")
    path.write_text('extends = "mine"\n')
    with pytest.raises(UserError, match="extends itself"):
        load_task(str(path))


def test_overrides() -> None:
    task = load_task("digits", ["optimizer.lr=0.5", "coverages=100,50", "method.CCL-SC.weight=2"])
    assert (task.optimizer.lr, task.coverages) == (0.5, (100.0, 50.0))
    config = resolve_config(task, "CCL-SC", "ccl_sc", REGISTRY.get("ccl_sc"))
    assert (config.weight, config.queue_size) == (2.0, 32), "the label's settings come on top of its file's"


def test_names_match_in_any_case_with_dash_or_underscore() -> None:
    assert match_name("CIFAR10_CPU", task_names(), "task") == "cifar10-cpu"
    owners = label_owners(REGISTRY)
    assert match_labels(["sr", "sat+em", "CCL_SC", "Self-Adaptive"], owners) == ["SR", "SAT+EM", "CCL-SC", "SAT"]
    assert match_labels(["SAT+SR", "sat", "dg+sr"], owners) == ["SAT", "DG"], "the paper's columns name their method"
    assert set(match_labels(["all"], owners)) == set(owners)
    with pytest.raises(UserError, match="did you mean 'CCL-SC'"):
        match_labels(["ccl-cs"], owners)


def test_columns_keep_the_order_of_the_task() -> None:
    entries = plan(load_task("digits"), ["SR", "CCL-SC", "SAT"], [0], REGISTRY, "hash")
    assert [entry.label for entry in entries] == ["CCL-SC", "SAT", "SR"]


def test_a_task_named_twice_is_one() -> None:
    assert [task.name for task in load_tasks(["digits", "DIGITS", "gaussians"])] == ["digits", "gaussians"]


def test_layers_of_a_methods_settings() -> None:
    """Settings of a file reach all its labels; a label's own come on top of both."""
    method = REGISTRY.get("self_adaptive")
    task = load_task("celeba")
    assert resolve_config(task, "SAT", "self_adaptive", method).entropy_weight == 0
    assert resolve_config(task, "SAT+EM", "self_adaptive", method).entropy_weight == 0.01
    assert resolve_config(task, "SAT+EM", "self_adaptive", method).warmup_epochs == 0


def job(*overrides: str, seed: int = 0, label: str = "SR", **options: int) -> Job:
    return plan(load_task("digits", overrides), [label], [seed], REGISTRY, "hash", **options)[0].jobs[0]


def test_identity_changes_with_whatever_can_change_a_result() -> None:
    overrides = ["epochs=21", "threads=2", "optimizer.lr=0.06", "data.val=0.2", "network.dropout=0.1", "batch_size=16"]
    ids = [job().id, job(max_steps=2).id, job(label="DG").id, *(job(override).id for override in overrides)]
    assert len(set(ids)) == len(ids)


def test_identity_ignores_what_cannot() -> None:
    assert job(seed=3).id == job().id
    assert job(seed=3).folder != job().folder
    assert job("title=other", "coverages=100", "method.DG.reward=3", "checkpoint_seconds=1").id == job().id
    assert job("optimizer.lr=5e-2").id == job().id


def test_a_field_added_later_keeps_old_ids() -> None:
    @dataclass(frozen=True)
    class Grown:
        rate: float = 1.0
        mixing: float = later(0.0)

    assert identity(Grown()) == {"rate": 1.0}
    assert identity(Grown(mixing=0.5)) == {"rate": 1.0, "mixing": 0.5}


def test_a_warmup_that_leaves_no_epoch_is_refused() -> None:
    with pytest.raises(UserError, match="warmup_epochs = 8 must be at least 0 and below epochs = 3"):
        job("epochs=3", label="DG")
