"""Every method of the registry through the battery of `check`; and the battery against methods that break it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from benchmark.check.checks import Broken, checks_for, examine
from benchmark.check.harness import Candidate, small
from benchmark.check.sync_guard import HostSync, no_host_syncs
from methods import Registry
from tests.conftest import run_all

REGISTRY = Registry()


CANDIDATES = [small(REGISTRY.get(name), label) for name in REGISTRY.names() for label in REGISTRY.get(name).labels]
CASES = [
    pytest.param(candidate, check, id=f"{candidate.label}: {name}")
    for candidate in CANDIDATES
    for name, check in checks_for(candidate.method).items()
    if name != "cost of a step"  # a remark that cannot fail
]


@pytest.mark.parametrize(("candidate", "check"), CASES)
def test_contract(candidate: Candidate, check: Callable[[Candidate], object]) -> None:
    check(candidate)


GOOD = '''
"""A method that keeps the contract."""
import torch
from torch.nn.functional import cross_entropy
from benchmark.interface import Method, Prediction, Step

class Mine(Method):
    title, reference, labels = "mine", "me 2026", {"Mine": {}}

    def __init__(self, network, task, config):
        super().__init__(network, task, config)
        self.register_buffer("seen", torch.zeros(()))
        self.hidden_state = 0.0

    def training_step(self, batch, progress):
        logits, _ = self.network(batch.images)
        loss = cross_entropy(logits, batch.labels)
        return Step(loss)

    def after_step(self, batch, carry, progress):
        self.seen.add_(len(batch.labels))

METHOD = Mine
'''

BREACHES = {
    "refuses unknown": ('"me 2026"', '"me"'),
    "finite and reach": ("return Step(loss)", "return Step(loss * float('nan'))"),
    "whole network": ("return Step(loss)", "return Step(loss.detach() + 0 * self.network.head.weight.sum())"),
    "writes no state": ("return Step(loss)", "self.seen += 1; return Step(loss)"),
    "equal to the bit": ("return Step(loss)", "import random; return Step(loss * random.random())"),
    "whole state": ("return Step(loss)", "self.hidden_state += 1.0; return Step(loss * self.hidden_state)"),
    "predictions wrong": ("return Step(loss)", "return Step(torch.log(1 - torch.softmax(logits, 1).amax(1)).mean())"),
    "odd small": ("return Step(loss)", "assert len(logits) > 3; return Step(loss)"),
    "order within": ("return Step(loss)", "return Step(loss + logits[0, 0])"),
    "only if declared": ("return Step(loss)", "return Step(loss + logits.std())"),
    "host sync": ("return Step(loss)", "return Step(loss if loss.item() < 1e9 else 0 * loss)"),
    "host sync ": ("return Step(loss)", "return Step(loss * torch.tensor([1.0], device=logits.device).sum())"),
    " host sync": ("return Step(loss)", "return Step(loss + 0 * torch.arange(5).to(logits.device).sum())"),
    "K logits": ("METHOD =", "Mine.predict = lambda self, x: Prediction(self.network(x)[1])\nMETHOD ="),
    "for itself": ("METHOD =", "Mine.predict = lambda self, x: Prediction(self.network(x)[0] * x.mean())\nMETHOD ="),
    "one per image": ("METHOD =", "Mine.scores = staticmethod(lambda p: {'SR': p.logits})\nMETHOD ="),
    "more confident": ("METHOD =", "Mine.scores = staticmethod(lambda p: {'SR': -p.logits.max(1)})\nMETHOD ="),
    "health": ("METHOD =", "Mine.health = lambda self: {'bad': torch.ones(2)}\nMETHOD ="),
    "whole state ": ("METHOD =", """
def after_epoch(self, progress, validation):
    self.hidden_state += 1.0
    self.factor = 1 + self.hidden_state
Mine.after_epoch, Mine.factor = after_epoch, 1.0
step = Mine.training_step
Mine.training_step = lambda self, b, p: Step(step(self, b, p).loss * self.factor)
METHOD ="""),
    "K logits ": ("METHOD =", """
Mine.predict = lambda self, x: (self.seen.add_(1), Prediction(self.network(x)[0]))[1]
METHOD ="""),
    "more confident ": ("METHOD =", "Mine.scores = staticmethod(lambda p: {'SR': 0 * p.logits.max(1)})\nMETHOD ="),
}  # fmt: skip


def mine(tmp_path: Path, text: str) -> Candidate:
    plugin = tmp_path / "mine.py"
    plugin.write_text(text)
    return Candidate(Registry((plugin,)).get("mine"), "Mine")


def test_a_good_method_passes_all_checks(tmp_path: Path) -> None:
    assert all(finding.holds for finding in examine(mine(tmp_path, GOOD)))


@pytest.mark.parametrize("breach", BREACHES)
def test_each_breach_is_found(tmp_path: Path, breach: str) -> None:
    old, new = BREACHES[breach]
    candidate = mine(tmp_path, GOOD.replace(old, new))
    check = next(check for name, check in checks_for(candidate.method).items() if breach.strip() in name)
    with pytest.raises((Broken, AssertionError, HostSync, RuntimeError)):
        check(candidate)


ALLOWED = {
    "a loss on the head": ("return Step(loss)", "return Step(loss + self.network.head.weight.square().sum())"),
    "a scale-free score": ("METHOD =", """
