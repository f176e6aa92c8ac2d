"""The recorded run: whole, small, made of its own records, and comparable with a fresh one."""

import json
import re
import shutil
from pathlib import Path

import pytest

from benchmark.config.load import load_task
from benchmark.jobs.plan import label_owners, plan, resolve_config
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store, folder_of
from methods import Registry
from tests.conftest import run_here

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "results" / "reference"
TASKS = ("cifar10-cpu-tuned", "cifar100-cpu-tuned", "digits", "gaussians")
FEATURES = ("cifar10-features-tuned", "cifar100-features-tuned", "faces-features-tuned")
SEEDS = dict.fromkeys(TASKS, 5) | dict.fromkeys(FEATURES, 10)
REGISTRY = Registry()


def manifests() -> dict[str, Manifest]:
    return {manifest.task: manifest for manifest in Store(REFERENCE).manifests()}


def test_every_run_is_there_and_none_diverged() -> None:
    store, found = Store(REFERENCE), manifests()
    assert set(found) == set(SEEDS)
    for manifest in found.values():
        for entry in manifest.entries:
            assert entry.imported or entry.reason or entry.seeds == tuple(range(SEEDS[manifest.task]))
            for seed in entry.seeds:
                record = store.read_sealed_record(folder_of(manifest.task, entry.method, entry.job, seed))
                assert record is not None and record.diverged is None, (manifest.task, entry.label, seed)


def test_only_small_things_are_kept() -> None:
    files = [path for path in REFERENCE.rglob("*") if path.is_file()]
    assert not [path for path in files if path.suffix in (".npz", ".pt", ".lock")]
    assert sum(path.stat().st_size for path in files) < 40e6


def test_the_tables_are_those_of_the_records(tmp_path: Path) -> None:
    again = tmp_path / "reference"
    left_out = ("tables", "figures", "report.html", "*-features-tuned", "*-features-tuned.json")  # these take a minute
    shutil.copytree(REFERENCE, again, ignore=shutil.ignore_patterns(*left_out))
    assert run_here("tables", "--results", again).returncode == 0
    for task in TASKS:
        for name in (f"{task}.md", f"{task}-statistics.csv"):
            assert (again / "tables" / name).read_text() == (REFERENCE / "tables" / name).read_text(), name


def cells_of(text: str) -> dict[str, list[str]]:
    """Return the cells of all tables of a text by the first cell of their row."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    found: dict[str, list[str]] = {}
    for name, *cells in rows:
        found.setdefault(name, []).extend(cells)
    return found


def test_the_readmes_table_is_that_of_the_runs() -> None:
    text = (ROOT / "README.md").read_text()
    shown = cells_of(text[text.index("<!-- summary table: begin -->") : text.index("<!-- summary table: end -->")])
    whole = cells_of((REFERENCE / "tables" / "field.md").read_text())
    methods = [name for name in shown if set(name) - set(":-")]
    assert len(methods) == 13, "the heading, SR and eleven others"
    assert [shown[name] for name in methods] == [whole[name][: len(shown[name])] for name in methods]


def test_it_does_not_differ_from_itself() -> None:
    compared = run_here("diff", REFERENCE, REFERENCE)
    assert compared.returncode == 0, compared.stdout
    found = re.search(r"([\d,]+) of \1 runs of the same job are equal to the bit\.", compared.stdout)
    assert found and int(found[1].replace(",", "")) == sum(
        len(e.seeds) for m in manifests().values() for e in m.entries
    )


@pytest.mark.parametrize("task", ["cifar10-cpu", "cifar100-cpu"])
def test_the_tuned_tasks_have_the_settings_of_the_ledger(task: str) -> None:
    ledger = json.loads((REFERENCE / "tune" / f"{task}.json").read_text())
    tuned, owners = load_task(f"{task}-tuned"), label_owners(REGISTRY)
    for label, entry in ledger["methods"].items():
        chosen = next(trial["settings"] for trial in entry["trials"] if trial["job"] == entry["chosen"])
        config = vars(resolve_config(tuned, label, owners[label], REGISTRY.get(owners[label])))
        assert {name: config[name] for name in chosen} == chosen, label


LABELS_SINCE_CHANGED = {
    "CCL-SC frozen": ["momentum_order=after", "full_at=size"],
    "SelectiveNet": ["head_dropout=false"],
    "AdaFocal": ["binning=split"],
}
"""What the labels of the recorded run meant when it was made."""


@pytest.mark.parametrize("name", SEEDS)
def test_the_recorded_jobs_can_still_be_asked_for(name: str) -> None:
    """A setting added since leaves their ids alone, and a label that means more now can be set back."""
    store, manifest = Store(REFERENCE), manifests()[name]
    trained = [entry for entry in manifest.entries if entry.job and not entry.imported]
    labels = dict.fromkeys(entry.label for entry in trained)
    since = LABELS_SINCE_CHANGED if name in TASKS else {}
    changed = {label: settings for label, settings in since.items() if label in labels}
    back = [f"method.{label}.{each}" for label, settings in changed.items() for each in settings]
    first = trained[0]
    recorded = store.read_record(folder_of(name, first.method, first.job, 0)).identity
    back.append(f"channels_last={recorded.get('channels_last', False)}")  # the machine's choice
    file = REFERENCE / "features" / f"{name}.toml"
    planned = plan(
        load_task(str(file) if file.is_file() else name, back), labels, [0], REGISTRY, recorded["data_sha256"]
    )
    assert [entry.jobs[0].id for entry in planned] == [entry.job for entry in trained]
