"""Put a model together: the trained networks of a run, and a score fitted on its images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmark.config.task import TaskConfig
from benchmark.data.dataset import DataSet
from benchmark.interface import Contestant, Derived, Method
from benchmark.measure.catalogue import FinishedRun
from benchmark.selector.member import architecture_of, member_of, why_not
from benchmark.selector.model import Description, SelectiveModel
from benchmark.selector.scores import Score


@dataclass(frozen=True)
class Trained:
    """A trained network, with the task that it was trained on."""

    method: Method
    task: TaskConfig
    data: DataSet


def why_not_exported(method: type[Contestant]) -> str:
    """Return why what a method predicts cannot be exported; empty where it can."""
    if issubclass(method, Method):
        return why_not(method)
    if issubclass(method, Derived) and not method.computed_as:
        return "it combines predictions with code of its own, and an exported selector holds no code"
    return ""


def assembled(
    networks: Sequence[Trained], method: type[Contestant], facts: Mapping[str, float], score: str, run: FinishedRun
) -> SelectiveModel:
    """Return the model of a run; what must be fitted of its score is fitted on the run's validation or train images."""
    first = networks[0].data
    fitted = Score.fitted(score, run)
    architectures = [architecture_of(each.method, each.task, each.data.shape) for each in networks]
    description = Description(
        tuple(architectures),
        score,
        tuple(first.mean.tolist()),
        tuple(first.std.tolist()),
        is_of_floats(first),
        (method.computed_as or "alone") if issubclass(method, Derived) else "alone",
        facts.get("temperature", 1.0),
        fitted.settings,
    )
    members = [member_of(each.method, architecture) for each, architecture in zip(networks, architectures, strict=True)]
    return SelectiveModel(description, members, fitted).eval()


def is_of_floats(data: DataSet) -> bool:
    """Tell whether images are floats and not 8-bit pixels."""
    return next(iter(data.plain_batches(data.test, 1))).is_floating_point()
