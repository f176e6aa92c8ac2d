"""The directions of the arrows, and sizes that keep the code readable."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx
import pytest

from benchmark.cli import COMMANDS
from methods import Registry, built_in_names

ROOT = Path(__file__).resolve().parent.parent
CORE = sorted((ROOT / "benchmark").rglob("*.py"))
DOOR = ROOT / "benchmark" / "__main__.py"
"""Brings the methods to the core, and shows in examples how to name some."""
METHODS = sorted((ROOT / "methods").glob("*.py"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


ORDER = (
    "base < config, measure < interface, store < data, tables, imports < jobs, report, certificates"
    " < train, paper, tune, live < launch, figures, check, selector < forecast < doctor < library < commands < cli"
    " < __main__"
)
"""The chain of values. A package imports only from its left: neither from its right nor from beside it."""
MAY_IMPORT = {
    "base": "",
    "config": "base",
    "measure": "base",
    "interface": "base measure",
    "store": "base measure",
    "data": "base config interface",
    "tables": "base config measure store",
    "imports": "base measure store",
    "jobs": "base config measure interface store data",
    "certificates": "base measure store tables",
    "report": "base config measure store tables",
    "train": "base config measure interface store data jobs",
    "paper": "base config measure interface store tables jobs",
    "tune": "base config measure interface store tables jobs",
    "live": "base report store tables",
    "launch": "base config measure store data tables jobs train paper tune live",
    "figures": "base measure store tables certificates paper",
    "check": "base config measure interface data jobs train",
    "selector": "base config measure interface store data train",
    "forecast": "base config interface store data jobs train launch figures",
    "doctor": "base config interface store data jobs train paper launch check forecast",
    "library": "base config measure interface store data tables imports jobs report certificates train paper tune"
    " live launch figures check selector forecast doctor",
    "commands": "base library",
    "cli": "base",
    "__main__": "base cli",
}
"""What each package imports. A new arrow is entered here, where ORDER allows it."""
LEVEL = {name: index for index, names in enumerate(ORDER.split(" < ")) for name in names.split(", ")}
ALLOWED = {(source, target) for source, targets in MAY_IMPORT.items() for target in targets.split()}
WITHOUT_TORCH = ("base", "config", "measure", "store", "tables", "imports", "certificates", "figures", "report", "live")
MOST_FILES = 13
BY_COMMAND = ("benchmark/commands", "benchmark/library")
"""Folders with a file for each thing that one can do."""
MOST_HIDDEN_IMPORTS = 14
HEAVY = ("torch", "matplotlib", "scipy", "sklearn", "pandas")
"""What takes long to import. Help does without it."""


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in CORE}


def package_of(module: str) -> str:
    """`benchmark.tables.render.latex` belongs to `tables`."""
    return module.split(".")[1] if "." in module else ""


def imported_modules(node: ast.AST) -> Iterator[str]:
    """Modules of ours that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in MODULES)
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "benchmark":
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            yield full if full in MODULES else str(node.module)


def edges(*, hidden: bool = True) -> set[tuple[str, str]]:
    """Which module imports which, also within functions unless `hidden` is False. Types alone do not count."""
    found = set()
    for name, path in MODULES.items():
        nodes: list[ast.AST] = [ast.parse(path.read_text())]
        while nodes:
            node = nodes.pop()
            found |= {(name, target) for target in imported_modules(node)}
            for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            later = isinstance(node, ast.FunctionDef) and not hidden
            nodes += [] if for_types or later else ast.iter_child_nodes(node)
    return found


