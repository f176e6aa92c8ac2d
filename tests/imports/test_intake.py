"""Runs that people bring become results like any other: once, in one order, beside trained ones where they belong."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmark.measure.metrics import aurc
from benchmark.store.store import Store
from tests.conftest import TINY, run_here
from tests.imports.runs import (
    CLASSES,
    SAMPLES,
    grid,
    imported,
    labels,
    logit_run,
    logits,
    loss_run,
    refused,
    save,
    snapshot,
    softmax,
)


def one_record(results: Path, label: str, seed: int = 0, task: str = "predictions"):  # type: ignore[no-untyped-def]
    store = Store(results)
    (found,) = [r for r in store.records(task) if (r.label, r.seed) == (label, seed)]
    return found


def test_a_results_folder_like_any_other(tmp_path: Path) -> None:
    results = tmp_path / "r"
    said = imported(results, *grid(tmp_path))
    assert "6 runs imported" in said
    assert sorted(path.name for path in (results / "tables").iterdir()) == [
        *(f"predictions-costs.{end}" for end in ("csv", "md", "tex")),
        "predictions-runs.csv",
        *(f"predictions-statistics.{end}" for end in ("csv", "md", "tex")),
        *(f"predictions.{end}" for end in ("csv", "md", "tex")),
    ]
    record = one_record(results, "a", 1)
    assert record.is_imported
    assert record.provenance.imported.file == "a-1.npz"
    assert len(record.provenance.imported.sha256) == 64
    assert record.provenance.imported.given == "logits"
    assert record.num_train is None
    page = (results / "report.html").read_text()
    assert "a-1.npz: logits; SHA-256 " in page
    for words in (
        ("explain", "predictions", "b", "90"),
        ("measure", "--scores", "margin"),
        ("tables", "--scores", "energy", "--transpose"),
        ("figures",),
    ):
        done = run_here(*words, "--results", results)
        assert (done.returncode, done.stderr.replace(f"Report: {results / 'report.html'}\n", "")) == (0, ""), words
    assert "imported from b-2.npz" in run_here("explain", "predictions", "b", "90", "--results", results).stdout
    same = run_here("diff", results, results)
    assert "6 of 6 runs of the same job are equal to the bit" in same.stdout


def test_the_same_content_again_changes_nothing(tmp_path: Path) -> None:
    """Also from another kind of file."""
    results = tmp_path / "r"
    paths = grid(tmp_path)
    imported(results, *paths)
    before = snapshot(results)
    assert "0 runs imported, 6 runs are there already with the same content" in imported(results, *paths)
    assert snapshot(results) == before
    np.savez_compressed(tmp_path / "a-0.npz", **logit_run(0))
    assert "0 runs imported, 1 run is there already" in imported(results, tmp_path / "a-0.npz")
    assert snapshot(results) == before


def test_other_content_replaces_where_asked(tmp_path: Path) -> None:
    results = tmp_path / "r"
    imported(results, *save(tmp_path, a_0=logit_run(0, **{"val.labels": labels(), "val.logits": logits(5)})))
    imported(results, *save(tmp_path, a_0=logit_run(1)), "--replace")
    record = one_record(results, "a")
    other = tmp_path / "fresh"
    imported(other, tmp_path / "a-0.npz")
    assert record.measures == one_record(other, "a").measures
    assert not list(results.rglob("prediction-val.npz")), "the new content has none"
    assert run_here("diff", results, other).returncode == 0


def test_a_killed_import_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any file that is written: what is done stays done, and the same command brings the rest."""
    from benchmark.imports import intake

    whole, paths = tmp_path / "whole", grid(tmp_path)
    imported(whole, *paths)
    kept = intake.store_run
    for stop in range(6):
        results, calls = tmp_path / f"r{stop}", iter(range(100))

        def dying(*args: object, calls: object = calls, stop: int = stop) -> None:
            if next(calls) == stop:  # type: ignore[call-overload]
                raise KeyboardInterrupt
            kept(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(intake, "store_run", dying)
        assert run_here("score", *paths, "--results", results).returncode == 130
        assert len(Store(results).finished()) == stop
        monkeypatch.setattr(intake, "store_run", kept)
        imported(results, *paths)
        assert snapshot(results) == snapshot(whole)


def test_samples_are_matched_by_ids(tmp_path: Path) -> None:
    """Whatever order they stand in, and whether ids are numbers or text."""
    order = np.random.default_rng(0).permutation(SAMPLES)
    names = np.array([f"image {number}" for number in range(SAMPLES)])
    save(
        tmp_path,
        a_0=logit_run(1, ids=names),
        a_1={"labels": labels()[order], "logits": logits(2)[order], "ids": names[order]},
    )
    results = tmp_path / "r"
    imported(results, tmp_path / "a-0.npz", tmp_path / "a-1.npz")
    store = Store(results)
    first, second = (store.read_prediction(folder) for folder in store.finished())
    assert first.ids is not None and second.ids is not None
    assert np.array_equal(first.ids, second.ids)
    assert np.array_equal(second.prediction.logits, logits(2))


def test_ids_of_a_later_run_hold_for_all(tmp_path: Path) -> None:
    """The first run has none: the second, row by row the same, says what they are."""
    order = np.arange(SAMPLES).reshape(-1, CLASSES)[::-1].ravel()  # within classes: the labels stay
    save(
        tmp_path,
        a_0=logit_run(1),
        b_0=logit_run(2, ids=np.arange(SAMPLES)),
        c_0={"labels": labels()[order], "logits": logits(2)[order], "ids": order},
    )
    results = tmp_path / "r"
    imported(results, tmp_path / "a-0.npz", tmp_path / "b-0.npz", tmp_path / "c-0.npz")
    store = Store(results)
    predictions = [store.read_prediction(folder).prediction.logits for folder in store.finished()]
    assert np.array_equal(predictions[1], predictions[2])
    again = save(tmp_path, d_0={"labels": labels()[order], "logits": logits(2)[order], "ids": order})
    imported(results, *again)
    assert np.array_equal(store.read_prediction(store.finished()[-1]).prediction.logits, logits(2))


def test_other_samples_replace_the_only_run(tmp_path: Path) -> None:
    imported(tmp_path / "r", *save(tmp_path, a_0=logit_run()))
    shorter = {"labels": labels()[:60], "logits": logits()[:60]}
    imported(tmp_path / "r", *save(tmp_path, a_0=shorter), "--replace")
    assert one_record(tmp_path / "r", "a").measures.num_images == 60


def test_a_reference_that_a_set_lacks(tmp_path: Path) -> None:
    fog = {"set.fog.logits": logits(5), "set.fog.labels": labels()}
    paths = save(tmp_path, a_0=logit_run(1, **fog), b_0=logit_run(2), c_0=logit_run(3, **fog))
    imported(tmp_path / "r", *paths, "--reference", "b")
    references = {manifest.task: manifest.reference for manifest in Store(tmp_path / "r").manifests()}
    assert references == {"predictions": "b", "predictions-fog": "a"}


def test_counts_are_divided_by_their_sum(tmp_path: Path) -> None:
    votes = np.random.default_rng(0).integers(0, 50, (SAMPLES, CLASSES)) + 1
    (path,) = save(tmp_path, a_0={"labels": labels(), "probabilities": votes})
    assert "they look like logits" in refused(path)
    imported(tmp_path / "r", path, "--normalise")
    store = Store(tmp_path / "r")
    stored = store.read_prediction(store.finished()[0]).prediction.probabilities
    assert stored is not None
    assert np.allclose(stored.sum(axis=1), 1)


def test_classes_in_another_order_are_a_warning(tmp_path: Path) -> None:
    turned = logit_run() | {"logits": np.roll(logits(strength=6.0), 1, axis=1)}
    said = imported(tmp_path / "r", *save(tmp_path, a_0=turned))
    assert "warning: a-0.npz: accuracy 0.0%, but " in said
    assert "if predicted class 0 is 3, 1 is 0, 2 is 1 and so on" in said
    assert "1 run imported" in said
    assert "warning" not in imported(tmp_path / "q", *save(tmp_path, a_0=logit_run()))


def test_probabilities_are_divided_by_their_sum_on_request(tmp_path: Path) -> None:
    p = softmax(logits())
    (path,) = save(tmp_path, a_0={"labels": labels(), "probabilities": 0.5 * p})
    imported(tmp_path / "r", path, "--normalise")
    imported(tmp_path / "q", *save(tmp_path, a_0={"labels": labels(), "probabilities": p}))
    ours, theirs = (one_record(tmp_path / name, "a") for name in "rq")
    assert ours.provenance.imported.normalised
    assert not theirs.provenance.imported.normalised
    assert ours.measures.classifier.nll == pytest.approx(theirs.measures.classifier.nll)


def test_float16_ties_are_taken_on_request(tmp_path: Path) -> None:
    p = softmax(40 * logits()).astype(np.float16)
    imported(tmp_path / "r", *save(tmp_path, a_0={"labels": labels(), "probabilities": p}), "--allow-ties")
    assert one_record(tmp_path / "r", "a").score("SR").top_ties > 0.5


def test_logits_probabilities_and_logarithms_say_the_same(tmp_path: Path) -> None:
    table = logits().astype(np.float64)
    save(
        tmp_path,
        a_0={"labels": labels(), "logits": table},
        b_0={"labels": labels(), "probabilities": softmax(table)},
        c_0={"labels": labels(), "log_probabilities": np.log(softmax(table))},
    )
    imported(tmp_path / "r", *sorted(tmp_path.glob("*.npz")))
    runs = [one_record(tmp_path / "r", name).measures for name in "abc"]
    for other in runs[1:]:
        for name, value in vars(runs[0].classifier).items():
            assert getattr(other.classifier, name) == pytest.approx(value), name
        assert other.scores["SR"].aurc == pytest.approx(runs[0].scores["SR"].aurc)


def test_a_confidence_of_ones_own_is_a_column(tmp_path: Path) -> None:
    mc = np.linspace(0, 1, SAMPLES)
    (path,) = save(
        tmp_path,
        a_0=logit_run(0, **{"confidence.mc": mc}),
    )
    said = imported(tmp_path / "r", path)
    assert re.search(r"\| +coverage \| +a\+mc \| +a \|", said)
    record = one_record(tmp_path / "r", "a")
    assert list(record.measures.scores) == ["SR", "mc"]
    error = logits().argmax(1) != labels()
    assert record.score("mc").aurc == pytest.approx(aurc(mc, error))


def test_the_unnamed_confidence_is_the_methods_own(tmp_path: Path) -> None:
    imported(tmp_path / "r", *save(tmp_path, a_0=logit_run(0, confidence=np.linspace(0, 1, SAMPLES))))
    assert list(one_record(tmp_path / "r", "a").measures.scores) == ["confidence", "SR"]


def test_scores_are_chosen_and_ordered_on_request(tmp_path: Path) -> None:
    wanted = np.array(["margin", "SR"])
    imported(tmp_path / "r", *save(tmp_path, a_0=logit_run(0, scores=wanted)))
    assert list(one_record(tmp_path / "r", "a").measures.scores) == ["margin", "SR"]


def test_predicted_classes_with_a_confidence(tmp_path: Path) -> None:
    predicted, confidence = logits().argmax(1), softmax(logits()).max(1)
    run = {"labels": labels(), "predicted": predicted, "confidence": confidence}
    said = imported(tmp_path / "r", *save(tmp_path, a_0=run), "--scores", "margin")
    record = one_record(tmp_path / "r", "a")
    assert record.measures.classifier.accuracy == pytest.approx((predicted == labels()).mean())
    assert record.measures.classifier.nll is None
    assert record.score("confidence").aurc == pytest.approx(aurc(confidence, predicted != labels()))
    assert "a: imported as predicted classes with a confidence, so there is no NLL, Brier score or ECE." in said
    assert "a+margin: it needs logits or class probabilities, and the run was imported without." in said


def test_a_loss_with_a_confidence(tmp_path: Path) -> None:
    run = loss_run()
    said = imported(tmp_path / "r", *save(tmp_path, a_0=run, b_0=loss_run(1)))
    record = one_record(tmp_path / "r", "a")
    score = record.score("confidence")
    assert score.risk[200] == pytest.approx(run["loss"].mean())
    assert score.aurc == pytest.approx(aurc(run["confidence"], run["loss"]))
    assert score.e_aurc == pytest.approx(score.aurc - aurc(-run["loss"], run["loss"]))
    assert (score.auroc, score.class_coverage, record.measures.classifier.accuracy) == (None, None, None)
    assert "the risk is the mean loss of what is kept" in said
    for words in (("figures",), ("explain", "predictions", "b", "50"), ("tables",), ("measure",)):
        assert run_here(*words, "--results", tmp_path / "r").returncode == 0, words


def test_scores_that_need_validation_or_training_outputs(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    features = random.standard_normal((SAMPLES, 6))
    more = {"features": features, "train.features": features[::-1], "train.labels": labels()[::-1]}
    more |= {"val.logits": logits(9), "val.labels": labels()}
    said = imported(
        tmp_path / "r", *save(tmp_path, a_0=logit_run(0, **more)), "--scores", "pNorm", "kNN", "Mahalanobis"
    )
    assert list(one_record(tmp_path / "r", "a").measures.further) == ["pNorm", "kNN", "Mahalanobis"]
    assert "cannot be measured" not in said
    bare = imported(tmp_path / "q", *save(tmp_path, b_0=logit_run()), "--scores", "pNorm", "kNN")
    assert "b+pNorm: it needs validation images" in bare
    assert "b+kNN: it needs features" in bare


def test_evaluation_sets_have_tables_of_their_own(tmp_path: Path) -> None:
    runs = {
        f"{name}_0": logit_run(seed, **{"set.fog.logits": logits(seed, 1.0), "set.fog.labels": labels()})
        for seed, name in enumerate("ab")
    }
    said = imported(tmp_path / "r", *save(tmp_path, **runs), "--task", "mine", "--title", "My images")
    assert "Selective risk (%) on My images: fog" in said
    clean, foggy = (one_record(tmp_path / "r", "a", 0, task) for task in ("mine", "mine-fog"))
    assert foggy.measures.classifier.accuracy < clean.measures.classifier.accuracy
    assert "mine-fog" in (tmp_path / "r" / "report.html").read_text()
    later = imported(tmp_path / "r", *save(tmp_path, c_0=runs["a_0"]))
    assert "on My images: fog" in later, "the only task that is no set is meant, and its title stays"


def test_logarithms_are_taken_as_they_are(tmp_path: Path) -> None:
    """Only that of 0 is replaced, and counted."""
    p = np.full((SAMPLES, CLASSES), -300.0)
    p[np.arange(SAMPLES), (labels() + 1) % CLASSES] = 0
    p[0, 0] = -np.inf
    said = imported(tmp_path / "r", *save(tmp_path, a_0={"labels": labels(), "log_probabilities": p}))
    nll = one_record(tmp_path / "r", "a").measures.classifier.nll
    assert nll == pytest.approx((300 * (SAMPLES - 1) - np.log(np.finfo(np.float32).tiny)) / SAMPLES)
    assert "1 test sample has probability 0 for the true class" in said


def test_groups_are_stored(tmp_path: Path) -> None:
    group = np.array(["young", "old"] * (SAMPLES // 2))
    imported(tmp_path / "r", *save(tmp_path, a_0=logit_run(0, **{"group.age": group})))
    store = Store(tmp_path / "r")
    for folder in store.finished():
        assert np.array_equal(store.read_prediction(folder).groups["age"], group)
    assert [folder.parts[0] for folder in store.finished()] == ["predictions", "predictions-groups"]


def test_runs_added_later_join_the_table(tmp_path: Path) -> None:
    results = tmp_path / "r"
    imported(results, *grid(tmp_path, ("a",)))
    said = imported(results, *grid(tmp_path, ("b",), 2))
    assert re.search(r"\| +coverage \| +a \| +b \|", said)
    (manifest,) = Store(results).manifests()
    assert [(entry.label, entry.seeds) for entry in manifest.entries] == [("a", (0, 1, 2)), ("b", (0, 1))]


class TestPairs:
    def test_nothing_is_said_of_pairs_unless_the_user_does(self, tmp_path: Path) -> None:
        said = imported(tmp_path / "r", *grid(tmp_path, seeds=5))
        statistics = (tmp_path / "r" / "tables" / "predictions-statistics.md").read_text()
        assert "initialisation" not in said
        assert "Paired differences" not in statistics
        assert "signed-rank" not in statistics
        assert "for each method by itself" in statistics
        assert "(c)" not in run_here("figures", "--results", tmp_path / "r", "--plain").stdout

    def test_pairs_are_compared_where_the_user_says_so(self, tmp_path: Path) -> None:
        said = imported(tmp_path / "r", *grid(tmp_path, seeds=5), "--paired")
        statistics = (tmp_path / "r" / "tables" / "predictions-statistics.md").read_text()
        assert "Runs of one seed belong together, as those say who brought them" in said
        assert "Paired differences" in statistics
        assert "signed-rank" in statistics
        shown = run_here("tables", "--results", tmp_path / "r", "--test", "paired")
        assert "two-sided Wilcoxon signed-rank test over seeds" in shown.stdout

    def test_what_was_said_stays_until_something_else_is(self, tmp_path: Path) -> None:
        results, paths = tmp_path / "r", grid(tmp_path)

        def paired(*words: str) -> bool:
            imported(results, *paths, *words)
            return Store(results).manifests()[0].paired

        assert [paired(), paired("--paired"), paired(), paired("--no-paired")] == [False, True, True, False]

    def test_runs_that_nobody_called_pairs_are_named(self, tmp_path: Path) -> None:
        imported(tmp_path / "r", *grid(tmp_path), "--paired", "--test", "paired")
        said = imported(tmp_path / "r", *grid(tmp_path, ("c",)))
        assert "No paired statistics: nothing says that runs of c are pairs (--paired)." in said
        assert "rank-sum test" in said and "signed-rank" not in said

    def test_a_table_is_paired_if_all_in_it_are(self, tmp_path: Path) -> None:
        imported(tmp_path / "r", *grid(tmp_path, ("a",)), "--paired")
        imported(tmp_path / "r", *grid(tmp_path, ("b",)))
        assert not Store(tmp_path / "r").manifests()[0].paired


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    (folder / "tiny.toml").write_text(TINY)
    words = ("--methods", "sr", "--seeds", 2, "--results", folder / "r", "-q", "--set", "epochs=3")
    made = run_here("--datasets", folder / "tiny.toml", *words)
    assert made.returncode == 0, made.stderr
    return folder / "r"


class TestBesideTrainedRuns:
    @pytest.fixture
    def results(self, trained: Path, tmp_path: Path) -> Path:
        shutil.copytree(trained, tmp_path / "r")
        return tmp_path / "r"

    def truth(self, results: Path) -> np.ndarray:
        store = Store(results)
        return store.read_prediction(store.finished()[0]).labels

    def test_one_table_for_both(self, results: Path, tmp_path: Path) -> None:
        y = self.truth(results)
        run = {"labels": y, "probabilities": softmax(2 * np.eye(10)[y])}
        said = imported(results, *save(tmp_path, forest_0=run, forest_1=run), "--task", "tiny")
        assert re.search(r"\| +coverage \| +SR \| +forest \|", said)
        assert "initialisation" not in said, "the imported ones do not share it"
        modified = [line for line in said.splitlines() if line.startswith("Modified:")]
        assert modified == ["Modified: epochs = 3 (task file: 4)."] * 2
        again = run_here("tables", "--results", results, "--methods", "all")
        assert re.search(r"\| +coverage \| +SR \| +forest \|", again.stdout)

    def test_the_only_task_is_meant(self, results: Path, tmp_path: Path) -> None:
        y = self.truth(results)
        said = imported(results, *save(tmp_path, forest_0={"labels": y, "logits": 3 * np.eye(10)[y]}))
        assert re.search(r"\| +coverage \| +SR \| +forest \|", said)

    def test_other_labels_are_refused(self, results: Path, tmp_path: Path) -> None:
        before = snapshot(results)
        y = (self.truth(results) + 1) % 10
        (path,) = save(tmp_path, forest_0={"labels": y, "logits": 3 * np.eye(10)[y]})
        said = refused(path, "--task", "tiny", "--results", results)
        assert "forest-0.npz and SR of tiny: 200 labels differ of 200" in said
        (short,) = save(tmp_path, forest_0=logit_run())
        assert "expected the same samples, got 120 and 200" in refused(short, "--results", results)
        assert snapshot(results) == before

    def test_the_name_of_a_trained_method_is_taken(self, results: Path, tmp_path: Path) -> None:
        y = self.truth(results)
        (path,) = save(tmp_path, sr_0={"labels": y, "logits": 3 * np.eye(10)[y]})
        assert "a method of this table is called 'SR' already" in refused(path, "--results", results)

    def test_predictions_that_are_gone_cannot_be_compared(self, results: Path, tmp_path: Path) -> None:
        y = self.truth(results)
        for path in results.rglob("prediction.npz"):
            path.unlink()
        (path,) = save(tmp_path, forest_0={"labels": y, "logits": 3 * np.eye(10)[y]})
        assert "has no finished run with predictions, so nothing shows" in refused(path, "--results", results)

    def test_a_later_training_keeps_them_in_mind(self, results: Path, tmp_path: Path) -> None:
        y = self.truth(results)
        imported(results, *save(tmp_path, forest_0={"labels": y, "logits": 3 * np.eye(10)[y]}))
        (tmp_path / "tiny.toml").write_text(TINY)
        words = ("--methods", "sr", "--seeds", 2, "--results", results, "-q", "--set", "epochs=3")
        again = run_here("--datasets", tmp_path / "tiny.toml", *words)
        assert again.returncode == 0, again.stderr
        assert "forest" not in again.stdout
        shown = run_here("tables", "--results", results, "--methods", "all").stdout
        assert "forest" in shown
        assert "Runs of one seed" not in shown, "nobody said that these are pairs"
        refused_test = run_here("tables", "--results", results, "--methods", "all", "--test", "paired")
        assert "nothing says that runs of tiny with one seed are pairs" in refused_test.stderr
        wrong = run_here("--datasets", tmp_path / "tiny.toml", "--methods", "forest", "--results", results, "-q")
        assert wrong.returncode == 2
        assert "plugin" not in wrong.stderr


def test_the_manifest_says_what_is_imported(tmp_path: Path) -> None:
    imported(tmp_path / "r", *grid(tmp_path))
    plain = json.loads((tmp_path / "r" / "manifests" / "predictions.json").read_text())
    assert [entry["imported"] for entry in plain["entries"]] == [True, True]
    assert [entry["unpaired"] for entry in plain["entries"]] == [True, True]
