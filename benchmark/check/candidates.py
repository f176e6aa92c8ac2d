"""Find the methods to be examined, and see whether each can be planned."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from benchmark.base.errors import UserError
from benchmark.check.checks import Finding, examine
from benchmark.check.harness import Candidate
from benchmark.config.load import load_task
from benchmark.jobs.job import Methods
from benchmark.jobs.plan import label_owners, plan
from benchmark.measure.labels import match_labels

EPOCHS = 3600
"""Long enough for any warm-up, and divisible by most numbers of cycles."""


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
