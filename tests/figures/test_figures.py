"""Figures from hand-made records: what is behind the drawings, the files, and what is said where there is none."""

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from benchmark.figures import cost, differences, gain, ranks, risk_coverage, sensitivity, style, tsne
from benchmark.figures.bound import PANELS
from benchmark.figures.catalogue import OF_A_TASK, Drawn, write_figure, write_published_figures, write_task_figures
from benchmark.figures.runs import load_runs, seeds_text
from benchmark.figures.thresholds.expected_cost import difference_panels
from benchmark.library.figures import varies_a_setting
from benchmark.measure.measures import ClassifierMeasures, Measures, ScoreMeasures
from benchmark.measure.prediction import Evidence, Prediction
from benchmark.measure.statistics import smallest_p
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.store.provenance import Provenance
from benchmark.store.record import Record
from benchmark.store.store import PREDICTION, Store, folder_of
from benchmark.tables import looks
from benchmark.tables.columns import Column
from methods import Registry
from tests.conftest import ROOT, run_here
from tests.tables.test_build import LATE, MANIFEST, costs_below, diverged, fill, record, with_score
from tests.tables.test_other_code import made_by_other_code

METHODS = ("Ours", "Theirs", "Plain")
SEEDS = (0, 1, 2)


def full_record(seed: int, level: float, oracle: ScoreMeasures | None = None, **extra: Any) -> Record:
    """A record whose curve rises with the coverage to `level`."""
    curve = [level * (1 + seed / 50) * (i / 200) ** 2 for i in range(201)]
    score = ScoreMeasures(
        curve, aurc=level / 3, e_aurc=0.0, augrc=0.0, auroc=0.9 - level / 5, top_ties=0.0, cost=costs_below(level)
    )
    measures = Measures(
        ClassifierMeasures(1 - curve[200], 0.5, 0.2, 0.1, costs_below(0.3)), {"SR": score}, 60, oracle=oracle
    )
    provenance = Provenance(environments=("here",), seconds=10 * level + seed, peak_bytes=2**28 + seed)
    return record(seed, {"SR": (0.0, 0.0)}, **{"measures": measures, "provenance": provenance, **extra})


def manifest_of(methods: tuple[str, ...] = METHODS, **extra: Any) -> Manifest:
    entries = tuple(ManifestEntry(name, name.lower(), "id", SEEDS) for name in methods)
    return replace(MANIFEST, **{"entries": entries, "baseline": "Plain", **extra})


def crossed() -> Manifest:
    """The methods as levels of a factor, so that every figure of a task can be drawn."""
    entries = tuple(replace(each, base="Base", levels=(each.label,)) for each in manifest_of().entries)
    return manifest_of(entries=entries, factors=(("kind", METHODS),))


def with_seeds(*seeds: int) -> Manifest:
    return manifest_of(entries=tuple(replace(entry, seeds=seeds) for entry in manifest_of().entries))


def evidence(seed: int, features: bool = True) -> Evidence:
    random = np.random.default_rng(seed)
    labels_of = random.integers(3, size=60)
    logits = 2.0 * np.eye(3)[labels_of] + random.normal(size=(60, 3))
    return Evidence(Prediction(logits, logits.repeat(2, axis=1) if features else None), labels_of)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    oracle = ScoreMeasures([0.0] * 201)
    for index, name in enumerate(METHODS):
        for seed in SEEDS:
            folder = folder_of("toy", name.lower(), "id", seed)
            identity = {"config": {"warmup_epochs": 1}}
            fill(store, name.lower(), [full_record(seed, 0.1 + 0.05 * index, oracle, identity=identity)])
            store.write_history(folder, [dict.fromkeys(PANELS, 1.0 + epoch + index) for epoch in range(3)])
            store.write_prediction(folder, PREDICTION, evidence(index))
    store.write_manifest(manifest_of())
    return store


def names(store: Store) -> set[str]:
    return {path.name for path in (store.root / "figures").glob("*")}


