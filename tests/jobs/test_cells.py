"""Names with ingredients, crossed grids, named cells: what is planned, what is shared, what is refused."""

from pathlib import Path

import pytest

from benchmark.base.errors import UserError
from benchmark.config.ingredient_names import ALL, INGREDIENTS, find_ingredients
from benchmark.config.load import load_task
from benchmark.jobs.cells import crossed, read_cells, read_factors
from benchmark.jobs.job import Job
from benchmark.jobs.plan import label_owners, plan
from benchmark.store.store import Store
from methods import Registry
from tests.conftest import data_hash, run_here

REGISTRY = Registry()
OWNERS = label_owners(REGISTRY)


def names(texts: list[str]) -> list[tuple[str, list[str]]]:
    return [(cell.label, [each.title for each in cell.ingredients]) for cell in read_cells(texts, OWNERS)]


def test_names_are_split_at_their_ingredients_alone() -> None:
    assert names(["sat+em+swa", "CCL-SC+SAM+SWA", "sr"]) == [
        ("SAT+EM", ["SWA"]),
        ("CCL-SC", ["SAM", "SWA"]),
        ("SR", []),
    ]
    assert names(["ccl-sc+supcon", "CCL-SC+SAT+EM+ema"]) == [("CCL-SC+SupCon", []), ("CCL-SC+SAT+EM", ["EMA"])]
    assert [label for label, _ in names(["self_adaptive+sam"])] == ["SAT", "SAT+EM"]
    with pytest.raises(UserError, match="SWA and EMA exclude each other"):
        names(["sr+swa+ema"])
    with pytest.raises(UserError, match="did you mean 'sam'"):
        find_ingredients(["samm"])
    with pytest.raises(UserError, match="unknown method 'sr\\+nonsense'"):
        names(["sr+nonsense"])


def test_no_label_ends_like_an_ingredient() -> None:
    ends = tuple(f"+{each.title.lower()}" for each in ALL)
    assert not [label for label in OWNERS if label.lower().endswith(ends)]


def test_factors_are_read() -> None:
    factors = read_factors(["swa|ema|none", "none|sam"])
    assert [[each.title if each else None for each in levels] for levels in factors] == [
        [None, "SWA", "EMA"],
        [None, "SAM"],
    ]
    assert len(crossed(["SR", "SAT"], factors)) == 2 * 3 * 2
    for text in ("swa", "swa|swa", "swa|sam", "none|none"):
        with pytest.raises(UserError, match="expected two or more different levels of one ingredient"):
            read_factors([text])
    with pytest.raises(UserError, match="the factor averaging is named twice"):
        read_factors(["swa|none", "ema|none"])


def planned(tiny: Path, labels: list[str], *overrides: str) -> dict[str, Job]:
    task = load_task(str(tiny), overrides)
    return {entry.label: entry.jobs[0] for entry in plan(task, labels, [0], REGISTRY, data_hash(task))}


def test_labels_follow_the_recipe(tiny: Path) -> None:
    everything = [INGREDIENTS[name].override for name in ("swa", "sam", "regmixup", "cosine")]
    assert list(planned(tiny, ["SR"], *everything)) == ["SR+RegMixup+cosine+SAM", "SR+RegMixup+cosine+SAM+SWA"]


def test_neutral_ingredients_leave_ids_as_they_are(tiny: Path) -> None:
    neutral = ["averaging.name=none", "mixing.name=none", "optimizer.sharpness=none", "network.classifier=linear"]
    plain = planned(tiny, ["SR", "SAT", "CCL-SC", "Deep ensemble"])
    assert {label: job.id for label, job in planned(tiny, list(plain), *neutral).items()} == {
        label: job.id for label, job in plain.items()
    }


def test_named_cells_are_cells_of_the_grid(tiny: Path) -> None:
    """They are the same jobs, so that a grid that has both trains them once."""
    held = ["averaging.name=swa", "averaging.rate=0.5", "optimizer.sharpness=sam"]
    cell = planned(tiny, ["SR"], *held)["SR+SAM+SWA"]
    assert planned(tiny, ["FMFP"])["FMFP"].id == cell.id
    full = ["mixing.name=regmixup", "mixing.reduction=sum", "network.classifier=cosine"]
    assert planned(tiny, ["SURE"])["SURE"].id == planned(tiny, ["CRL"], *held, *full)["CRL+RegMixup+cosine+SAM+SWA"].id
    plus = [*(INGREDIENTS[name].override for name in ("regmixup", "f-sam", "ema")), "mixing.reduction=sum"]
    assert planned(tiny, ["SURE+"])["SURE+"].id == planned(tiny, ["SR"], *plus)["SR+RegMixup+F-SAM+EMA"].id


