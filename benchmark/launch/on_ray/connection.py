"""Connect to a Ray cluster, or start one."""

import os
import socket
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

from benchmark.base.errors import Unreachable, UserError, brief
from benchmark.base.program import ROOT
from benchmark.base.signals import raised_termination

CONNECT_SECONDS = 5.0
TOKEN = Path("~/.ray/auth_token")


@contextmanager
def connected(address: str, num_cpus: int | None) -> Iterator[Any]:
    """Yield Ray, connected to its own local cluster (`local`), to that of this machine (`auto`) or to an address."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address.startswith("ray://") and TOKEN.expanduser().is_file():  # by itself Ray uses it only without ray://
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    import ray

    how: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        how |= {"num_cpus": num_cpus, "include_dashboard": False}
    else:
        check_reachable(address)
    try:
        with chdir(ROOT):  # Ray has its workers import from the folder where it is started
            ray.init(**how)
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise no_cluster(address, brief(error)) from None
    try:
        with raised_termination():  # Ray's own answer to SIGTERM would not tell our workers
            yield ray
    except ConnectionError as error:
        raise Unreachable(f"lost the Ray cluster ({brief(error)}); the same command continues from here") from None
    finally:
        ray.shutdown()


def check_reachable(address: str) -> None:
    """Refuse an address that does not answer. Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
        except OSError as error:
            raise no_cluster(address, brief(error)) from None
    elif address != "auto":
        raise UserError(f"--ray {address}: expected nothing, auto, HOST:PORT or ray://HOST:PORT")


def no_cluster(address: str, reason: str) -> UserError:
    return UserError(f"no Ray cluster at '{address}' ({reason}); start one with: ray start --head")