def write(manifest: Manifest, store: Store, *figures: str) -> str:
    """Write figures, and return what is said of them."""
    runs = load_runs(manifest, store)
    return "\n".join(write_figure(OF_A_TASK[name], runs, name).text() for name in figures)


def written(drawn: Iterable[Drawn]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for each in drawn for path in each.paths}


def column(name: str, **extra: Any) -> Column:
    return Column(name, "SR", (full_record(0, 0.1),), 1, **extra)


def test_every_figure_is_written_with_the_same_bytes_whatever_the_users_settings(store: Store) -> None:
    before = written(write_task_figures(crossed(), store))
    assert before.keys() == names(store) == {f"toy-{name}.{end}" for name in OF_A_TASK for end in ("png", "pdf")}
    assert all(content[:4] in (b"\x89PNG", b"%PDF") and len(content) > 3000 for content in before.values())
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red"}):
        after = written(write_task_figures(crossed(), store))
        assert matplotlib.rcParams["font.size"] == 20
    assert before == after
    assert not [name for name, content in after.items() if b"Matplotlib" in content or b"CreationDate" in content]


def test_without_runs_every_figure_says_why(store: Store) -> None:
    nothing = tuple(replace(entry, job="other") for entry in manifest_of().entries)
    drawn = [*write_task_figures(manifest_of(entries=nothing), store)]
    assert not any(each.paths for each in drawn)
    assert [each.text().split(":")[0] for each in drawn] == [f"no toy-{name}" for name in OF_A_TASK]


def test_missing_and_diverged_runs_are_left_out(store: Store) -> None:
    (store.root / folder_of("toy", "theirs", "id", 1) / "record.json").unlink()
    fill(store, "plain", [diverged(2, "the loss is nan")])
    late = replace(LATE, label="A name that is much longer than any figure has room for")
    entries = (*manifest_of().entries, late)
    write(manifest_of(entries=entries), store, "risk-coverage", "ranks", "cost", "gain")
    assert {"toy-risk-coverage.png", "toy-cost.png", "toy-gain.png"} <= names(store)
    runs = load_runs(manifest_of(entries=entries), store)
    assert runs.remarks == ["Provisional: not all runs are there.", "Diverged runs are left out: Plain (1)."]
    assert "Without a run: A name" in " ".join(risk_coverage.caption(runs, runs.judged, 3))
    assert seeds_text(runs.judged) == "mean over 2 to 3 seeds"


def test_one_seed_has_no_ranks(store: Store) -> None:
    said = write(with_seeds(0), store, "ranks", "gain")
    assert "no toy-ranks: it takes two columns with a value at every coverage, and two seeds" in said
    assert "toy-gain.png" in names(store)


@pytest.mark.parametrize("seeds", [2, 3, 4, 5])
def test_ranks_of_few_seeds_say_what_these_can_show(store: Store, seeds: int) -> None:
    """Each column lies above the one before in every seed: from four seeds and fewer nothing follows."""
    for index, name in enumerate(METHODS):
        fill(store, name.lower(), [full_record(seed, 0.1 + 0.05 * index) for seed in range(seeds)])
    text = " ".join(each.get_text() for each in ranks.draw(load_runs(with_seeds(*range(seeds)), store)).texts)
    assert f"{seeds} against {seeds} runs, is {smallest_p(seeds, seeds):.4f}" in text
    assert ("nothing is said of which columns differ" in text) == (seeds < 5)
    assert ("draws of the 5 seeds) leaves 0 out" in text) == (seeds == 5)
    assert "tell all columns apart" not in text


