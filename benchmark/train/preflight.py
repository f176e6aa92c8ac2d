"""Check what a command would do before anything trains; find out what is known of the data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmark.base.errors import MissingData, UserError
from benchmark.config.load import load_task
from benchmark.config.task import DataConfig, TaskConfig
from benchmark.data.cache import Folders, has_originals
from benchmark.data.cache_build import open_cache
from benchmark.data.dataset import check_outliers, facts_of, load, outliers_hash
from benchmark.data.images import Facts, Loaded
from benchmark.data.preprocessing import preprocessing
from benchmark.data.sources import get_source
from benchmark.data.sources._train_labels import has_labels, remark_on_labels, with_hash
from benchmark.interface import Method
from benchmark.jobs.job import Job, Methods
from benchmark.jobs.suite import Suite
from benchmark.train.networks import Network, build_network
from benchmark.train.pretrained.own import settled
from benchmark.train.pretrained.weights import check_fit, read_weights, remark_on_head

ABSENT = "absent"
SMALL_BYTES = 2**25
PART_OF_A_SET = 0.9
"""Classes differ in size, so that some of them may be a little less than the announced average."""
MOST_WEIGHTS = 5 * 10**9


@dataclass(frozen=True)
class Found:
    """What is known of a task's data before its jobs are planned."""

    facts: Facts
    sha256: str
    remark: str = ""
    """What a reader of the results should know of the data."""
    preprocessing: str = ""
    """What is done to a user's own images."""
    state: str = "present"


def filled_in(task: TaskConfig, folders: Folders) -> TaskConfig:
    """Return a task with what it leaves to its files: the hash of its training labels, all of a pretrained network."""
    return settled(with_labels_hash(task, folders), folders)


def with_labels_hash(task: TaskConfig, folders: Folders) -> TaskConfig:
    return replace(task, data=with_hash(task.data, folders.data))


def find_data(task: TaskConfig, folders: Folders, *, required: bool) -> Found:
    """Return what is known of a task's data. If not required, they may be missing, and no cache is built."""
    data = task.data if required or has_labels(task.data, folders.data) else task.data.images_alone
    try:
        loaded, sha256 = load(data, folders, build=required)
    except MissingData:
        if required:
            raise
        return find_uncached(task, folders)
    return Found(facts_of(task.data, loaded), sha256, remark_on(task, loaded), preprocessing(task, loaded))


def find_outliers(config: DataConfig, facts: Facts, folders: Folders, *, required: bool) -> str:
    """Return the hash of the outliers of a task with these facts, as far as it is known."""
    other = load_task(config.outliers)
    other = replace(other, data=other.data.images_alone)
    found = find_data(other, folders, required=required)
    check_outliers(config, facts, found.facts)
    return ABSENT if found.sha256 == ABSENT else outliers_hash(other.data, found.sha256, found.facts.num_train)


def find_uncached(task: TaskConfig, folders: Folders) -> Found:
    """Return what is known of data without a cache, decoding little. Without their hash, jobs have no id yet."""
    facts, there = facts_of(task.data, None), has_originals(task.data, folders)
    if not facts.sha256 and there and is_small(task.data, folders):
        with TemporaryDirectory() as folder:
            loaded, sha256 = open_cache(task.data, Folders(folders.data, Path(folder)), tell=lambda text: None)
            return Found(facts, sha256, remark_on(task, loaded), preprocessing(task, loaded), "not cached")
    remark, state = remark_on_labels(task.data, None), "not cached" if there else ABSENT
    return Found(facts, facts.sha256 or ABSENT, remark, preprocessing(task, None), state)


def is_small(config: DataConfig, folders: Folders) -> bool:
    """Return whether the data are decoded in a moment, just for a plan."""
    paths = get_source(config).files(config, folders.data)
    return all(path.is_file() for path in paths) and sum(path.stat().st_size for path in paths) <= SMALL_BYTES


