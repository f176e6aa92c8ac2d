"""Export a finished run as a selector: its network, its score and a threshold with a guarantee, in one folder."""

import copy
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from benchmark.base.children import safe_path
from benchmark.base.errors import UserError
from benchmark.base.files import say
from benchmark.base.names import match_name
from benchmark.base.units import text_from_bytes
from benchmark.certificates.held_out import View, confidence_by
from benchmark.config.task import DataConfig
from benchmark.data.cache import Folders
from benchmark.data.classes import new_numbers
from benchmark.data.devices import device_kind, device_name, has_doubles
from benchmark.data.evaluation.home import class_folders
from benchmark.jobs.job import Job, Methods
from benchmark.library.finished_run import FoundRun, find_run, refuse_lost_weights
from benchmark.library.guarantee_options import ExportOptions
from benchmark.library.registry import load_methods
from benchmark.library.settings import folders_of
from benchmark.library.threshold import Threshold, certified_threshold, guarantee_of, tested
from benchmark.measure.catalogue import Unavailable, any_run_scores
from benchmark.selector import agreement, files
from benchmark.selector.agreement import Agreement, Answers, Disagreement, Room, compare
from benchmark.selector.assemble import Trained, assembled, why_not_exported
from benchmark.selector.card import card
from benchmark.selector.example import example_program
from benchmark.selector.extra import PACKAGES, check_packages
from benchmark.selector.files import Content
from benchmark.selector.graph import Graph, graph_bytes
from benchmark.selector.model import SelectiveModel
from benchmark.selector.scores import check_exportable
from benchmark.store.mirror import pulled
from benchmark.store.store import Store
from benchmark.train.context import Context
from benchmark.train.evaluation.predictors import finished_network
from benchmark.train.provenance import LIBRARIES, commit
from benchmark.train.pulse import Pulse
from benchmark.train.run_job import prepare_device

ENOUGH_IMAGES = 1000
"""To see how much single precision rounds away."""
Batches = Callable[[str], Iterator[Tensor]]
"""Yields the test images; the text says for what."""


@dataclass(frozen=True)
class Exported:
    """What was written, and how far its parts agree."""

    folder: Path
    network: Agreement
    """Of the exported network with the suite's own prediction."""
    graph: Agreement
    """Of the ONNX graph with the exported network."""
    size: int
    """In bytes."""

    def __str__(self) -> str:
        """Return one line."""
        return (
            f"Selector: {self.folder} ({text_from_bytes(self.size)}); network and suite: {self.network}; ONNX and "
            f"network: {self.graph}"
        )


def export_selector(options: ExportOptions) -> Exported:
    """Export a finished run as a folder. Raise UserError, with nothing written, where that cannot be."""
    check_packages()
    files.refuse_existing(options.to)
    methods = load_methods(options.plugin)
    with safe_path():
        run = find_run(options, methods, Store(pulled(options.results)))
        if reason := why_not_exported(run.method):
            raise UserError(f"{run.label} cannot be exported: {reason}")
        score = match_own_score(options.score, run)
        check_exportable(score)
        refuse_lost_weights(run, options)
        threshold = certified_threshold(run, score, options)
        tell = say if not options.quiet else ignore
        tell(f"{run.name}: {score} of at least {threshold.value:g} ({threshold.run.held_out.origin})")
        return write_selector(run, threshold, options, methods, tell)


def ignore(text: str) -> None:
    """Say nothing."""


def match_own_score(wanted: str | None, run: FoundRun) -> str:
    """Return the score that is meant, or the one that is published with the method."""
    own = list(run.record.measures.scores)
    return own[0] if wanted is None else match_name(wanted, [*own, *any_run_scores()], "score")


def write_selector(
    run: FoundRun, threshold: Threshold, options: ExportOptions, methods: Methods, tell: Callable[[str], None]
) -> Exported:
    """Put the selector together, compare it with the suite and its graph with itself, and write the folder."""
    device = prepare_device(run.job.task, device_of(options))
    folders = folders_of(options)
    trained = [trained_network(job, Context(run.store.root, folders, methods), device) for job in run.trainings]
    model = model_of(run, trained, threshold)
    weights = files.weights_bytes(model.state_dict(), model.description)
    batches = partial(test_batches, trained[0], options.quiet)

    suite = suite_answers(run, threshold)
    ours = agreement.of_model(model.to(device), batches("network"))
    network = agreed(ours, suite, threshold.value, model, batches)
    tell(f"{run.name}: network and suite: {network}")
    model = model.cpu()
    if device.type != "cpu":
        ours = agreement.of_model(model, batches("network on the CPU"))
    graph = graph_bytes(model, threshold.value)
    found = agreement.of_graph(Graph(graph, run.job.task.threads), batches("ONNX"))
    same = agreed(found, ours, threshold.value, model, batches)
    tell(f"{run.name}: ONNX and network: {same}")

    binary = {files.WEIGHTS: weights, files.GRAPH: graph}
    content = Content(
        files.VERSION,
        threshold.run.score,
        threshold.value,
        guarantee_of(threshold),
        model.description,
        origin_of(run),
        class_names(run.job.task.data, folders, model.description.num_classes),
        {name: files.sha256_of(each) for name, each in binary.items()},
    )
    texts = {
        files.SELECTOR: files.selector_bytes(content),
        files.CARD: card(content, tested(threshold)).encode(),
        files.EXAMPLE: example_program(model.description).encode(),
    }
    files.write_folder(options.to, texts | binary)
    return Exported(options.to, network, same, sum(map(len, (texts | binary).values())))