def test_curves_that_other_code_measured_are_left_out(tmp_path: Path) -> None:
    """Without predictions nothing can measure them again: the rest is drawn, and their columns are named."""
    store, manifest = Store(tmp_path), manifest_of(threshold="percentile")
    older = ("percentile_risk", "percentile_coverage")
    for index, name in enumerate(METHODS):
        runs = [full_record(seed, 0.1 + 0.05 * index) for seed in SEEDS]
        runs = [with_score(run, "SR", percentile_risk=run.score("SR").risk) for run in runs]
        fill(store, name.lower(), runs if index else [made_by_other_code(run, *older) for run in runs])
    found = load_runs(manifest, store)
    assert [text.get_text() for text in risk_coverage.draw(found).legends[0].get_texts()] == ["Theirs", "Plain"]
    assert "Without a curve that this code has measured: Ours." in risk_coverage.caption(found, found.judged[1:], 2)
    for name in METHODS[1:]:
        fill(store, name.lower(), [made_by_other_code(full_record(seed, 0.1), *older) for seed in SEEDS])
    with pytest.raises(style.NotDrawn, match="no column has a run with one curve"):
        risk_coverage.draw(load_runs(manifest, store))


def test_features_that_were_not_kept_name_the_option(store: Store) -> None:
    """Of the first seed that both have they are drawn; without any the option is named."""
    runs = load_runs(manifest_of(), store)
    (entry,) = [entry for entry in runs.manifest.entries if entry.label == "Ours"]
    store.write_prediction(folder_of("toy", "ours", "id", 0), PREDICTION, evidence(0, features=False))
    assert tuple(tsne.seed_evidence(entry, runs)) == SEEDS[1:]
    for seed in SEEDS:
        store.write_prediction(folder_of("toy", "ours", "id", seed), PREDICTION, evidence(0, features=False))
    said = write(manifest_of(), store, "tsne")
    assert "no toy-tsne: Ours has no stored features; training with --keep-features" in said


def test_records_without_memory_or_with_a_single_column(store: Store) -> None:
    for seed in SEEDS:
        run = full_record(seed, 0.1)
        fill(store, "plain", [replace(run, provenance=replace(run.provenance, peak_bytes=None))])
    write(manifest_of(("Plain",), reference="Plain"), store, "risk-coverage", "ranks", "cost", "gain")
    assert names(store) == {f"toy-{name}.{end}" for name in ("cost", "risk-coverage") for end in ("png", "pdf")}


def test_memory_is_a_gpus_only(store: Store) -> None:
    """Older records of the CPU tell what the process held, which the jobs before had filled."""
    memory = cost.draw(load_runs(manifest_of(), store)).axes[-1]
    assert memory.get_title("left") == "(c) memory"
    assert memory.get_xlim()[1] > 1.05 * 2**28 / 2**20, "marks of equal costs lie inside, and not upon the edge"
    for index, name in enumerate(METHODS):
        run = full_record(0, 0.1 + 0.05 * index)
        on_host = replace(run.provenance, environments=("torch 2, AVX512 (x), cpu, 1 thread(s)",))
        fill(store, name.lower(), [replace(run, provenance=on_host)])
    figure = cost.draw(load_runs(with_seeds(0), store))
    said = " ".join(each.get_text() for each in figure.findobj(Text))
    assert "AURC" in said
    assert "emory" not in said


def test_of_many_columns_the_best_and_the_reference_are_shown() -> None:
    columns = [column(f"M{index}") for index in range(12)]
    ranked = {f"M{index}": 12.0 - index for index in range(11)}
    chosen = risk_coverage.choose_columns(columns, ranked, "M0")
    assert [c.name for c in chosen] == ["M0", "M4", "M5", "M6", "M7", "M8", "M9", "M10"]
    assert risk_coverage.choose_columns(columns[:8], ranked, "M0") == columns[:8]


def test_differences_are_seed_by_seed_from_the_reference(store: Store) -> None:
    """Theirs lies above ours by 0.05 (1 + seed/50) at full coverage; what the seeds share is gone."""
    runs = load_runs(manifest_of(), store)
    apart = differences.differences(runs.judged, "Ours", "risk")
    assert [*apart] == ["Theirs", "Plain"]
    assert apart["Theirs"][:, 200] == pytest.approx([5.0 * (1 + seed / 50) for seed in SEEDS])
    figure = risk_coverage.draw(load_runs(manifest_of(baseline=""), store))
    assert figure.axes[-1].get_title("left") == "(c) difference from Ours, seed by seed"
    from_baseline = risk_coverage.draw(runs).axes[-1]
    assert from_baseline.get_title("left") == "(c) difference from Plain, seed by seed"
    low, high = figure.axes[-1].get_ylim()
    assert low < 0 < 10.4 < high < 12
    assert differences.differences(runs.judged, "Absent", "risk") == {}
    alone = load_runs(manifest_of(("Ours",)), store)
    assert len(risk_coverage.draw(alone).axes) == 2, "nothing to compare with"


