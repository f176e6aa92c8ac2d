"""Check the published tables against themselves."""

from dataclasses import dataclass

from benchmark.paper.audit import Mismatch, audit
from benchmark.tables import render
from benchmark.tables.model import Sheet


@dataclass(frozen=True)
class Audit:
    """What the published tables say about themselves, recomputed, and where they contradict it."""

    sheets: tuple[Sheet, ...]
    findings: tuple[Mismatch, ...]

    def text(self) -> str:
        lines = "\n".join(f"- {finding.table}: {finding.what}" for finding in self.findings)
        return f"{render.markdown(self.sheets)}\n{len(self.findings)} inconsistencies:\n\n{lines}"


def audit_paper() -> Audit:
    """Recompute what the published tables say about themselves, and list where they contradict it."""
    sheets, findings = audit()
    return Audit(tuple(sheets), tuple(findings))