def pnorm(p):
    centred = p.logits - p.logits.mean(1, keepdims=True)
    return {"p": centred.max(1) / (abs(centred) ** 3).sum(1) ** (1 / 3)}
Mine.scores = staticmethod(pnorm)
METHOD ="""),
    "mixup": ("loss = cross_entropy(logits, batch.labels)", """
        mixed, _ = self.network((batch.images + batch.images.roll(1, 0)) / 2)
        loss = cross_entropy(logits, batch.labels) + cross_entropy(mixed, batch.labels.roll(1, 0))"""),
    "two columns of doubt": ("METHOD =", """
def predict(self, x):
    logits, _ = self.network(x)
    return Prediction(logits, None, {"both": torch.stack([-logits.amax(1).exp(), 2 - logits.amax(1)], 1).exp()})
Mine.predict = predict
Mine.scores = staticmethod(lambda p: {"own": -(p.aux["both"].sum(1) ** 0.5)})
METHOD ="""),
}  # fmt: skip


@pytest.mark.parametrize("what", ALLOWED)
def test_no_false_alarm(tmp_path: Path, what: str) -> None:
    old, new = ALLOWED[what]
    text = GOOD.replace(old, new).replace("title, ref", "couples_samples = True\n    title, ref")
    assert not [finding for finding in examine(mine(tmp_path, text)) if not finding.holds]


def test_a_key_encoder_that_a_step_moves_is_found(tmp_path: Path) -> None:
    text = GOOD.replace(
        "self.hidden_state = 0.0", "import copy; self.key = copy.deepcopy(network).requires_grad_(False)"
    )
    candidate = mine(tmp_path, text.replace("return Step(loss)", "self.key(batch.images); return Step(loss)"))
    with pytest.raises(Broken, match="training_step changes key"):
        checks_for(candidate.method)["training_step writes no state"](candidate)


@pytest.mark.parametrize("breach", ["host sync", "host sync ", " host sync"])
def test_a_sync_is_named_with_its_line(tmp_path: Path, breach: str) -> None:
    old, new = BREACHES[breach]
    candidate = mine(tmp_path, GOOD.replace(old, new))
    with pytest.raises(Broken, match=r"mine\.py, line 18: return Step"):
        checks_for(candidate.method)["no host sync in a step (meta device)"](candidate)


def test_the_command(tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(GOOD)
    good = run_all("check", plugin)
    assert good.returncode == 0, good.stderr
    assert good.stdout.count("holds ") == 1 + len(checks_for(REGISTRY.get("mmce")))
    plugin.write_text(GOOD.replace("title, ref", "starts_from = 'cross_entrpy'\n    title, ref"))
    assert "FAILS  can be planned: unknown method that Mine needs" in run_all("check", plugin).stdout
    plugin.write_text(GOOD.replace(*BREACHES["host sync"]))
    bad = run_all("check", plugin)
    assert bad.returncode == 1
    assert "FAILS  no host sync in a step (meta device)" in bad.stdout
    assert "Traceback" not in bad.stderr
    built_in = run_all("check", "deep-ensemble")
    assert built_in.returncode == 0
    assert "the contract holds" in built_in.stdout


def mask_assignment(values: Tensor) -> None:
    values[values > 0] = values[:1]


SYNCING = {
    "item": lambda t: t.sum().item(),
    "mask": lambda t: t[t > 0],
    "branch": lambda t: bool(t.sum() > 0),
    "mask assignment": mask_assignment,
    "index from the host": lambda t: t[torch.tensor([0, 1])],
    "nonzero": lambda t: t.nonzero(),
    "count": lambda t: t.long().bincount(),
    "values": lambda t: torch.tensor([1.0, 2.0], device=t.device),
    "one value": lambda t: torch.tensor(1.0, device=t.device),
    "values in other words": lambda t: torch.as_tensor([1.0], device=t.device),
    "values like": lambda t: t.new_tensor([1.0]),
    "copy": lambda t: torch.arange(4).to(t.device),
    "copy into": lambda t: t.copy_(torch.arange(4)),
}
SILENT = {
    "made there": lambda t: torch.full((4,), 2.0, device=t.device) + torch.arange(4, device=t.device),
    "a number": lambda t: 2.0 * t.clamp(min=0.5).masked_fill(t > 0, 1.0),
    "written": lambda t: t.fill_(1.0)[0].fill_(2.0),
    "there already": lambda t: torch.as_tensor(t, device=t.device).to(torch.float64),
}


@pytest.mark.parametrize("what", SYNCING)
def test_the_guard_itself_notices(what: str) -> None:
    values = torch.empty(4, device="meta")
    with pytest.raises((HostSync, RuntimeError, NotImplementedError)), no_host_syncs():
        SYNCING[what](values)


@pytest.mark.parametrize("what", SILENT)
def test_the_guard_lets_pass_what_needs_no_wait(what: str) -> None:
    with no_host_syncs():
        SILENT[what](torch.empty(4, device="meta"))
