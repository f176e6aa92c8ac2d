"""Every kind of table through a real pdflatex. Deselected unless asked for: pytest -m latex."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmark.config.load import load_task
from benchmark.paper.audit import audit
from benchmark.paper.companion import build_companion
from benchmark.paper.settings_tables import settings_sheets
from benchmark.paper.table_files import load_tables
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.store.store import Store
from benchmark.tables.assemble import assemble
from benchmark.tables.columns import load_columns
from benchmark.tables.model import Table
from benchmark.tables.render import latex
from benchmark.tables.statistics import build_statistics
from benchmark.tables.summary.sheets import changes_sheet, summary_sheets
from benchmark.tune.ledger import Trial, add_to_ledger, ledger_sheets
from methods import Registry
from tests.conftest import tables_of
from tests.paper.test_table_files import published_as_runs
from tests.tables.test_build import MANIFEST, fill, many_columns, record, with_score
from tests.tables.test_summary import make, noisy, summary_of

pytestmark = pytest.mark.latex


def compile_latex(text: str, folder: Path, name: str) -> str:
    """The log of pdflatex; fails where it stops at an error."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.tex").write_text(text)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:]
    assert (folder / f"{name}.pdf").is_file()
    assert "Overfull" not in result.stdout
    return result.stdout


def pages(log: str) -> int:
    return int(log.split("Output written on")[1].split("(")[1].split(" page")[0])


def test_tables_and_statistics_of_a_task(tmp_path: Path) -> None:
    manifest, store = many_columns(tmp_path / "results")
    log = compile_latex(latex.document(tables_of(manifest, store)), tmp_path, "tables")
    assert pages(log) >= 1
    statistics = build_statistics(manifest, load_columns(manifest, store))
    assert len(statistics) >= 5
    compile_latex(latex.document(statistics), tmp_path, "statistics")


@pytest.mark.parametrize("table", load_tables(["all"]), ids=lambda table: table.name)
def test_published_tables_and_their_companions(table: Any, tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    manifest = published_as_runs(table, store)
    risk = tables_of(manifest, store)[0]
    log = compile_latex(latex.document([risk]), tmp_path, table.name)
    assert pages(log) == 1
    compile_latex(latex.document(build_companion(manifest, risk)), tmp_path, f"{table.name}-published")


def test_audit_settings_and_ledger(tmp_path: Path) -> None:
    compile_latex(latex.document(audit()[0]), tmp_path, "audit")
    compile_latex(latex.document(settings_sheets(Registry(), "paper")), tmp_path, "settings")
    trial = Trial({"weight": 0.1, "negatives": "sc2_x"}, "id", {"0": 0.1})
    ledger = add_to_ledger({"task": load_task("digits").title}, "CCL-SC", [], [trial], [0])
    compile_latex(latex.document(ledger_sheets(ledger)), tmp_path, "ledger")


def test_one_table_of_several_tasks(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    manifests = [replace(make(store, f"task{n}", noisy), title=f"100 % of_task & {n} (n < 9)") for n in range(8)]
    summary = summary_of(store, *manifests)
    compile_latex(latex.document(summary_sheets(summary), "summary"), tmp_path, "summary")
    compile_latex(latex.document([changes_sheet(summary, short=True)], "short"), tmp_path, "short")


TWO_COLUMNS = r"""\documentclass[twocolumn]{article}
\pdfcompresslevel=0 \pdfobjcompresslevel=0
\usepackage{booktabs}
\begin{document}
Before. See Table~\ref{tab:toy-risk}.
\input{inner}
After.
\end{document}
"""


def many_methods(folder: Path, count: int) -> list[Any]:
    """All tables of a task with long names and thirteen coverages, which no page holds at once."""
    store, entries = Store(folder), []
    for index in range(count):
        runs = [record(seed, {"SR": (0.2 + seed / 100, 0.1)}) for seed in range(5)]
        levels = [0.2754 + index / 1000 + run.seed / 300 for run in runs]
        wide = [with_score(run, "SR", risk=[level] * 201) for run, level in zip(runs, levels, strict=True)]
        fill(store, f"method_{index}", wide)
        name = f"CCL-SC+SAT+EM+abstention {index}" if index % 4 == 1 else f"MMMM {index}"
        entries.append(ManifestEntry(name, f"method_{index}", "id", (0, 1, 2, 3, 4)))
    first = entries[0].label
    manifest = replace(MANIFEST, entries=tuple(entries), reference=first, baseline=first)
    return assembled_tables(replace(manifest, coverages=tuple(range(100, 35, -5))), store)


def assembled_tables(manifest: Manifest, store: Store) -> list[Any]:
    shown = assemble(manifest, store)
    return [*shown.tables, *shown.statistics]


@pytest.mark.parametrize("count", [2, 5, 9, 30])
@pytest.mark.parametrize("transpose", [False, True])
def test_tables_fit_a_two_column_paper(count: int, transpose: bool, tmp_path: Path) -> None:
    """Nothing sticks out, nothing is set below 7 pt, and every label is there once."""
    tables = many_methods(tmp_path / "results", count)
    tables = [replace(table, transposed=transpose) if isinstance(table, Table) else table for table in tables]
    (tmp_path / "inner.tex").write_text(latex.document(tables, "toy"))
    compile_latex(TWO_COLUMNS, tmp_path, "outer")
    log = compile_latex(TWO_COLUMNS, tmp_path, "outer")
    assert "too large" not in log
    assert "multiply" not in log
    assert "undefined" not in log
    sizes = re.findall(rb"/FontName\s*/[A-Z]+\+CM[A-Z]+(\d+)", (tmp_path / "outer.pdf").read_bytes())
    assert sizes
    assert min(map(int, sizes)) >= 7


def test_a_table_can_be_input(tmp_path: Path) -> None:
    manifest, store = many_columns(tmp_path / "results")
    (tmp_path / "inner.tex").write_text(latex.document(tables_of(manifest, store)[:1]))
    packages = r"\documentclass{article}\usepackage{booktabs}"
    outer = packages + r"\begin{document}Before.\input{inner}After.\end{document}"
    assert pages(compile_latex(outer, tmp_path, "outer")) >= 1
