"""Every renderer against files that a person has looked at. After a meant change: python -m tests.tables.test_golden"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark.paper.audit import audit
from benchmark.paper.companion import build_companion
from benchmark.paper.settings_tables import settings_sheets
from benchmark.paper.table_files import load_tables
from benchmark.tables import render
from benchmark.tables.build import build_tables
from benchmark.tables.columns import load_columns
from benchmark.tables.costs import cost_tables
from benchmark.tables.model import Sheet, Table
from benchmark.tables.render import latex
from benchmark.tables.statistics import build_statistics
from benchmark.tune.ledger import Trial, add_to_ledger, ledger_sheets
from methods import Registry
from tests.conftest import ROOT, tables_of
from tests.paper.test_table_files import published_as_runs
from tests.tables.test_build import many_columns

GOLDEN = ROOT / "tests" / "expected" / "golden"
FORMS = {"md": render.markdown, "tex": latex.document, "csv": render.csv}


def made(folder: Path) -> dict[str, list[Table | Sheet]]:
    """By name of the golden file."""
    manifest, store = many_columns(folder)
    columns = load_columns(manifest, store)
    (imagenet,) = load_tables(["imagenet"])
    shown = published_as_runs(imagenet, store)
    risk = tables_of(shown, store)[0]
    trials = [Trial({"weight": w, "form": "a_b"}, f"job{w:g}", {"0": w / 10, "1": w / 5}) for w in (0.5, 0.1)]
    ledger = add_to_ledger({"task": "toy"}, "Ours", [], [*trials, Trial({"weight": 2.0}, "no", {})], [0, 1])
    return {
        "tables": [*build_tables(manifest, columns)],
        "costs": [*cost_tables(manifest, columns)],
        "corrected": [*build_tables(replace(manifest, holm="table", test="paired"), columns)[:1]],
        "statistics": [*build_statistics(manifest, columns)],
        "paper": [risk],
        "companion": [*build_companion(shown, risk)],
        "audit": [*audit()[0]],
        "settings": [*settings_sheets(Registry(), "paper")],
        "ledger": [*ledger_sheets(ledger)],
    }


def texts(folder: Path) -> dict[str, str]:
    found = {f"{name}.{form}": FORMS[form](tables) for name, tables in made(folder).items() for form in FORMS}
    return {name: text for name, text in found.items() if text.strip()}


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return texts(tmp_path_factory.mktemp("golden"))


def test_nothing_is_missing(rendered: dict[str, str]) -> None:
    assert sorted(rendered) == sorted(path.name for path in GOLDEN.iterdir())


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.iterdir()))
def test_as_it_was_looked_at(rendered: dict[str, str], name: str) -> None:
    assert rendered[name] == (GOLDEN / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name, text in texts(Path(scratch)).items():
            (GOLDEN / name).write_text(text, encoding="utf-8")
    sys.exit(0)
