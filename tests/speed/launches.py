"""`python -m tests.speed.launches`: how many operators a batch and its step ask of a GPU. They may only become fewer.

Counted on the simulated accelerator, for the network of cifar100. A real GPU is asked for the same, in other kernels.
"""

import sys

import torch
from tabulate import tabulate

from benchmark.config.load import load_task
from benchmark.data.devices import enter
from benchmark.data.sources import describe
from benchmark.doctor.examination import Patient
from benchmark.doctor.launches import Launches
from benchmark.doctor.made_up import job_of, noise, own_phase, trainable_labels
from benchmark.forecast.step_times import endless_steps
from benchmark.train.trainer import Trainer
from methods import Registry
from tests.device import load
from tests.speed.timing import Row, missed

BATCH = 4
"""The number of images changes nothing."""
MOST = {
    "AdaFocal": 210,
    "AUCOC": 274,
    "CCL-SC": 374,
    "CCL-SC unweighted": 373,
    "CCL-SC2": 390,
    "CCL-SC3": 439,
    "CCL-SC+SupCon": 400,
    "CCL-SC frozen": 377,  # one of them keeps the weights from before the step
    "CCL-SC released": 398,
    "CCL-SC+SAT+EM": 423,
    "SR": 168,
    "DG": 197,
    "Focal": 196,
    "Adaptive Focal": 199,
    "MMCE": 242,
    "SelectiveNet": 234,
    "SAT": 215,
    "SAT+EM": 215,
    "Soft AvUC": 261,
    "Soft ECE": 235,
    "CRL": 206,
    "LogitNorm": 186,
    "OpenMix": 212,
    "TAL": 241,
    "TAL released": 248,
    "AURC loss": 183,
    "Label smoothing": 185,
}
"""Operators by label. Before uploads were one parcel, optimisers fused and batches not counted: SR 186, SAT+EM 240,
CCL-SC 423."""


def counted(label: str, device: torch.device) -> int:
    """Of the second batch and step of a method's own phase."""
    patient = Patient(device, Registry())
    task = load_task("cifar100", [f"batch_size={BATCH}", "channels_last=true", "data.val=0.1"])
    data = noise(4 * BATCH, describe(task.data), device)
    trainer = Trainer(job_of(task, label, patient), patient.methods, data, device)
    state = own_phase(trainer)
    state.method.train()
    steps = endless_steps(trainer, state)
    next(steps)
    with Launches(device.type) as launches:
        next(steps)
    return launches.counts.total()


def rows(device: torch.device) -> list[Row]:
    labels = [label for label, _ in trainable_labels(Patient(device, Registry()))]
    return [[label, str(counted(label, device)), f"≤ {MOST[label]}"] for label in labels]


def main() -> None:
    load()
    found = rows(enter(torch.device("sim")))
    print(tabulate(found, ["a batch and step of", "operators", "bar"], tablefmt="pipe", disable_numparse=True))
    sys.exit(any(map(missed, found)))


if __name__ == "__main__":
    main()