def test_a_column_far_off_leaves_the_panel_of_differences() -> None:
    apart = {f"M{index}": np.full((2, 201), 0.1 * (index + 1)) for index in range(4)} | {"far": np.full((2, 201), 5.0)}
    assert differences.far_off(apart, slice(0, 201)) == ["far"]
    near = [found for name, found in apart.items() if name != "far"]
    assert differences.limits(near, slice(0, 201)) == pytest.approx((-0.024, 0.424))
    assert differences.limits([np.zeros((2, 201))], slice(0, 201)) == (-1.0, 1.0)


def drawn_texts(figure: Figure) -> dict[Text, Bbox]:
    """Every text that is really drawn, with its place: axes keep labels of ticks beyond their ends, too."""
    found: dict[Text, Bbox] = {}
    draw = Text.draw

    def noted(text: Text, renderer: Any) -> None:
        if text.get_visible() and text.get_text().strip():
            found[text] = text.get_window_extent(renderer)
        draw(text, renderer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", noted)
        figure.draw_without_rendering()
    return found


@pytest.mark.parametrize("count", [2, 8, 26])
def test_no_text_is_cut_or_covered(tmp_path: Path, count: int) -> None:
    """Of methods that lie close together, with long names; on a GPU, so that costs have three panels."""
    store, methods = Store(tmp_path), tuple(f"Method of a name {index}" for index in range(count))
    for index, name in enumerate(methods):
        level = 0.9 if index == 1 else 0.1 + 0.0001 * index
        fill(store, name.lower(), [full_record(seed, level) for seed in range(2)])
    entries = tuple(ManifestEntry(name, name.lower(), "id", (0, 1)) for name in methods)
    runs = load_runs(manifest_of(entries=entries, reference=methods[0], baseline=methods[0]), store)
    for name in ("risk-coverage", "ranks", "cost", "gain"):
        with style.house_style():
            figure = OF_A_TASK[name](runs)
            texts = drawn_texts(figure)
        page = figure.bbox.padded(1)
        cut = [text for text, box in texts.items() if not (page.contains(*box.min) and page.contains(*box.max))]
        assert not cut, name
        covered = [(a, b) for a, b in combinations(texts, 2) if texts[a].padded(-3).overlaps(texts[b].padded(-3))]
        assert not covered, name


def test_a_method_looks_alike_whatever_is_shown_beside_it(store: Store, registry: Registry) -> None:
    """In figures of some or of all methods, with any reference; and all methods look different, in grey too."""
    colours = {}
    for methods in (METHODS, METHODS[1:], METHODS[::-1]):
        columns = load_runs(manifest_of(methods, reference=methods[0]), store).judged
        for each in columns:
            colours.setdefault(each.name, set()).update(
                style.line_look(each, reference)["color"] for reference in ("", each.name)
            )
    assert all(len(found) == 1 for found in colours.values())
    every = [label for name in registry.names() for label in registry.get(name).labels]
    assert set(looks.listed_labels()) <= set(every)
    assert len({(look.dash, look.mark, look.colour) for look in map(looks.look_of, every)}) == len(every)
    first = [looks.look_of(label) for label in looks.listed_labels()[: len(looks.PALETTE)]]
    assert len({look.colour for look in first}) == len({look.mark for look in first}) == len(looks.PALETTE)


def test_a_score_changes_the_line_and_a_plugin_has_a_colour_of_its_name() -> None:
    method, by_score = looks.look_of("Mine"), looks.look_of("Mine", "SR")
    assert method.colour == by_score.colour
    assert (method.dash, method.mark) != (by_score.dash, by_score.mark)
    assert by_score.hollow
    assert method not in map(looks.look_of, looks.listed_labels())
    assert len({looks.look_of(f"Mine {index}").colour for index in range(40)}) == len(looks.PALETTE)
    part = column("Mine+SR@90", published=False, coverage=90.0)
    assert part.label == "Mine"


def test_plain_figures_have_no_footer_but_return_it(store: Store) -> None:
    with_footer, without = (load_runs(crossed(), store, plain=plain) for plain in (False, True))
    for name, draw in OF_A_TASK.items():
        assert draw(with_footer).texts, name
        assert "toy_data: " not in " ".join(text.get_text() for text in draw(without).texts), name
    drawn = write_figure(ranks.draw, without, "ranks")
    assert "toy_data: average rank over the table's 2 coverages" in drawn.text().splitlines()[-1]
    assert run_here("figures", "--results", store.root, "--plain", "--methods", "ours", "plain").returncode == 0


def test_marks_of_lines_do_not_fall_on_each_other() -> None:
    points = [range(201)[risk_coverage.marker_points(index, 8, (0.0, 100.0))] for index in range(8)]
    assert {len(each) for each in points} == {5}
    assert len({point for each in points for point in each}) == 40


def test_the_name_of_a_class_stands_among_its_points() -> None:
    places = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [90.0, 90.0]])
    assert tsne.centre(places).tolist() == [0.0, 0.0]


