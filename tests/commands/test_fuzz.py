"""Whatever stands in a task file or on the command line: it means something, or is refused in one line."""

import contextlib
import io
import resource
import string
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from benchmark.base.errors import UserError
from benchmark.cli import main, parse
from benchmark.config.load import load_task, task_names
from benchmark.config.task import TaskConfig
from tests.conftest import TINY

MEMORY = 2 * 10**9
"""Bytes that the tests of this file may take beyond what the process has when they begin."""


@pytest.fixture(autouse=True, scope="module")
def limited_memory() -> Iterator[None]:
    """What eats memory fails a test, and not the machine.

    The limit is on written data: of addresses, which a torch for GPUs reserves without end, there may be any number.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        yield  # nowhere but on Linux is the limit kept
        return
    used = 1024 * int(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmData:")))
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = [used + MEMORY, *(limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the limit is kept on Linux")
def test_the_memory_of_these_tests_is_limited() -> None:
    with pytest.raises(MemoryError):
        bytearray(2 * MEMORY)


QUIETLY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def load_text(text: str | bytes, folder: Path) -> TaskConfig | None:
    """The task that a file describes; None where it was refused in one line. Nothing else may happen."""
    path = folder / "fuzzed.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    try:
        return load_task(str(path))
    except UserError as error:
        assert str(error)
        assert "\n" not in str(error), error
        return None


@QUIETLY
@given(st.binary(max_size=300))
def test_any_bytes_as_a_task(tmp_path: Path, content: bytes) -> None:
    load_text(content, tmp_path)


@QUIETLY
@given(st.data())
def test_a_task_with_some_of_its_text_changed(tmp_path: Path, data: st.DataObject) -> None:
    """Cut, doubled, or written over, as editors and merges do it."""
    start = data.draw(st.integers(0, len(TINY)))
    end = data.draw(st.integers(start, min(start + 40, len(TINY))))
    middle = data.draw(st.one_of(st.text(max_size=20), st.just(TINY[start:end] * 2)))
    load_text(TINY[:start] + middle + TINY[end:], tmp_path)


LARGE = [2**31, 10**10, 10**22, 1e300, 5e-324]
SCALARS = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.sampled_from(["", "-1", "1_0", "٣", *LARGE])
)
NAMES = st.text(string.ascii_letters, min_size=1)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=5
)


def toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = "".join(f"\\u{ord(c):04x}" if not c.isalnum() and ord(c) < 0xD800 else c for c in value)
        return f'"{escaped if escaped.isprintable() else "odd"}"'
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    return str(value)


PLAIN = tomllib.loads(TINY)
KEYS = [(None, key) for key in PLAIN if not isinstance(PLAIN[key], dict)]
KEYS += [(table, key) for table in ("data", "network", "augment", "optimizer") for key in PLAIN[table]]


@QUIETLY
@given(st.sampled_from(KEYS), VALUES)
@example((None, "seeds"), 10**10)
@example((None, "epochs"), 10**12)
def test_any_value_of_any_key(tmp_path: Path, key: tuple[str | None, str], value: Any) -> None:
    tables = {name: dict(table) if isinstance(table, dict) else table for name, table in PLAIN.items()}
    (tables if key[0] is None else tables[key[0]])[key[1]] = value
    scalars = {name: inner for name, inner in tables.items() if not isinstance(inner, dict) or name == key[1]}
    text = "\n".join(f"{name} = {toml(inner)}" for name, inner in scalars.items())
    for name in ("data", "network", "augment", "optimizer"):
        text += f"\n[{name}]\n" + "\n".join(f"{k} = {toml(v)}" for k, v in tables[name].items())
    if load_text(text, tmp_path) is not None:
        plan_or_refuse(["--datasets", str(tmp_path / "fuzzed.toml")], tmp_path / "results")


def plan_or_refuse(words: list[str], results: Path) -> None:
    """The whole command up to its plan, which leaves nothing behind."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*words, "--dry-run", "--results", str(results)])
    assert code in (0, 2)
    if code == 2:
        assert err.getvalue().startswith("error: ")
        assert err.getvalue().count("\n") == 1, err.getvalue()
    assert not results.exists()


WORDS = [
    "run", "tables", "list", "paper", "audit", "explain", "diff", "tune", "check", "figures", "prepare", "--datasets",
    "--methods", "--seeds", "--seed-list", "--coverages", "--reference", "--test", "--holm", "--set", "--workers",
    "--retries", "--redo-stale", "--device", "--dry-run", "--json", "--results", "--max-steps", "--scores", "--amp",
    "digits", "sr", "ccl-sc", "90", "5", "0", "-1", "nan", "epochs=3", "lr=x", "--", "-", "=", "--=", "-q", "-v",
]  # fmt: skip


@QUIETLY
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=7))
def test_any_words_on_the_command_line(words: list[str]) -> None:
    """Understood, refused in one line, or answered with the help."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            parse(words, "")
    except UserError as error:
        assert "\n" not in str(error)
    except SystemExit as end:
        assert end.code == 0
        assert {"-h", "--help"} & set(words)


@QUIETLY
@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=30)
)  # which no shell can pass on
@pytest.mark.parametrize("flag", ["--datasets", "--methods", "--set", "--reference", "--plugin", "--device"])
def test_any_text_after_a_flag(tmp_path_factory: pytest.TempPathFactory, flag: str, text: str) -> None:
    """To the plan of a grid, by the whole command."""
    if text.strip().lower() in ("", "all", *task_names()) or text.startswith("-"):
        return
    folder = tmp_path_factory.getbasetemp() / "words"
    folder.mkdir(exist_ok=True)
    task = folder / "tiny.toml"
    task.write_text(TINY)
    chosen = [] if flag == "--datasets" else ["--datasets", str(task)]
    plan_or_refuse([*chosen, flag, text], folder / "results")