def test_named_cells_stand_beside_methods_that_get_what_they_have(tiny: Path, tmp_path: Path) -> None:
    words = ("--datasets", tiny, "--methods", "sr", "fmfp", "sure+", "--with", "sam", "swa", "--seeds", 1, "--dry-run")
    result = run_here(*words, "--results", tmp_path)
    assert result.returncode == 0, result.stderr
    assert {"SR+SAM+SWA", "FMFP"} <= set(result.stdout.split())
    assert "SURE+ " not in result.stdout, "it has no job"
    assert "SURE+: is SR+RegMixup+F-SAM+EMA with constants of its own, and has no SAM" in result.stderr


def test_a_factorial_trains_what_differs(tiny: Path, tmp_path: Path) -> None:
    tiny.write_text('baseline = "SR"\n' + tiny.read_text())
    words = ("factorial", tiny, "--methods", "sr", "sat", "--with", "swa|none", "sam|none", "--seeds", 2)
    plan_text = run_here(*words, "--results", tmp_path, "--dry-run").stdout
    assert "24 epochs to train (64 without shared trainings)" in plan_text
    result = run_here(*words, "--results", tmp_path)
    assert result.returncode == 0, result.stderr
    (manifest,) = Store(tmp_path).manifests()
    assert manifest.factors == (("averaging", ("none", "SWA")), ("steps", ("none", "SAM")))
    assert [(entry.base, entry.levels) for entry in manifest.entries][:2] == [
        ("SAT", ("none", "none")),
        ("SAT", ("none", "SAM")),
    ]
    assert manifest.baseline == "SR"
    statistics = (tmp_path / "tables" / f"{tiny.stem}-statistics.md").read_text()
    for line in ("SAT: SWA", "SR: SAM", "all methods: SWA", "SAT: SWA × SAM", "SAT: SAM (minus SR)"):
        assert line in statistics, line
    tables = run_here("tables", "--results", tmp_path, "--methods", "sr", "--with", "sam", "swa", "--reference", "sr")
    assert tables.returncode == 0, tables.stderr
    first = [line.split("|")[1].strip() for line in tables.stdout.splitlines() if line.startswith("|")]
    assert first[2:4] == ["SR+SAM", "SR+SAM+SWA"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--with", "swaa"], "did you mean 'swa'"),
        (["--with", "swa", "ema"], "SWA and EMA exclude each other; name them apart, e.g. --methods SR+SWA SR+EMA"),
        (["--methods", "sr+swa", "sr", "--with", "swa"], "SR+SWA is asked for twice"),
        (["factorial", "--with", "swa|none", "--methods", "sr+sam"], "name methods without ingredients"),
        (["factorial", "--with", "swa|none", "--methods", "fmfp"], "FMFP is itself a cell of such a grid"),
        (
            ["--methods", "fmfp", "--with", "mixup"],
            "has no mixup; another cell is named by what it is made of: SR+mixup",
        ),
        (["--methods", "fmfp+ema"], "FMFP can run here: is SR+SAM+SWA with constants of its own, and has no EMA"),
        (["--methods", "fmfp", "--set", "network.classifier=cosine"], "FMFP can run here: is SR+SAM+SWA"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(tiny: Path, tmp_path: Path, words: list[str], said: str) -> None:
    command = [words[0], tiny, *words[1:]] if words[0] == "factorial" else ["--datasets", tiny, *words]
    result = run_here(*command, "--results", tmp_path / "r")
    assert result.returncode == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "r").exists()


def test_the_reference_is_found_by_its_plain_name(tiny: Path, tmp_path: Path) -> None:
    words = ("--datasets", tiny, "--methods", "sr", "sat", "--with", "sam", "--reference", "sr", "--set", "epochs=3")
    assert run_here(*words, "--seeds", 1, "--results", tmp_path).returncode == 0
    (manifest,) = Store(tmp_path).manifests()
    assert manifest.reference == "SR+SAM"


def test_methods_with_ingredients_stand_beside_those_without(tiny: Path, tmp_path: Path) -> None:
    result = run_here("--datasets", tiny, "--methods", "sr", "sr+swa", "sr+ema", "--seeds", 1, "--results", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "3 jobs" in result.stderr
    (manifest,) = Store(tmp_path).manifests()
    assert [entry.label for entry in manifest.entries] == ["SR", "SR+SWA", "SR+EMA"]
