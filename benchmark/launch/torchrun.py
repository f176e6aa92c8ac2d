"""Run a job on several ranks, started by torchrun in a process that lives as long as the job.

The process that runs the job receives what the first rank reports, and answers. If any of them dies, all end.
"""

import copy
import faulthandler
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from benchmark.base.prefetch import watch_parent
from benchmark.data.devices import BACKENDS, enter, has_streams
from benchmark.jobs.job import Job
from benchmark.store.store import LOG
from benchmark.train.context import Context
from benchmark.train.distributed import Team
from benchmark.train.pulse import Interrupted, Report, silent
from benchmark.train.run_job import run_job
from benchmark.train.trainer import Diverged

SILENCE = timedelta(minutes=10)
"""How long a rank waits for another that has stopped without dying."""
SECONDS_TO_BE_ENDED = 3.0
SECONDS_TO_END = 20.0


class RankLost(RuntimeError):
    """One of the processes that computed a job together is gone, and so are the others."""


class RemoteTraceback(Exception):
    """The traceback of another process: the cause of what is raised here in its place."""


@dataclass(frozen=True)
class Ended:
    """The last word of the first rank, or of another that failed."""

    error: Exception | None = None
    text: str = ""

    def is_common(self) -> bool:
        """Tell whether all ranks have come to this end."""
        return self.error is None or isinstance(self.error, (Interrupted, Diverged))


@dataclass(frozen=True)
class Lost:
    """How the process of a rank ended, and whether something ended it from outside."""

    reason: str
    died: bool


def run_on_ranks(job: Job, context: Context, device: torch.device, report: Report, *, beat: Report = silent) -> None:
    """Run a job as `run_job` does, but on several ranks: on this device and those that follow. May raise RankLost."""
    ended, lost = None, None
    with started(job, context) as connection, suppress(EOFError, ConnectionError):
        connection.send((job, context, device))
        while True:
            message = connection.recv()
            if isinstance(message, Ended):
                ended = ended or message  # others fail because one has failed
            elif isinstance(message, Lost):
                lost = message
            else:
                is_beat, values = message
                connection.send(bool((beat if is_beat else report)(values)))
    if ended is None or (lost is not None and lost.died and not ended.is_common()):
        raise RankLost(lost.reason if lost else "its ranks ended without a word")
    if ended.error is not None:
        raise ended.error from (RemoteTraceback(ended.text) if ended.text else None)


@contextmanager
def started(job: Job, context: Context) -> "Iterator[Connection[Any, Any]]":
    """Start the process that starts the ranks, in its own session that no Ctrl-C reaches. It ends with this one."""
    ours, theirs = Pipe()
    log = context.store.root / job.folder / LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {__name__} import agent; agent()", str(theirs.fileno())],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        try:
            process.communicate(timeout=SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def agent() -> None:
    """Start the ranks and watch over them: all that their parent process does."""
    threading.Thread(target=end_with_input, daemon=True).start()
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    job, context, device = connection.recv()
    with TemporaryDirectory() as folder:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=context.gpus_per_job,
            logs_specs=DefaultLogsSpecs(folder),
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            local_addr="localhost",
            max_restarts=0,
        )
        try:
            elastic_launch(config, be_rank)(connection, job, context, device)
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            reason = f"rank {rank} of {context.gpus_per_job} {how_it_ended(failure)}"
            connection.send(Lost(reason, died=failure.exitcode < 0))


def end_with_input() -> None:
    """End this process, and so the ranks, when the one that started it closes its input."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def how_it_ended(failure: ProcessFailure) -> str:
    if failure.exitcode >= 0:
        return f"failed: {' '.join(failure.message.split())}"
    lack = "; perhaps for lack of memory" if failure.exitcode == -signal.SIGKILL else ""
    return f"died ({failure.signal_name()}{lack})"


def be_rank(connection: "Connection[Any, Any]", job: Job, context: Context, first: torch.device) -> None:
    """Run the job as one of its ranks: all that a rank process does."""
    watch_parent()
    faulthandler.enable()
    ranks = Team(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    device = first
    if has_streams(first):
        device = enter(torch.device(first.type, (first.index or 0) + ranks.rank))
    dist.init_process_group(BACKENDS[first.type], timeout=SILENCE)

    def tell(is_beat: bool, values: dict[str, Any]) -> object:
        if ranks.is_first:
            connection.send((is_beat, values))
        return ranks.is_first and connection.recv()

    ended = Ended()
    try:
        context = replace(context, read_only=not ranks.is_first)
        run_job(job, context, device, partial(tell, False), ranks, beat=partial(tell, True))
    except Exception as error:
        ended = Ended(sendable(error), f"rank {ranks.rank} of {ranks.size}: {traceback.format_exc()}")
    if ranks.is_first or not ended.is_common():
        connection.send(ended)
    if not ended.is_common():
        # Where another has died, and this one fails because of it, that one is to be noticed first.
        time.sleep(SECONDS_TO_BE_ENDED)
        raise RuntimeError(" ".join(f"{type(ended.error).__name__}: {ended.error}".split())) from ended.error
    leave_group()


def leave_group() -> None:
    """End the process group. First free what holds it in a circle: its threads would abort the ending process."""
    gc.collect()
    dist.destroy_process_group()


def sendable(error: Exception) -> Exception:
    """Return the error itself, or its text where the process that receives it may not know its class."""
    with suppress(Exception):  # copying takes it apart and puts it together, as sending does
        if type(error).__module__.partition(".")[0] in ("benchmark", "builtins", "torch"):
            return copy.copy(error)
    return RuntimeError(f"{type(error).__name__}: {error}")
