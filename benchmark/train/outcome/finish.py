"""Find what a job trains or takes over, and its method as it is tested."""

from dataclasses import replace

import torch

from benchmark.data.dataset import DataSet, prepare
from benchmark.data.devices import data_budget
from benchmark.interface import Method
from benchmark.jobs.job import Job
from benchmark.train.context import Context
from benchmark.train.distributed import Ranks
from benchmark.train.pulse import Pulse
from benchmark.train.trainer import State, Trainer, network_of, trainable


def trained_job(job: Job) -> Job:
    """Return the job whose training ends with the network of a job: itself, or the one that it takes over."""
    averaging = job.task.averaging
    if not job.takes_over:
        return job
    return replace(job.needs[0], averages=(averaging,) if averaging.is_on else ())


def trainer_of(job: Job, context: Context, device: torch.device, ranks: Ranks, pulse: Pulse) -> Trainer:
    """Return the trainer of the training that ends with the network of a job."""
    data = load_data(job, context, device, ranks)
    return Trainer(trained_job(job), context.methods, data, device, ranks, pulse)


def finished_method(job: Job, trainer: Trainer, state: State) -> Method:
    """Return the method of a job at the end of its training, as it is tested."""
    method = state.method if job.stage_epochs else trainer.final_method(state, job.task.averaging)
    if job.method == trainer.job.method:
        return method
    return trainer.make_method(network_of(method), trainable(trainer.methods, job.method), job.config)


def budget_of(context: Context, device: torch.device, ranks: Ranks) -> int:
    """Return how many bytes of images may stay on the device."""
    sharing = context.jobs_per_device * (ranks.size if device.type == "cpu" else 1)
    return data_budget(device, sharing) if context.budget is None else context.budget


def load_data(job: Job, context: Context, device: torch.device, ranks: Ranks) -> DataSet:
    """Return the data of a job. Raise ValueError where they are not those that it was planned with."""
    folders, config = context.folders, job.task.data
    budget = budget_of(context, device, ranks)
    beside = bool(job.outliers_sha256)
    data = prepare(config, folders, job.split_seed, device, budget, False, job.held_out, with_outliers=beside)
    if (data.sha256, data.outliers_sha256) != (job.data_sha256, job.outliers_sha256):
        raise ValueError("the images have changed since this job was planned; run the command again")
    return data