def test_columns_of_one_training_per_coverage_have_no_curve(store: Store) -> None:
    parts = [ManifestEntry("Parts", "plain", "id", SEEDS, coverage=c) for c in (100.0, 50.0)]
    runs = load_runs(manifest_of(entries=(*manifest_of().entries, *parts)), store)
    text = " ".join(risk_coverage.caption(runs, runs.judged[:3], 3))
    assert "Without a curve, as each coverage has a training of its own: Parts." in text


def test_the_zoom_follows_the_table_and_the_curves() -> None:
    steep = (np.arange(201) / 200) ** 2
    assert risk_coverage.zoom([100, 90, 70], [steep]) == (70, 100)
    assert risk_coverage.zoom([100, 50, 10], [steep]) == (0, 50)
    assert risk_coverage.zoom([100, 50, 10], [np.sqrt(steep)]) == (0, 25)
    assert risk_coverage.zoom([100, 50, 10], [np.ones(201)]) == (0, 50)
    assert risk_coverage.zoom([100], [steep]) == (0, 50)
    assert risk_coverage.zoom([100, 10], [steep**5]) == (0, 85)
    assert risk_coverage.zoom([100, 10], [np.zeros(201)]) == (0, 50)


def test_pairs_are_unresolved_where_the_interval_contains_0() -> None:
    drawn = np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0], [1.0, 3.0, 2.0]])
    assert ranks.unresolved(drawn).tolist() == [[True, False, False], [False, True, True], [False, True, True]]


def test_bars_are_the_largest_sets_of_joined_columns() -> None:
    pairs = {(0, 1), (1, 2), (0, 2), (2, 3), (0, 4)}
    joined = np.array([[i == j or (min(i, j), max(i, j)) in pairs for j in range(6)] for i in range(6)])
    assert ranks.cliques(joined) == [(0, 1, 2), (0, 4), (2, 3)]
    assert ranks.cliques(np.eye(3, dtype=bool)) == []


def test_settings_and_their_axis() -> None:
    assert [sensitivity.setting_of(name) for name in ("q=0.99", "s=1e3", "CE")] == [0.99, 1000.0, None]
    assert sensitivity.axis_of([50, 100, 150]) == sensitivity.Axis("", (50, 100, 150))
    even = sensitivity.axis_of([0, 0.9, 0.99, 0.999])
    assert (even.kind, even.places) == (" (evenly spaced)", (0, 1, 2, 3))
    log = sensitivity.axis_of([0, 10, 100, 10000])
    assert log.kind == " (log scale)"
    assert log.places == pytest.approx((-0.5, 1, 2, 4))


