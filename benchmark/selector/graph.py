"""Write a model as an ONNX graph with its threshold as an input that has a default, and compute it by onnxruntime."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmark.base.errors import UserError, brief
from benchmark.base.units import text_from_bytes
from benchmark.selector.extra import needed
from benchmark.selector.model import Decision, SelectiveModel

OUTPUTS = ["class", "confidence", "kept"]
IMAGES, THRESHOLD = "images", "threshold"
MOST_BYTES = 2**31 - 2**20
"""A graph with its weights is one message, which cannot be larger than two gigabytes."""
ONLY_ERRORS = 3
"""onnxruntime warns that the threshold can be replaced, which is meant."""


def graph_bytes(model: SelectiveModel, threshold: float) -> bytes:
    """Return the graph of a model on the CPU. Raise UserError where torch cannot write it."""
    size = sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())
    if size > MOST_BYTES:
        raise UserError(f"its weights take {text_from_bytes(size)}, and one ONNX file holds two gigabytes at most")
    example = torch.zeros(2, *model.description.shape, dtype=model.description.dtype)
    try:
        with quiet():
            program: Any = torch.onnx.export(
                model,
                (example, torch.tensor(threshold, dtype=torch.float64)),
                dynamo=True,
                dynamic_shapes=({0: torch.export.Dim("N")}, None),
                input_names=[IMAGES, THRESHOLD],
                output_names=OUTPUTS,
                verbose=False,
            )
            graph = program.model_proto
    except Exception as error:
        raise UserError(f"torch cannot write its network as an ONNX graph ({brief(error)})") from error
    onnx = needed("onnx")
    default = onnx.numpy_helper.from_array(np.array(threshold, np.float64), THRESHOLD)
    graph.graph.initializer.append(default)
    onnx.checker.check_model(graph)
    content: bytes = graph.SerializeToString()
    return content


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hold back what torch says while it exports: notes on its own code, and not on this model."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        for category in (DeprecationWarning, FutureWarning, UserWarning):
            warnings.simplefilter("ignore", category)
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


class Graph:
    """An ONNX graph, computed by onnxruntime on the CPU."""

    def __init__(self, content: bytes, threads: int) -> None:
        runtime = needed("onnxruntime")
        options = runtime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = ONLY_ERRORS, threads
        self.session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def decide(self, images: Tensor) -> Decision:
        """Return the decision on images, at the default threshold."""
        found = self.session.run(OUTPUTS, {IMAGES: images.numpy()})
        return Decision(*map(torch.from_numpy, found))
