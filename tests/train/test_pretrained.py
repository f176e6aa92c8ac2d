"""Pretrained networks: weights from files of tensors alone, frozen parts that stay to the bit, a rate for the head."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
import torchvision
from safetensors.torch import save_file
from torch import Tensor, nn

from benchmark.base.errors import UserError
from benchmark.config.load import load_task
from benchmark.config.task import TaskConfig
from benchmark.config.training import NetworkConfig
from benchmark.data.cache import Folders
from benchmark.jobs.plan import plan
from benchmark.train.networks import Network, build_network
from benchmark.train.pretrained import hub
from benchmark.train.pretrained.freezing import stages
from benchmark.train.pretrained.own import settled
from benchmark.train.pretrained.weights import read_tensors, remark_on_head
from methods import Registry
from tests.conftest import run_here

NAME = "timm:test_resnet"
BatchNorm = nn.modules.batchnorm._BatchNorm


def made_up(classes: int = 5, name: str = "test_resnet", seed: int = 7) -> dict[str, Tensor]:
    """Weights that no initialisation has, as another program would save them."""
    torch.manual_seed(seed)
    network = timm.create_model(name, num_classes=classes)
    for tensor in network.state_dict().values():
        if tensor.is_floating_point():
            tensor.add_(0.01 * torch.rand_like(tensor))
    return dict(network.state_dict())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, tensors = tmp_path_factory.mktemp("weights"), made_up()
    plain = {name: tensor for name, tensor in tensors.items() if not name.endswith("num_batches_tracked")}
    contents: dict[str, Any] = {
        "plain.pth": plain,
        "checkpoint.pt": {"epoch": 3, "state_dict": {f"module.{name}": value for name, value in tensors.items()}},
        "deeper.pth": made_up(name="test_resnet") | {"layer1.9.conv1.weight": torch.zeros(3)},
        "other.pth": made_up(name="test_vit"),
        "list.pth": [1, 2],
        "text.pth": {"a": "b"},
        "less.pth": {name: value for name, value in plain.items() if not name.startswith("layer4")},
    }
    for name, content in contents.items():
        torch.save(content, folder / name)
    save_file(plain, folder / "plain.safetensors")
    (folder / "code.pth").write_bytes(pickle.dumps(Path("x")))
    (folder / "broken.safetensors").write_bytes(b"\x00" * 30)
    (folder / "notes.txt").write_text("no weights\n")
    return {path.name: path for path in folder.iterdir()}


def config_of(path: Path, **settings: Any) -> NetworkConfig:
    import hashlib

    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return NetworkConfig(NAME, weights=str(path), weights_sha256=sha256, **settings)


def built(path: Path, classes: int = 5, **settings: Any) -> Network:
    torch.manual_seed(0)
    return build_network(config_of(path, **settings), classes, (3, 32, 32))


@pytest.mark.parametrize("name", ["plain.pth", "plain.safetensors", "checkpoint.pt"])
def test_a_network_computes_what_its_library_computes_with_the_same_file(files: dict[str, Path], name: str) -> None:
    theirs = timm.create_model("test_resnet", num_classes=5).eval()
    theirs.load_state_dict(made_up())
    images = torch.rand(4, 3, 32, 32)
    with torch.no_grad():
        logits, features = built(files[name]).eval()(images)
        assert torch.equal(logits, theirs(images))
        assert torch.equal(features, theirs.forward_head(theirs.forward_features(images), pre_logits=True))


def test_torchvision_networks_take_files_too(tmp_path: Path) -> None:
    torch.manual_seed(1)
    theirs = torchvision.models.get_model("shufflenet_v2_x0_5", num_classes=3).eval()
    torch.save(theirs.state_dict(), tmp_path / "own.pth")
    config = replace(config_of(tmp_path / "own.pth"), name="torchvision:shufflenet_v2_x0_5")
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(build_network(config, 3, (3, 32, 32)).eval()(images)[0], theirs(images))


def test_the_head_is_kept_where_classes_agree_and_else_drawn_anew(files: dict[str, Path]) -> None:
    path, tensors = files["plain.pth"], made_up()
    same, other = built(path), built(path, classes=4)
    assert torch.equal(same.head.weight, tensors["fc.weight"]) and torch.equal(same.head.bias, tensors["fc.bias"])
    torch.manual_seed(0)
    fresh = build_network(NetworkConfig(NAME), 4, (3, 32, 32))
    assert torch.equal(other.head.weight, fresh.head.weight) and not torch.equal(
        other.body.conv1[0].weight, fresh.body.conv1[0].weight
    )
    assert remark_on_head(same.head, "fc", config_of(path)) == ""
    assert "a last layer for 5 classes; that for 4 begins at random" in remark_on_head(
        other.head, "fc", config_of(path)
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("deeper.pth", "1 not of this network (layer1.9.conv1.weight)"),
        ("less.pth", "15 missing (layer4.0.conv1.weight, layer4.0.bn1.weight, layer4.0.bn1.bias, …)"),
        ("other.pth", "not of this network (cls_token, "),
        ("list.pth", "cannot be read as tensors alone (TypeError: it holds a list)"),
        ("text.pth", "must hold tensors by name, and 'a' is none"),
        ("code.pth", "cannot be read as tensors alone (UnpicklingError"),
        ("broken.safetensors", "cannot be read as tensors alone"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(files: dict[str, Path], name: str, expected: str) -> None:
    with pytest.raises(UserError) as error:
        built(files[name])
    assert expected in str(error.value) and "\n" not in str(error.value)


def test_a_pickle_is_not_executed(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
            return Path.touch, (tmp_path / "executed",)

    torch.save({"weight": Bomb()}, tmp_path / "bomb.pth")
    (tmp_path / "bare.pt").write_bytes(pickle.dumps(Bomb()))
    for name in ("bomb.pth", "bare.pt"):
        with pytest.raises(UserError, match="code in a file is never executed"):
            read_tensors(tmp_path / name)
    assert not (tmp_path / "executed").exists()


TASK = """
title = "made up"
methods = ["SR", "SAT"]
reference = "SR"
coverages = [100, 50]
seeds = 1
epochs = 12
batch_size = 8
[data]
source = "arrays"
path = "images.npz"
[network]
name = "timm:test_resnet"
[optimizer]
name = "sgd"
lr = 0.02
momentum = 0.9
weight_decay = 0.01
[method.self_adaptive]
warmup_epochs = 1
"""


@pytest.fixture
def task_file(tmp_path: Path, files: dict[str, Path]) -> Path:
    """A task of twenty-four made-up images, with a file of weights beside it."""
    random = np.random.default_rng(0)
    labels = np.arange(33) % 3
    images = (
        random.integers(40, size=(33, 3, 16, 16), dtype=np.uint8) + 100 * labels.astype(np.uint8)[:, None, None, None]
    )
    parts = {"train": slice(24), "test": slice(24, None)}
    arrays = {f"{part}_images": images[rows] for part, rows in parts.items()}
    np.savez(tmp_path / "images.npz", **arrays, **{f"{part}_labels": labels[rows] for part, rows in parts.items()})
    (tmp_path / "own.pth").write_bytes(files["plain.pth"].read_bytes())
    path = tmp_path / "made-up.toml"
    path.write_text(TASK)
    return path


def settled_task(path: Path, *overrides: str) -> TaskConfig:
    return settled(load_task(str(path), overrides), Folders(path.parent, path.parent / "cache"))


def first_id(task: TaskConfig) -> str:
    (entry,) = plan(task, ["SR"], [0], Registry(), "images")
    return entry.jobs[0].id


def test_the_id_has_the_hash_of_the_weights_and_not_their_path(task_file: Path, files: dict[str, Path]) -> None:
    weights = f"network.weights={task_file.parent / 'own.pth'}"
    plain, own = settled_task(task_file), settled_task(task_file, weights)
    moved = settled_task(task_file, f"network.weights={files['plain.pth']}")
    other = settled_task(task_file, f"network.weights={files['checkpoint.pt']}")
    ids = [first_id(task) for task in (plain, own, moved, other)]
    assert ids[1] == ids[2] and len(set(ids)) == 3
    assert len({first_id(settled_task(task_file, weights, f"network.train={what}")) for what in ("all", "head")}) == 2
    with pytest.raises(UserError, match=r"has the SHA-256 [0-9a-f]{64}, and network.weights_sha256 is another"):
        settled_task(task_file, weights, "network.weights_sha256=12")


def test_mean_std_and_size_are_the_networks_where_the_task_names_none(task_file: Path) -> None:
    weights, named = f"network.weights={task_file.parent / 'own.pth'}", ("data.mean=0.1,0.2,0.3", "data.std=1,1,1")
    cfg = timm.get_pretrained_cfg("test_resnet")
    assert cfg is not None
    assert settled_task(task_file, weights).data.mean == tuple(cfg.mean)
    assert settled_task(task_file, weights, *named).data.mean == (0.1, 0.2, 0.3)
    own = settled_task(task_file, weights, *named, "network.normalise=own")
    assert (own.data.mean, own.data.std) == (tuple(cfg.mean), tuple(cfg.std))
    assert first_id(own) == first_id(settled_task(task_file, weights))  # the numbers count, not where they are from
    assert settled_task(task_file, weights, "data.source=folder").data.image_size == cfg.input_size[-1]
    assert settled_task(task_file, weights, "data.source=folder", "data.image_size=20").data.image_size == 20
    preset = torchvision.models.ResNet18_Weights.DEFAULT.transforms()
    theirs = settled_task(task_file, weights, "network.name=torchvision:resnet18", "data.source=folder").data
    assert (theirs.mean, theirs.std, theirs.image_size) == (tuple(preset.mean), tuple(preset.std), 224)


def test_images_are_resized_before_the_network_sees_them(files: dict[str, Path]) -> None:
    images, sized = torch.rand(2, 3, 16, 16), built(files["plain.pth"], input_size=40).eval()
    larger = torchvision.transforms.functional.resize(images, [40, 40], antialias=True)
    with torch.no_grad():
        assert torch.allclose(sized(images)[1], built(files["plain.pth"]).eval()(larger)[1], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("timm:resnet18", ["layer1", "layer2", "layer3", "layer4"]),
        ("timm:tf_efficientnet_lite0", [f"blocks.{index}" for index in range(7)]),
        ("timm:convnext_atto", [f"stages.{index}" for index in range(4)]),
        ("timm:regnety_002", ["s1", "s2", "s3", "s4"]),
        ("timm:test_vit", [f"blocks.{index}" for index in range(6)]),
        ("torchvision:efficientnet_b0", [f"features.{index}" for index in range(9)]),
        ("torchvision:shufflenet_v2_x0_5", ["stage2", "stage3", "stage4"]),
    ],
)
def test_stages_are_the_numbered_parts(name: str, expected: list[str]) -> None:
    with torch.device("meta"):
        assert stages(build_network(NetworkConfig(name), 2, (3, 160, 160)).body) == expected


def test_what_comes_before_the_last_stages_is_frozen(files: dict[str, Path]) -> None:
    network = built(files["plain.pth"], train="last:2")
    trained = {name.split(".")[1] for name, each in network.named_parameters() if each.requires_grad}
    assert trained == {"layer3", "layer4", "weight", "bias"}
    with pytest.raises(UserError, match=r"train = last:9, but timm:test_resnet has 4 stages \(layer1, "):
        built(files["plain.pth"], train="last:9")
    vit = timm.create_model("test_vit", num_classes=0)
    from benchmark.train.pretrained.freezing import freeze

    freeze(vit, "last:1", "vit")
    left = {name.partition(".")[0] for name, each in vit.named_parameters() if each.requires_grad}
    assert left == {"blocks", "norm", "fc_norm"} & {name.partition(".")[0] for name, _ in vit.named_parameters()}
    assert not vit.cls_token.requires_grad


TRAINED = {
    "head": (),
    "last:1": ("layer4.",),
}


@pytest.mark.parametrize("train", [*TRAINED])
@pytest.mark.parametrize("ingredients", [(), ("swa", "sam"), ("ema",)])
def test_what_is_frozen_stays_to_the_bit(task_file: Path, train: str, ingredients: tuple[str, ...]) -> None:
    """Trained by the command, with methods that copy the network, and read from the kept weights."""
    folder = task_file.parent
    more = ["--with", *ingredients] if ingredients else []
    settings = [f"network.weights={folder / 'own.pth'}", f"network.train={train}", "optimizer.head_lr=0.2"]
    sets = [word for each in settings for word in ("--set", each)]
    run = run_here(
        "--datasets", str(task_file), *sets, "--results", str(folder / "r"), "--cache-dir", str(folder / "c"),
        "--keep-weights", "--device", "cpu", "--methods", "sr", "sat", *more,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "begins at random" in run.stderr
    before, kept = made_up(), list((folder / "r").rglob("*.pt"))
    assert kept
    for path in kept:
        state = torch.load(path, weights_only=True, map_location="cpu")["method"]
        body = {name.removeprefix("network.body."): value for name, value in state.items() if "network.body." in name}
        assert len(body) > 40
        for name, value in body.items():
            frozen = not name.startswith(TRAINED[train]) if TRAINED[train] else True
            if frozen:
                assert torch.equal(value, before[name]), name
        moved = [name for name, value in body.items() if not torch.equal(value, before[name])]
        assert bool(moved) == bool(TRAINED[train])


def test_frozen_layers_evaluate_while_the_others_train(files: dict[str, Path]) -> None:
    network = built(files["plain.pth"], train="last:1")
    copied = copy.deepcopy(network)
    for each in (network, copied):
        each.train()
        modes = {name: layer.training for name, layer in each.body.named_modules() if isinstance(layer, BatchNorm)}
        assert {name for name, training in modes.items() if training} == {n for n in modes if n.startswith("layer4")}
    network(torch.rand(4, 3, 32, 32))[0].sum().backward()
    graded = {name for name, each in network.named_parameters() if each.grad is not None}
    assert graded and all(name.startswith(("body.layer4", "head")) for name in graded)


def test_the_head_has_its_own_rate_and_the_schedule_scales_both(registry: Registry, task_file: Path) -> None:
    from benchmark.data.dataset import prepare
    from benchmark.train.trainer import Trainer

    overrides = (f"network.weights={task_file.parent / 'own.pth'}", "optimizer.head_lr=0.3", "schedule.name=cosine")
    task = settled_task(task_file, *overrides)
    data = prepare(task.data, Folders(task_file.parent, task_file.parent / "c"), 0, torch.device("cpu"), 10**9)
    (entry,) = plan(task, ["SAT"], [0], registry, data.sha256)
    trainer = Trainer(entry.jobs[0], registry, data, torch.device("cpu"))
    state = trainer.start()
    for epoch in range(2):
        factor = 0.5 * (1 + np.cos(np.pi * (epoch + 2 / 3) / 12))  # at the last of three steps
        state = trainer.run_epoch(state)
        assert state.epoch == epoch + 1
        rates = [group["lr"] for group in state.optimizer.param_groups]
        assert rates == pytest.approx([0.02 * factor, 0.3 * factor])
    body, rest = (group["params"] for group in state.optimizer.param_groups)
    assert {id(each) for each in body} == {id(each) for each in state.method.network.body.parameters()}
    assert len(body) + len(rest) == len(list(state.method.parameters()))


def test_a_step_of_both_groups_is_the_step_of_two_optimisers() -> None:
    from benchmark.config.training import OptimizerConfig
    from benchmark.train.steps.optimizers import OPTIMIZERS, set_rates, with_rates

    config = OptimizerConfig("sgd", 0.1, weight_decay=0.01, head_lr=0.5)
    body, head = (nn.Parameter(torch.ones(3)) for _ in range(2))
    optimizer = OPTIMIZERS["sgd"](with_rates([body, head], [body], config), config)
    from benchmark.config.training import ScheduleConfig

    set_rates(optimizer, config.lr, ScheduleConfig(), 0, 0.0, 1)
    body.grad, head.grad = torch.full((3,), 2.0), torch.full((3,), 2.0)
    optimizer.step()
    assert torch.allclose(body, torch.tensor(1 - 0.1 * 2.01)) and torch.allclose(head, torch.tensor(1 - 0.5 * 2.01))


def test_default_weights_are_fetched_once(monkeypatch: pytest.MonkeyPatch, task_file: Path) -> None:
    asked: list[str] = []

    def fake(name: str) -> bytes:
        from safetensors.torch import save

        asked.append(name)
        return save(made_up())

    monkeypatch.setattr(hub, "downloaded", fake)
    first, second = (settled_task(task_file, "network.weights=default") for _ in range(2))
    assert asked == [NAME] and first == second
    assert Path(first.network.weights).name == "timm-test_resnet.safetensors"
    assert len(read_tensors(Path(first.network.weights))) == 77


def test_offline_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch, task_file: Path) -> None:
    def nobody(*_: Any, **__: Any) -> None:
        raise OSError("Network is unreachable")

    monkeypatch.setattr(hub.urllib.request, "urlopen", nobody)
    run = run_here(
        "--datasets", str(task_file), "--set", "network.weights=default", "--results", str(task_file.parent / "r"),
        "--cache-dir", str(task_file.parent / "c"),
    )  # fmt: skip
    assert run.returncode == 2 and run.stdout == ""
    assert "could not be fetched from https://huggingface.co/timm/test_resnet.r160_in1k (OSError: Net" in run.stderr
    assert run.stderr.count("\n") == 1 and not (task_file.parent / "r").exists()
