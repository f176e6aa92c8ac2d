"""Test a method, or what a file of your own defines, against the contract, rule by rule. The file is executed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.check.candidates import examinations
from benchmark.check.findings import Finding
from benchmark.library.options import CheckOptions
from benchmark.library.registry import load_methods
from benchmark.library.settings import data_folder


@dataclass(frozen=True)
class Examined:
    """What was found of one rule, for one label of a method, or a score, network or source."""

    label: str
    title: str
    finding: Finding


def check_method(options: CheckOptions) -> Iterator[Examined]:
    """Make every check that applies to a method, or to what a file defines, and yield what each one finds."""
    path = Path(options.method)
    is_file = path.suffix == ".py"
    methods = load_methods([path] if is_file else [])
    settings = dict(setting(text) for text in options.set)
    name = path.stem if is_file else options.method
    for label, title, findings in examinations(name, methods, settings, data_folder(options.data_dir)):
        for finding in findings:
            yield Examined(label, title, finding)


def setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UserError(f"--set '{text}': expected FIELD=VALUE, e.g. --set queue_size=8")
    return name.strip(), value.strip()
