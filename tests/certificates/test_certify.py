"""The command `certify` on runs that people bring: what it guarantees is counted again here."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import benchmark as sb
from benchmark.certificates.held_out import NO_HELD_OUT, Source, View
from benchmark.library.certify import Guarantees, use_of_validation
from benchmark.measure.catalogue import Unavailable, confidence_of
from benchmark.measure.guarantees import certify, certify_coverage
from benchmark.measure.prediction import Evidence
from benchmark.measure.scores import softmax_response
from benchmark.store.finished import Finished
from benchmark.store.record import Record
from benchmark.store.store import Store
from tests.conftest import run_here
from tests.imports.runs import Arrays, imported, save

VAL, TEST, CLASSES, SEEDS = 400, 600, 4, 3
STRENGTH = {"weak": 3.0, "strong": 5.0}
Logits = NDArray[np.float32]


@pytest.fixture(scope="module")
def runs() -> dict[tuple[str, int], Arrays]:
    """All runs of a table have the same truth."""
    made: dict[tuple[str, int], Arrays] = {}
    truth = np.random.default_rng(0)
    of_test, of_val, of_fog = (truth.integers(CLASSES, size=count) for count in (TEST, VAL, 500))
    for name, strength in STRENGTH.items():
        for seed in range(SEEDS):
            random = np.random.default_rng([seed, int(strength)])

            def logits(labels: NDArray[np.int64], strength: float, random: np.random.Generator = random) -> Logits:
                noise = random.standard_normal((len(labels), CLASSES))
                return (noise + strength * np.eye(CLASSES)[labels]).astype(np.float32)

            made[name, seed] = {
                "labels": of_test,
                "logits": logits(of_test, strength),
                "group.ward": np.where(of_test % 2, "odd", "even"),
                "val.labels": of_val,
                "val.logits": logits(of_val, strength),
                "val.group.ward": np.where(of_val % 2, "odd", "even"),
                "set.fog.labels": of_fog,
                "set.fog.logits": logits(of_fog, strength / 3),
            }
    return made


@pytest.fixture(scope="module")
def folder(runs: dict[tuple[str, int], Arrays], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("certified")
    paths = save(place, **{f"{name}_{seed}": arrays for (name, seed), arrays in runs.items()})
    imported(place / "r", *paths, "--task", "pets", "--paired", "--reference", "weak")
    return place / "r"


@pytest.fixture(scope="module")
def guarantees(folder: Path) -> Guarantees:
    return sb.certify(folder, risk=[2, 10], coverage=[80])


def lines(guarantees: Guarantees) -> Iterator[dict[str, Any]]:
    yield from guarantees.to_frame().to_dict("records")


def confidence_and_error(arrays: Arrays, part: str = "") -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    logits = arrays[f"{part}logits"]
    return softmax_response(logits), logits.argmax(axis=1) != arrays[f"{part}labels"]


def test_each_run_is_certified_by_its_validation_samples(
    guarantees: Guarantees, runs: dict[tuple[str, int], Arrays]
) -> None:
    found = [line for line in lines(guarantees) if line["guarantee"] == "risk"]
    assert len(found) == 2 * 2 * SEEDS
    for line in found:
        arrays = runs[line["column"], line["seed"]]
        expected = certify(*confidence_and_error(arrays, "val."), line["wanted"], 0.05)
        assert (line["held_out"], line["kept"], line["errors"]) == (VAL, expected.kept, expected.errors)
        assert line["certified_coverage"] == expected.coverage
        confidence, error = confidence_and_error(arrays)
        if expected.threshold is None:
            assert line["realised_coverage"] == 0
            continue
        assert line["threshold"] == expected.threshold
        kept = confidence >= expected.threshold
        assert line["realised_coverage"] == kept.mean()
        assert line["realised_risk"] == error[kept].mean()
        assert line["broken"] == (error[kept].mean() > line["wanted"])
    assert any(line["certified_coverage"] > 0.5 for line in found)


def test_coverages_are_set_by_validation_samples(guarantees: Guarantees, runs: dict[tuple[str, int], Arrays]) -> None:
    found = [line for line in lines(guarantees) if line["guarantee"] == "coverage"]
    assert len(found) == 2 * SEEDS
    for line in found:
        arrays = runs[line["column"], line["seed"]]
        expected = certify_coverage(confidence_and_error(arrays, "val.")[0], 0.8, 0.05)
        assert (line["threshold"], line["low"], line["high"]) == (expected.threshold, expected.low, expected.high)
        assert line["realised_coverage"] == (confidence_and_error(arrays)[0] >= expected.threshold).mean()


def test_tables_have_means_markers_and_ranks(guarantees: Guarantees, folder: Path) -> None:
    (shown, tables), *_ = guarantees.tables()
    table = tables[0]
    assert table.rows == ("2", "10")
    frame = guarantees.to_frame()
    frame = frame[(frame.guarantee == "risk") & (frame.wanted == 0.1)]
    for name in STRENGTH:
        cell = table.cells["10", name]
        assert float(cell.mean) == round(100 * frame[frame.column == name].certified_coverage.mean(), 2)
    assert table.cells["10", "strong"].best
    ranks = dict(zip(table.columns, table.summary["avg. rank"], strict=True))
    assert ranks == {"weak": "1.50", "strong": "1.00"}  # at 2 %, no threshold passes for either
    assert [each.name for each in tables] == [
        "certified", "certified-test", "certified-shift", "certified-coverage", "certified-broken",
        "corrected", "differences", "correlations",
    ]  # fmt: skip
    assert shown.manifest.reference == "weak"
    for suffix in ("md", "tex", "csv"):
        assert (folder / "tables" / f"pets-certified.{suffix}").stat().st_size > 1000
    with (folder / "tables" / "pets-certified-runs.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(list(lines(guarantees)))
    for suffix in ("png", "pdf"):
        assert (folder / "figures" / f"pets-certified.{suffix}").stat().st_size > 5000


def test_under_shift_the_risk_is_what_it_is(guarantees: Guarantees, runs: dict[tuple[str, int], Arrays]) -> None:
    ((_, tables),) = guarantees.tables()
    table = next(each for each in tables if each.name == "certified-shift")
    thresholds = {
        (each["column"], each["seed"]): each["threshold"] for each in lines(guarantees) if each["wanted"] == 0.1
    }
    risks = []
    for seed in range(SEEDS):
        confidence, error = confidence_and_error(runs["strong", seed], "set.fog.")
        risks.append(100 * error[confidence >= thresholds["strong", seed]].mean())
    assert table.cells["fog: risk at 10", "strong"].values == pytest.approx(risks)
    assert np.mean(risks) > 10
    assert "does not hold here" in table.caption


def test_a_share_of_the_test_samples(folder: Path, runs: dict[tuple[str, int], Arrays], tmp_path: Path) -> None:
    found = sb.certify(folder, risk=10, from_test=25, out=tmp_path)
    (shown,) = found.certified
    tested = {}
    for column in shown.columns:
        for run in column.runs:
            first, second = run.held_out.certifying_images, run.held_out.tested_images
            assert (first.num_samples, second.num_samples) == (150, 450)
            rows = np.concatenate([first.prediction.logits, second.prediction.logits])
            stored = runs[column.name, run.record.seed]["logits"]
            assert sorted(map(tuple, rows)) == sorted(map(tuple, stored))
            tested[column.name, run.record.seed] = [
                list(map(tuple, stored)).index(tuple(row)) for row in second.prediction.logits
            ]
    assert all(tested["weak", seed] == tested["strong", seed] for seed in range(SEEDS))
    assert tested["weak", 0] != tested["weak", 1]
    assert "25 % of 600 test images" in str(found)


@pytest.mark.parametrize("score", ["pNorm", "temperature", "Rel-U"])
def test_what_fits_a_score_certifies_nothing(folder: Path, tmp_path: Path, score: str) -> None:
    found = sb.certify(folder, risk=10, scores=[score], out=tmp_path)
    (shown,) = found.certified
    by_name = {column.name: column for column in shown.columns}
    for run in by_name[f"weak+{score}"].runs:
        held_out = run.held_out
        fitting, certifying = held_out.run.validation, held_out.certifying_images
        assert fitting.num_samples == certifying.num_samples == VAL // 2
        assert not {*map(tuple, fitting.prediction.logits)} & {*map(tuple, certifying.prediction.logits)}
        again = confidence_of(score, View(held_out.run.run, certifying, fitting))
        assert (again == held_out.certifying.confidence).all()
    assert all(run.held_out.certifying_images.num_samples == VAL for run in by_name["weak"].runs)
    assert "half of 400 validation images" in str(found)
    with_test = sb.certify(folder, risk=10, scores=[score], from_test=50, out=tmp_path)
    columns = {column.name: column for column in with_test.certified[0].columns}
    assert {run.held_out.run.validation.num_samples for run in columns[f"weak+{score}"].runs} == {VAL}


@pytest.mark.parametrize("by", ["class", "ward"])
def test_a_threshold_for_each_group(folder: Path, runs: dict[tuple[str, int], Arrays], tmp_path: Path, by: str) -> None:
    found = sb.certify(folder, risk=15, by=by, out=tmp_path)
    (shown,) = found.certified
    names: list[Any] = list(range(CLASSES)) if by == "class" else ["even", "odd"]
    for (name, seed), arrays in runs.items():
        groups = shown.groups[name][0.15][seed]
        assert list(groups) == [str(each) for each in names]
        known, tested = (
            arrays[f"{part}logits"].argmax(axis=1) if by == "class" else arrays[f"{part}group.ward"]
            for part in ("val.", "")
        )
        for each in names:
            confidence, error = confidence_and_error(arrays, "val.")
            expected = certify(confidence[known == each], error[known == each], 0.15, 0.05 / len(names))
            assert groups[str(each)].certificate == expected
            confidence, error = (array[tested == each] for array in confidence_and_error(arrays))
            if expected.threshold is not None:
                assert groups[str(each)].realised.coverage == (confidence >= expected.threshold).mean()
    assert f"for all {len(names)} together" in str(found)


def record_of(task: str = "pets", method: str = "cross_entropy", **identity: Any) -> Record:
    return Record(task, method, "0" * 12, 0, identity)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (record_of(), ""),
        (record_of("cifar10-cpu-tuned"), "`tune` chose"),
        (record_of("cifar10-cpu-tuned-epochs-3"), "`tune` chose"),
        (record_of(checkpoint="best"), "chose the epoch"),
        (record_of(method="temperature_scaling"), "has used the validation images"),
        (record_of(method="adafocal"), "has used the validation images"),
        (record_of(method="sele", config={"images": "validation"}), "has used the validation images"),
        (record_of(method="sele", config={"images": "train"}), ""),
        (record_of(method="mine", source_sha256="0"), "--plugin mine.py"),
    ],
)
def test_validation_images_that_were_used_certify_nothing(record: Record, why: str) -> None:
    found = use_of_validation(())(record)
    assert why in found
    assert bool(found) == bool(why)
    if why:
        with pytest.raises(Unavailable, match="--from-test"):
            Source(why_used=use_of_validation(())).of(record, View(*[None] * 3), "SR")  # type: ignore[arg-type]


def test_runs_without_validation_samples_say_so(folder: Path, tmp_path: Path) -> None:
    store = Store(folder)
    place = next(each for each in store.finished("pets") if "fog" not in each.parts[0])
    record = store.read_record(place)
    assert record is not None

    class WithoutValidation(Finished):
        @property
        def validation(self) -> Evidence:  # type: ignore[override]
            raise Unavailable("it has none")

    with pytest.raises(Unavailable) as error:
        Source().of(record, WithoutValidation(place, store), "SR")
    assert str(error.value) == NO_HELD_OUT
    found = Source(0.5).of(replace(record), WithoutValidation(place, store), "SR")
    assert found.certifying_images.num_samples == TEST // 2


BAD = [
    (("--risk", "0"), "--risk: expected a number from 0.001 to 100, got '0'"),
    (("--risk", "101"), "--risk: expected a number from 0.001 to 100, got '101': it is a share"),
    (("--risk", "lots"), "--risk: expected a number from 0.001 to 100, got 'lots'"),
    (
        ("--confidence", "100"),
        "--confidence: expected a number from 1 to 99.9999, got '100': no number of images makes",
    ),
    (("--confidence", "0"), "--confidence: expected a number from 1 to 99.9999"),
    (("--from-test", "100%"), "--from-test: expected a number from 0.1 to 99.9"),
    (("--coverage", "0"), "--coverage: expected a number from 0.001 to 100"),
    (("--bound", "hoeffding"), "invalid choice: 'hoeffding'"),
    (("cats",), "unknown task in this results folder: 'cats'"),
    (("pets", "--methods", "week"), "did you mean 'weak'?"),
    (("--by", "ward", "--coverage", "80"), "--by: thresholds for groups are certified for a risk; add --risk R"),
    (("--by", "hospital"), "--by hospital: nothing says which 'hospital' its images are; known: class, ward"),
    (("--results", "nowhere"), "no results in 'nowhere'"),
    (("--reference", "cat"), "--reference cat: not among the methods shown (weak, strong)"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_bad_input_is_one_line(folder: Path, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    own = () if "--results" in words else ("--results", folder)
    done = run_here("certify", *words, *own, "--out", tmp_path / "out")
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert not (tmp_path / "out").exists()
