"""The script of docs/python.md runs as it stands there, and prints what it says."""

import contextlib
import io
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import benchmark as sb
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text()


@pytest.fixture(scope="module")
def script() -> str:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    return str(block)


def test_the_script_of_the_page(script: str, alone: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "script"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(script, "docs/python.md", "exec"), names)
    assert sorted(names["aurc"].label) == ["Focal", "Focal", "SR", "SR"]
    assert set(names["curves"].coverage) >= {0.8, 0.9, 1.0}
    assert (tmp_path / "demo-report.html").stat().st_size > 10_000
    text = printed.getvalue()
    assert str(names["table"]) in text
    assert "no difference can be shown before 6 seeds" in text
    assert "\nbetter\n" in text
    for said in re.findall(r"print\(problem\)  # (.*)", script):
        assert f"\n{said}\n" in text


@pytest.mark.parametrize("name", sb.__all__)
def test_the_page_has_every_public_name(name: str) -> None:
    assert f"sb.{name}" in PAGE


@pytest.mark.parametrize("module", ["metrics", "scores"])
def test_the_page_has_every_function(module: str) -> None:
    assert not [name for name in getattr(sb, module).__all__ if f"`{name}`" not in PAGE]


def test_the_example_of_the_page_on_vectors(alone: None, tmp_path: Path) -> None:
    """It is the file that is shipped, and it runs."""
    example = ROOT / "configs" / "examples" / "apples.toml"
    (block,) = re.findall(r"```toml\n(extends.*?)```", (ROOT / "docs" / "vectors.md").read_text(), re.S)
    assert tomllib.loads(block) == tomllib.loads(example.read_text())
    results = sb.run(
        str(example), methods=["SR", "SAT"], seeds=2, results=tmp_path / "results", workers=0, cache_dir=tmp_path
    )
    frame = results.to_frame()
    accuracy = frame[frame.measure == "accuracy"].value
    assert len(accuracy) >= 4
    assert accuracy.min() > 0.8
