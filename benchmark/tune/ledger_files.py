"""Read and write the ledger of a task, its sheets, and the task files of the winners."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from benchmark.base.errors import UserError
from benchmark.base.files import Damaged, write_atomically
from benchmark.base.names import is_plain
from benchmark.base.program import program
from benchmark.config.load import task_path
from benchmark.config.task import TaskConfig
from benchmark.jobs.job import Methods
from benchmark.store.store import Store
from benchmark.tables import render
from benchmark.tables.render.write import write_files
from benchmark.tune.ledger import (
    add_to_ledger,
    choices_of,
    ledger_sheets,
    trials_of,
    trials_sheet,
    tuned_name,
    tuned_tasks,
)
from benchmark.tune.search import PlannedTrial, read_trials, with_makers


@dataclass(frozen=True)
class LedgerFiles:
    """The files of a search: the ledger of its task, and what is written from it."""

    store: Store
    task: TaskConfig
    named: str
    """How the command line names the task."""
    label: str
    """The method that is searched."""

    @property
    def folder(self) -> Path:
        return self.store.root / "tune"

    @property
    def place(self) -> Path:
        return Path("tune", f"{self.task.name}.json")

    @contextmanager
    def kept(self, tried: Sequence[PlannedTrial], methods: Methods, split: str, seeds: int) -> Iterator[None]:
        """Enter all trials before they run, so that unfinished ones count too, and their results when the run ends."""
        self.write(tried, methods, split, seeds)
        try:
            yield
        finally:
            self.write(tried, methods, split, seeds)

    def write(self, tried: Sequence[PlannedTrial], methods: Methods, split: str, seeds: int) -> None:
        """Enter all trials into the ledger, whether they are run or not; write the winners as task files."""
        name, owner = self.task.name, tried[0].entry.method
        trials = read_trials(tried, methods.get(owner), split, self.store)
        fixed = {"task": name, "title": self.task.title, "extends": extended(self.named)}
        self.folder.mkdir(exist_ok=True)
        with FileLock(self.folder / f"{name}.lock"):
            before = self.read() or fixed
            if before["extends"] != fixed["extends"]:
                where = self.store.root / self.place
                raise UserError(f"'{where}' is the ledger of {before['extends']}; use another --results")
            known = with_makers(trials_of(before, self.label), name, owner, self.store)
            ledger = add_to_ledger(before | fixed, self.label, known, trials, range(seeds))
            files = tuned_tasks(ledger)
            self.store.replace_json(self.place, ledger | {"files": list(files)})
            write_files(self.folder, name, ledger_sheets(ledger))
            for winner, text in files.items():
                write_atomically(self.folder / f"{winner}.toml", text.encode())
            for winner in before.get("files", []):
                if winner not in files and is_plain(winner):
                    (self.folder / f"{winner}.toml").unlink(missing_ok=True)

    def read(self) -> dict[str, Any] | None:
        """Return the ledger; None where there is none. A damaged one is moved aside when the new one is written."""
        with suppress(Damaged):
            return self.store.read_json(self.place)
        return None

    def text(self, plugins: Sequence[Path]) -> str:
        """Return the trials of the method as a table, how to run the winner, and where the ledger is."""
        ledger = self.read() or {}
        entry, trials = ledger["methods"][self.label], trials_of(ledger, self.label)
        lines = [render.markdown([trials_sheet(self.label, trials, choices_of(entry))])]
        best = next((trial for trial in trials if trial.job == entry["chosen"]), None)
        if best is not None:
            path = self.folder / f"{tuned_name(self.task.name, best.changes)}.toml"
            used = "".join(f" --plugin {plugin}" for plugin in plugins)
            lines.append(f"Run the winner with: {program()} --datasets {path}{used}")
        return "\n".join([*lines, f"Ledger: {self.folder / self.task.name}.md"])


def extended(task: str) -> str:
    """Return how the tuned task names the one it extends: by name, or by the whole path of a file."""
    path = task_path(task)
    return str(path.resolve()) if task.endswith(".toml") or "/" in task else path.stem
