"""`audit`: recompute what the published tables say about themselves, and list where they contradict it."""

import argparse

from benchmark.paper.audit import audit
from benchmark.tables import render

HELP = "check the published tables against themselves"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: there is nothing to choose."""


def run(arguments: argparse.Namespace, make_registry: object) -> int:
    sheets, findings = audit()
    print(render.markdown(sheets))
    print(f"{len(findings)} inconsistencies:\n")
    print("\n".join(f"- {finding.table}: {finding.what}" for finding in findings))
    return 0
