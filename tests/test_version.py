"""One number for the version, wherever it is told."""

import re
import tomllib

import pytest

import benchmark
from benchmark.cli import main
from tests.conftest import ROOT


def test_one_place_has_the_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "benchmark.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", benchmark.__version__)


def test_the_citation_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", text, re.MULTILINE) == [benchmark.__version__]


def test_the_command_line_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert (end.value.code, capsys.readouterr().out) == (0, f"{benchmark.__version__}\n")
