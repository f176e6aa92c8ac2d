"""Ask a model, its graph and the stored predictions the same of all images of a split."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from benchmark.measure.prediction import Stored
from benchmark.measure.scores import Confidence
from benchmark.selector.agreement import Answers, joined
from benchmark.selector.graph import Graph
from benchmark.selector.model import SelectiveModel

THE_SUITE = "the suite's own prediction"


def of_suite(prediction: Stored, confidence: Confidence) -> Answers:
    """Return what the suite has stored."""
    return Answers(THE_SUITE, prediction.logits.argmax(axis=1), confidence, prediction.logits.astype("float64"))


def of_model(model: SelectiveModel, blocks: Iterable[Tensor], tell: Callable[[int], None]) -> Answers:
    """Return what a model says of images on its device."""
    parts = []
    with torch.no_grad():
        for images in blocks:
            reading = model.read(images)
            found = (reading.logits.argmax(1), model.score(reading), reading.logits)
            parts.append(Answers("", *(each.cpu().numpy() for each in found)))
            tell(len(images))
    return joined("the exported network", parts)


def of_graph(graph: Graph, blocks: Iterable[Tensor], tell: Callable[[int], None]) -> Answers:
    """Return what a graph says of images."""
    parts = []
    for images in blocks:
        found = graph.decide(images.cpu())
        parts.append(Answers("", found.classes.numpy(), found.confidence.numpy()))
        tell(len(images))
    return joined("the ONNX graph", parts)
