"""Test a method against the contract, rule by rule. A file of your own is executed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.check.candidates import candidates_of, findings
from benchmark.check.checks import Finding
from benchmark.library.options import CheckOptions
from benchmark.library.registry import load_methods


@dataclass(frozen=True)
class Examined:
    """What was found of one rule, for one label of a method."""

    label: str
    title: str
    finding: Finding


def check_method(options: CheckOptions) -> Iterator[Examined]:
    """Make every check of the contract that applies to a method, and yield what each one finds."""
    path = Path(options.method)
    is_file = path.suffix == ".py"
    methods = load_methods([path] if is_file else [])
    settings = dict(setting(text) for text in options.set)
    for candidate in candidates_of(path.stem if is_file else options.method, methods, settings):
        for finding in findings(candidate, methods):
            yield Examined(candidate.label, candidate.method.title, finding)


def setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UserError(f"--set '{text}': expected FIELD=VALUE, e.g. --set queue_size=8")
    return name.strip(), value.strip()
