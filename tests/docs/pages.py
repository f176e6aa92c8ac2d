"""The pages of the documentation: their fenced blocks, and the commands in these.

A block of commands is marked `bash`. A command that cannot be tried on any machine has a visible mark on the page:
words of `MARKS` in its remark or above its block, or a word in capitals that stands for something of the reader's.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

OWN = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
"""Pages in which every block says what it is."""
PAGES = [*OWN, ROOT / "CONTRIBUTING.md", ROOT / "results" / "README.md", ROOT / "results" / "speed.md"]
PROGRAMS = ("python ", "pip ", "pytest", "pre-commit ", "selbench ", "mkdocs ")
"""With what a command begins, in blocks that do not say what they are."""
LANGUAGES = ("bash", "python", "toml", "yaml", "text")
MARKS = re.compile(r"\b[Nn]eeds (a GPU|a cluster|data|Ray)\b|\btakes (minutes|90 seconds)\b|\bruns until Ctrl-C\b")
PLACEHOLDERS = re.compile(r"\b(DIR|FILE|NAME|BUCKET|FOLDER|HOST|FIRST)\b")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the title of the file that it is, and the line of text above it."""

    page: Path
    language: str
    title: str
    above: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command as a reader would type it, with what the page says of it."""

    page: Path
    text: str
    remark: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text.partition(" > ")[0])

    @property
    def is_marked(self) -> bool:
        return bool(MARKS.search(self.remark) or PLACEHOLDERS.search(self.text))

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.text}"


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    above, lines = "", iter(page.read_text(encoding="utf-8").splitlines())
    for line in lines:
        fence = re.match(r' *```(\w*)(?: title="(.*)")?$', line)
        if fence:
            content = []
            for inner in lines:
                if inner.strip() == "```":
                    break
                content.append(inner)
            yield Block(page, fence[1], fence[2] or "", above, "\n".join(content) + "\n")
        elif line.strip():
            above = line


def commands(page: Path) -> list[Command]:
    """Return the commands of a page in their order."""
    return [command for block in blocks(page) for command in commands_of(block)]


def commands_of(block: Block) -> Iterator[Command]:
    """Yield the commands of a block; what a page says above it holds for all of them."""
    above = block.above if block.above.startswith("*Needs") else ""
    for line in block.text.replace("\\\n", " ").splitlines():
        text, _, remark = line.partition(" #")
        is_command = text.strip() and not line.startswith("#")
        if is_command and (block.language == "bash" or (not block.language and line.startswith(PROGRAMS))):
            for part in re.split(r' && (?=(?:[^"]*"[^"]*")*[^"]*$)', text):  # but not within quotes
                yield Command(block.page, part.strip(), f"{above} {remark}")


def name_of(page: Path) -> str:
    """Return how a test calls a page."""
    return page.relative_to(ROOT).as_posix()
