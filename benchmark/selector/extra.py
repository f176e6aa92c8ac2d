"""Import the packages that only an exported selector needs, and say what to install where one is missing."""

import importlib
from typing import Any

from benchmark.base.errors import UserError

PACKAGES = ("onnx", "onnxruntime", "onnxscript", "safetensors")


def needed(module: str) -> Any:
    """Return a module. Raise UserError where its package is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UserError(
            f'a selector needs the package {package}, which is not installed; pip install "selbench[export]"'
        ) from error


def check_packages() -> None:
    """Raise UserError unless all packages are there."""
    for package in PACKAGES:
        needed(package)
