"""Define the record of a run: its fields, and how each version of it is read. One place knows the keys of the file."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from benchmark.base.errors import UserError
from benchmark.measure.measures import ClassifierMeasures, Measures, ScoreMeasures
from benchmark.measure.metrics import CURVE_COVERAGES
from benchmark.measure.sets.parts import SetMeasures
from benchmark.measure.versions import OF_VERSION_1, MadeBy
from benchmark.store.plain_parts import plain_set, read_set
from benchmark.store.provenance import Provenance, plain_provenance, read_provenance

VERSION = 2
Identity = Mapping[str, Any]
"""All that can change a result, as plain data: a job's id is its hash."""
Plain = dict[str, Any]
"""The content of a file, before it is read and after it is written."""


@dataclass(frozen=True)
class Pixels:
    """Mean and standard deviation of the training images by channel, where the task leaves them to the images."""

    mean: Sequence[float]
    std: Sequence[float]


NOTHING = Measures(ClassifierMeasures(), {}, 0)


@dataclass(frozen=True)
class Record:
    """What is kept of a finished run."""

    task: str
    method: str
    job: str
    seed: int
    identity: Identity
    label: str = ""
    """What the job was called when it was trained."""
    measures: Measures = NOTHING
    """Of the test images; nothing in a run that diverged, and in a trial of `tune`."""
    num_train: int | None = None
    at_epochs: Mapping[int, Measures] = field(default_factory=dict)
    """Measures before the end of training, by number of epochs."""
    evaluation: SetMeasures | None = None
    """Of an evaluation set: its parts. `measures` are of all its images together."""
    held_out: Measures | None = None
    """In a trial of `tune`: of the training images that judge it."""
    diverged: str | None = None
    """Why there is no result."""
    pixels: Pixels | None = None
    labels_changed: float | None = None
    """Where the training labels come from a file: the share of them that differs from those of the data set."""
    bound: Mapping[str, float] | None = None
    """Constants of the bound (`--track-bound`)."""
    facts: Mapping[str, float] = field(default_factory=dict)
    """What a combination says of itself, such as a temperature."""
    notes: Sequence[str] = ()
    """What a reader of the table must know of this run."""
    checksums: Mapping[str, str] | None = None
    """SHA-256 of the files beside it; None in records from before there were any."""
    provenance: Provenance = field(default_factory=Provenance)
    made_by: MadeBy = field(default_factory=MadeBy)
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why measures or scores are not known, by their names; not stored."""

    def score(self, name: str) -> ScoreMeasures:
        """Return the measures of a score, be it the method's own or one that was asked for later."""
        found = self.measures.scores.get(name)
        return self.measures.further[name] if found is None else found

    @property
    def is_imported(self) -> bool:
        """Tell whether its predictions were made elsewhere."""
        return self.provenance.imported is not None

    @property
    def is_combined(self) -> bool:
        """Tell whether it was made of other runs."""
        return bool(self.identity.get("needs"))

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return the settings of its method."""
        settings: Mapping[str, Any] = self.identity.get("config", {})
        return settings

    @property
    def data_sha256(self) -> str | None:
        """Return the hash of its images, of an evaluation that of its set; None in the oldest records."""
        evaluated: Mapping[str, str] = self.identity.get("evaluates", {})
        return evaluated.get("sha256") or self.identity.get("data_sha256")

    @property
    def own_parts(self) -> tuple[str, ...]:
        """Return what of it a user's own file defines: its method, network or source."""
        method = ("method",) if self.identity.get("source_sha256") else ()
        return (*method, *self.identity.get("own_parts", {}))


def job_id(identity: Identity) -> str:
    """Return the id of a job: the hash of all that can change its result."""
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def is_older_record(plain: Plain) -> bool:
    """Tell whether a record was made before there were seals, which came with the codes in the provenance."""
    return "identity" in plain and "codes" not in plain.get("provenance", {})


def read_record(plain: Plain, where: str) -> Record:
    """Return the record in the content of a file of any version up to this one."""
    version = plain.get("version", 1)
    if not isinstance(version, int) or version not in READERS:
        raise newer_version("record", where, version, VERSION)
    return READERS[version](plain)


def newer_version(kind: str, where: str, version: object, known: int) -> UserError:
    """Return the error for a file that only a later version of the suite can read."""
    return UserError(
        f"'{where}' is a {kind} of version {version}, and this code reads versions up to {known}: "
        "update the suite, or name another folder"
    )


