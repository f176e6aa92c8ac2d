"""Take steps of every method on a small network: are they right, without a wait, and the same again?"""

import copy
from collections.abc import Iterator

import torch

from benchmark.check.harness import EPOCH, Candidate, differing, make_batch, moved, small, step_loss, train
from benchmark.data.devices import forbidden_syncs, has_streams, wait_for
from benchmark.doctor.examination import LeftOut, Patient, Result, Trouble
from benchmark.doctor.made_up import trainable_labels
from benchmark.interface import Method
from benchmark.train.determinism import undetermined_operators
from benchmark.train.trainer import trained_parameters

SMALL_ERROR = 1e-7
"""Largest difference between two ways to sum up in float64."""


def candidates(patient: Patient) -> Iterator[Candidate]:
    for label, name in trainable_labels(patient):
        yield small(patient.methods.get(name), label)


def optimizer_of(method: Method, device: torch.device) -> torch.optim.Optimizer:
    return torch.optim.SGD(trained_parameters(method), lr=0.05, fused=has_streams(device) or None)


def same_as_cpu(patient: Patient) -> Result:
    """Compare a step in float64 without dropout with the CPU's: all that may differ is the order of sums."""
    if not has_streams(patient.device):
        raise LeftOut(f"nothing to compare: {patient.device.type} is the CPU itself, or has no float64")
    worst, random = 0.0, []
    for candidate in candidates(patient):
        ours = train(candidate.make()).double()
        theirs = copy.deepcopy(ours).to(patient.device)
        if draws(ours):
            random.append(candidate.label)
            continue
        losses = [one_step(method) for method in (ours, theirs)]
        error = max(abs(losses[0] - losses[1]), state_error(ours, theirs))
        worst = max(worst, error)
        if not error < SMALL_ERROR:
            raise Trouble(f"after a step of {candidate.label} the state differs from the CPU's by {error:.2g}")
    left_out = f"; {', '.join(random)} draw random numbers on the device, and are left out" if random else ""
    return Result(f"largest difference {worst:.1e}{left_out}", {"largest_difference": worst})


def one_step(method: Method) -> float:
    device = next(method.parameters()).device
    batch = moved(make_batch(method), device, torch.float64)
    return float(step_loss(method, optimizer_of(method, device), batch))


def draws(method: Method) -> bool:
    """Tell whether a step draws random numbers, which other devices draw otherwise."""
    before = torch.default_generator.get_state()
    copy.deepcopy(method).training_step(moved(make_batch(method), torch.device("cpu"), torch.float64), EPOCH)
    return not torch.equal(before, torch.default_generator.get_state())


def state_error(ours: Method, theirs: Method) -> float:
    pairs = zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True)
    return max(float((a - b.cpu()).abs().max()) for a, b in pairs if a.is_floating_point() and a.numel())


def without_syncs(patient: Patient) -> Result:
    """Take three steps of every label in which a wait of the host is an error."""
    device, count, waiting = patient.device, 0, {}
    for candidate in candidates(patient):
        method = candidate.make().to(device).train()
        optimizer, batch = optimizer_of(method, device), moved(make_batch(method), device)
        step_loss(method, optimizer, batch)
        wait_for(device)
        with forbidden_syncs(device) as told:
            if not told:
                raise LeftOut(f"{device.type} cannot tell; `check` looks for them without a device")
            try:
                for index in range(3):
                    step_loss(method, optimizer, batch, index)
            except RuntimeError as error:
                waiting[candidate.label] = str(error)
        count += 1
    if waiting:
        raise Trouble(f"steps of {', '.join(waiting)} wait for the device ({next(iter(waiting.values()))})", waiting)
    return Result(f"three steps each of {count} labels", {"labels": count})


def repeatable(patient: Patient) -> Result:
    """Require that five steps with dropout, taken twice, are equal to the bit."""
    labels: list[str] = []
    operators: set[str] = set()
    with undetermined_operators(operators):
        for candidate in candidates(patient):
            if differing(five_steps(candidate, patient.device), five_steps(candidate, patient.device)):
                labels.append(candidate.label)
    warned = f"; without a deterministic version: {', '.join(sorted(operators))}" if operators else ""
    if labels:
        raise Trouble(f"five steps of {', '.join(labels)} differ when they are repeated{warned}")
    return Result(f"five steps of every label twice, equal to the bit{warned}", {"operators": sorted(operators)})


def five_steps(candidate: Candidate, device: torch.device) -> dict[str, torch.Tensor]:
    method = candidate.make(dropout=0.5).to(device).train()
    optimizer = optimizer_of(method, device)
    for index in range(5):
        step_loss(method, optimizer, moved(make_batch(method, start=7 * (index % 4)), device), index)
    return method.state_dict()
