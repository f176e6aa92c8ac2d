"""Find what is to be examined, and see whether each method can be planned."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmark.base import added
from benchmark.base.errors import UserError
from benchmark.check.checks import examine
from benchmark.check.findings import Finding
from benchmark.check.harness import Candidate
from benchmark.check.networks import network_findings
from benchmark.check.scores import score_findings
from benchmark.check.sources import source_findings
from benchmark.config.load import load_task
from benchmark.jobs.job import Methods
from benchmark.jobs.plan import label_owners, plan
from benchmark.measure.labels import match_labels

EPOCHS = 3600
"""Long enough for any warm-up, and divisible by most numbers of cycles."""
Examination = tuple[str, str, Iterator[Finding]]
"""What is examined, its title, and what each check finds."""


def examinations(name: str, methods: Methods, settings: Mapping[str, str], data: Path) -> Iterator[Examination]:
    """Yield the examination of each label that a name means, and of what users' files add to the suite."""
    of_network, of_data = (settings_of(part, settings) for part in ("network", "data"))
    own = {key: value for key, value in settings.items() if key.partition(".")[0] not in ("network", "data")}
    if name in methods.names() or own or not (added.SCORES or added.NETWORKS or added.SOURCES):
        for candidate in candidates_of(name, methods, own):
            yield candidate.label, candidate.method.title, findings(candidate, methods)
    for score, each in added.SCORES.items():
        yield f"score {score}", each.title, score_findings(each.value)
    for network, each in added.NETWORKS.items():
        yield f"network {network}", each.title, network_findings(network, of_network)
    for source, each in added.SOURCES.items():
        yield f"source {source}", each.title, source_findings(source, of_data, data)


def settings_of(part: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the network or the data, without that word."""
    return {key.partition(".")[2]: value for key, value in settings.items() if key.partition(".")[0] == part}


def candidates_of(name: str, methods: Methods, settings: Mapping[str, Any]) -> list[Candidate]:
    """Return the labels that a name means, each ready for examination. Refuse settings that they do not have."""
    owners = label_owners(methods)
    candidates = [Candidate(methods.get(owners[label]), label, settings) for label in match_labels([name], owners)]
    for candidate in candidates:
        candidate.config()  # a wrong setting is bad input, not a broken contract
    return candidates


def findings(candidate: Candidate, methods: Methods) -> Iterator[Finding]:
    """Make every check of the contract that applies to a method, and tell what each one finds."""
    try:
        plan(replace(load_task("digits"), epochs=EPOCHS), [candidate.label], [0], methods, "")
    except UserError as error:  # what it declares to need of other methods is not there
        yield Finding("can be planned", False, str(error))
    else:
        yield Finding("can be planned", True, "")
    yield from examine(candidate)