def test_every_package_has_its_place() -> None:
    packages = {path.name for path in (ROOT / "benchmark").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert packages | {"interface", "cli", "__main__"} == set(MAY_IMPORT) == set(LEVEL)


def test_what_may_be_imported_is_in_order() -> None:
    assert not [f"{source} -> {target}" for source, target in ALLOWED if LEVEL[target] >= LEVEL[source]]


def test_no_step_back() -> None:
    """Every arrow between packages is in the table, and every one of the table is there."""
    arrows = {(package_of(source), package_of(target)): f"{source} -> {target}" for source, target in edges()}
    between = {arrow: edge for arrow, edge in arrows.items() if arrow[0] != arrow[1] and all(arrow)}
    assert not [edge for arrow, edge in between.items() if arrow not in ALLOWED]
    assert not ALLOWED - set(between)


def test_no_circle_not_even_a_hidden_one() -> None:
    graph = networkx.DiGraph([(source, target) for source, target in edges() if source != target])
    assert not [" -> ".join(circle) for circle in networkx.simple_cycles(graph)]


@pytest.mark.parametrize("package", WITHOUT_TORCH)
def test_no_torch_where_results_are_only_read(package: str) -> None:
    """Not in the package itself, nor in what its modules import."""
    graph = networkx.DiGraph(edges(hidden=False))
    with_torch = {name for name, path in MODULES.items() if {each.split(".")[0] for each in imports(path)} & {"torch"}}
    own = [name for name in MODULES if package_of(name) == package]
    reached = {
        (name, other)
        for name in own
        for other in ({name} | (networkx.descendants(graph, name) if name in graph else set()))
    }
    assert not sorted(f"{name} -> {other} -> torch" for name, other in reached if other in with_torch)


def test_few_imports_are_hidden_in_functions() -> None:
    """Only where they keep what takes long to import off the start path. Each command has one, of the library."""
    at_the_top = edges(hidden=False)
    graph = networkx.DiGraph(at_the_top)
    heavy = {
        name for name, path in MODULES.items() if {each.split(".")[0] for each in imports(path)} & {*HEAVY, "methods"}
    }
    hidden = edges() - at_the_top
    idle = [f"{s} -> {t}" for s, t in hidden if not ({t} | networkx.descendants(graph, t)) & heavy]
    assert not idle
    others = sorted(edge for edge in hidden if (package_of(edge[0]), package_of(edge[1])) != ("commands", "library"))
    assert len(others) <= MOST_HIDDEN_IMPORTS, others


def test_arguments_end_where_commands_do() -> None:
    """What lies below them takes values."""
    names = {name for name, path in MODULES.items() if "argparse" in imports(path)}
    assert {package_of(name) for name in names} == {"commands", "cli"}


def test_no_command_imports_another() -> None:
    named = {f"benchmark.commands.{name}" for name in COMMANDS}
    assert not [edge for edge in edges() if edge[0] in named and edge[1] in named]


def test_a_folder_can_be_seen_at_a_glance() -> None:
    folders = {path.parent for path in CORE}
    sizes = {str(folder.relative_to(ROOT)): len(list(folder.glob("[a-z]*.py"))) for folder in folders}
    assert not {name: size for name, size in sizes.items() if size > MOST_FILES and name not in BY_COMMAND}


def test_tests_lie_in_the_folders_of_what_they_test() -> None:
    mirrored = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and list(path.glob("test_*.py"))}
    assert mirrored - set(MAY_IMPORT) == {"device", "docs", "methods"}


def test_the_map_for_newcomers_is_complete() -> None:
    """CONTRIBUTING shows every package with the level at which it stands in the order, and no other."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    tree = text[text.index("benchmark/") : text.index("```", text.index("benchmark/"))]
    shown = re.findall(r"^ +(\d+) +(\w+)(?:/|\.py) ", tree, re.MULTILINE)
    assert {name: int(level) for level, name in shown} == LEVEL
    assert len(tree.splitlines()) <= 30


def definitions(path: Path) -> set[str]:
    """The functions and classes of a module, and the methods of its classes as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return found


def test_the_way_of_a_run_names_what_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    way = text[text.index("The way of `python run_all.py") : text.index("### Words")]
    steps = re.findall(r"^\d+\. .*", way, re.MULTILINE)
    named = re.findall(r"`((?:\w+/)+\w+|cli)\.([\w.]+)`", "\n".join(steps))
    assert len(steps) <= 25
    assert len(named) >= len(steps)
    assert not [name for name in named if name[1] not in definitions(ROOT / "benchmark" / f"{name[0]}.py")]


def test_the_core_never_imports_a_method() -> None:
    """Only the library, which programs call without bringing any, looks for them, and in one place."""
    importing = [
        name for name, path in MODULES.items() if any(each.split(".")[0] == "methods" for each in imports(path))
    ]
    assert importing == ["benchmark.library.registry"]


def test_messages_name_the_program_that_was_called() -> None:
    """Not `run_all.py`, which is there in a clone alone."""
    found = {path.relative_to(ROOT).as_posix() for path in CORE if "run_all.py" in path.read_text()}
    assert found == {"benchmark/__main__.py", "benchmark/base/program.py"}


def test_methods_know_only_the_contract() -> None:
    for path in METHODS:
        if path.stem != "__init__":
            ours = {name for name in imports(path) if name.split(".")[0] == "benchmark"}
            assert ours <= {"benchmark.interface"}, path


def test_the_core_names_no_method() -> None:
    registry = Registry()
    names = {*built_in_names(), *(label for name in registry.names() for label in registry.get(name).labels)}
    names -= {"SR", "SURE", "sure"}  # a score, and a word unless it is in capitals
    pattern = re.compile(rf"(?<![\w-])((?i:{'|'.join(map(re.escape, names))})|SURE)(?![\w-])")
    assert [path for path in CORE if pattern.search(path.read_text())] == [DOOR]


def loaded_by_help(*words: str) -> tuple[str, list[str]]:
    """The help of a command, and what it imports of all that takes long to import."""
    script = (
        "import sys, runpy; sys.argv = ['run_all.py', *sys.argv[1:]]\n"
        "try: runpy.run_path('run_all.py', run_name='__main__')\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", script, *words, "--help"], cwd=ROOT, capture_output=True, text=True)
    return result.stdout, ast.literal_eval(result.stderr)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_imports_nothing_that_takes_long(command: str) -> None:
    """Every command's parser is made for the help of any."""
    text, loaded = loaded_by_help(*filter(None, [command]))
    assert "usage" in text
    assert not loaded


def test_asking_for_something_costs_nothing() -> None:
    """The options of the library can be made, and refused, without numpy."""
    script = "import sys, benchmark.library.options; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT).returncode == 0


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