def agreed(ours: Answers, theirs: Answers, threshold: float, model: SelectiveModel, batches: Batches) -> Agreement:
    """Return how far two ways agree that both compute a model in single precision, each in its own order."""
    try:
        return compare(ours, theirs, threshold, Room.beside(theirs))
    except Disagreement:
        return compare(ours, theirs, threshold, rounding_of(model, batches("network in double precision")))


def rounding_of(model: SelectiveModel, batches: Iterator[Tensor]) -> Room:
    """Return what single precision rounds away, as far as some of the images show it."""
    taken: list[Tensor] = []
    for images in batches:
        taken.append(images)
        if sum(map(len, taken)) >= ENOUGH_IMAGES:
            break
    double = copy.deepcopy(model).double()
    return Room.rounded(agreement.of_model(model, taken), agreement.of_model(double, taken))


def device_of(options: ExportOptions) -> torch.device:
    """Return the device that is asked for. Scores are computed in float64, which some devices lack."""
    device_kind(options.device)
    device = torch.device(device_name(options.device))
    return device if has_doubles(device) else torch.device("cpu")


def trained_network(job: Job, context: Context, device: torch.device) -> Trained:
    """Return the trained network of a job, from its last checkpoint."""
    try:
        trainer, method = finished_network(job, context, device, Pulse())
    except FileNotFoundError as error:
        raise UserError(str(error)) from None
    return Trained(method, job.task, trainer.data)


def model_of(run: FoundRun, trained: Sequence[Trained], threshold: Threshold) -> SelectiveModel:
    """Return the model, with the score fitted on what did not certify the threshold."""
    try:
        return assembled(trained, run.method, run.record.facts, threshold.run.score, threshold.run.held_out.run)
    except Unavailable as why:
        raise UserError(f"{run.name}, {threshold.run.score}: {why}") from None
    except UserError as why:
        raise UserError(f"{run.label} cannot be exported: {why}") from None


def test_batches(trained: Trained, quiet: bool, what: str) -> Iterator[Tensor]:
    """Yield the test images as they are stored, in the batches that the suite predicts, with a progress bar."""
    data, hidden = trained.data, quiet or not sys.stderr.isatty()
    with tqdm(total=len(data.test), unit="image", desc=what, disable=hidden) as bar:
        for images in data.plain_batches(data.test, trained.task.eval_batch_size):
            yield images
            bar.update(len(images))


def suite_answers(run: FoundRun, threshold: Threshold) -> Answers:
    """Return what the suite stored of all test images, its score fitted as the exported one."""
    test, known = run.finished.test, threshold.run.held_out.run.fitted_on
    confidence = confidence_by(threshold.run.score, View(run.finished, test, known), run.record)
    return agreement.of_suite(test.prediction, confidence)


def class_names(data: DataConfig, folders: Folders, trained: int) -> tuple[str, ...]:
    """Return the names of the classes that are trained: those of their folders, or else their numbers."""
    count = trained + len(data.leave_out)
    every = class_folders(data, folders) or [str(number) for number in range(count)]
    numbers = new_numbers(data, count) if data.leave_out else np.arange(count)
    return tuple(every[number] for number in np.flatnonzero(numbers >= 0).tolist())


def origin_of(run: FoundRun) -> dict[str, Any]:
    """Return where a selector comes from: what trained it, on which data, by which code."""
    record = run.record
    return {
        "task": record.task,
        "title": run.title,
        "method": run.label,
        "seed": record.seed,
        "job": record.job,
        "trainings": " ".join(job.id for job in run.trainings),
        "data_sha256": record.data_sha256,
        "code": " ".join(record.provenance.codes or ()),
        "commit": record.provenance.commit,
        "trained_with": dict(record.provenance.libraries),
        "exported_with": {name: version(name) for name in (*LIBRARIES, *PACKAGES)},
        "exported_by": commit(),
        "python": platform.python_version(),
    }
