"""What is damaged is found by its checksum, moved aside with a line saying so, and computed again to the same bits."""

import json
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmark.base.files import Damaged
from benchmark.config.load import load_task
from benchmark.jobs.job import Job
from benchmark.jobs.plan import plan
from benchmark.jobs.shared_warmup import share_warmups
from benchmark.store.curves import read_curve
from benchmark.store.provenance import Provenance
from benchmark.store.record import Record
from benchmark.store.store import CHECKPOINT, CHECKPOINT_BEFORE, RECORD, Store, folder_of, snapshot_name
from benchmark.train.context import Context
from benchmark.train.pulse import Interrupted
from benchmark.train.run_job import run_job
from methods import Registry
from tests.conftest import NOWHERE, TINY, data_hash, run_here
from tests.tables.test_build import MANIFEST, fill, record
from tests.train.test_diverged import DIVERGING

CPU = torch.device("cpu")
REGISTRY = Registry()


def flipped(content: bytes, place: float = 0.5) -> bytes:
    changed = bytearray(content)
    changed[int(place * len(content))] ^= 1
    return bytes(changed)


DAMAGES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "truncated": lambda content, other: content[: len(content) // 2],
    "one byte short": lambda content, other: content[:-1],
    "flipped": lambda content, other: flipped(content),
    "flipped in its checksum": lambda content, other: flipped(content, 0.999),
    "empty": lambda content, other: b"",
    "foreign": lambda content, other: other,
    "longer": lambda content, other: content + b"\0",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("finished")
    task = folder / "tiny.toml"
    task.write_text(TINY)
    made = run_here("--datasets", task, "--methods", "sr", "sat", "--results", folder / "results", "-q")
    assert made.returncode == 0, made.stderr
    return task, folder / "results"


def contents(results: Path) -> dict[str, Any]:
    """Bytes of predictions, curves and tables; records without their provenance."""
    found: dict[str, Any] = {}
    for path in results.rglob("*"):
        name = str(path.relative_to(results))
        if path.name == RECORD:
            found[name] = {key: value for key, value in json.loads(path.read_text()).items() if key != "provenance"}
        elif path.suffix in (".npz", ".csv", ".md", ".tex"):
            found[name] = path.read_bytes()
    return found


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["prediction.npz", "prediction-val.npz", "history.csv", RECORD])
def test_of_a_finished_job(finished: tuple[Path, Path], tmp_path: Path, name: str, damage: str) -> None:
    task, whole = finished
    results = tmp_path / "results"
    shutil.copytree(whole, results)
    path, other = (next((results / "tiny" / "cross_entropy").glob(f"*/seed-{seed}/{name}")) for seed in (0, 1))
    damaged = DAMAGES[damage](path.read_bytes(), other.read_bytes())
    path.write_bytes(damaged)
    common = ("--datasets", task, "--methods", "sr", "sat", "--results", results)
    planned = json.loads(run_here(*common, "--dry-run", "--json").stdout)
    assert [job["state"] for job in planned["tasks"][0]["jobs"]].count("new") == (name == RECORD)
    assert path.read_bytes() == damaged, "a plan touches nothing"
    again = run_here(*common)
    assert again.returncode == 0, again.stderr
    assert f"'{path}' is damaged (" in again.stderr
    assert again.stderr.count("is damaged") == 1
    assert "4 jobs, 3 done already" in again.stderr
    assert path.with_name(f"{name}.damaged").read_bytes() == damaged
    assert contents(results) == contents(whole)
    assert "is damaged" not in run_here(*common).stderr


