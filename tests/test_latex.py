"""Every kind of table through a real pdflatex. Deselected unless asked for: pytest -m latex."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmark import render
from benchmark.audit import audit
from benchmark.columns import load_columns
from benchmark.published import load_tables
from benchmark.settings import settings_sheets
from benchmark.significance import build_statistics
from benchmark.store import Store
from benchmark.tables import complete
from benchmark.tasks import load_task
from benchmark.tuning import Trial, add_to_ledger, ledger_sheets
from benchmark.verdicts import build_companion
from methods import Registry
from tests.conftest import tables_of
from tests.test_published import published_as_runs
from tests.test_tables import many_columns

pytestmark = pytest.mark.latex


def compile_latex(text: str, folder: Path, name: str) -> str:
    """The log of pdflatex; fails where it stops at an error."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.tex").write_text(text)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:]
    assert (folder / f"{name}.pdf").is_file()
    return result.stdout


def pages(log: str) -> int:
    return int(log.split("Output written on")[1].split("(")[1].split(" page")[0])


def test_tables_and_statistics_of_a_task(tmp_path: Path) -> None:
    manifest, store = many_columns(tmp_path / "results")
    log = compile_latex(render.latex(tables_of(manifest, store)), tmp_path, "tables")
    assert pages(log) >= 1
    manifest = complete(manifest)
    statistics = build_statistics(manifest, load_columns(manifest, store))
    assert len(statistics) >= 5
    compile_latex(render.latex(statistics), tmp_path, "statistics")


@pytest.mark.parametrize("table", load_tables(["all"]), ids=lambda table: table.name)
def test_published_tables_and_their_companions(table: Any, tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    manifest = published_as_runs(table, store)
    risk = tables_of(manifest, store)[0]
    log = compile_latex(render.latex([risk]), tmp_path, table.name)
    assert pages(log) == 1
    compile_latex(render.latex(build_companion(manifest, risk)), tmp_path, f"{table.name}-published")


def test_audit_settings_and_ledger(tmp_path: Path) -> None:
    compile_latex(render.latex(audit()[0]), tmp_path, "audit")
    compile_latex(render.latex(settings_sheets(Registry(), "paper")), tmp_path, "settings")
    trial = Trial({"weight": 0.1, "negatives": "sc2_x"}, "id", {"0": 0.1})
    ledger = add_to_ledger({"task": load_task("digits").title}, "CCL-SC", [trial], [0])
    compile_latex(render.latex(ledger_sheets(ledger)), tmp_path, "ledger")


def test_a_table_can_be_input(tmp_path: Path) -> None:
    manifest, store = many_columns(tmp_path / "results")
    (tmp_path / "inner.tex").write_text(render.latex(tables_of(manifest, store)[:1]))
    packages = r"\documentclass{article}\usepackage{booktabs,graphicx}"
    outer = packages + r"\begin{document}Before.\input{inner}After.\end{document}"
    assert pages(compile_latex(outer, tmp_path, "outer")) >= 1
