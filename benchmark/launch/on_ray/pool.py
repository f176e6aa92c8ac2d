"""Run jobs on a Ray cluster. Ray places them and says when they ended; the store says what is finished."""

import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from benchmark.base.errors import Unreachable, UserError, brief
from benchmark.base.files import HOST, say
from benchmark.base.prefetch import cores
from benchmark.data.devices import default_device
from benchmark.jobs.code_version import core_hash
from benchmark.jobs.job import Job
from benchmark.launch.on_ray.attempts import Attempts, workplace
from benchmark.launch.queue import POLL_SECONDS, Asked, Event, Kind, Waiting
from benchmark.launch.supervise import outcome
from benchmark.launch.workers import RetryPolicy, printed_to
from benchmark.store.mirror import Mirror, tolerate_outage
from benchmark.store.store import LOG
from benchmark.train.context import Context

Report = tuple[str, Kind, dict[str, Any]]
"""Attempt, kind and values of an event."""
MORE = 4
SILENT_SECONDS = 60.0
NODE_WORDS = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
"""What Ray calls on a node what a task asks for."""


class Board:
    """A Ray actor to which workers report, and which tells them whether a person wants to stop."""

    def __init__(self) -> None:
        self.events: list[Report] = []
        self.stopping = False

    def tell(self, attempt: str, kind: Kind, values: dict[str, Any]) -> bool:
        self.events.append((attempt, kind, values))
        return self.stopping

    def drain(self, stopping: bool) -> list[Report]:
        found, self.events, self.stopping = self.events, [], stopping
        return found


def run_attempt(job: Job, context: Context, attempt: str, code: list[str], board: Any) -> tuple[str, dict[str, Any]]:
    """Run a job in a worker of Ray's. Return how it ended, and the reason."""
    import ray

    place: Any = ray.get_runtime_context()
    assigned = place.get_assigned_resources()
    device = default_device() if "GPU" in assigned else "cpu"
    sharing = 1 / assigned["GPU"] if "GPU" in assigned else cores() / assigned["CPU"]
    context = replace(context, jobs_per_device=max(1, int(sharing)))
    report_event(board, attempt, "started", {})
    if code != code_of(job, context):
        return "failed", {"reason": f"{HOST} has another version of the code; install the same on every node"}
    stopping = False
    with workplace(job, context, attempt) as (context, send), printed_to(context.store.root / job.folder / LOG):

        def watch(event: Event) -> None:
            nonlocal stopping
            if event.kind != "step":
                with suppress(Unreachable):  # it goes with the next
                    send()
            stopping = report_event(board, attempt, event.kind, event.values)

        event = outcome(job, context, device, watch, lambda: stopping)
        send()
    if context.url and event.values.get("no_room"):  # only here
        return event.kind, {"reason": f"{event.values['reason']} (on {HOST})"}
    return event.kind, event.values


def report_event(board: Any, *event: Any) -> bool:
    """Report an event; return whether to stop. `ray.get` would give this task's cores to another while it waits."""
    return bool(board.tell.remote(*event).future().result())


def code_of(job: Job, context: Context) -> list[str]:
    return [core_hash(), context.methods.code_hash(job.method)]


@dataclass
class Running:
    job: Job
    attempt: str
    claim: ExitStack
    started: bool = False
    """Before, it waits for room in the cluster."""


