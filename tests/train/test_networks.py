"""The networks as published: sizes, features, initialisation, extra outputs."""

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from benchmark.base.errors import UserError
from benchmark.config.load import load_task
from benchmark.config.task import TaskConfig
from benchmark.config.training import NetworkConfig
from benchmark.data.dataset import facts_of
from benchmark.jobs.plan import resolve_config
from benchmark.train.bodies import Residual
from benchmark.train.networks import Network, build_network
from benchmark.train.steps.optimizers import learning_rate
from methods import Registry
from tests.train.test_speed_settings import assert_resumes, make_job


def parameters(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


def on_meta(name: str, classes: int, side: int = 32) -> Network:
    with torch.device("meta"):
        return build_network(NetworkConfig(name), classes, (3, side, side))


@pytest.mark.parametrize(
    ("name", "classes", "extra", "count"),
    [
        ("vgg16", 10, 0, 14_991_946),
        ("vgg16", 10, 1, 14_992_459),
        ("vgg16", 100, 0, 15_038_116),
        ("vgg16", 100, 1, 15_038_629),
        ("torchvision:resnet18", 2, 0, 11_177_538),
    ],
)
def test_published_sizes(name: str, classes: int, extra: int, count: int) -> None:
    network = on_meta(name, classes)
    if extra:
        with torch.device("meta"):
            network.add_outputs(extra, zero=True)
    assert parameters(network) == count


def test_vgg16_layers() -> None:
    network = build_network(NetworkConfig("vgg16"), 10, (3, 32, 32))
    layers = [type(layer).__name__ for layer in network.body]
    assert layers[:4] == ["Conv2d", "ReLU", "BatchNorm2d", "Dropout2d"]
    assert layers[-5:] == ["Dropout2d", "Flatten", "Linear", "ReLU", "BatchNorm1d"]
    rates = [layer.p for layer in network.body if isinstance(layer, nn.Dropout2d)]
    assert rates == [0.3, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.5]
    assert network.dropout.p == 0.5
    assert layers.count("MaxPool2d") == 5
    assert layers.count("Conv2d") == 13


def test_vgg16_initialisation() -> None:
    torch.manual_seed(0)
    network = build_network(NetworkConfig("vgg16"), 10, (3, 32, 32))
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            assert layer.weight.std().item() == pytest.approx(math.sqrt(2 / (9 * layer.out_channels)), rel=0.1)
            assert (layer.bias == 0).all()
        elif isinstance(layer, nn.Linear):
            assert layer.weight.std().item() == pytest.approx(0.01, rel=0.1)
            assert (layer.bias == 0).all()


def test_vgg16_feature_is_the_batchnorm_output() -> None:
    network = build_network(NetworkConfig("vgg16"), 10, (3, 32, 32)).eval()
    seen = []
    network.body[-1].register_forward_hook(lambda module, inputs, output: seen.append(output))
    logits, features = network(torch.randn(2, 3, 32, 32))
    assert torch.equal(features, seen[0])
    assert torch.equal(logits, network.head(features))


@pytest.mark.parametrize("name", ["torchvision:resnet18", "torchvision:mobilenet_v3_small", "timm:resnet18"])
def test_library_networks_are_the_librarys_own(name: str) -> None:
    """Same weights, same logits as the library's model built from the same seed."""
    import timm
    import torchvision

    library, _, model = name.partition(":")
    torch.manual_seed(0)
    own = build_network(NetworkConfig(name), 7, (3, 64, 64)).eval()
    torch.manual_seed(0)
    if library == "timm":
        reference = timm.create_model(model, num_classes=7).eval()
    else:
        reference = torchvision.models.get_model(model, weights=None, num_classes=7).eval()
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        logits, features = own(images)
        torch.testing.assert_close(logits, reference(images))
    assert features.shape == (2, own.feature_dim)
    if library == "timm":
        with torch.no_grad():
            pooled = reference.forward_head(reference.forward_features(images), pre_logits=True)
        torch.testing.assert_close(features, pooled)


def test_torchvision_initialisation_is_not_timms() -> None:
    last = {name: build_network(NetworkConfig(name), 2, (3, 32, 32)).body.layer1[0].bn2.weight for name in
            ("torchvision:resnet18", "timm:resnet18")}  # fmt: skip
    assert (last["torchvision:resnet18"] == 1).all()
    assert (last["timm:resnet18"] == 0).all()


def test_extra_outputs_leave_the_network_as_it_was() -> None:
    images = torch.randn(4, 1, 8, 8)
    torch.manual_seed(0)
    plain = build_network(NetworkConfig("small_cnn", (8, 8)), 3, (1, 8, 8)).eval()
    torch.manual_seed(0)
    extended = build_network(NetworkConfig("small_cnn", (8, 8)), 3, (1, 8, 8)).eval()
    extended.add_outputs(1, zero=False)
    logits, extended_logits = plain(images)[0], extended(images)[0]
    assert extended_logits.shape == (4, 4)
    assert torch.equal(extended_logits[:, :3], logits)
    extended.add_outputs(1, zero=True)
    assert (extended(images)[0][:, 3] == 0).all()


def test_extra_outputs_see_the_same_dropped_features() -> None:
    network = build_network(NetworkConfig("small_cnn", (8, 8), dropout=0.5), 3, (1, 8, 8)).train()
    network.add_outputs(3, zero=False)
    network.extra.load_state_dict(network.head.state_dict())
    logits, _ = network(torch.randn(4, 1, 8, 8))
    assert torch.equal(logits[:, :3], logits[:, 3:])


def cosine_network(scale: float) -> Network:
    torch.manual_seed(0)
    return build_network(NetworkConfig("small_cnn", (8, 8), classifier="cosine", cosine_scale=scale), 3, (1, 8, 8))


@pytest.mark.parametrize("scale", [8.0, 20.0])
def test_a_cosine_classifier_by_loops(scale: float) -> None:
    """s·cos(f, w_k): no bias, and the length of a row says nothing."""
    network = cosine_network(scale).eval()
    images = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    logits, features = network(images)
    for f, found in zip(features.tolist(), logits.tolist(), strict=True):
        for w, logit in zip(network.head.weight.tolist(), found, strict=True):
            product = sum(a * b for a, b in zip(f, w, strict=True))
            assert logit == pytest.approx(scale * product / math.hypot(*f) / math.hypot(*w), rel=1e-5, abs=1e-6)
    assert network.head.bias is None
    with torch.no_grad():
        network.head.weight.mul_(torch.tensor([[3.0], [0.1], [7.0]]))
    torch.testing.assert_close(network(images)[0], logits)


def test_a_cosine_classifier_begins_with_the_weights_of_the_linear_one() -> None:
    torch.manual_seed(0)
    linear = build_network(NetworkConfig("small_cnn", (8, 8)), 3, (1, 8, 8))
    cosine = cosine_network(8.0)
    assert all(torch.equal(value, linear.state_dict()[name]) for name, value in cosine.state_dict().items())
    assert NetworkConfig("small_cnn", classifier="cosine").cosine_scale == 8, "as published"


def test_outputs_beyond_the_classes_of_a_cosine_classifier_stay_linear() -> None:
    network = cosine_network(8.0).eval()
    network.add_outputs(1, zero=False)
    logits, features = network(torch.randn(4, 1, 8, 8))
    assert logits.shape == (4, 4)
    torch.testing.assert_close(logits[:, 3:], features @ network.extra.weight.T + network.extra.bias)
    assert logits[:, :3].abs().max() <= 8 + 1e-5


@pytest.mark.parametrize("label", ["SAT", "CCL-SC"])
def test_a_killed_job_with_a_cosine_classifier_resumes_to_the_bit(tiny: Path, tmp_path: Path, label: str) -> None:
    job = make_job(tiny, label, "network.classifier=cosine", "optimizer.sharpness=f-sam", "mixing.name=regmixup")
    assert_resumes(job, tmp_path, torch.device("cpu"))


@pytest.mark.parametrize("pool", ["average", "flatten"])
def test_small_cnn(pool: str) -> None:
    network = build_network(NetworkConfig("small_cnn", (4, 6), pool=pool), 3, (1, 16, 12))  # type: ignore[arg-type]
    logits, features = network(torch.randn(2, 1, 16, 12))
    assert logits.shape == (2, 3)
    assert features.shape == (2, network.feature_dim) == (2, 6 if pool == "average" else 6 * 4 * 3)


def conditioned(**settings: Any) -> Network:
    torch.manual_seed(0)
    return build_network(NetworkConfig("small_cnn", (16, 24), feature=32, **settings), 10, (3, 16, 16))


@pytest.mark.parametrize("pool", ["average", "flatten"])
@pytest.mark.parametrize("residual", [False, True])
def test_a_feature_layer_begins_with_an_even_guess_and_unit_features(pool: str, residual: bool) -> None:
    network = conditioned(pool=pool, residual=residual).train()
    images, labels = torch.randn(256, 3, 16, 16), torch.arange(256) % 10
    logits, features = network(images)
    assert features.shape == (256, network.feature_dim) == (256, 32)
    loss = nn.functional.cross_entropy(logits, labels).item()
    assert loss == pytest.approx(math.log(10), abs=0.02), "no class is ahead"
    assert features.min() == 0
    assert (features.detach().square().mean(0) - 0.5).abs().max() < 0.25, "E relu(u)² of unit variance"
    network.add_outputs(1, zero=False)
    assert network.extra.weight.std().item() == pytest.approx(0.01, rel=0.5)


def test_a_feature_layer_begins_with_weights_of_he() -> None:
    for layer in conditioned(residual=True).body.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            assert layer.weight.std().item() == pytest.approx(math.sqrt(2 / layer.weight[0].numel()), rel=0.15)


def test_a_residual_body_adds_to_its_shortcut() -> None:
    network = conditioned(residual=True).eval()
    residual = [layer for layer in network.body if isinstance(layer, Residual)]
    assert len(residual) == 1, "after the last convolution"
    maps = torch.randn(2, 24, 4, 4)
    assert not torch.equal(residual[0](maps), maps)
    nn.init.zeros_(residual[0].inner[3].weight)
    assert torch.equal(residual[0](maps), maps)


def test_settings_of_the_small_network_are_checked() -> None:
    with pytest.raises(ValueError, match="residual needs feature"):
        NetworkConfig("small_cnn", (8,), residual=True)
    with pytest.raises(UserError, match=r"network\.feature belongs to small_cnn, not to vgg16"):
        build_network(NetworkConfig("vgg16", feature=8), 10, (3, 32, 32))


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("vgg17", (3, 32, 32), "did you mean 'vgg16'"),
        ("timm:resnet181", (3, 32, 32), "did you mean"),
        ("timm:resnet18.a1_in1k", (3, 32, 32), "names pretrained weights; load them with network.weights"),
        ("torchvision:resnet19", (3, 32, 32), "did you mean 'resnet18'|did you mean 'resnet"),
        ("torchvision:resnet18", (1, 32, 32), "needs colour images"),
        ("torchvision:squeezenet1_0", (3, 64, 64), "no single linear classifier"),
        ("timm:resnetv2_50", (3, 64, 64), "no single linear classifier"),
        ("torchvision:googlenet", (3, 64, 64), "no single linear classifier"),
        ("vgg16", (1, 8, 8), "at least 32×32"),
        ("small_cnn", (1, 8, 8), "needs network.widths"),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning:torchvision")
def test_bad_networks(name: str, shape: tuple[int, int, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build_network(NetworkConfig(name), 2, shape)


def test_too_deep_for_the_images() -> None:
    with pytest.raises(UserError, match="too many layers"):
        build_network(NetworkConfig("small_cnn", (4,) * 4), 2, (1, 8, 8))


def left_of_untrained_weights(task: TaskConfig, epochs: int) -> float:
    """What SGD with momentum leaves of a weight without a gradient, step by step."""
    left, velocity, count = 1.0, 0.0, facts_of(task.data, None).num_train
    steps, how = math.ceil((count - round(task.data.val * count)) / task.batch_size), task.optimizer
    for epoch, step in itertools.product(range(epochs), range(steps)):
        velocity = how.momentum * velocity + how.weight_decay * left
        left -= learning_rate(how.lr, task.schedule, epoch, step / steps, task.epochs) * velocity
    return left


@pytest.mark.parametrize(
    ("name", "at_least", "at_most"),
    [("cifar10", 0, 1e-6), ("cifar100", 0, 1e-6)]
    + [(f"{name}-cpu", 0.15, 0.55) for name in ("cifar10", "cifar100", "svhn")]
    + [(f"{name}-cpu", 0.82, 0.99) for name in ("imagenet", "celeba")]
    + [(name, 0.8155, 0.99) for name in ("digits", "gaussians", "fashion-mnist", "cifar100-cpu-tuned")],
)
def test_what_weight_decay_leaves_of_outputs_that_warm_up_does_not_train(
    name: str, at_least: float, at_most: float
) -> None:
    """As `add_outputs` says: next to nothing as published, most of it on small tasks, all without weight decay."""
    task = load_task(name)
    epochs = resolve_config(task, "DG", "deep_gamblers", Registry().get("deep_gamblers")).warmup_epochs
    left = left_of_untrained_weights(task, epochs)
    assert at_least <= left <= (1 if task.optimizer.weight_decay == 0 else at_most)
    assert (left == 1) == (task.optimizer.weight_decay == 0)


@pytest.mark.parametrize("shape", [(30, 1, 1), (1, 8, 8)], ids=["vectors", "flattened images"])
@pytest.mark.parametrize("batch_norm", [True, False])
def test_mlp_is_what_it_says(shape: tuple[int, int, int], batch_norm: bool) -> None:
    """Its logits are those of the formula; its features are its last hidden layer after the ReLU."""
    torch.manual_seed(0)
    config = NetworkConfig("mlp", (16, 8), dropout=0.4, batch_norm=batch_norm)
    network = build_network(config, 3, shape)
    network(torch.randn(20, *shape))  # moves the statistics of BatchNorm
    images = torch.randn(5, *shape)
    with torch.no_grad():
        logits, features = network.eval()(images)
    hidden = images.reshape(5, -1)
    norms = [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm1d)]
    layers = [layer for layer in network.body.modules() if isinstance(layer, nn.Linear)]
    assert [layer.out_features for layer in layers] == [16, 8]
    assert len(norms) == (2 if batch_norm else 0)
    for index, layer in enumerate(layers):
        hidden = hidden @ layer.weight.T
        if batch_norm:
            norm = norms[index]
            assert layer.bias is None, "BatchNorm has one"
            hidden = (hidden - norm.running_mean) / torch.sqrt(norm.running_var + norm.eps) * norm.weight + norm.bias
        else:
            hidden = hidden + layer.bias
        hidden = hidden.clamp(min=0)
    torch.testing.assert_close(features, hidden)
    torch.testing.assert_close(logits, features @ network.head.weight.T + network.head.bias)
    assert (features.shape, network.feature_dim) == ((5, 8), 8)
    dropped = sum(isinstance(layer, nn.Dropout) and layer.p == 0.4 for layer in network.modules())
    assert dropped == 2, "after each hidden layer"


def test_linear_is_one_layer_on_the_vector_itself() -> None:
    network = build_network(NetworkConfig("linear"), 3, (30, 1, 1))
    vectors = torch.randn(5, 30, 1, 1)
    logits, features = network(vectors)
    assert torch.equal(features, vectors[:, :, 0, 0])
    torch.testing.assert_close(logits, features @ network.head.weight.T + network.head.bias)
    assert parameters(network) == 30 * 3 + 3