def test_a_prediction_that_was_removed_is_no_damage(finished: tuple[Path, Path], tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(finished[1], results)
    next(results.rglob("prediction.npz")).unlink()
    again = run_here("--datasets", finished[0], "--methods", "sr", "sat", "--results", results)
    assert "4 jobs, 4 done already" in again.stderr


def test_a_damaged_prediction_is_not_read(finished: tuple[Path, Path], tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(finished[1], results)
    path = next((results / "tiny" / "cross_entropy").glob("*/seed-0/prediction.npz"))
    path.write_bytes(flipped(path.read_bytes()))
    with pytest.raises(Damaged, match="checksum"):
        Store(results).read_prediction(path.parent.relative_to(results))
    shown = run_here("tables", "--results", results, "--scores", "margin").stdout
    assert "SR+margin: its predictions are damaged" in shown


@pytest.mark.parametrize("damage", [*DAMAGES, "of another method"])
def test_a_damaged_learning_curve_is_not_shown(finished: tuple[Path, Path], tmp_path: Path, damage: str) -> None:
    results = tmp_path / "results"
    shutil.copytree(finished[1], results)
    path, other = (next((results / "tiny" / "cross_entropy").glob(f"*/seed-{seed}/history.csv")) for seed in (0, 1))
    if damage == "of another method":
        path.write_bytes(next((results / "tiny" / "self_adaptive").glob("*/seed-0/history.csv")).read_bytes())
    else:
        path.write_bytes(DAMAGES[damage](path.read_bytes(), other.read_bytes()))
    shown = run_here("tables", "--results", results)
    assert shown.returncode == 0
    assert f"'{path}' is damaged (" in shown.stderr
    page = (results / "report.html").read_text()
    assert "SR, seed 0: its learning curve (history.csv) is damaged and left out" in page
    left = other.read_text().splitlines()[-1].split(",")
    assert re.search(rf"<td>4</td><td>{float(left[1]):.3f}</td>", page), "what is shown is the other seed's alone"


def test_a_learning_curve_beside_a_run_that_has_none_is_not_shown(tmp_path: Path) -> None:
    """A sealed record tells of every file; one from before there were seals knew of no curve, and is believed."""
    store, folder = Store(tmp_path), Path("toy", "m", "id", "seed-0")
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "history.csv").write_text("epoch,loss\n0,1.0\n")
    older = Record("toy", "m", "id", 0, {}, checksums={})
    assert read_curve(folder, replace(older, provenance=Provenance(codes=[])), store) == ""
    assert read_curve(folder, older, store) != ""


def test_the_curve_of_a_diverged_run_is_sealed_too(tiny: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "fragile.py"
    plugin.write_text(DIVERGING.replace("BAD", "float('nan')"))
    run_here("--datasets", tiny, "--plugin", plugin, "--methods", "fragile", "--seeds", 1, "--results", tmp_path / "r")
    path = next((tmp_path / "r").rglob("history.csv"))
    path.write_bytes(flipped(path.read_bytes()))
    assert list(Store(tmp_path / "r").damage(path.parent.relative_to(tmp_path / "r"))) == ["history.csv"]


def test_every_flipped_bit_of_a_record_is_noticed(finished: tuple[Path, Path], tmp_path: Path) -> None:
    store, source = Store(tmp_path), next(finished[1].rglob(RECORD))
    folder = source.parent.relative_to(finished[1])
    whole, path = source.read_bytes(), tmp_path / folder / RECORD
    path.parent.mkdir(parents=True)
    path.write_bytes(whole)
    assert store.read_record(folder) is not None
    draw = random.Random(0)
    for _ in range(500):
        changed = bytearray(whole)
        changed[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
        assert store.read_record(folder) is None
        assert list(store.damage(folder)) == [RECORD]


def test_a_table_says_which_record_is_damaged(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, "ours", [record(seed, {"SR": (0.1, 0.01)}) for seed in range(3)])
    fill(store, "theirs", [record(seed, {"SR": (0.1, 0.02)}) for seed in range(3)])
    entries = tuple(replace(entry, seeds=(0, 1, 2)) for entry in MANIFEST.entries[:2])
    store.write_manifest(replace(MANIFEST, entries=entries))
    path = tmp_path / folder_of("toy", "theirs", MANIFEST.entries[1].job, 1) / RECORD
    path.write_bytes(flipped(path.read_bytes()))
    shown = run_here("tables", "--results", tmp_path).stdout
    assert "Theirs, seed 1: its record is damaged and left out; the command that made it makes it again." in shown
    assert "(2/3)" in shown
    assert path.is_file(), "tables only read"


@pytest.mark.parametrize("damage", DAMAGES)
def test_of_a_manifest(finished: tuple[Path, Path], tmp_path: Path, damage: str) -> None:
    task, whole = finished
    results = tmp_path / "results"
    shutil.copytree(whole, results)
    path = results / "manifests" / "tiny.json"
    other = path.read_bytes().replace(b"tiny digits", b"other digits")
    path.write_bytes(DAMAGES[damage](path.read_bytes(), other))
    shown = run_here("tables", "--results", results)
    assert shown.returncode == 2
    assert f"'{path}' is damaged (" in shown.stderr
    again = run_here("--datasets", task, "--methods", "sr", "sat", "--results", results)
    assert "4 jobs, 4 done already" in again.stderr
    assert f"'{path}' is damaged (" in again.stderr
    assert path.with_name("tiny.json.damaged").is_file()
    assert contents(results) == contents(whole)


def make_jobs(task: Path, labels: list[str], seeds: int = 2, **changes: str) -> list[Job]:
    config = load_task(str(task), [f"{key}={value}" for key, value in changes.items()])
    return [job for entry in plan(config, labels, range(seeds), REGISTRY, data_hash(config)) for job in entry.jobs]


def stopped_after(job: Job, context: Context, epochs: int) -> None:
    with pytest.raises(Interrupted):
        run_job(job, context, CPU, lambda values: values["epochs_done"] == epochs)


def trained(job: Job, context: Context) -> list[int]:
    """The epochs that finishing a job takes."""
    epochs: list[int] = []
    run_job(job, context, CPU, lambda values: epochs.append(int(values["epoch"])))
    return epochs


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    ("names", "left"),
    [((CHECKPOINT,), [2, 3]), ((CHECKPOINT_BEFORE,), [3]), ((CHECKPOINT, CHECKPOINT_BEFORE), [0, 1, 2, 3])],
    ids=["newest", "before", "both"],
)
def test_of_a_checkpoint(
    tiny: Path, tmp_path: Path, names: tuple[str, ...], left: list[int], damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The one before takes the place of the newest; the result is the same whatever is left."""
    job, other = make_jobs(tiny, ["SAT"])
    whole, broken = (Context(tmp_path / name, NOWHERE, REGISTRY) for name in ("whole", "broken"))
    run_job(job, whole, CPU, lambda values: None)
    for each in (job, other):
        stopped_after(each, broken, 3)
    for name in names:
        path = broken.results / job.folder / name
        path.write_bytes(DAMAGES[damage](path.read_bytes(), (broken.results / other.folder / name).read_bytes()))
    assert set(broken.store.damage(job.folder)) == set(names)
    assert trained(job, broken) == left
    said = capsys.readouterr().err
    for name in names if CHECKPOINT in names else ():
        assert f"{name}' is damaged (" in said
        assert (broken.results / job.folder / f"{name}.damaged").is_file()
    for name in ("prediction.npz", "prediction-val.npz", "history.csv"):
        assert (broken.results / job.folder / name).read_bytes() == (whole.results / job.folder / name).read_bytes()


@pytest.mark.parametrize("damage", DAMAGES)
def test_of_a_trunks_snapshot(
    finished: tuple[Path, Path], tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Moved aside before anything runs; what would have branched off it trains its warm-up itself."""
    task, whole = finished
    common = ("--datasets", task, "--seeds", 2, "--results", tmp_path, "--keep-trunks")
    assert run_here(*common, "--methods", "sr", "dg").returncode == 0
    path, other = sorted(tmp_path.rglob(snapshot_name(2)))
    path.write_bytes(DAMAGES[damage](path.read_bytes(), other.read_bytes()))
    again = run_here(*common, "--methods", "sr", "sat")
    assert again.returncode == 0
    assert f"'{path}' is damaged (" in again.stderr
    assert path.with_name(f"{path.name}.damaged").is_file()
    records = {
        key: value for key, value in contents(tmp_path).items() if key.startswith(("tables", "tiny/self", "tiny/c"))
    }
    assert records == contents(whole)


def test_of_a_snapshot_that_is_damaged_later(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context = Context(tmp_path, NOWHERE, REGISTRY)
    sat, sr = share_warmups(make_jobs(tiny, ["SAT", "SR"], seeds=1), context.store)
    run_job(sr, context, CPU, lambda values: None)
    path = tmp_path / sr.snapshot_folder / snapshot_name(2)
    path.write_bytes(flipped(path.read_bytes()))
    assert trained(sat, context) == [0, 1, 2, 3]
    assert "is damaged (its checksum is wrong): passed over" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["flipped", "gone"])
def test_of_a_prediction_made_before_the_end(tiny: Path, tmp_path: Path, damage: str) -> None:
    """A checkpoint behind it is of no use, for it cannot be predicted again from there; the one before it is."""
    (job,) = make_jobs(tiny, ["SR"], seeds=1, evaluate_at="2,3")
    whole, broken = (Context(tmp_path / name, NOWHERE, REGISTRY) for name in ("whole", "broken"))
    run_job(job, whole, CPU, lambda values: None)
    stopped_after(job, broken, 3)
    path = broken.results / job.folder / "prediction-3.npz"
    content = path.read_bytes()
    path.unlink()
    if damage == "flipped":
        path.write_bytes(flipped(content))
    assert trained(job, broken) == [2, 3]
    records = [context.store.read_record(job.folder) for context in (whole, broken)]
    assert records[0].checksums == records[1].checksums
    assert records[0].at_epochs == records[1].at_epochs
    assert list(records[0].at_epochs) == [2, 3]


def test_a_damaged_ledger_is_kept_for_people_to_look_at(tiny: Path, tmp_path: Path) -> None:
    task = tmp_path / "tuned.toml"
    task.write_text(TINY + "\n[tune.self_adaptive]\ntarget_momentum = [0.9]\n")
    common = ("tune", task, "sat", "--results", tmp_path / "results", "--workers", 0, "-q")
    assert run_here(*common).returncode == 0
    path = tmp_path / "results" / "tune" / "tuned.json"
    whole = path.read_bytes()
    path.write_bytes(flipped(whole))
    again = run_here(*common)
    assert f"'{path}' is damaged (its checksum is wrong): moved aside" in again.stderr
    assert path.with_name("tuned.json.damaged").read_bytes() == flipped(whole)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("damage", ["flipped", "gone"])
def test_tune_goes_on_after_damage(tiny: Path, tmp_path: Path, damage: str) -> None:
    """The ledger is written before anything is repaired, and again behind it."""
    common = ("tune", tiny, "sat", "--grid", "target_momentum=0.9", "--results", tmp_path / "r", "--workers", 0, "-q")
    assert run_here(*common).returncode == 0
    path = next((tmp_path / "r" / "tiny").rglob("prediction-held-out.npz"))
    ledger, content = (tmp_path / "r" / "tune" / "tiny.json").read_bytes(), path.read_bytes()
    path.unlink()
    if damage == "flipped":
        path.write_bytes(flipped(content))
    assert run_here(*common).returncode == 0
    assert (tmp_path / "r" / "tune" / "tiny.json").read_bytes() == ledger
    assert path.exists() == (damage == "flipped"), "what was removed stays so"


def test_damaged_weights_that_were_to_be_kept_are_made_again(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "--seeds", 1, "--results", tmp_path, "--keep-weights")
    assert run_here(*common).returncode == 0
    path = next(tmp_path.rglob(CHECKPOINT))
    path.write_bytes(flipped(path.read_bytes()))
    again = run_here(*common)
    assert "1 job, 0 done already" in again.stderr
    assert not Store(tmp_path).damage(path.parent.relative_to(tmp_path))
    assert path.is_file()


def test_results_of_before_there_were_seals_are_believed(finished: tuple[Path, Path], tmp_path: Path) -> None:
    """But not a new one that has lost its seal."""
    task, whole = finished
    results = tmp_path / "results"
    shutil.copytree(whole, results)
    paths = [*results.rglob(RECORD), results / "manifests" / "tiny.json"]
    for path in paths:
        value = json.loads(path.read_text())
        for key in ("seal", "torch", "version", "measured_by"):
            value.pop(key, None)
        for key in ("seal", "codes"):
            value.get("provenance", {}).pop(key, None)
        path.write_text(json.dumps(value, indent=1))
    assert run_here("tables", "--results", results).returncode == 0
    again = run_here("--datasets", task, "--methods", "sr", "sat", "--results", results)
    assert "4 jobs, 4 done already" in again.stderr
    assert "damaged" not in again.stderr
    path = next((whole / "tiny").rglob(RECORD))
    place = results / path.relative_to(whole)
    place.write_text(path.read_text().replace('"seal"', '"seam"'))
    assert list(Store(results).damage(place.parent.relative_to(results))) == [RECORD]
