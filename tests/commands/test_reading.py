"""Reading results: every run is found, nothing is written where it should not be, a plugin's label names its file."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmark.base.files import Damaged
from benchmark.store.manifest import (
    Manifest,
    ManifestEntry,
    checked_names,
    needed_plugin,
    with_earlier,
    with_every_run,
)
from benchmark.store.store import Store
from benchmark.store.version_control import is_under_version_control
from tests.conftest import ROOT, SR_LABELS, run_here
from tests.report.test_report import made_record, made_results, write_run
from tests.tables.test_build import MANIFEST


def entry(label: str, job: str = "id", seeds: tuple[int, ...] = (0, 1), **more: Any) -> ManifestEntry:
    return ManifestEntry(label, label.lower(), job, seeds, **more)


def of(*entries: ManifestEntry) -> Manifest:
    return replace(MANIFEST, entries=entries)


def columns(manifest: Manifest) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(each.label, each.job, each.seeds) for each in manifest.entries]


def test_a_manifest_keeps_earlier_runs_in_mind() -> None:
    first = of(entry("A", seeds=(0, 1, 2)), entry("B"))
    second = with_earlier(of(entry("A"), entry("C")), first)
    assert columns(second) == [("A", "id", (0, 1)), ("C", "id", (0, 1))], "the last command's are shown"
    everything = [("A", "id", (0, 1, 2)), ("C", "id", (0, 1)), ("B", "id", (0, 1))]
    assert columns(with_every_run(second)) == everything
    third = with_earlier(of(entry("C")), second)
    assert sorted(columns(with_every_run(third))) == sorted(everything)
    assert with_earlier(first, first) == first, "the same command adds nothing"


def test_of_several_settings_the_latest_has_the_name() -> None:
    manifest = of(entry("A", "old"))
    for job in ("older", "new"):
        manifest = with_earlier(of(entry("A", job)), manifest)
    assert [label for label, *_ in columns(with_every_run(manifest))] == ["A", "A (job older)", "A (job old)"]
    assert [label for label, *_ in columns(with_every_run(with_earlier(of(entry("B")), manifest)))][:2] == ["B", "A"]


def test_runs_of_published_tables_are_found_and_coverages_stand_apart() -> None:
    parts = (entry("A", "x", coverage=90.0), entry("A", "y", coverage=80.0))
    other = replace(of(entry("D")), task="another")
    assert [label for label, *_ in columns(with_every_run(of(entry("C")), [of(*parts), other]))] == ["C", "A", "A"]


def test_an_earlier_entry_cannot_leave_the_folder() -> None:
    with pytest.raises(Damaged):
        checked_names(replace(of(entry("A")), earlier=(replace(entry("B"), method="../x"),)), MANIFEST.name)


def test_tables_and_explain_find_the_runs_of_every_command(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--results", tmp_path / "r", "--seeds", 1, "-q")
    assert run_here(*common, "--methods", "focal").returncode == 0
    assert run_here(*common, "--methods", "sr", "--set", "epochs=2").returncode == 0
    last = run_here("tables", "--results", tmp_path / "r").stdout
    assert "Focal" not in last
    shown = run_here("tables", "--results", tmp_path / "r", "--methods", "focal", "sr", "--reference", "sr")
    assert shown.returncode == 0, shown.stderr
    assert "| SR |" in shown.stdout.replace("  ", "") and "Focal" in shown.stdout
    assert "Modified: SR: epochs = 2 (task file: 4)." in shown.stdout
    assert "Focal read with SR" in run_here("explain", "tiny", "focal", 90, "--results", tmp_path / "r").stdout
    assert run_here("tables", "--results", tmp_path / "r").stdout == last


def test_runs_on_other_images_are_told(tmp_path: Path) -> None:
    """The images of a user may have changed between two commands."""
    store = made_results(tmp_path, methods=2, seeds=1)
    run = made_record(0, 0.2)
    write_run(store, "made", "m1", replace(run, identity={**run.identity, "data_sha256": "cd" * 32}))
    assert "M1: other images than M0 was given, so not comparable." in run_here("tables", "--results", tmp_path).stdout


def test_a_label_of_a_plugin_says_which_it_needs(tiny: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "own_loss.py"
    source = (ROOT / "methods" / "cross_entropy.py").read_text()
    plugin.write_text(source.replace(SR_LABELS, 'labels = {"Own loss": {}}'))
    common = ("--datasets", tiny, "--results", tmp_path / "r", "--seeds", 1, "--methods", "own loss")
    made = run_here(*common, "--plugin", plugin)
    assert "Own loss: made by a plugin; --plugin own_loss.py." in made.stdout, made.stderr
    without = run_here(*common)
    assert without.returncode == 2
    assert without.stderr == "error: method 'own loss' was made by a plugin; bring it in with --plugin own_loss.py\n"
    assert needed_plugin("all", Store(tmp_path / "r").manifests(), ["cross_entropy"]) == ""


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Of every file, its bytes and date."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_out_leaves_the_folders_own_tables_alone(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "out"
    made_results(results, methods=2)
    assert run_here("tables", "--results", results).returncode == 0
    before = contents(results)
    shown = run_here("tables", "--results", results, "--out", out, "--methods", "m1")
    assert shown.returncode == 0
    assert f"Report: {out / 'report.html'}" in shown.stderr
    assert (out / "tables" / "made.md").read_bytes() != before["tables/made.md"][0]
    assert run_here("figures", "--results", results, "--out", out).returncode == 0
    assert (out / "figures" / "made-ranks.png").is_file()
    assert contents(results) == before
    assert run_here("tables", "--results", results).returncode == 0
    assert contents(results) == before, "what would be the same is not written again"


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    made_results(tmp_path / "results", methods=1, seeds=1)
    (tmp_path / "file").write_text("")
    found = run_here("tables", "--results", tmp_path / "results", "--out", tmp_path / "file")
    assert found.returncode == 2
    assert f"cannot write to '{tmp_path / 'file'}': " in found.stderr


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Results in a git repository, with tables that newer code would write otherwise."""
    results = tmp_path / "project" / "recorded"
    store = made_results(results, methods=2)
    assert run_here("tables", "--results", results).returncode == 0
    (results / "tables" / "made.md").write_text("as it was")
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", "-C", str(tmp_path / "project"), *words], check=True)
    write_run(store, "made", "m0", made_record(0, 0.3))
    return results


