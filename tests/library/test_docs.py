"""The script of docs/python.md runs as it stands there, and prints what it says."""

import contextlib
import io
import re
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