@pytest.mark.parametrize("suffix", ["", "-cpu"])
def test_sensitivity_with_and_without_published_values(store: Store, suffix: str) -> None:
    settings = ("q=0", "q=0.9", "q=0.99", "q=0.999")
    entries = [ManifestEntry(name, "ours", "id", SEEDS) for name in settings[:3]]
    late = replace(LATE, label="q=0.999", seeds=SEEDS)
    reasons = dict.fromkeys(settings, "too small") if suffix else {}
    shown = {"columns": settings, "reference": "q=0.99", "published": "sensitivity_q", "incomparable": reasons}
    table = manifest_of(entries=(*entries, late), name=f"q{suffix}", **shown)
    (drawn,) = write_published_figures([table], store)
    assert varies_a_setting(table)
    assert not varies_a_setting(replace(table, name="celeba"))
    assert [path.name for path in drawn.paths] == [f"q{suffix}-sensitivity.png", f"q{suffix}-sensitivity.pdf"]
    runs = load_runs(table, store)
    legend = sensitivity.draw(runs).legends
    assert bool(legend) == (not suffix)
    assert ("not shown: too small" in " ".join(sensitivity.caption(runs, runs.judged))) == bool(suffix)


def test_gains_are_sorted_and_their_parts_stacked(store: Store) -> None:
    runs = load_runs(manifest_of(), store)
    found = gain.gains_over(runs.judged[2], runs.judged)
    assert [each.name for each in found] == ["Ours", "Theirs"]
    assert found[0].total > found[1].total > 0
    assert gain.bar_starts([1, -1, 2], [2, 3, 0]) == ([0, 0, 0], [1, 0, 0])


def test_few_far_gains_are_cut_off() -> None:
    near = [gain.Gain(f"M{index}", 1.0, 0.5, 0.1, 5) for index in range(8)]
    assert gain.reach([*near, gain.Gain("far", -30.0, 0.0, 1.0, 5)]) == pytest.approx(1.6)
    assert gain.reach([near[0], gain.Gain("far", -3.0, 0.0, 1.0, 5)]) == pytest.approx(4.0)


def test_what_the_map_calls_kept_and_wrong() -> None:
    logits = np.array([[float(index), 0.0] for index in range(1, 21)])
    kept, wrong = tsne.kept_and_wrong(Evidence(Prediction(logits), np.array([1, *[0] * 19])))
    assert kept.tolist() == [False, *[True] * 19]
    assert wrong.tolist() == [True, *[False] * 19]
    assert len(tsne.draw_points(5000)) == tsne.MOST_POINTS
    assert (tsne.draw_points(5000) == tsne.draw_points(5000)).all()


def test_long_names_keep_their_end() -> None:
    assert style.short_name("short") == "short"
    assert style.short_name("abcdefghijklmnop", 10) == "abcdef…nop"


@pytest.mark.parametrize("module", ["figures.catalogue", "forecast.gantt"])
def test_a_backend_that_is_not_there_is_not_asked_for(module: str) -> None:
    code = f"import benchmark.{module}, matplotlib; print(matplotlib.get_backend())"
    environment = {**os.environ, "MPLBACKEND": "nonsense"}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=environment)
    assert result.stdout.strip().lower() == "agg", result.stderr


def test_the_command_does_without_torch(store: Store) -> None:
    script = (
        "import sys, runpy; sys.argv = ['run_all.py', *sys.argv[1:]]\n"
        "try: runpy.run_path('run_all.py', run_name='__main__')\n"
        "except SystemExit as end: assert not end.code\n"
        "sys.exit('torch' in sys.modules)"
    )
    options = ["figures", "--results", str(store.root), "--methods", "ours", "plain", "--scores", "margin"]
    result = subprocess.run([sys.executable, "-c", script, *options], cwd=ROOT, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert str(store.root / "figures" / "toy-risk-coverage.png") in result.stdout.splitlines()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--datasets", "toys"], "unknown task in this results folder: 'toys': did you mean 'toy'?"),
        (["--methods", "our"], "unknown method in the results of toy: 'our': did you mean 'Ours'?"),
        (["--reference", "x"], "--reference x: not among the methods shown"),
        (["--scores", "x"], "unknown score 'x'"),
        (["--results", "nowhere"], "no results in 'nowhere'"),
    ],
)
def test_the_commands_errors(store: Store, options: list[str], message: str) -> None:
    result = run_here("figures", "--results", store.root, *options)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (store.root / "figures").exists()


