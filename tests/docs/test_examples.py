"""The examples that explain statistics say what the suite says, to the letter."""

import contextlib
import io
from typing import Any

import pytest

from benchmark.measure.statistics import seeds_needed, smallest_p
from tests.conftest import ROOT
from tests.docs.pages import blocks

PAGE = ROOT / "docs" / "reading-tables.md"


def test_what_the_examples_print() -> None:
    names: dict[str, Any] = {}
    shown = [block for block in blocks(PAGE) if block.language in ("python", "text")]
    assert [block.language for block in shown] == ["python", "text"] * 3
    for code, output in zip(shown[::2], shown[1::2], strict=True):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code.text, PAGE.name, "exec"), names)
        assert printed.getvalue() == output.text


@pytest.mark.parametrize("seeds", [3, 4, 5, 6, 8, 10])
def test_the_smallest_p_of_so_many_seeds(seeds: int) -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text().splitlines()]
    (row,) = [row for row in rows if row[0] == str(seeds) and len(row) == 3]
    exact, paired = smallest_p(seeds, seeds), smallest_p(seeds, seeds, "paired")
    assert float(row[1]) == pytest.approx(exact, abs=6e-5 if exact > 1e-4 else 6e-6)
    assert float(row[2]) == pytest.approx(paired, abs=6e-5)


def test_the_seeds_that_are_needed() -> None:
    """One cell, seven columns or thirteen rows, the whole table, the signed-rank test."""
    assert [seeds_needed("exact", many) for many in (1, 7, 13, 91)] == [4, 6, 6, 8]
    assert seeds_needed("paired") == 6
    text = PAGE.read_text()
    for row in ("| one cell | possible | 4 |", "0.056 | 6 |", "91 cells | not possible | 8 |"):
        assert row in text