def test_reading_leaves_a_folder_under_version_control_as_it_is(recorded: Path, tmp_path: Path) -> None:
    before = contents(recorded)
    shown = run_here("tables", "--results", recorded)
    assert shown.returncode == 0
    assert "## made data" in shown.stdout
    assert f"Nothing is written: '{recorded}' is under version control" in shown.stderr
    drawn = run_here("figures", "--results", recorded)
    assert drawn.returncode == 2
    assert "--out DIR" in drawn.stderr
    assert run_here("explain", "made", "m1", 90, "--results", recorded).returncode == 0
    assert run_here("diff", recorded, recorded).returncode == 0
    cluster = ("--dry-run", "--cluster", "2xA100", "--step-seconds", "digits=0.1")
    planned = run_here("--datasets", "digits", "--methods", "sr", "--results", recorded, *cluster)
    assert planned.returncode == 0, planned.stderr
    assert run_here("tables", "--results", recorded, "--out", tmp_path / "out").returncode == 0
    assert contents(recorded) == before
    assert run_here("tables", "--results", recorded, "--out", recorded).returncode == 0
    assert contents(recorded) != before, "it was asked for"


def test_what_git_does_not_know_is_not_under_version_control(recorded: Path, tmp_path: Path) -> None:
    other = recorded.parent / "results"
    shutil.copytree(recorded, other)
    assert is_under_version_control(recorded)
    assert not is_under_version_control(other)
    assert not is_under_version_control(tmp_path)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {recorded.parent / '.git'}\n")
    assert is_under_version_control(tree / "recorded"), "a further work tree"


def test_the_recorded_run_is_only_read() -> None:
    reference = ROOT / "results" / "reference"
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    assert is_under_version_control(reference)
    assert not is_under_version_control(ROOT / "results")
