"""Define what makes features of images, without the last layer."""

import math

from torch import Tensor, nn


class VGG16Body(nn.Sequential):
    """The VGG16 of the selective-classification papers: conv → ReLU → BatchNorm, channel dropout, one hidden layer.

    Each entry of PLAN is (channels, channel dropout after it); the feature is the BatchNorm1d output.
    """

    PLAN: tuple[tuple[tuple[int, float], ...], ...] = (
        ((64, 0.3), (64, 0.0)),
        ((128, 0.4), (128, 0.0)),
        ((256, 0.4), (256, 0.4), (256, 0.0)),
        ((512, 0.4), (512, 0.4), (512, 0.0)),
        ((512, 0.4), (512, 0.4), (512, 0.0)),
    )

    def __init__(self, channels: int, side: int) -> None:
        layers: list[nn.Module] = []
        for block in self.PLAN:
            for width, dropout in block:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(width)]
                layers += [nn.Dropout2d(dropout)] if dropout else []
                channels = width
            layers.append(nn.MaxPool2d(2))
        inputs = channels * (side // 32) ** 2
        layers += [nn.Dropout2d(0.5), nn.Flatten(), nn.Linear(inputs, 512), nn.ReLU(), nn.BatchNorm1d(512)]
        super().__init__(*layers)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.normal_(module.weight, std=math.sqrt(2 / (9 * module.out_channels)))
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]
            elif isinstance(module, nn.Linear):
                self.initialise_linear(module)

    @staticmethod
    def initialise_linear(layer: nn.Linear) -> None:
        nn.init.normal_(layer.weight, std=0.01)
        nn.init.zeros_(layer.bias)


class Residual(nn.Module):
    """x + f(x), with two 3×3 convolutions in f."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(*convolution(width, width), *convolution(width, width))

    def forward(self, maps: Tensor) -> Tensor:
        return maps + self.inner(maps)  # type: ignore[no-any-return]


class ConditionedBody(nn.Sequential):
    """Layers that begin with He's weights. What is linear behind them begins small, so that no class is ahead."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__(*layers)
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")

    @staticmethod
    def initialise_linear(layer: nn.Linear) -> None:
        nn.init.normal_(layer.weight, std=0.01)
        nn.init.zeros_(layer.bias)


def convolution(inputs: int, width: int, pool: nn.Module | None = None) -> list[nn.Module]:
    """Return the layers of a convolution. Pooled before BatchNorm, it computes a fifth less."""
    pooled = [] if pool is None else [pool]
    return [nn.Conv2d(inputs, width, 3, padding=1, bias=False), *pooled, nn.BatchNorm2d(width), nn.ReLU()]
