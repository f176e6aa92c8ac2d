"""The resolved tasks against the published settings, value by value."""

import json
import re
from typing import Any

import pytest

from benchmark.config.load import CONFIG_DIR, load_task
from benchmark.config.task import TaskConfig
from benchmark.data.sources import describe
from benchmark.jobs.plan import label_owners, resolve_config
from benchmark.measure.statistics import LEVEL
from methods import Registry
from tests.conftest import ROOT

PAPER = json.loads((ROOT / "tests" / "expected" / "paper_settings.json").read_text())
TASKS = {"CIFAR-10": "cifar10", "CIFAR-100": "cifar100", "CelebA": "celeba", "ImageNet": "imagenet"}
REGISTRY = Registry()
every_task = pytest.mark.parametrize(("published", "name"), TASKS.items())


def method_config(task: TaskConfig, label: str) -> Any:
    owner = label_owners(REGISTRY)[label]
    return resolve_config(task, label, owner, REGISTRY.get(owner))


@every_task
def test_training(published: str, name: str) -> None:
    paper, task = PAPER["training"][published], load_task(name)
    networks = {"VGG16": "vgg16", "ResNet18": "torchvision:resnet18", "ResNet34": "torchvision:resnet34"}
    assert task.title == published
    assert task.network.name == networks[paper["network"]]
    assert (task.epochs, task.batch_size, task.seeds) == (paper["epochs"], paper["batch_size"], paper["trials"])
    assert task.optimizer.name == paper["optimiser"].lower()
    assert task.optimizer.lr == paper["lr"]
    assert task.optimizer.momentum == (paper["momentum"] or 0.0)
    assert task.optimizer.weight_decay == (paper["weight_decay"] or 0.0)
    if paper["schedule"] is None:
        assert task.schedule.name == "constant"
    else:
        assert (task.schedule.name, task.schedule.factor, task.schedule.every) == (
            "step", paper["schedule"]["factor"], paper["schedule"]["every_epochs"]
        )  # fmt: skip


@every_task
def test_augmentation_and_checkpoint(published: str, name: str) -> None:
    paper, task = PAPER["training"][published], load_task(name)
    used = {
        "RandomCrop": task.augment.crop_padding > 0,
        "RandomHorizontalFlip": task.augment.flip,
        "RandomResizedCrop": task.augment.random_resized_crop,
        "ColorJitter": task.augment.color_jitter > 0,
    }
    assert {operation for operation, on in used.items() if on} == set(paper["augmentation"])
    assert task.checkpoint == ("best" if paper["checkpoint"] else "last")
    assert task.data.official_val == bool(paper["checkpoint"])
    assert task.data.val == 0


@every_task
def test_data_and_evaluation(published: str, name: str) -> None:
    paper, facts = PAPER["training"][published], describe(load_task(name).data)
    assert facts.num_classes == paper["classes"]
    if published.startswith("CIFAR"):
        assert facts.num_train == paper["classes"] * paper["images_per_class"]
    assert list(load_task(name).coverages) == PAPER["evaluation"]["coverages"][published]
    assert PAPER["evaluation"]["test"]["level"] == LEVEL


@every_task
def test_ccl_sc(published: str, name: str) -> None:
    paper, config = PAPER["ccl_sc"]["per_dataset"][published], method_config(load_task(name), "CCL-SC")
    assert (config.momentum, config.queue_size, config.weight, config.warmup_epochs) == (
        paper["q"], paper["s"], paper["w"], paper["E_s"]
    )  # fmt: skip
    assert config.temperature == PAPER["ccl_sc"]["tau"]
    assert (config.loss_form, config.anchors, config.weighting) == ("paper", "all", "sr")


ABLATIONS = {
    "CCL-SC unweighted": {"weighting": "none"},
    "CCL-SC2": {"negatives": "sc2"},
    "CCL-SC3": {"negatives": "sc3"},
    "CCL-SC+SupCon": {"negatives": "supcon"},
    "CCL-SC frozen": {"queue_policy": "freeze", "momentum_order": "before", "full_at": "more"},
    "CCL-SC released": {"loss_form": "released", "queue_policy": "freeze", "momentum_cadence": "epoch"},
}


@every_task
@pytest.mark.parametrize("label", ABLATIONS)
def test_ablations_differ_in_their_switches_alone(published: str, name: str, label: str) -> None:
    task = load_task(name)
    whole, ablation = (vars(method_config(task, each)) for each in ("CCL-SC", label))
    differing = {field: ablation[field] for field in whole if ablation[field] != whole[field]}
    script = {"momentum": 0.999} if (name, label) == ("cifar100", "CCL-SC released") else {}
    assert differing == {**ABLATIONS[label], **script}


@pytest.mark.parametrize("published", PAPER["combination"]["datasets"])
def test_the_combination_has_the_settings_of_its_parts(published: str) -> None:
    task = load_task(TASKS[published])
    combined, contrast, adaptive = (method_config(task, each) for each in ("CCL-SC+SAT+EM", "CCL-SC", "SAT+EM"))
    for field in vars(contrast):
        assert getattr(combined, field) == getattr(contrast, field), field
    assert combined.combination == "replace"
    for field in ("target_momentum", "entropy_weight", "entropy_form"):
        assert getattr(combined, field) == getattr(adaptive, field), field


UNSTATED = {
    ("CIFAR-10", "DG"): {"o": 2.2, "E_s": 100},
    ("CIFAR-10", "SAT"): {"E_s": 60, "m_SAT": 0.9},
    ("CIFAR-10", "SAT+EM"): {"E_s": 60, "m_SAT": 0.9, "beta": 0.001},
    ("ImageNet", "SAT"): {"m_SAT": 0.99, "E_s": 0},
    ("ImageNet", "SAT+EM"): {"m_SAT": 0.99, "E_s": 0, "beta": 0.001},
}
FIELDS = {"E_s": "warmup_epochs", "o": "reward", "m_SAT": "target_momentum", "beta": "entropy_weight"}


@pytest.mark.parametrize("published", TASKS)
@pytest.mark.parametrize("label", ["DG", "SAT", "SAT+EM"])
def test_baselines(published: str, label: str) -> None:
    paper = PAPER["baselines"][published].get(label) or UNSTATED.get((published, label))
    if paper is None:
        assert (published, label) == ("ImageNet", "DG"), "the one column that the paper does not have"
        return
    config = method_config(load_task(TASKS[published]), label)
    assert {name: getattr(config, FIELDS[name]) for name in paper} == paper


def test_unstated_values_are_marked_where_they_stand() -> None:
    marked = {
        "cifar10": ["reward", "target_momentum", "entropy_weight"],
        "imagenet": ["target_momentum", "entropy_weight"],
    }
    for name, keys in marked.items():
        text = (CONFIG_DIR / f"{name}.toml").read_text()
        for key in keys:
            assert re.search(rf"^{key} = .*# unstated", text, re.M), (name, key)
        for table in re.findall(r"\[method\.(?:deep_gamblers|self_adaptive)\]\n(?:.+\n)+", text):
            assert re.search(r"^warmup_epochs = .*# unstated", table, re.M), (name, table)


def test_columns_follow_the_paper() -> None:
    assert load_task("cifar100").methods == ("CCL-SC", "SAT+EM", "SAT", "DG", "SR")
    assert {load_task(name).reference for name in TASKS.values()} == {"CCL-SC"}


@pytest.mark.parametrize("name", ["digits", "gaussians", "cifar10-cpu", "cifar100-cpu"])
def test_small_tasks_hold_out_validation_images(name: str) -> None:
    assert load_task(name).data.val == 0.1
