"""What can be seen of the pages without running anything: every command is one that there is."""

import ast
import importlib.util
import io
import re
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from benchmark.cli import parse
from tests.conftest import ROOT
from tests.docs.pages import LANGUAGES, OWN, PAGES, Command, blocks, commands, name_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SUITE = (["python", "run_all.py"], ["selbench"], ["python", "-m", "benchmark"])


def arguments(command: Command) -> list[str] | None:
    """Return the arguments of a command of the suite; None of any other program."""
    for program in SUITE:
        if command.words[: len(program)] == program:
            return command.words[len(program) :]
    return None


def check_install(words: list[str]) -> None:
    """Every extra that is installed is one of the project."""
    extras = PROJECT["project"]["optional-dependencies"]
    for word in words:
        if match := re.fullmatch(r"(?:\.|selbench)\[(.*)\]", word):
            assert set(match[1].split(",")) <= set(extras), word


def check_pytest(words: list[str]) -> None:
    """The marker is registered, the file is there."""
    markers = {line.partition(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    if "-m" in words:
        assert set(re.findall(r"\w+", words[words.index("-m") + 1])) - {"or"} <= markers
    for word in words:
        assert not word.startswith("tests/") or (ROOT / word.partition("::")[0]).exists(), word


def check_module(words: list[str]) -> None:
    assert importlib.util.find_spec(words[0]), words[0]


CHECKS = {
    ("pip", "install"): check_install,
    ("pytest",): check_pytest,
    ("python", "-m"): check_module,
    ("mkdocs", "serve"): lambda words: None,  # test_site.py builds the site
    ("pre-commit", "install"): lambda words: None,
}
"""By the first words of commands that change the machine or take long, what can be seen without running them."""


def test_there_are_commands_on_nearly_every_page() -> None:
    found = [commands(page) for page in PAGES]
    assert sum(map(len, found)) > 100
    assert sum(map(bool, found)) > 20


@pytest.mark.parametrize("page", OWN, ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    assert [block.text for block in blocks(page) if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_suite_understands_its_commands(page: Path) -> None:
    """Also where the reader needs a GPU or data: an option that was renamed is found."""
    for command in commands(page):
        words = arguments(command)
        if words is not None:
            understand(words)


def understand(words: list[str]) -> None:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
        try:
            parse(words, "")
        except SystemExit as end:
            assert (end.code, out.getvalue()[:6]) == (0, "usage:"), words


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_other_commands_are_known_or_marked(page: Path) -> None:
    for command in commands(page):
        if arguments(command) is None and not command.is_marked:
            words = command.words
            checks = [(check, words[len(start) :]) for start, check in CHECKS.items() if starts(words, start)]
            assert checks, f"{command}: neither tried nor marked; name what it needs, see MARKS in tests/docs/pages.py"
            for check, rest in checks:
                check(rest)


def starts(words: list[str], start: tuple[str, ...]) -> bool:
    return tuple(words[: len(start)]) == start


def test_files_and_anchors_that_pages_link_to_exist() -> None:
    missing = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
            path = (page.parent / target).resolve() if target else page
            if "://" in target:
                continue
            if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
                missing.append(f"{name_of(page)}: {target}#{anchor}")
    assert missing == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) - 2 <= 12
    assert max(row.count("|") - 1 for row in rows) <= 8


def test_extras_of_the_site_are_listed() -> None:
    listed = (ROOT / "docs" / "dependencies.md").read_text()
    for line in PROJECT["project"]["optional-dependencies"]["docs"]:
        assert f"{Requirement(line).name} (" in listed


def test_every_word_of_the_site_comes_from_a_page() -> None:
    """The navigation names each page once (a strict build says which is missing)."""
    listed = re.findall(r"([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert {page.name for page in OWN[1:]} <= set(listed)


def test_the_messages_of_the_questions_are_those_of_the_code() -> None:
    """What is bold in a part about messages, piece by piece between `…`, is in a text of the code."""
    page = (ROOT / "docs" / "faq.md").read_text().split("## Which number")[0]
    texts = "\n".join(text for path in (ROOT / "benchmark").rglob("*.py") for text in texts_of(path))
    messages = [message for message in re.findall(r"^\*\*(.*?)\*\*", page, re.MULTILINE) if message[-1] != "."]
    assert len(messages) > 15
    pieces = [piece.strip(" :%;'?") for message in messages for piece in re.split("…|10|20", message)]
    assert [piece for piece in pieces if piece not in texts] == []


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of a module; of those with values in them, the pieces between."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
