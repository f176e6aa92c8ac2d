"""Every command of README and docs is executed as it stands, page by page, in a folder like a reader's.

A training that would take long is planned instead, as `--dry-run` does. What a page marks as needing a GPU, a cluster
or data is left to tests/docs/test_pages.py, which looks whether the suite understands it.
"""

import argparse
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmark.cli import parse
from tests.conftest import ROOT, run_here
from tests.docs.pages import PAGES, Block, Command, blocks, commands, commands_of, name_of
from tests.docs.test_pages import arguments
from tests.own_parts import written

pytestmark = [pytest.mark.docs, pytest.mark.usefixtures("alone")]
MOST_EPOCHS = 150
"""Trainings of up to so many epochs are done, longer ones are planned: 150 on digits take some six seconds."""
LEAVE_NOTHING = ("audit", "check", "list")
"""Commands that are tried once, however many pages have them."""
MAY_FIND_SOMETHING = ("diff",)
"""Commands that end with 1 where they have something to say."""
SNIPPETS = {"export.md": ("session =", "import benchmark"), "files.md": ("import numpy",)}
"""By page, how code begins that goes on where the commands end. Other code has tests of its own."""
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results like those of the first command, from two seeds, few methods and few made images."""
    results = tmp_path_factory.mktemp("finished") / "results"
    few = ("--set", "data.train_images=600", "--set", "data.test_images=1000", "--methods", "sr", "dg", "ccl-sc")
    for words in (("--datasets", "digits"), ("--datasets", "gaussians", *few)):
        done = run_here(*words, "--seeds", 2, "--keep-weights", "--results", results, "-q")
        assert done.returncode == 0, done.stderr
    return results


@pytest.fixture
def reader(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where everything but results/ is this checkout, and these are of the first command."""
    for path in ROOT.iterdir():
        if path.name not in ("results", "mine"):
            (tmp_path / path.name).symlink_to(path)
    shutil.copytree(finished, tmp_path / "results")
    (tmp_path / "results" / "reference").symlink_to(ROOT / "results" / "reference")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def tried() -> set[str]:
    """The commands so far that leave nothing behind."""
    return set()


def trains(asked: argparse.Namespace) -> bool:
    prints_settings = asked.command == "paper" and "settings" in asked.tables
    return hasattr(asked, "dry_run") and not asked.dry_run and not prints_settings


def expanded(words: list[str]) -> list[str]:
    """Return the words as a shell hands them over: names of files for patterns."""
    return [found for word in words for found in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]


def execute(command: Command, finished: Path) -> Done | None:
    """Run a command of the suite, or plan it where it would train long; None for other programs."""
    words = arguments(command)
    if words is None or command.is_marked:
        return None
    words = expanded(words)
    if {"--help", "-h"} & set(words):
        return None  # test_pages.py has seen it
    asked = parse(words, "")
    if trains(asked):
        plan = run_here(*in_this_process(words, asked), "--dry-run", "--json")
        assert plan.returncode == 0, (str(command), plan.stderr)
        if takes_long(json.loads(plan.stdout), asked):
            stand_in(Path(asked.results), finished)
            return None
    return run_here(*in_this_process(words, asked))


def takes_long(plan: dict[str, Any], asked: argparse.Namespace) -> bool:
    """Tell whether a training is planned only: many epochs, all corruptions of all its networks, or many processes."""
    every_corruption = "corruptions" in (asked.evaluate or []) if hasattr(asked, "evaluate") else False
    return plan["epochs"] > MOST_EPOCHS or every_corruption or has_ranks(asked)


def has_ranks(asked: argparse.Namespace) -> bool:
    """Tell whether a command trains each job in several processes."""
    return bool(getattr(asked, "gpus_per_job", 1) > 1)


def in_this_process(words: list[str], asked: argparse.Namespace) -> list[str]:
    """Return the words of a command, so that it starts no process of its own."""
    alone = hasattr(asked, "workers") and asked.workers is None and not has_ranks(asked)
    return [*words, "--workers", "0"] if alone else words


def stand_in(results: Path, finished: Path) -> None:
    """Where a training was planned only, let what follows find the results of the first command."""
    if not results.exists():
        shutil.copytree(finished, results)


def in_words(text: str) -> set[str]:
    """Return the lines of an output without numbers, markers and spaces, which differ between machines."""
    lines = re.sub(r"\*\*|</?u>|[•◦ ]|-(?=-)", "", text).splitlines()
    return {re.sub(r"[\d.]+", "#", line) for line in lines}


def write_files(page: Path, folder: Path) -> None:
    """Write the blocks of a page that are files by their titles."""
    for block in blocks(page):
        if block.title:
            (folder / block.title).write_text(block.text)
    if page.name == "CONTRIBUTING.md":  # its blocks are named in the text
        written(folder)
        method = next(block.text for block in blocks(page) if "METHOD = " in block.text)
        (folder / "confidence_penalty.py").write_text(method)


def run_snippet(block: Block, folder: Path) -> None:
    """Run Python code of a page, with what it takes for granted, on what the commands above it have made."""
    import onnxruntime

    (job,) = (folder / "results" / "digits" / "cross_entropy").iterdir()
    images = np.zeros((2, 1, 8, 8), dtype=np.uint8)
    exec(
        compile(block.text.replace("JOB", job.name), str(block.page), "exec"),
        {"onnxruntime": onnxruntime, "images": images},
    )


def check_output(block: Block, outputs: list[Done]) -> None:
    """What a page shows below commands is what they print, but for numbers."""
    printed = in_words("\n".join(done.stdout + done.stderr for done in outputs))
    missing = in_words(block.text) - printed
    assert not missing, (block.text, printed)


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page) or page.name in SNIPPETS], ids=name_of)
def test_the_commands_of_a_page(page: Path, reader: Path, finished: Path, tried: set[str]) -> None:
    write_files(page, reader)
    outputs: list[Done] = []
    for block in blocks(page):
        for command in commands_of(block):
            done = None if command.text in tried else execute(command, finished)
            if done is not None:
                tried |= {command.text} if done.args[0] in LEAVE_NOTHING else set()
                allowed = (0, 1) if done.args[0] in MAY_FIND_SOMETHING else (0,)
                assert done.returncode in allowed, (str(command), done.stderr[-2000:])
                outputs.append(done)
        if block.language == "text" and page.name == "getting-started.md":
            check_output(block, outputs)
        if block.text.startswith(SNIPPETS.get(page.name, ())):
            run_snippet(block, reader)
