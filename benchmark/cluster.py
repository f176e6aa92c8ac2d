"""The same jobs on a Ray cluster. Ray places work and says when it ended; what is finished, the store says."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from benchmark.attempts import Attempt, recover
from benchmark.errors import UserError
from benchmark.jobs import Job
from benchmark.launch import POLL_SECONDS, Asked, Event, Waiting, outcome
from benchmark.pool import Mourning, printed_to
from benchmark.runner import Context
from benchmark.store import LOG

NODE_WORDS = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
"""What Ray calls on a node what a task asks for."""


@contextmanager
def connected(address: str, workers: int | None) -> Iterator[Any]:
    """Ray: a local one of its own (`local`), a cluster of this machine (`auto`) or one at an address."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise UserError('--ray needs Ray, which is not installed: pip install -e ".[ray]"') from None
    how: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    how |= {"num_cpus": workers, "include_dashboard": False} if address == "local" else {"address": address}
    try:
        ray.init(**how)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"no Ray cluster at '{address}' ({reason}); start one with: ray start --head") from None
    try:
        yield ray
    finally:
        ray.shutdown()


class Board:
    """Where workers report, and where they read whether a person wants to stop; an actor of Ray's."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.stopping = False

    def tell(self, attempt: str, values: dict[str, Any]) -> bool:
        self.events.append((attempt, values))
        return self.stopping

    def drain(self, stopping: bool) -> list[tuple[str, dict[str, Any]]]:
        found, self.events, self.stopping = self.events, [], stopping
        return found


def run_attempt(job: Job, context: Context, attempt: str, board: Any) -> tuple[str, dict[str, Any]]:
    """In a worker of Ray's: returns the word for how it ended, and the reason."""
    import ray
    import torch

    device = "cuda:0" if ray.get_gpu_ids() and torch.cuda.is_available() else "cpu"
    stopping = [False]

    def watch(event: Event) -> None:
        stopping[0] = ray.get(board.tell.remote(attempt, event.values))

    with printed_to(context.store.root / job.folder / LOG):
        event = outcome(job, context, device, watch, lambda: stopping[0])
    return event.kind, event.values


@dataclass
class Running:
    attempt: Attempt
    claim: ExitStack


@dataclass
class RayPool:
    """Submits what is ready, and publishes what has ended."""

    ray: Any
    context: Context
    waiting: Waiting
    asked: Asked
    retries: int = 0
    running: dict[Any, Running] = field(default_factory=dict)

    def run(self) -> None:
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        check_fits(self.waiting.jobs, nodes)
        self.has_gpus = any(node.get("GPU", 0) for node in nodes)
        recover(self.context.store)
        self.board = self.ray.remote(num_cpus=0)(Board).remote()
        self.task = self.ray.remote(max_retries=0)(run_attempt)
        self.mourning = Mourning(self.context, self.waiting, self.retries)
        try:
            while self.waiting.jobs or self.running:
                self.turn()
        finally:
            self.stop()

    def turn(self) -> None:
        stopping = self.asked()
        if stopping and not self.running:
            raise KeyboardInterrupt
        if not stopping:
            self.submit()
        ready, _ = self.ray.wait(list(self.running), timeout=POLL_SECONDS) if self.running else ([], [])
        self.listen(stopping)
        for reference in ready:
            self.settle(reference)

    def submit(self) -> None:
        while (job := self.waiting.take()) is not None:
            claim = ExitStack()
            if not claim.enter_context(self.context.store.claim(job.folder)):
                claim.close()
                self.waiting.hear(Event("busy", job))
                continue
            attempt = Attempt(self.context.store, job)
            context = replace(self.context, results=attempt.root, base=self.context.results)
            reference = self.task.options(**resources(job, self.has_gpus)).remote(job, context, attempt.id, self.board)
            self.running[reference] = Running(attempt, claim)
            self.waiting.hear(Event("started", job))

    def listen(self, stopping: bool) -> None:
        """Epochs, as far as they belong to attempts that still count."""
        current = {running.attempt.id: running.attempt for running in self.running.values()}
        for name, values in self.ray.get(self.board.drain.remote(stopping)):
            if name in current:
                current[name].publish_snapshots()
                self.waiting.hear(Event("epoch", current[name].job, values))

    def settle(self, reference: Any) -> None:
        running = self.running.pop(reference)
        job = running.attempt.job
        try:
            kind, values = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            running.attempt.publish()
            running.claim.close()
            self.mourning.mourn(job, f"its worker was lost ({type(error).__name__})")
            return
        running.attempt.publish()
        running.claim.close()
        self.waiting.hear(Event(kind, job, values))

    def stop(self) -> None:
        for reference, running in self.running.items():
            with suppress(Exception):
                self.ray.cancel(reference, force=True)
            running.attempt.publish()
            running.claim.close()


def resources(job: Job, has_gpus: bool) -> dict[str, Any]:
    """What Ray is to set aside for a job."""
    wanted = job.task.resources
    found: dict[str, Any] = {"num_cpus": wanted.cpus or job.task.threads}
    if has_gpus and wanted.gpus:
        found["num_gpus"] = wanted.gpus
    if wanted.memory_gb:
        found["memory"] = int(wanted.memory_gb * 1e9)
    return found


def check_fits(jobs: Iterable[Job], nodes: Sequence[dict[str, float]]) -> None:
    """A job that no node can hold would wait for ever."""
    has_gpus = any(node.get("GPU", 0) for node in nodes)
    for job in {job.task.name: job for job in jobs}.values():
        needed = {NODE_WORDS[name]: amount for name, amount in resources(job, has_gpus).items()}
        if not any(all(node.get(name, 0) >= amount for name, amount in needed.items()) for node in nodes):
            text = ", ".join(f"{amount:g} {name}" for name, amount in needed.items())
            raise UserError(
                f"no node of the cluster has {text}, which a job of {job.task.name} takes; lower its [resources], "
                "e.g. --set resources.cpus=1"
            )
