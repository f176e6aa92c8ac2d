"""The published tables as files: what they ask for is what the paper did, and what they show is its own form."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmark.base.errors import UserError
from benchmark.base.schema import build
from benchmark.config.load import load_task
from benchmark.jobs.job import Job
from benchmark.jobs.plan import Planner
from benchmark.paper.companion import build_companion, verdict
from benchmark.paper.entries import table_entries
from benchmark.paper.settings_tables import settings_sheets
from benchmark.paper.table_files import TABLE_DIR, PublishedTable, load_tables, table_manifest, table_names
from benchmark.paper.values import PublishedCell, published_figures, published_summaries
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.store.store import Store, folder_of
from benchmark.tables.model import Cell, Table
from methods import Registry
from tests.conftest import ROOT, run_here, tables_of
from tests.tables.test_build import record, with_score

PAPER = json.loads((ROOT / "tests" / "expected" / "paper_settings.json").read_text())
REGISTRY = Registry()
TABLES = load_tables(["all"])
every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


def jobs(name: str, scale: str = "paper") -> dict[str, Job]:
    (table,) = load_tables([name])
    task = load_task(table.task + {"paper": "", "cpu": "-cpu"}[scale])
    planner = Planner(task, REGISTRY, "hash")
    return {entry.label: entry.jobs[0] for entry in table_entries(table, scale, planner, REGISTRY, [0])}


def plain(label: str, task: str = "cifar100", **settings: object) -> Job:
    """The run of the main task with these settings and no others."""
    from benchmark.jobs.plan import plan

    overrides = [f"method.{label}.{name}={value}" for name, value in settings.items()]
    return plan(load_task(task, overrides), [label], [0], REGISTRY, "hash")[0].jobs[0]


def test_the_fifteen_tables() -> None:
    """Each published table once, with its columns and coverages in the published order."""
    assert sorted(table.published for table in TABLES) == sorted(published_figures())
    assert len(TABLES) == 15
    for table in TABLES:
        figures = published_figures()[table.published]
        assert list(table.columns) == figures.columns
        assert load_task(table.task).title == figures.dataset
        assert list(load_task(table.task).coverages) == figures.coverages


@every_table
@pytest.mark.parametrize("scale", ["paper", "cpu"])
def test_every_column_has_its_runs(table: PublishedTable, scale: str) -> None:
    found = jobs(table.name, scale)
    for column in table.columns:
        owners = [label for label in found if column == label or column.startswith(f"{label}+")]
        assert owners, column


@pytest.mark.parametrize(
    ("name", "symbol", "field"),
    [("q", "q", "momentum"), ("s", "s", "queue_size"), ("w", "w", "weight"), ("e_s", "E_s", "warmup_epochs")],
)
def test_sensitivity_tables_vary_one_setting(name: str, symbol: str, field: str) -> None:
    values = PAPER["ablations"]["sensitivity"][symbol]
    found = jobs(name)
    assert [job.config[field] for job in found.values()] == values
    assert [job.id for job in found.values()] == [plain("CCL-SC", **{field: value}).id for value in values]
    assert [float(label.split("=")[1]) for label in found] == values


@pytest.mark.parametrize(
    ("name", "label"), [("ccl-sc2", "CCL-SC2"), ("ccl-sc3", "CCL-SC3"), ("supcon", "CCL-SC+SupCon")]
)
def test_ablations_at_two_queue_sizes(name: str, label: str) -> None:
    ids = [job.id for job in jobs(name).values()]
    assert ids == [plain(each, queue_size=size).id for size in (300, 3000) for each in ("CCL-SC", label)]


def test_related_methods_under_their_published_names() -> None:
    ours = {"Soft-ECE": "Soft ECE", "AUCOC Loss": "AUCOC", "Focal Loss": "Focal"}
    for column, job in jobs("related").items():
        assert job.id == plain(ours.get(column, column)).id


def test_runs_that_tables_share_are_one_job() -> None:
    ours = plain("CCL-SC").id
    for name, label in (("cifar100", "CCL-SC"), ("q", "q=0.99"), ("s", "s=3000"), ("unweighted", "SR-weighted")):
        assert jobs(name)[label].id == ours
    assert list(jobs("cifar100")) == ["CCL-SC", "SAT+EM", "SAT", "DG", "SR"]
    assert jobs("imagenet")["CCL-SC"].id == jobs("imagenet")["CCL-SC*"].id == jobs("combination-imagenet")["CCL-SC"].id


def test_small_siblings_share_as_the_paper_does() -> None:
    """E_s = 150 of 300 epochs is 5 of 10, the setting of the small task itself."""
    assert jobs("e_s", "cpu")["E_s=150"].id == plain("CCL-SC", "cifar100-cpu").id
    assert [job.config["warmup_epochs"] for job in jobs("e_s", "cpu").values()] == [2, 3, 5, 7, 8]
    assert load_task("imagenet").evaluate_at == (PAPER["training"]["ImageNet"]["ccl_sc_star"]["epochs"],)


def test_all_of_cifar100_needs_59_per_cent_of_the_epochs() -> None:
    """33 settings; 300 (trunk) + 6·300 + 3·100 + 19·150 + 250 + 200 + 100 + 50 epochs per seed."""
    planned = json.loads(run_here("paper", "all", "--dry-run", "--json", "--seeds", 2).stdout)
    assert {task["task"] for task in planned["tasks"]} == {"cifar10", "cifar100", "celeba", "imagenet"}
    (task,) = [task for task in planned["tasks"] if task["task"] == "cifar100"]
    assert len(task["jobs"]) == 2 * 33
    assert (task["epochs"], task["epochs_naive"]) == (2 * 5850, 2 * 9900)
    alone = json.loads(run_here("paper", "q", "--dry-run", "--json", "--seeds", 1, "--no-shared-warmup").stdout)
    assert alone["epochs"] == alone["epochs_naive"] == 4 * 300


def test_a_plan_for_people() -> None:
    result = run_here("paper", "q", "celeba", "--dry-run", "--seeds", 1, "--results", "nowhere")
    assert result.returncode == 0
    assert "warm-up (SR)" in result.stdout
    assert "5 jobs: 0 done, 0 partial, 5 new; 750 epochs to train (1,200 without shared warm-ups)" in result.stdout
    assert "in all 10 jobs, 999 epochs to train, 451 saved by shared warm-ups" in result.stdout
    assert "device-hours unknown: no earlier run" in result.stdout


def test_bad_names() -> None:
    with pytest.raises(UserError, match="did you mean 'unweighted'"):
        load_tables(["unweigthed"])
    assert "cifar100" in table_names()
    assert run_here("paper", "qq").returncode == 2
    refused = run_here("paper", "q", "--probe")
    assert (refused.returncode, "--probe needs --dry-run" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reference": "SAT"}, "'SAT' is not among the columns"),
        ({"columns": ["q=0", "q=0.99"], "variants": {}}, "the published columns are"),
        ({"published": "table_mnist"}, "no published table is called"),
        ({"shows": ["stars"]}, "shows may have markers"),
    ],
)
def test_bad_table_files(change: dict[str, Any], message: str) -> None:
    tables = tomllib.loads((TABLE_DIR / "q.toml").read_text())
    with pytest.raises(UserError, match=message):
        build(PublishedTable, {**tables, "name": "q", **change}, "q")


def published_as_runs(table: PublishedTable, store: Store) -> Manifest:
    """A manifest and records in which every published mean is a single run."""
    figures, entries = published_figures()[table.published], []
    for index, column in enumerate(figures.columns):
        curve = [0.0] * 201
        for coverage in figures.coverages:
            curve[2 * coverage] = figures.cells[coverage, column].mean / 100
        run = with_score(record(0, {"SR": (0.0, 0.0)}), "SR", risk=curve)
        store.write_record(folder_of(table.task, f"m{index}", "id", 0), run)
        entries.append(ManifestEntry(column, f"m{index}", "id", (0,)))
    return replace(table_manifest(table, "paper", load_task(table.task), ""), entries=tuple(entries))


@every_table
def test_published_means_give_the_published_form(table: PublishedTable, tmp_path: Path) -> None:
    """Ranks, bold and second best of the table code, fed with the printed means; one known slip of the paper."""
    store = Store(tmp_path)
    risk = tables_of(published_as_runs(table, store), store)[0]
    figures = published_figures()[table.published]
    printed = {c: s.avg_rank for (name, c), s in published_summaries().items() if name == table.published}
    if printed:
        assert dict(zip(risk.columns, risk.summary["avg. rank"], strict=True)) == printed
    else:
        assert "avg. rank" not in risk.summary
    assert ("w/t/l" in risk.summary) == any(
        s.wtl for (name, _), s in published_summaries().items() if name == table.published
    )
    for (coverage, column), cell in figures.cells.items():
        ours = risk.cells[str(coverage), column]
        if (table.published, coverage) != ("sensitivity_q", 70):
            assert ours.best == cell.bold, (coverage, column)
        assert ours.second == cell.underlined


def test_ranks_of_all_34_columns_were_compared() -> None:
    tables = {table.published for table in TABLES if "avg. rank" in table.shows}
    assert tables == {name for name, _ in published_summaries()}
    assert sum(len(table.columns) for table in TABLES if "avg. rank" in table.shows) == 34


def cell(*values: float) -> Cell:
    return Cell(dict(enumerate(values)), 5, 2)


def test_verdicts_by_hand() -> None:
    """Published 26.55±0.20 of five: sample std 0.2236, so a mean 0.1 off agrees and one 1.0 off does not."""
    published = next(iter(published_figures()["table_cifar100"].cells.values()))
    mean = published.mean
    assert verdict(published, 5, cell(mean - 0.1, mean, mean + 0.1, mean, mean + 0.05))[0] == "agrees"
    assert verdict(published, 5, cell(*(mean + 1 + d for d in (0, 0.1, 0.2, 0.1, 0))))[0] == "higher"
    assert verdict(published, 5, cell(*(mean - 1 + d for d in (0, 0.1, 0.2, 0.1, 0))))[0] == "lower"
    assert verdict(published, 5, cell(mean))[0] == "one seed"
    wide = cell(*(mean + d for d in (-40, 40, 0, 30, -30)))
    assert verdict(published, 5, wide)[0] == "agrees"
    assert verdict(published, 5, wide)[1].half_width > 30, "and says how little that means"


def test_a_printed_std_of_zero_is_only_rounded() -> None:
    """22 of 1,000 three times is 2.1999999999999997 %, printed 2.20±0.00."""
    published = PublishedCell(2.20, 0.0, "", bold=False, underlined=False)
    assert verdict(published, 2, cell(*[100 * (22 / 1000) - 1e-15] * 3))[0] == "agrees"
    assert verdict(published, 2, cell(2.3, 2.3, 2.3))[0] == "higher"


def companion_of(table: PublishedTable, scale: str, remark: str, store: Store) -> tuple[list[Any], Table]:
    task = load_task(table.task + ("-cpu" if scale == "cpu" else ""))
    runs = published_as_runs(table, store)
    manifest = replace(table_manifest(table, scale, task, remark), task=runs.task, entries=runs.entries)
    risk = tables_of(manifest, store)[0]
    return build_companion(manifest, risk), risk


def test_the_companion(tmp_path: Path) -> None:
    (table,) = load_tables(["imagenet"])
    sheets, _ = companion_of(table, "paper", "", Store(tmp_path))
    assert [sheet.heading for sheet in sheets] == [
        ("coverage", "CCL-SC: published", "ours", "verdict", "SAT+EM+SR: published", "ours", "verdict",
         "SAT: published", "ours", "verdict"),
        ("coverage", "CCL-SC*: published", "ours", "verdict"),
    ]  # fmt: skip
    first = sheets[0].rows[0]
    assert first == ("100", "26.26±0.10", "26.26", "one seed", "27.27±0.05", "27.27", "not comparable",
                     "27.41±0.08", "27.41", "not comparable")  # fmt: skip
    assert sheets[0].notes == (
        "40 cells: 20 not comparable, 20 one seed.",
        "SAT+EM+SR, SAT not comparable: copied by the paper from another.",
        "Published runs: 3 for all columns.",
    )
    assert len(sheets[0].numbers) + len(sheets[1].numbers) == 40


def test_why_cells_do_not_compare(tmp_path: Path) -> None:
    (table,) = load_tables(["related"])
    small, _ = companion_of(table, "cpu", "", Store(tmp_path / "a"))
    assert "All columns not comparable: cifar100-cpu is a small sibling of the published task." in small[0].notes
    assert {line["verdict"] for sheet in small for line in sheet.numbers} == {"not comparable"}
    part, _ = companion_of(table, "paper", "9 of 10 images are there", Store(tmp_path / "b"))
    assert "All columns not comparable: 9 of 10 images are there." in part[0].notes
    trials = "Published runs: 5 for CCL-SC, MMCE, AUCOC Loss; 2 for Adaptive Focal, Soft AvUC, Soft-ECE, Focal Loss."
    assert trials in part[0].notes
    store = Store(tmp_path / "empty")
    runs = published_as_runs(table, store)
    manifest = replace(runs, entries=tuple(replace(entry, job="other") for entry in runs.entries))
    empty = build_companion(manifest, tables_of(manifest, store)[0])
    assert empty[0].notes[0] == "91 cells: 91 no run."


@pytest.mark.parametrize("name", ["related", "ccl-sc2", "ccl-sc3", "supcon"])
def test_no_verdict_on_what_the_paper_does_not_state(name: str, tmp_path: Path) -> None:
    """Only CCL-SC itself is judged; every other column says why it is not."""
    (table,) = load_tables([name])
    sheets, _ = companion_of(table, "paper", "", Store(tmp_path))
    verdicts = {(line["column"], line["verdict"]) for sheet in sheets for line in sheet.numbers}
    judged = {column for column, found in verdicts if found != "not comparable"}
    assert judged == {column for column in table.columns if column.startswith("CCL-SC s=") or column == "CCL-SC"}
    for column in set(table.columns) - judged:
        assert any(column in note and "not comparable: the paper " in note for note in sheets[0].notes), column


def test_the_two_trials_reach_the_verdict(tmp_path: Path) -> None:
    (table,) = load_tables(["related"])
    sheets, _ = companion_of(table, "paper", "", Store(tmp_path))
    runs = {line["column"]: line["published_n"] for sheet in sheets for line in sheet.numbers}
    assert runs == {"CCL-SC": 5, "MMCE": 5, "AUCOC Loss": 5, **dict.fromkeys(table.trials_of, 2)}
    (combination,) = load_tables(["combination-imagenet"])
    trials = table_manifest(combination, "paper", load_task("imagenet"), "").trials
    assert trials == {"CCL-SC": 3, "CCL-SC+SAT+EM": 5}


def test_settings_tables_print_the_published_settings() -> None:
    method, baselines, training = settings_sheets(REGISTRY, "paper")
    names = method.heading[1:]
    assert names == ("CIFAR-10", "CIFAR-100", "CelebA", "ImageNet")
    for symbol, *values in method.rows[:4]:
        expected = [PAPER["ccl_sc"]["per_dataset"][name][symbol] for name in names]
        assert [float(value) for value in values] == expected
    rows = {row[0]: dict(zip(names, row[1:], strict=True)) for row in baselines.rows}
    for name in ("CIFAR-100", "CelebA"):
        for label in ("DG", "SAT", "SAT+EM"):
            for symbol, value in PAPER["baselines"][name][label].items():
                assert float(rows[f"{label}: {symbol}"][name]) == value
    assert rows["DG: o"]["ImageNet"] == "–"
    lines = {row[0]: dict(zip(names, row[1:], strict=True)) for row in training.rows}
    for name in names:
        paper = PAPER["training"][name]
        assert float(lines["learning rate"][name]) == paper["lr"]
        assert int(lines["epochs"][name]) == paper["epochs"]
        assert int(lines["batch size"][name]) == paper["batch_size"]
        assert int(lines["seeds"][name]) == paper["trials"]
    shown = run_here("paper", "settings").stdout
    assert shown.count("|-") >= 3
    assert "×0.5 every 25 epochs" in shown
