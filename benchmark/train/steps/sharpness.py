"""Steps towards flat minima: take the gradient where the loss is worst nearby, and step from where one stood."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.amp import GradScaler

from benchmark.config.training import OptimizerConfig

BatchNorm = nn.modules.batchnorm._BatchNorm
SMALLEST_NORM = 1e-12


def ascent(gradients: list[Tensor], weights: list[Tensor], rho: float, *, adaptive: bool) -> list[Tensor]:
    """Return ε = ρ·g/‖g‖; adaptive: ε = ρ·θ²g/‖|θ|g‖. The norm is over all parameters."""
    scaled, sizes = gradients, list(torch._foreach_abs(weights)) if adaptive else []
    if adaptive:
        scaled = list(torch._foreach_mul(gradients, sizes))
    norm = torch.stack(torch._foreach_norm(scaled)).norm() + SMALLEST_NORM
    if adaptive:
        scaled = list(torch._foreach_mul(scaled, sizes))
    return list(torch._foreach_mul(scaled, rho / norm))


@dataclass
class Sharpness:
    """Climbs to θ + ε and returns. Its only state is m of the friendly kind, which belongs to the checkpoint."""

    config: OptimizerConfig
    module: nn.Module
    means: dict[nn.Parameter, Tensor] = field(default_factory=dict)
    """m of each parameter, from its first step on."""

    @contextmanager
    def climbed(self, scaler: GradScaler | None) -> Iterator[None]:
        """Stand at θ + ε, given the gradients at θ, and return to θ. Weights whose scaled gradient overflowed stay.

        The host waits for nothing, so the gradient scaler is not asked for its scale but made to apply it.
        """
        trained = [parameter for parameter in self.module.parameters() if parameter.grad is not None]
        moved: list[Tensor] = list(trained)
        before = [parameter.detach().clone() for parameter in moved]
        with torch.no_grad():
            gradients = [parameter.grad for parameter in trained if parameter.grad is not None]
            if scaler is not None:
                scale = scaler.scale(torch.ones((), device=moved[0].device))
                gradients = [torch.nan_to_num(each / scale, 0.0, 0.0, 0.0) for each in gradients]
            if self.config.sharpness == "f-sam":
                gradients = self.friendly(trained, gradients)
            adaptive = self.config.sharpness == "asam"
            climb = ascent(gradients, before, self.config.used_rho, adaptive=adaptive)
            torch._foreach_add_(moved, climb, alpha=1.0)
            del gradients, climb  # the second pass needs the room
        with nullcontext() if self.config.statistics == "both" else kept_statistics(self.module):
            yield
        with torch.no_grad():
            torch._foreach_copy_(moved, before)

    def friendly(self, trained: Sequence[nn.Parameter], gradients: list[Tensor]) -> list[Tensor]:
        """Return d = g − σ·m, and set m ← λ·m + (1−λ)·g. In its first step a parameter climbs along g, and m = g."""
        missing = [index for index, parameter in enumerate(trained) if parameter not in self.means]
        for index in missing:
            self.means[trained[index]] = gradients[index].clone()
        means = [self.means[parameter] for parameter in trained]
        climbs = list(torch._foreach_add(gradients, means, alpha=-self.config.sigma))
        for index in missing:
            climbs[index] = gradients[index]
        torch._foreach_lerp_(means, gradients, 1 - self.config.smoothing)
        return climbs

    def to_plain(self) -> dict[str, Tensor]:
        """Return m by parameter name."""
        named = self.module.named_parameters()
        return {name: self.means[parameter] for name, parameter in named if parameter in self.means}

    def from_plain(self, plain: Mapping[str, Tensor]) -> None:
        named = self.module.named_parameters()
        self.means = {parameter: plain[name].to(parameter.device) for name, parameter in named if name in plain}


def make_sharpness(config: OptimizerConfig, module: nn.Module) -> Sharpness | None:
    """Return what makes steps sharpness-aware; None for plain steps."""
    return None if config.sharpness == "none" else Sharpness(config, module)


@contextmanager
def kept_statistics(module: nn.Module) -> Iterator[None]:
    """Leave the statistics of BatchNorm as they are, whatever passes through it."""
    layers = [layer for layer in module.modules() if isinstance(layer, BatchNorm)]
    buffers = [buffer for layer in layers for buffer in layer.buffers()]
    before = [buffer.clone() for buffer in buffers]
    yield
    if buffers:
        torch._foreach_copy_(buffers, before)
