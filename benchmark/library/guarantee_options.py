"""Define what can be asked of guarantees: on which risk or coverage, how sure, and by which images."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from benchmark.base.errors import UserError
from benchmark.base.limits import SEED, Within
from benchmark.library.options import DataOptions, Options

RISK = Within(0.001, 100, "it is a share of what is kept, in per cent")
CONFIDENCE = Within(1, 99.9999, "no number of images makes it certain")
SHARE = Within(0.1, 99.9, "some images must certify, and some must be left to test")


@dataclass(frozen=True, kw_only=True)
class GuaranteeOptions(Options):
    """What is to be guaranteed, in per cent, and by which images."""

    confidence: Annotated[float, CONFIDENCE] = 95.0
    """With which probability over the held-out images: 100 minus δ."""
    bound: Literal["fixed-sequence", "sgr", "hoeffding-bentkus"] = "fixed-sequence"
    from_test: Annotated[float, SHARE] | None = None
    """The share of the test images that certify; None: the validation images do."""
    results: str = "results"
    plugin: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CertifyOptions(GuaranteeOptions):
    """Which runs of a results folder to certify, at which risks or coverages; no risk and no coverage: four risks."""

    tasks: tuple[str, ...] = ()
    """None: all of the folder."""
    risk: tuple[Annotated[float, RISK], ...] | None = None
    coverage: tuple[Annotated[float, RISK], ...] | None = None
    by: str | None = None
    """A threshold for each class (`class`), or for each group of a column of the predictions."""
    methods: tuple[str, ...] | None = None
    ingredients: tuple[str, ...] = ()
    reference: str | None = None
    scores: tuple[str, ...] | None = None
    test: Literal["exact", "ranksums", "paired"] | None = None
    holm: Literal["row", "column", "table"] | None = None
    out: Path | None = None


@dataclass(frozen=True, kw_only=True)
class ExportOptions(GuaranteeOptions, DataOptions):
    """A finished run to export as a selector, and the risk or the coverage that its threshold must keep to."""

    task: str
    method: str
    """A label, with @COVERAGE where it has a training for each of several."""
    to: Path
    seed: Annotated[int, SEED] = 0
    risk: Annotated[float, RISK] | None = None
    coverage: Annotated[float, RISK] | None = None
    score: str | None = None
    """None: the method's own."""
    set: tuple[str, ...] = ()
    """Settings that the run was trained with, each as KEY=VALUE."""
    device: str = "auto"
    quiet: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.risk is None) == (self.coverage is None):
            raise UserError("name either the risk to keep below or the coverage to keep: --risk 2 or --coverage 80")
