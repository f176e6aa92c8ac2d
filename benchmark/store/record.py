"""Read from a record what its run cost, and whether it is of an older version. Needs no torch."""

from typing import Any

HOSTS = (", cpu,", ", mps,")
"""Parts of the environment of a run whose tensors lay in the memory of its process."""


def peak_bytes(provenance: dict[str, Any]) -> int | None:
    """Return the most memory that the tensors of a run took on a GPU at a time; None for a run without GPU.

    There, older records give the memory of the whole process, which depends on the jobs it ran before.
    """
    on_host = any(host in environment for environment in provenance.get("environments", ()) for host in HOSTS)
    return None if on_host else provenance.get("peak_bytes") or None


def is_older_record(record: dict[str, Any]) -> bool:
    """Tell whether a record was made before there were seals, which came with the codes in the provenance."""
    return "identity" in record and "codes" not in record.get("provenance", {})
