"""The site builds without a warning, and needs nothing from other servers."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.docs
LOADED = re.compile(
    r"<(?:link|script|img|iframe|source|object|embed)\b[^>]*?\b(?:href|src|data)=[\"']?(?:https?:)?//([^\"' >]*)"
    r"|url\([\"']?(?:https?:)?//([^\"')]*)|@import\s+[\"'](?:https?:)?//([^\"']*)",
    re.IGNORECASE,
)
"""What a browser fetches by itself; a link that a reader clicks is none."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".css")]
    assert len(files) > 35
    assert {path.name: found for path in files if (found := LOADED.findall(path.read_text(encoding="utf-8")))} == {}


def test_the_pages_outside_docs_are_there(site: Path) -> None:
    titles = {"index": "selbench", "contributing": "Contributing", "changes": "Changelog", "results": "Results"}
    for name, title in titles.items():
        assert f">{title}<" in (site / f"{name}.html").read_text(encoding="utf-8")
    assert (site / "results" / "reference" / "risk-coverage.png").stat().st_size > 10_000


def test_the_python_reference_has_every_public_name(site: Path) -> None:
    import benchmark as sb

    text = (site / "api.html").read_text(encoding="utf-8")
    assert [name for name in sb.__all__ if f"sb.{name}" not in text] == []
    assert ">>>" not in re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL).replace("&gt;", ">"), "examples are code"


def test_links_to_what_is_no_page_are_words(site: Path) -> None:
    broken = [path.name for path in site.glob("*.html") if re.search(r'href="[^":#]*\.md', path.read_text())]
    assert broken == []


def test_the_code_that_builds_the_site_is_no_part_of_it(site: Path) -> None:
    assert not list(site.rglob("*.py"))
