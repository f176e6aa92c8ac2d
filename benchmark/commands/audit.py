"""`audit`: recompute what the published tables say about themselves, and list where they contradict it."""

import argparse

from benchmark import render
from benchmark.audit import audit

HELP = "check the published tables against themselves"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing to choose."""


def run(arguments: argparse.Namespace, make_registry: object) -> int:
    sheets, findings = audit()
    print(render.markdown(sheets))
    print(f"{len(findings)} inconsistencies:\n")
    print("\n".join(f"- {finding.table}: {finding.what}" for finding in findings))
    return 0
