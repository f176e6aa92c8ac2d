"""Make the page that follows a results folder, in sections: only those that have changed are made and sent again."""

import hashlib
import threading
import time
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from benchmark.live.curves import KnownCurves, curves_figure
from benchmark.live.journal import Commands, Progress
from benchmark.live.now import now_section
from benchmark.report.markup import Markup, tag
from benchmark.report.page import head, navigation, overview, top_bar
from benchmark.report.parts import Part, fingerprint
from benchmark.report.update import Makers, find_part, in_order
from benchmark.store.manifest import Manifest
from benchmark.store.read_only import ReadOnlyStore

TITLE = "Selective classification: live"
COST_SHARE = 0.1
"""The share of the time that may be spent on tables and curves: the run goes on beside it."""
LEAST_SECONDS = 1.0
Sections = dict[str, Markup]


@cache
def asset(name: str) -> str:
    return files("benchmark.live").joinpath(name).read_text(encoding="utf-8")


class Content:
    """What the page of a results folder shows. Requests of several threads take turns."""

    def __init__(self, store: ReadOnlyStore, makers: Makers) -> None:
        self.store, self.makers = store, makers
        self.commands, self.curves = Commands(store.root), KnownCurves(store)
        self.parts: dict[tuple[str, str], tuple[str, Part | None]] = {}
        self.lasting: Sections = {}
        self.not_before = 0.0
        self.turn = threading.Lock()

    def sections(self) -> Sections:
        """Return the sections by name, in their order. Progress is always new, the rest as often as it may cost."""
        with self.turn:
            progress = self.commands.read()
            began = time.monotonic()
            if began >= self.not_before:
                self.lasting = dict(self.made(progress))
                took = time.monotonic() - began
                self.not_before = began + max(LEAST_SECONDS, took / COST_SHARE)
            return {"now": marked("now", now_section(progress)), **self.lasting}

    def close(self) -> None:
        """Close the journals."""
        self.commands.close()

    def versions(self) -> dict[str, str]:
        """Return a hash of each section."""
        return {name: version_of(section) for name, section in self.sections().items()}

    def page(self) -> str:
        """Return the whole page as it is now."""
        sections = self.sections()
        links = sections.pop("links")
        again = tag("noscript", Markup('<meta http-equiv="refresh" content="10">'))
        scripts = [tag("script", src=f"/{name}", defer=True) for name in ("report.js", "live.js")]
        lines = head(tag("style", Markup(asset("live.css"))), again, *scripts, title=TITLE, policy=Markup())
        silent = tag("p", "No answer from the server; what is shown is old.", id="silent", hidden=True, role="status")
        skip = tag("a", "Skip to the results", href="#main", class_="skip")
        body = tag("body", skip, top_bar(links), silent, tag("main", sections.values(), id="main"))
        return f'<!doctype html>\n<html lang="en">{lines}{body}</html>\n'

    def made(self, progress: list[Progress]) -> Iterator[tuple[str, Markup]]:
        """Yield what shows the records: links, curves, cards, and a part for each manifest."""
        manifests = in_order(self.store)
        parts = [part for kind, manifest in manifests if (part := self.part(kind, manifest)) is not None]
        curves = self.curves.by_task((manifest for kind, manifest in manifests if kind == "task"), progress)
        at_work = {job.facts.task for each in progress for job in each.jobs}
        figures = [curves_figure(task, runs, is_open=task in at_work) for task, runs in curves.items() if runs]
        yield "links", navigation(parts, data_section="links")
        yield "curves", marked("curves", tag("section", figures, class_="part", id="curves"))
        yield "overview", marked("overview", overview(parts)) if parts else marked("overview", Markup())
        for part in parts:
            yield part.anchor, marked(part.anchor, part.section)

    def part(self, kind: str, manifest: Manifest) -> Part | None:
        """Return the part of a manifest; as it was before where no file of its runs has changed."""
        stamp, key = fingerprint(manifest, self.store)[0], (kind, manifest.name)
        if self.parts.get(key, ("",))[0] != stamp:
            self.parts[key] = (stamp, find_part(kind, manifest, self.store, self.makers))
        return self.parts[key][1]


def marked(name: str, body: Markup) -> Markup:
    """Return a section in an element by which the page's script finds it."""
    return tag("div", body, data_section=name)


def version_of(section: Markup) -> str:
    return hashlib.sha256(section.encode()).hexdigest()[:16]