def read_version_2(plain: Plain) -> Record:
    held_out = plain.get("held_out")
    made_by = plain.get("measured_by", {})
    return Record(
        task=plain["task"],
        method=plain["method"],
        job=plain["job"],
        seed=plain["seed"],
        identity=plain["identity"],
        label=plain.get("label", ""),
        measures=read_measures(plain) if "scores" in plain else NOTHING,
        num_train=(held_out or plain).get("num_train"),
        at_epochs={int(epoch): read_measures(each) for epoch, each in (held_out or plain).get("at_epochs", {}).items()},
        evaluation=read_set(plain["evaluation"]) if "evaluation" in plain else None,
        held_out=None if held_out is None else read_measures(held_out),
        diverged=plain.get("diverged"),
        pixels=Pixels(**plain["measured"]) if "measured" in plain else None,
        labels_changed=plain.get("labels_changed"),
        bound=plain.get("bound"),
        facts=plain.get("facts", {}),
        notes=plain.get("notes", ()),
        checksums=plain.get("checksums"),
        provenance=read_provenance(plain.get("provenance", {})),
        made_by=MadeBy(made_by.get("measures", {}), made_by.get("scores", {})),
    )


def read_version_1(plain: Plain) -> Record:
    """Return a record from before measures said which code had made them: that of the last code of version 1."""
    scores = plain.get("scores", {})
    known = {name for score in scores.values() for name in score} | {"expected_risk", "expected_aurc"}
    if "percentile_coverage" not in known:
        known -= {"percentile_risk"}  # it was of float64 scores, which the public codes do not have
    known |= set(plain.get("classifier", {}))
    measures = {name: version for name, version in OF_VERSION_1.measures.items() if name in known}
    own = {name: version for name, version in OF_VERSION_1.scores.items() if name in scores}
    return read_version_2({**plain, "measured_by": {"measures": measures, "scores": own}})


READERS = {1: read_version_1, 2: read_version_2}


def read_measures(plain: Plain) -> Measures:
    oracle = plain.get("oracle")
    return Measures(
        ClassifierMeasures(**{name: plain["classifier"].get(name) for name in OF_CLASSIFIERS}),
        {name: read_score(score) for name, score in plain["scores"].items()},
        plain["num_test"] if "num_test" in plain else plain["images"],
        {name: read_score(score) for name, score in plain.get("further", {}).items()},
        None if oracle is None else read_score(oracle),
    )


def read_score(plain: Plain) -> ScoreMeasures:
    """Return the measures of a score. Those that this code does not know are left out."""
    known: Plain = {name: plain.get(name) for name in OF_SCORES}
    return ScoreMeasures(**known)


OF_CLASSIFIERS = [each.name for each in fields(ClassifierMeasures)]
OF_SCORES = [each.name for each in fields(ScoreMeasures)]


def plain_record(record: Record) -> Plain:
    """Return the content of a record's file, in the present version; the seal is added when it is written."""
    heading = {name: getattr(record, name) for name in ("task", "method", "label", "job", "seed", "identity")}
    if record.held_out is not None:
        measured: Plain = {"held_out": plain_measures(record.held_out, "images") | further_measures(record)}
    else:
        measured = (plain_measures(record.measures) if record.measures.scores else {}) | further_measures(record)
    optional = {
        "evaluation": record.evaluation and plain_set(record.evaluation),
        "measured": record.pixels and vars(record.pixels),
        "bound": record.bound,
        "facts": record.facts,
        "diverged": record.diverged,
        "measured_by": vars(record.made_by) if record.made_by.measures else None,
    }
    return {
        "version": VERSION,
        **heading,
        **measured,
        **{name: value for name, value in optional.items() if value},
        **({} if record.labels_changed is None else {"labels_changed": record.labels_changed}),
        "notes": list(record.notes),
        **({} if record.checksums is None else {"checksums": record.checksums}),
        "provenance": plain_provenance(record.provenance),
    }


def further_measures(record: Record) -> Plain:
    """Return what stands beside the measures: the number of training images, and the measures of earlier epochs."""
    at_epochs = {str(epoch): plain_measures(each) for epoch, each in record.at_epochs.items()}
    found = {"num_train": record.num_train, "at_epochs": at_epochs or None}
    return {name: value for name, value in found.items() if value is not None}


def plain_measures(measures: Measures, images: str = "num_test") -> Plain:
    plain: Plain = {
        "classifier": known_values(measures.classifier),
        "scores": {name: known_values(score) for name, score in measures.scores.items()},
        images: measures.num_images,
        "coverages": [round(100 * float(coverage), 6) for coverage in CURVE_COVERAGES],
    }
    if measures.further:
        plain["further"] = {name: known_values(score) for name, score in measures.further.items()}
    if measures.oracle is not None:
        plain["oracle"] = known_values(measures.oracle)
    return plain


def known_values(measures: ClassifierMeasures | ScoreMeasures) -> Plain:
    """Return the fields with a value, and those that have none in a run without errors."""
    return {name: value for name, value in vars(measures).items() if value is not None or name == "auroc"}
