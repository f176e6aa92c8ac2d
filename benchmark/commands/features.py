"""`features`: compute once what a pretrained network makes of a task's images, and write a task that trains on it."""

import argparse
from pathlib import Path
from typing import get_args, get_type_hints

from benchmark.commands.options import (
    add_count,
    add_data_folders,
    add_device,
    add_plugins,
    add_set,
    make_options,
    whole,
)
from benchmark.library.feature_options import AT_A_TIME, SIZE, FeaturesOptions

HELP = "compute the features of a task's images with a pretrained network, and write a task for them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="a task by name, or a path to a task file (.toml)")
    parser.add_argument("--network", required=True, metavar="NAME", help="timm:NAME or torchvision:NAME")
    parser.add_argument(
        "--weights",
        default=FeaturesOptions.weights,
        metavar="FILE",
        help="a file of tensors (.safetensors, .pth), or default: those of the library's hub (default: default)",
    )
    size = "resize images to N × N pixels on the device (default: as they are)"
    add_count(parser, "--size", SIZE, size, FeaturesOptions.size)
    parser.add_argument("--to", type=Path, metavar="FILE.toml", help="the task file to write (default: TASK-NAME.toml)")
    hints = get_type_hints(FeaturesOptions)
    parser.add_argument(
        "--dtype",
        choices=get_args(hints["dtype"]),
        default=FeaturesOptions.dtype,
        help="how the numbers are kept (default: float16)",
    )
    parser.add_argument(
        "--normalise",
        choices=get_args(hints["normalise"]),
        default=FeaturesOptions.normalise,
        help="mean and std of the pixels: those that the weights were trained with (own, default), or the task's",
    )
    parser.add_argument(
        "--batch",
        type=whole(AT_A_TIME),
        default=0,
        metavar="N",
        help="images at a time (default: 16 per core, 256 per GPU)",
    )
    add_device(parser, "where to compute")
    add_data_folders(parser)
    add_set(parser, example="data.image_size=128")
    add_plugins(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="show how many images, how long (after a probe) and how many bytes"
    )


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.features import make_features, plan_features

    act = plan_features if arguments.dry_run else make_features
    print(act(make_options(FeaturesOptions, arguments)))
    return 0
