"""What a record says of the cost of its run. Needs no torch."""

from typing import Any

HOSTS = (", cpu,", ", mps,")
"""In the environment of a run that shared the memory of its process."""


def peak_bytes(provenance: dict[str, Any]) -> int | None:
    """The most that the tensors of a run took on a GPU at a time.

    None elsewhere: what older records give there is what the process held, and that is its history with other jobs.
    """
    on_host = any(host in environment for environment in provenance.get("environments", ()) for host in HOSTS)
    return None if on_host else provenance.get("peak_bytes") or None
