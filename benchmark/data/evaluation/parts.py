"""Hold the images of an evaluation set, part by part."""

import hashlib
from dataclasses import dataclass, replace

from benchmark.data.images import Images


@dataclass(frozen=True)
class Part:
    """Some images of a set that are looked at by themselves."""

    name: str
    """Plain, and unique in its set."""
    images: Images | None
    """None: the task's own test images, changed as kind and severity say."""
    kind: str = ""
    """The corruption."""
    severity: int | None = None


@dataclass(frozen=True)
class EvaluationSet:
    parts: tuple[Part, ...]
    sha256: str
    """Of the images and labels of all parts; of corruptions that the suite makes, of what makes them."""
    remark: str = ""
    """What a reader of the results should know of the set."""

    def sealed(self) -> "EvaluationSet":
        """Return the set with its hash, made of that of its origin, and of which images it takes as what."""
        digest = hashlib.sha256(self.sha256.encode())
        for part in self.parts:
            digest.update(f"{part.name} {part.kind} {part.severity}".encode())
            for array in (part.images.labels, part.images.rows) if part.images is not None else ():
                digest.update(f"{array.dtype} {array.shape}".encode())
                digest.update(array.tobytes())
        return replace(self, sha256=digest.hexdigest())