def remark_on(task: TaskConfig, loaded: Loaded) -> str:
    """Return what a reader of the results should know of the data: missing images, an unused validation split."""
    count, remarks = len(loaded.train), list(filter(None, [remark_on_labels(task.data, loaded.labels_changed)]))
    unknown = task.data.path or task.data.leave_out  # own data announce nothing, and no source its classes
    announced = count if unknown else facts_of(task.data, None).num_train
    if count < PART_OF_A_SET * announced:
        remarks.append(
            f"{count:,} of {announced:,} training images are there; results do not compare with those of the whole set"
        )
    if loaded.val is not None and not task.data.official_val:
        remarks.append("its own validation split is not used; data.official_val = true with data.val = 0 would")
    return "; ".join(remarks)


def check_recipe(task: TaskConfig, facts: Facts) -> None:
    """Raise UserError for whatever would fail every job of a task, before anything runs."""
    network = empty_network(task, facts)
    weights = sum(parameter.numel() for parameter in network.parameters())
    if task.network.weights:
        check_fit(network.body, network.head, network.head_name, read_weights(task.network), task.network)
    if weights > MOST_WEIGHTS:
        raise UserError(
            f"the network has {weights:,} weights on images of {facts.shape[1]}×{facts.shape[2]}; expected at most "
            f"{MOST_WEIGHTS:,}, as no device holds more: lower network.widths or data.image_size"
        )
    if facts.num_train - round(task.data.val * facts.num_train) < 2:
        raise UserError(f"data.val = {task.data.val:g} leaves fewer than 2 of {facts.num_train} training images")
    if facts.num_test < 1:
        raise UserError(f"data.test_holdout = {task.data.test_holdout} leaves no test image; make it smaller")
    check_kind(task, facts)
    if task.augment.color_jitter and facts.floats:
        raise UserError(
            f"augment.color_jitter needs 8-bit images, and those of '{task.data.source}' are not; set it to 0"
        )


def head_remark(task: TaskConfig, facts: Facts) -> str:
    """Return whether the last layer of a pretrained network begins anew; empty for other networks."""
    if not task.network.weights:
        return ""
    network = empty_network(task, facts)
    return remark_on_head(network.head, network.head_name, task.network)


def check_kind(task: TaskConfig, facts: Facts) -> None:
    """Raise UserError for what images can go through and vectors cannot, or the other way round."""
    augment = task.augment
    if facts.are_vectors and augment.changes_images:
        raise UserError(
            f"augment: crops, flips and colour jitter are for images, and '{task.data.source}' has vectors; take noise "
            "or feature_dropout"
        )
    if not facts.are_vectors and augment.changes_vectors:
        raise UserError(
            f"augment.noise and augment.feature_dropout are for vectors, and '{task.data.source}' has images; take "
            "crop_padding or flip"
        )
    if facts.are_vectors and task.mixing.name == "cutmix":
        raise UserError(
            f"mixing.name = cutmix cuts boxes out of images, and '{task.data.source}' has vectors; take mixup"
        )


def check_ranks(suites: Sequence[Suite], methods: Methods, *, on_gpus: bool) -> None:
    """Raise UserError, before anything trains, for what several GPUs cannot compute as one does."""
    jobs = (job for suite in suites for job in suite.jobs() if not job.needs)
    coupled = dict.fromkeys(job.label for job in jobs if couples_samples(job, methods))
    if coupled:
        raise UserError(
            f"--gpus-per-job: the loss of {', '.join(coupled)} couples the samples of a batch, and each "
            "GPU would see only its part; leave them out of --methods, or train them without --gpus-per-job"
        )
    synchronised = [suite.task.name for suite in suites if suite.task.sync_batchnorm]
    if synchronised and not on_gpus:
        raise UserError(
            f"sync_batchnorm of {', '.join(synchronised)} needs GPUs where --gpus-per-job is above 1; "
            "set sync_batchnorm=false, or leave out --gpus-per-job"
        )


def couples_samples(job: Job, methods: Methods) -> bool:
    """Return whether the loss couples the samples of a batch, in the job's own phase or in its warm-up."""
    trained = [methods.get(each.method) for each in (job, job.trunk) if each is not None]
    return any(issubclass(method, Method) and method.couples_samples for method in trained)


def empty_network(task: TaskConfig, facts: Facts) -> Network:
    """Build the network without memory: this shows a wrong name or size at once."""
    with torch.device("meta"):
        return build_network(task.network, facts.num_classes, facts.shape)
