"""The directions of the arrows, and sizes that keep the code readable."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from methods import Registry, built_in_names

ROOT = Path(__file__).resolve().parent.parent
CORE = sorted((ROOT / "benchmark").rglob("*.py"))
METHODS = sorted((ROOT / "methods").glob("*.py"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_the_core_never_imports_a_method() -> None:
    assert not [path for path in CORE if any(name.split(".")[0] == "methods" for name in imports(path))]


def test_methods_know_only_the_contract() -> None:
    allowed = {f"benchmark.{name}" for name in ("interface", "limits", "prediction", "schema", "scores")}
    for path in METHODS:
        if path.stem != "__init__":
            ours = {name for name in imports(path) if name.split(".")[0] == "benchmark"}
            assert ours <= allowed, path


def test_the_core_names_no_method() -> None:
    registry = Registry()
    names = {*built_in_names(), *(label for name in registry.names() for label in registry.get(name).labels)} - {
        "SR"
    }  # also a score
    pattern = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, names))})(?![\w-])", re.IGNORECASE)
    for path in CORE:
        assert not pattern.search(path.read_text()), path


@pytest.mark.parametrize("command", [["--help"], ["run", "--help"], ["tables", "--help"]])
def test_help_does_without_torch(command: list[str]) -> None:
    script = (
        "import sys, runpy; sys.argv = ['run_all.py', *sys.argv[1:]]\n"
        "try: runpy.run_path('run_all.py', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "sys.exit('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script, *command], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0
    assert "usage" in result.stdout


def functions() -> list[tuple[str, int]]:
    return [
        (f"{path.relative_to(ROOT)}:{node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for path in [*CORE, *METHODS, ROOT / "run_all.py"]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    ]


def test_sizes() -> None:
    assert not [(name, lines) for name, lines in functions() if lines > 60]
    assert not [path for path in CORE if len(path.read_text().splitlines()) > 320]
    assert not [path for path in METHODS if len(path.read_text().splitlines()) > (320 if path.stem[0] == "_" else 120)]
    assert len((ROOT / "run_all.py").read_text().splitlines()) <= 60


def counts_in(path: Path) -> list[str]:
    """What an f-string says right behind `len(…)`, and every `thing(s)`."""
    strings = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.JoinedStr)]
    pairs = [pair for string in strings for pair in zip(string.values, string.values[1:], strict=False)]
    behind = [
        f"{ast.unparse(value.value)}{text.value}"
        for value, text in pairs
        if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant)
    ]
    return [
        text
        for text in behind
        if re.match(r"len\(.*\) (?:[a-z]+ )?(?:jobs|runs|cells|tables|files|images|columns|pairs)\b|.*\w\(s\)", text)
    ]


def test_a_message_about_one_thing_is_not_in_the_plural() -> None:
    """`1 jobs`, `1 image(s)`: `units.counted` knows better. Environments are compared as text and stay as they were."""
    found = {path.name: texts for path in CORE if path.stem != "provenance" and (texts := counts_in(path))}
    assert not found


def test_no_device_is_named_and_nothing_is_read_back_in_a_method() -> None:
    for path in METHODS:
        assert not re.search(r"\.cuda\(|\.item\(\)|\.cpu\(\)|\.tolist\(\)", path.read_text()), path
