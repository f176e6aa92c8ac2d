"""The page of a results folder from made-up records: what is in it, what is escaped, and what it does without."""

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from benchmark.figures.style import COLOURS
from benchmark.measure.statistics import exact_rank_sum_p
from benchmark.paper.assemble import MAKERS
from benchmark.paper.table_files import load_tables
from benchmark.report.health import without_folders
from benchmark.report.markup import data_block, tag
from benchmark.report.matrix import aurc_values, pairwise
from benchmark.report.plot import ticks
from benchmark.report.update import update_report
from benchmark.store.manifest import ManifestEntry
from benchmark.store.provenance import Provenance, Timed
from benchmark.store.record import Record, plain_record
from benchmark.store.store import Store, folder_of
from benchmark.tables.assemble import assemble
from benchmark.tables.looks import look_of
from tests.conftest import ROOT, run_here
from tests.paper.test_table_files import published_as_runs
from tests.tables.test_build import MANIFEST, diverged, many_columns, record, with_score, write_plain

EVIL = '<script>alert("1")</script> & </td>'
SHARES = {"90": 0.9, "80": 0.8, "70": 0.7, "50": 0.5}


MADE = Provenance(
    commit="c0ffee",
    python="3.11.7",
    platform="Linux-x86_64",
    libraries={"numpy": "2.0"},
    environments=("torch 2, cpu, 1 thread(s)",),
    peak_bytes=900_000_000,
    step_seconds=Timed("cpu", {"own": 0.01}),
)


def made_record(seed: int, level: float, classes: int = 3, scores: tuple[str, ...] = ("head", "SR")) -> Record:
    """A run with everything that a real one records."""
    random = np.random.default_rng([seed, round(1000 * level)])
    coverage = np.linspace(0, 1, 201)
    identity = {"config": {"weight": level}, "data_sha256": "ab" * 32}
    provenance = replace(MADE, seconds=10 + seed)
    found = record(seed, dict.fromkeys(scores, (0.0, 0.0)), identity=identity, provenance=provenance)
    for index, score in enumerate(scores):
        curve = level * coverage**2 * (1 + index / 9) + 0.003 * random.random(201) * coverage
        kept = {key: np.clip(share + 0.1 * random.random(classes) - 0.05, 0, 1) for key, share in SHARES.items()}
        shares = {key: values.round(6).tolist() for key, values in kept.items()}
        found = with_score(found, score, risk=curve.tolist(), aurc=float(curve.mean()), class_coverage=shares)
    return found


def write_run(store: Store, task: str, method: str, run: Record) -> None:
    folder = folder_of(task, method, "id", run.seed)
    store.write_record(folder, replace(run, task=task, method=method))
    (store.root / folder / "history.csv").write_text("epoch,loss,accuracy,own_mass\n0,2.5,0.1,\n1,0.5,0.9,0.25\n")


def made_results(root: Path, methods: int = 3, seeds: int = 5, classes: int = 3, task: str = "made") -> Store:
    """A task with a manifest and so many methods, two columns each."""
    store = Store(root)
    entries = []
    for index in range(methods):
        for seed in range(seeds):
            write_run(store, task, f"m{index}", made_record(seed, 0.1 + index / 100, classes))
        entries.append(ManifestEntry(f"M{index}", f"m{index}", "id", tuple(range(seeds))))
    manifest = replace(MANIFEST, name=task, task=task, title=f"{task} data", coverages=(100, 90, 80, 70))
    store.write_manifest(replace(manifest, entries=tuple(entries), reference="M0", baseline="M1"))
    return store


def page_of(store: Store) -> str:
    return update_report(store, MAKERS).read_text(encoding="utf-8")


