"""What mkdocs cannot do by itself: pages that lie outside docs/, and links out of it."""

import posixpath
import re
from pathlib import Path

from markdown import Extension, Markdown
from markdown.blockprocessors import build_block_parser
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changes.md": "CHANGELOG.md",
    "results.md": "results/README.md",
    "speed.md": "results/speed.md",
}
"""By page of the site, the file that it is."""
PAGES = {source: page for page, source in OUTSIDE.items()}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")


class TwoSpaces(Extension):
    """Nests what is indented by two spaces, as everybody but Python-Markdown does."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.tab_length = 2
        md.parser = build_block_parser(md)


def on_config(config: MkDocsConfig) -> None:
    config.markdown_extensions.insert(0, TwoSpaces())  # before the extensions that add to the parser


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages that lie outside docs/, and the pictures that they show."""
    for page, source in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
        for is_picture, _, path, _ in LINK.findall((ROOT / source).read_text(encoding="utf-8")):
            if is_picture:
                picture = resolved(source, path)
                files.append(File.generated(config, picture, abs_src_path=str(ROOT / picture)))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page with the links of the repository turned into links of the site."""
    here = page.file.src_uri
    source = OUTSIDE.get(here, f"docs/{here}")
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else linked(part, here, source) for part in parts)


def linked(text: str, here: str, source: str) -> str:
    """Return a text of the page `here`, whose file is `source`, with the links of the site."""

    def replace(match: re.Match[str]) -> str:
        picture, words, path, anchor = match.groups(default="")
        if not path or "://" in path:
            return match[0]
        target = resolved(source, path)
        if picture or target in PAGES or target.startswith("docs/"):
            page = PAGES.get(target, target.removeprefix("docs/"))
            return f"{picture}[{words}]({posixpath.relpath(page, posixpath.dirname(here) or '.')}{anchor})"
        return words if words.strip("`").rstrip("/") in target else f"{words} (`{target}`)"

    return LINK.sub(replace, text)


def resolved(source: str, path: str) -> str:
    """Return what a link in a file of the repository points to, as a path from its top."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
