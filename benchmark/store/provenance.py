"""Define what a record says of the making of its run: where, when, by what; or where it was imported from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

HOSTS = (", cpu,", ", mps,")
"""Parts of the environment of a run whose tensors lay in the memory of its process."""


@dataclass(frozen=True)
class Timed:
    """Seconds that something took on a kind of device, by name of the part."""

    device: str
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Branch:
    """The shared warm-up that a training began with."""

    job: str
    epoch: int


@dataclass(frozen=True)
class Imported:
    """Where the predictions of a run come from that was made elsewhere."""

    file: str
    """Its name without folders; or what brought them, if that was a program."""
    sha256: str
    """Of the file; of its arrays, if a program brought them."""
    given: str
    """Which numbers it has: logits, log_probabilities, probabilities, predicted or loss."""
    normalised: bool = False
    """Whether its probabilities were divided by their sum."""


@dataclass(frozen=True)
class Provenance:
    """Where, when and by what a run was made. What older records do not say is None or empty."""

    commit: str | None = None
    python: str | None = None
    platform: str | None = None
    libraries: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None
    epochs_seconds: float = 0.0
    environments: Sequence[str] = ()
    """Machines and torch, one for each kind that had a part in it."""
    codes: Sequence[str] | None = None
    """Hashes of the code that decided its predictions."""
    weights_kept: bool = False
    undetermined_operators: Sequence[str] = ()
    peak_bytes: int | None = None
    ranks: int = 1
    step_seconds: Timed | None = None
    outside_seconds: Timed | None = None
    branched_off: Branch | None = None
    imported: Imported | None = None
    """None for a run that was trained here."""

    @property
    def origin(self) -> str:
        """Return the commit that made it, or the file that it was imported from."""
        return f"imported from {self.imported.file}" if self.imported else self.commit or "unknown"

    @property
    def peak_on_gpu(self) -> int | None:
        """Return the most memory that the tensors of a run took on a GPU at a time; None for a run without GPU.

        There, older records give the memory of the whole process, which depends on the jobs it ran before.
        """
        on_host = any(host in environment for environment in self.environments for host in HOSTS)
        return None if on_host else self.peak_bytes or None


def read_provenance(plain: Mapping[str, Any]) -> Provenance:
    known = {name: plain[name] for name in PROVENANCE if name in plain}
    for name in ("step_seconds", "outside_seconds"):
        if name in known:
            seconds = dict(known[name])
            known[name] = Timed(seconds.pop("device"), seconds)
    if "branched_off" in known:
        known["branched_off"] = Branch(**known["branched_off"])
    if "imported" in known:
        known["imported"] = Imported(**known["imported"])
    return Provenance(**known)


PROVENANCE = [each.name for each in fields(Provenance)]


def plain_provenance(provenance: Provenance) -> dict[str, Any]:
    plain = {name: value for name, value in vars(provenance).items() if value != getattr(UNKNOWN, name)}
    for name in ("step_seconds", "outside_seconds"):
        if name in plain:
            plain[name] = {"device": plain[name].device, **plain[name].seconds}
    if provenance.branched_off:
        plain["branched_off"] = vars(provenance.branched_off)
    if provenance.imported:
        plain["imported"] = vars(provenance.imported)
    return {"commit": provenance.commit, "weights_kept": provenance.weights_kept, **plain}


UNKNOWN = Provenance()