class Balanced(HTMLParser):
    """Fails where an element is closed that is not the open one."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.note(dict(attributes))
        if name not in ("meta", "path", "line", "circle"):
            self.open.append(name)

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.note(dict(attributes))

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def note(self, attributes: dict[str, str | None]) -> None:
        self.ids += [attributes["id"] or ""] if "id" in attributes else []
        self.targets += [(attributes["href"] or "")[1:]] if "href" in attributes else []


def check_structure(page: str) -> None:
    parser = Balanced()
    parser.feed(page)
    assert not parser.open
    assert len(parser.ids) == len(set(parser.ids))
    assert set(parser.targets) <= set(parser.ids)


def test_everything_is_there(tmp_path: Path) -> None:
    page = page_of(made_results(tmp_path))
    check_structure(page)
    assert "M0+SR has the best average rank" in page or "M0 has the best average rank" in page
    assert "columns differ significantly from M0 at one coverage or more" in page
    assert "5 seeds; all 15 runs are there." in page
    for heading in (
        "Tables",
        "Risk–coverage curves",
        "Pairwise comparison",
        "Rejection by class",
        "Health and failures",
        "Cost",
        "Provenance",
    ):
        assert f">{heading}</h3>" in page
    assert "15 comparisons, no correction" in page
    assert "Smallest attainable p: 0.0079" in page
    assert r"\begin{tabular}" in page
    assert "own mass 0.25" in page
    assert "c0ffee" in page
    assert "weight = 0.1" in page
    assert "abab" in page
    assert "memory" not in page.partition(">Cost</h3>")[2].partition("<h3")[0], "of the CPU it is the process's"
    assert page.count('class="mean"') > 6, "the curves are there without any script"


def test_nothing_comes_from_outside(tmp_path: Path) -> None:
    page = page_of(made_results(tmp_path))
    assert "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:" in page
    assert not re.search(r"https?://|@import|url\(", page)
    assert str(tmp_path) not in page


def test_names_and_notes_are_escaped(tmp_path: Path) -> None:
    store = made_results(tmp_path)
    manifest = store.manifests()[0]
    write_run(store, "made", "evil", replace(made_record(9, 0.3, scores=("SR", EVIL)), notes=[EVIL]))
    write_run(store, "made", "evil", diverged(8, EVIL))
    entries = (*manifest.entries, ManifestEntry(EVIL, "evil", "id", (7, 8, 9)))
    store.write_manifest(replace(manifest, title=EVIL, entries=entries, reference=EVIL, remark=EVIL))
    store.write_error(folder_of("made", "evil", "id", 7), f"Traceback\nValueError: {EVIL}")
    page = page_of(store)
    assert "<script>alert" not in page
    assert "</td> &" not in page
    assert "&lt;script&gt;alert" in page
    assert page.count("<script") == page.count("</script>") == 3, "two blocks of data and the page's own"
    check_structure(page)


def test_helpers_escape_by_default() -> None:
    assert tag("p", "a<b", tag("b", "&"), class_='"x') == '<p class="&quot;x">a&lt;b<b>&amp;</b></p>'
    assert tag("td", ["a", ">"], hidden=False, title=None, open=True) == "<td open>a&gt;</td>"
    block = data_block({"name": "</script><!--"})
    assert block.count("<") == 2
    assert json.loads(block.partition(">")[2].rpartition("<")[0]) == {"name": "</script><!--"}


def test_equal_records_make_equal_bytes(tmp_path: Path) -> None:
    assert page_of(made_results(tmp_path / "a")) == page_of(made_results(tmp_path / "b"))


def test_500_runs_stay_small(tmp_path: Path) -> None:
    store = made_results(tmp_path, methods=50, seeds=5, classes=100)
    made_results(tmp_path, methods=50, seeds=5, classes=10, task="other")
    start = time.perf_counter()
    size = len(page_of(store).encode())
    assert size < 5_000_000, size
    assert time.perf_counter() - start < 60


def test_a_method_has_the_colour_it_has_in_figures(tmp_path: Path) -> None:
    page = page_of(made_results(tmp_path))
    for name in ("M1", "M2"):
        look = look_of(name)
        assert f"--c{look.colour}:light-dark({COLOURS[look.colour]}," in page
        key = page.partition(f"</svg>{name}</button>")[0].rpartition("<li>")[2]
        assert f'<g class="c{look.colour}">' in key


def test_one_seed_of_one_method(tmp_path: Path) -> None:
    page = page_of(made_results(tmp_path, methods=1, seeds=1))
    check_structure(page)
    assert "too few seeds for any column to differ significantly from M0" in page
    assert "1 seed; the only run is there." in page
    assert "one comparison" in page, "its two scores"
    assert "with so few runs none can fall below 0.05. Smallest attainable p: 1.0000" in page
    assert "P(best)" not in page


def test_missing_diverged_and_failed_runs(tmp_path: Path) -> None:
    manifest, store = many_columns(tmp_path)
    store.write_manifest(manifest)
    store.write_error(folder_of("toy", "late", "id", 0), "Traceback\nOSError: no file '/home/someone/data/x.npy'\n")
    page = page_of(store)
    check_structure(page)
    assert "diverged: loss is nan" in page
    assert "failed: OSError: no file &#x27;…/x.npy&#x27;" in page or "failed: OSError: no file '…/x.npy'" in page
    assert "someone" not in page
    assert "provisional: 10 of 11 runs are there" in page
    assert "The records do not say what is kept of each class." in page
    assert "100% &amp; more_ #1" in page


def test_no_run_at_all(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_manifest(MANIFEST)
    page = page_of(store)
    check_structure(page)
    assert "provisional: 0 of 10 runs are there" in page
    assert "not there yet" in page
    assert "No run is there yet." in page


def test_trainings_for_single_coverages_are_points(tmp_path: Path) -> None:
    store = made_results(tmp_path)
    manifest = store.manifests()[0]
    apart = [replace(e, label="Each", coverage=c) for e, c in zip(manifest.entries, (90, 80), strict=False)]
    store.write_manifest(replace(manifest, entries=(*manifest.entries, *apart)))
    page = page_of(store)
    assert "Points: one training for each coverage" in page
    assert '{"name":"Each","points":{"160":' in page
    assert 'class="range"' in page


def test_published_tables_stand_beside_their_figures(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (table,) = load_tables(["imagenet"])
    store.write_manifest(published_as_runs(table, store), "paper")
    page = page_of(store)
    check_structure(page)
    assert 'id="paper-imagenet"' in page
    assert "Published and ours" in page
    assert ": published</th>" in page


def test_many_classes_are_shown_by_their_ends(tmp_path: Path) -> None:
    page = page_of(made_results(tmp_path, classes=40))
    assert "20 between them are left out" in page
    panel = page.split('class="panel"')[1]
    assert panel.count('class="bar"') == 20 * 4


def test_p_values_are_those_of_the_exact_test(tmp_path: Path) -> None:
    store = made_results(tmp_path)
    values = aurc_values(assemble(store.manifests()[0], store).columns)
    found = pairwise(values)
    assert len(found) == 6 * 5
    a, b = "M0", "M2+SR"
    assert found[a, b] == found[b, a] == exact_rank_sum_p(list(values[a].values()), list(values[b].values()))


@pytest.mark.parametrize(("low", "high"), [(0, 24.3), (70, 100), (0, 0.013), (0, 100), (99, 100)])
def test_ticks_are_few_and_round(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 3 <= len(found) <= 9
    assert low <= found[0] <= found[-1] <= high


def test_paths_lose_their_folders() -> None:
    assert without_folders("open '/home/me/a b' and C:\\x\\y.txt, 3/4, w/t/l") == "open '…/a b' and …/y.txt, 3/4, w/t/l"


def test_the_page_needs_no_torch(tmp_path: Path) -> None:
    made_results(tmp_path, methods=2, seeds=2)
    script = (
        "import sys; from pathlib import Path\n"
        "from benchmark.paper.assemble import MAKERS\n"
        "from benchmark.report.update import update_report; from benchmark.store.store import Store\n"
        "update_report(Store(Path(sys.argv[1])), MAKERS); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT).returncode == 0
    assert (tmp_path / "report.html").is_file()


def test_run_and_tables_write_the_page(tiny: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    made_results(results)
    made = run_here("--datasets", tiny, "--methods", "sr", "--seeds", 1, "--results", results)
    assert made.returncode == 0, made.stderr
    assert f"Report: {results / 'report.html'}" in made.stdout
    page = (results / "report.html").read_text()
    assert 'id="task-tiny"' in page
    assert 'id="task-made"' in page, "tasks of earlier commands too"
    (results / "report.html").unlink()
    assert run_here("tables", "--results", results).returncode == 0
    assert (results / "report.html").read_text() == page
    assert run_here("tables", "--results", results, "--datasets", "made", "--methods", "m1").returncode == 0
    narrowed = (results / "report.html").read_text()
    assert 'id="task-tiny"' in narrowed
    assert ">M2<" not in narrowed


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 3}, "is a record of version 3, and this code reads versions up to 2"),
        ({"scores": {"SR": {"risk": [0.1]}}}, "(IndexError"),
    ],
)
def test_records_of_another_version_do_not_fail_the_command(
    tiny: Path, tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    """They belong to another task of the folder, which is left out of the page with a line that says so."""
    store = Store(tmp_path)
    write_plain(store, folder_of("toy", "ours", "id", 0), {**plain_record(record(0, {"SR": (0.1, 0.1)})), **change})
    store.write_manifest(MANIFEST)
    made = run_here("--datasets", tiny, "--methods", "sr", "--seeds", 1, "--results", tmp_path)
    assert made.returncode == 0
    (line,) = [line for line in made.stderr.splitlines() if line.startswith("report: toy is left out, its records")]
    assert reason in line
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "tiny digits" in page
    assert "toy_data" not in page


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("open('/media/al ice/data/x.npz')", "open('…/x.npz')"),
        ("see https://user:token@host/a/b", "see https:/…/b"),
        ("in /srv/runs/a/b.txt", "in …/b.txt"),
    ],
)
def test_no_folder_and_no_password_of_a_failure(said: str, shown: str) -> None:
    assert without_folders(said) == shown


def test_a_page_that_cannot_be_built_fails_no_run(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("90")

    monkeypatch.setattr("benchmark.report.update.build_page", broken)
    made = run_here("--datasets", tiny, "--methods", "sr", "--seeds", 1, "--results", tmp_path)
    assert made.returncode == 0
    assert "No report: some records of this folder cannot be shown" in made.stdout
    assert (tmp_path / "tables" / "tiny.md").is_file()
