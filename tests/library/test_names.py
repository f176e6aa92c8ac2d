"""The public names: what `import benchmark` costs, what it has, and what can be run by name."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import benchmark as sb
from benchmark.config.load import load_task, task_names
from benchmark.library import names
from methods import Registry
from tests.conftest import ROOT, SR_LABELS

HEAVY = ("torch", "numpy", "scipy", "pandas", "matplotlib")


def loaded_after(program: str) -> set[str]:
    """The heavy libraries that a new process has imported."""
    text = f"import sys\n{program}\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


def test_the_import_alone_brings_in_nothing_heavy() -> None:
    assert loaded_after("import benchmark as sb; dir(sb); sb.UserError; hasattr(sb, 'nonsense')") == set()


def test_numbers_need_no_torch_and_no_pandas() -> None:
    calls = "sb.metrics.aurc([0.9, 0.8], [0, 1]); sb.scores.margin([[1.0, 2.0]]); sb.compare([1], [2]); sb.tasks()"
    assert loaded_after(f"import benchmark as sb; {calls}") == {"numpy", "scipy"}


def test_results_are_read_without_torch() -> None:
    calls = "results = sb.load_results('results/reference'); results.to_frame(); str(results.table('digits'))"
    assert "torch" not in loaded_after(f"import benchmark as sb; {calls}")


def test_every_public_name_is_there_and_known_to_type_checkers() -> None:
    assert dir(sb) == sb.__all__ == sorted(sb.__all__)
    assert dir(sb.metrics) == sb.metrics.__all__ == sorted(sb.metrics.__all__)
    assert dir(sb.scores) == sb.scores.__all__ == sorted(sb.scores.__all__)
    assert all(getattr(sb, name) is not None for name in sb.__all__)
    tree = ast.parse((ROOT / "benchmark" / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = [alias for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(alias.asname or "" for alias in imported) == sb.__all__


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"module 'benchmark' has no attribute 'metric'; it has .*metrics"):
        sb.metric  # noqa: B018


def test_tasks_have_their_settings_and_print_as_lines() -> None:
    tasks = sb.tasks()
    assert list(tasks) == task_names()
    assert tasks["digits"] == load_task("digits")
    line = next(line for line in repr(tasks).splitlines() if line.startswith("digits "))
    assert line.split(maxsplit=1) == ["digits", "digits (8×8)"]


def test_methods_by_label() -> None:
    methods = sb.methods()
    registry = Registry()
    assert set(methods) == {label for name in registry.names() for label in registry.get(name).labels}
    assert methods["SAT+EM"].file == "self_adaptive"
    assert methods["SAT+EM"].settings == {"entropy_weight": 0.001}
    assert len(repr(methods).splitlines()) == len(methods)
    assert "Huang et al., NeurIPS 2020" in repr(methods)


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    text = (ROOT / "methods" / "cross_entropy.py").read_text().replace(SR_LABELS, 'labels = {"Mine": {}}')
    path = tmp_path / "mine.py"
    path.write_text(f"import benchmark.scores\nbenchmark.scores.softmax_response\n{text}")
    return path


@pytest.mark.parametrize("kind", [str, Path])
def test_own_methods_are_listed_and_leave_the_public_names_alone(plugin: Path, kind: Any) -> None:
    """A plugin of an earlier version imports `benchmark.scores`, which now is the checked module."""
    assert sb.methods(plugins=[kind(plugin)])["Mine"].file == "mine"
    with pytest.raises(ValueError):
        sb.scores.margin([1.0, 2.0])


def test_a_plugin_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(sb.UserError, match="is not a Python file that exists"):
        sb.methods([tmp_path / "nothing.py"])


def test_an_empty_catalogue_prints_nothing() -> None:
    assert repr(names.Catalogue[str]({}, str)) == ""
