"""Define what can be asked of guarantees: on which risk or coverage, how sure, and by which images."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from benchmark.base.limits import Within
from benchmark.library.options import Options

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