def test_many_columns_that_nothing_tells_apart_are_one_bar() -> None:
    """Without a pivot the search takes 2^40 steps."""
    assert ranks.cliques(np.ones((40, 40))) == [tuple(range(40))]
    kept, crowded = ranks.keep_best(list(range(40)), [f"M{i}" for i in range(40)], "M30")
    assert (kept, crowded) == ([*range(20), 30], 19)


def test_gains_of_which_most_are_nothing() -> None:
    nothing = [gain.Gain(f"M{index}", 0.0, 0.0, 0.0, 5) for index in range(6)]
    assert gain.reach([*nothing, gain.Gain("A", 2.0, 1.0, 0.5, 5)]) == 3.5
    assert gain.reach(nothing) == 1.0


def test_a_name_is_no_formula(store: Store) -> None:
    """A label that matplotlib would read as mathematics, and fail on."""
    entries = tuple(replace(entry, label=f"{entry.label} $\\frac$") for entry in manifest_of().entries)
    manifest = manifest_of(entries=entries, reference=entries[0].label, baseline=entries[-1].label)
    write(manifest, store, "risk-coverage", "ranks", "cost", "gain")
    assert "toy-gain.png" in names(store)


def test_one_error_among_a_handful_of_images_does_not_set_the_height() -> None:
    curves = np.full((5, 201), 10.0)
    curves[0, 1], curves[1, 60] = 100.0, 20.0
    assert risk_coverage.height([curves], (0.0, 100.0)) == pytest.approx(21.0)
    assert risk_coverage.height([curves], (50.0, 100.0)) == pytest.approx(10.5)


def test_costs_that_nobody_has_measured_are_not_drawn(store: Store) -> None:
    for name in METHODS:
        for seed in SEEDS:
            folder = folder_of("toy", name.lower(), "id", seed)
            run = store.read_record(folder)
            assert run is not None
            (store.root / folder / PREDICTION).unlink()
            store.write_record(folder, made_by_other_code(with_score(run, "SR", cost=None), "cost"))
    assert (
        write(manifest_of(), store, "expected-cost")
        == "no toy-expected-cost: no column has a run whose costs are known"
    )


def texts_of_costs(store: Store) -> str:
    with style.house_style():
        return "\n".join(
            text.get_text() for text in drawn_texts(OF_A_TASK["expected-cost"](load_runs(manifest_of(), store)))
        )


def test_chows_rule_is_spoken_of_where_it_is_drawn(store: Store) -> None:
    """A run of predicted classes has no probabilities."""
    assert texts_of_costs(store).count("Chow's rule") >= 2
    for folder in store.finished():
        run = store.read_record(folder)
        assert run is not None
        classifier = replace(run.measures.classifier, chow_cost=None)
        store.write_record(folder, replace(run, measures=replace(run.measures, classifier=classifier)))
    assert "Chow" not in texts_of_costs(store)


def test_differences_of_costs_are_those_of_runs_with_one_seed() -> None:
    """By hand: a run that the base does not have is left out, and so is a panel without a difference."""
    rising, flat = np.arange(3.0), np.ones(3)
    best = {"a": {0: rising, 1: flat}, "b": {1: rising, 2: flat}}
    panels = difference_panels(["a", "b"], best, {"b": {1: 2 * rising, 2: flat}}, "a")
    assert panels["best threshold minus that of a"]["b"].tolist() == [[-1, 0, 1]]
    assert panels["Chow's rule minus best"]["b"].tolist() == [[0, 1, 2], [0, 0, 0]]
    assert list(difference_panels(["a"], best, {}, "a")) == []