@dataclass
class RayPool:
    """Submits jobs that are ready, and publishes those that have ended."""

    ray: Any
    context: Context
    waiting: Waiting
    asked: Asked
    retries: int = 0
    gpus: bool = True
    """Whether to use those that the cluster has."""
    mirror: Mirror | None = None
    running: dict[Any, Running] = field(default_factory=dict)
    ended: list[tuple[Running, Event]] = field(default_factory=list)
    """What is not published yet."""

    def __post_init__(self) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # The board lies on the node of this process, which outlives every other.
        here = NodeAffinitySchedulingStrategy(self.ray.get_runtime_context().get_node_id(), soft=False)
        self.board = self.ray.remote(num_cpus=0, scheduling_strategy=here)(Board).remote()
        self.nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        self.has_gpus = self.gpus and any(node.get("GPU", 0) for node in self.nodes)
        self.attempts = Attempts(self.context.store, self.mirror)
        self.retry_policy = RetryPolicy(self.context, self.waiting, self.retries)
        self.task = self.ray.remote(max_retries=0)(run_attempt)
        self.moved = time.monotonic()

    def run(self) -> None:
        self.check_fits()
        self.attempts.recover()
        try:
            while self.waiting.jobs or self.running or self.ended:
                self.turn()
        finally:
            self.stop()

    def turn(self) -> None:
        stopping = self.asked()
        if stopping and not self.running:
            raise KeyboardInterrupt
        if stopping:
            self.recall()
        else:
            self.submit()
        ready, _ = self.ray.wait(list(self.running), timeout=POLL_SECONDS) if self.running else ([], [])
        self.listen(stopping)
        self.ended += [self.outcome(self.running.pop(reference), reference) for reference in ready]
        self.publish_ended()
        self.look_for_room()
        if not self.running:
            time.sleep(POLL_SECONDS)  # for what another process does

    def submit(self) -> None:
        """Submit ready jobs in their order, not many more than can run: a job that waits is claimed all the same."""
        room = int(self.ray.cluster_resources().get("CPU", 0))
        while len(self.running) < 2 * room + MORE and (job := self.waiting.take()) is not None:
            claim = ExitStack()
            if not claim.enter_context(self.context.store.claim(job.folder)):
                claim.close()
                self.waiting.handle(Event("busy", job))
                continue
            attempt = ""
            with tolerate_outage():
                attempt = self.attempts.begin(job)
            if not attempt:
                claim.close()
                self.waiting.postpone(job, SILENT_SECONDS)
                return
            task = self.task.options(**self.resources(job))
            reference = task.remote(job, self.context, attempt, code_of(job, self.context), self.board)
            self.running[reference] = Running(job, attempt, claim)

    def recall(self) -> None:
        """Cancel the attempts that have not begun."""
        for reference, running in list(self.running.items()):
            if not running.started:
                del self.running[reference]
                self.ray.cancel(reference, force=True)
                with tolerate_outage():
                    self.release(running)
                self.waiting.handle(Event("stopped", running.job))

    def resources(self, job: Job) -> dict[str, Any]:
        """Return the resources that Ray is to reserve for a job."""
        wanted, ranks = job.task.resources, 1 if job.needs else self.context.gpus_per_job
        found: dict[str, Any] = {"num_cpus": ranks * (wanted.cpus or job.task.threads)}
        if self.has_gpus and wanted.gpus:
            found["num_gpus"] = wanted.gpus if ranks == 1 else ranks
        if wanted.memory_gb:
            found["memory"] = int(wanted.memory_gb * 1e9)
        return found

    def check_fits(self) -> None:
        """Refuse a job that no node can hold: it would wait for ever."""
        for job in {(job.task.name, bool(job.needs)): job for job in self.waiting.jobs}.values():
            if job.task.sync_batchnorm and self.context.gpus_per_job > 1 and not self.has_gpus:
                raise UserError(f"sync_batchnorm of {job.task.name} needs GPUs, and the cluster has none")
            needed = {NODE_WORDS[name]: amount for name, amount in self.resources(job).items()}
            if not any(all(node.get(name, 0) >= amount for name, amount in needed.items()) for node in self.nodes):
                text = ", ".join(f"{amount:g} {name}" for name, amount in needed.items())
                raise UserError(
                    f"a job of {job.task.name} needs {text}, and no node of the cluster has that; lower the task's "
                    "[resources], e.g. --set resources.cpus=1, or --gpus-per-job"
                )

    def listen(self, stopping: bool) -> None:
        """Handle the events of attempts that still count."""
        current = {running.attempt: running for running in self.running.values()}
        for attempt, kind, values in self.ray.get(self.board.drain.remote(stopping)):
            if attempt in current:
                job, current[attempt].started = current[attempt].job, True
                if values.get("epochs_done") in job.snapshots:
                    with tolerate_outage():
                        self.attempts.publish_snapshots(attempt, job)
                self.waiting.handle(Event(kind, job, values))

    def outcome(self, running: Running, reference: Any) -> tuple[Running, Event]:
        """Return an attempt with the way it ended."""
        try:
            kind, values = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            kind, values = "failed", {"reason": brief(error.cause), "died": True}
        except self.ray.exceptions.RayError as error:
            kind, values = "failed", {"reason": f"its worker was lost ({type(error).__name__})", "died": True}
        return running, Event(kind, running.job, values)

    def publish_ended(self) -> None:
        """Publish what ended attempts have left, however they ended, and release their jobs."""
        for running, event in list(self.ended):
            with tolerate_outage():
                self.release(running)
                self.ended.remove((running, event))
                self.pass_on(event)

    def pass_on(self, event: Event) -> None:
        """Pass on how a job ended. One that is done without a record has written where this process cannot read."""
        job, store = event.job, self.context.store
        if event.kind == "done" and not job.until and not store.has_record(job.folder):
            reason = f"it left no result in '{store.root}'; let all nodes share that folder, or use a URL"
            event = Event("failed", job, {"reason": reason})
        self.retry_policy.handle(event)

    def look_for_room(self) -> None:
        """Say so when no job can begin: Ray itself waits in silence for a node that may never come."""
        if self.ended or not self.running or any(running.started for running in self.running.values()):
            self.moved = time.monotonic()
        elif time.monotonic() - self.moved > SILENT_SECONDS:
            self.moved = time.monotonic()
            say(f"no node of the cluster has room for {next(iter(self.running.values())).job.name}; waiting")

    def release(self, running: Running) -> None:
        """Publish what an attempt has left, and give up the claim on its job."""
        self.attempts.publish(running.attempt)
        if running.job.folder not in self.context.awaited:
            self.context.store.tidy(running.job.folder)
        running.claim.close()

    def stop(self) -> None:
        for reference in self.running:
            with suppress(Exception):
                self.ray.cancel(reference, force=True)
        for running in (*self.running.values(), *(running for running, _ in self.ended)):
            with tolerate_outage():
                self.release(running)
