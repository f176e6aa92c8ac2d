"""`audit`: recompute what the published tables say about themselves, and list where they contradict it."""

import argparse

HELP = "check the published tables against themselves"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: there is nothing to choose."""


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.audit import audit_paper

    print(audit_paper().text())
    return 0
