"""The commit of a result is that of the suite, or none."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmark.train import provenance


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=me", "-c", "user.email=me@example.org", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    provenance.commit.cache_clear()
    yield
    provenance.commit.cache_clear()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, in which the suite is said to lie."""
    (tmp_path / "code.py").write_text("1\n")
    for words in (["init", "-q"], ["add", "code.py"], ["commit", "-q", "-m", "first"]):
        git(tmp_path, *words)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    return tmp_path


def test_the_commit_of_a_clone(checkout: Path) -> None:
    assert provenance.commit() == git(checkout, "log", "--format=%H")


def test_changes_are_marked(checkout: Path) -> None:
    (checkout / "code.py").write_text("2\n")
    assert provenance.commit() == git(checkout, "log", "--format=%H") + "+"


def test_a_folder_within_the_checkout_of_something_else_has_none(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "inner").mkdir()
    monkeypatch.setattr(provenance, "ROOT", checkout / "inner")
    assert provenance.commit() is None


def test_what_a_wheel_left_has_none(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where it was installed into the top of a checkout."""
    monkeypatch.setattr(provenance, "FROM_WHEEL", True)
    assert provenance.commit() is None
