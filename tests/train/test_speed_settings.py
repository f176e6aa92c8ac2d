"""How a network computes: layout, precision, compilation. Part of a job's id, resumable like everything else."""

from pathlib import Path
from typing import Any

import pytest
import torch

from benchmark.base.errors import UserError
from benchmark.cli import parse
from benchmark.commands.options import make_options
from benchmark.config.load import load_task
from benchmark.config.training import NetworkConfig
from benchmark.data import devices
from benchmark.data.devices import choose_devices
from benchmark.jobs.job import Job
from benchmark.jobs.plan import plan
from benchmark.library.options import RunOptions
from benchmark.library.training import suite_maker
from benchmark.train.context import Context
from benchmark.train.networks import Network, build_network
from benchmark.train.run_job import run_job
from methods import Registry
from tests.conftest import NOWHERE, data_hash, pretend_gpus, run_here
from tests.jobs.test_shared_warmup import results_of

CPU = torch.device("cpu")
REGISTRY = Registry()


def network(**speed: Any) -> Network:
    torch.manual_seed(0)
    found = build_network(NetworkConfig("small_cnn", (8, 16)), 5, (3, 16, 16))
    found.set_speed(**{"channels_last": False, "amp": "off", "compiled": False, **speed})
    return found


IMAGES = torch.randn(6, 3, 16, 16, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("speed", "tolerance"),
    [({"channels_last": True}, 1e-5), ({"amp": "bf16"}, 0.05), ({"amp": "fp16"}, 0.01), ({"compiled": True}, 1e-5)],
    ids=["channels-last", "bf16", "fp16", "compiled"],
)
def test_it_computes_the_same_function(speed: dict[str, Any], tolerance: float) -> None:
    plain, fast = network(), network(**speed)
    assert list(plain.state_dict()) == list(fast.state_dict())
    for ours, expected in zip(fast(IMAGES), plain(IMAGES), strict=True):
        assert ours.dtype == torch.float32
        assert torch.allclose(ours, expected, atol=tolerance)
    assert ("amp" in speed) == (not torch.allclose(fast(IMAGES)[0], plain(IMAGES)[0], atol=1e-6))


def test_channels_last_reaches_filters_and_images() -> None:
    seen = []
    fast = network(channels_last=True)
    fast.body[0].register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    fast(IMAGES)
    assert fast.body[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert seen[0].is_contiguous(memory_format=torch.channels_last)


def make_job(tiny: Path, label: str, *overrides: str) -> Job:
    task = load_task(str(tiny), overrides)
    return plan(task, [label], [0], REGISTRY, data_hash(task))[0].jobs[0]


def test_settings_are_part_of_the_id_and_neutral_ones_are_not(tiny: Path) -> None:
    ids = {
        make_job(tiny, "SR", *settings).id for settings in ((), ("channels_last=true",), ("amp=bf16",), ("amp=fp16",))
    }
    assert len(ids) == 4
    assert make_job(tiny, "SR", "channels_last=false", "amp=off", "compile=false").id == make_job(tiny, "SR").id


class Killed(Exception):
    pass


@pytest.mark.parametrize("settings", [("amp=fp16",), ("amp=bf16", "channels_last=true"), ("channels_last=true",)])
@pytest.mark.parametrize("label", ["SAT", "CCL-SC"])
def test_a_killed_job_resumes_to_the_bit(tiny: Path, tmp_path: Path, label: str, settings: tuple[str, ...]) -> None:
    assert_resumes(make_job(tiny, label, *settings), tmp_path, CPU)


def assert_resumes(job: Job, folder: Path, device: torch.device) -> None:
    """Killed twice, a job ends in the bits of one that was not."""
    whole, broken = (Context(folder / name, NOWHERE, REGISTRY) for name in ("whole", "broken"))
    run_job(job, whole, device, lambda values: None)
    for last in (0, 2):

        def kill(values: dict[str, Any], last: int = last) -> None:
            if values["epoch"] > last:
                raise Killed

        with pytest.raises(Killed):
            run_job(job, broken, device, kill)
    run_job(job, broken, device, lambda values: None)
    assert results_of(folder / "whole") == results_of(folder / "broken")


def test_branched_equals_unbranched_in_half_precision(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "sat", "ccl-sc", "--seeds", 1, "--amp", "fp16")
    assert run_here(*common, "--results", tmp_path / "alone", "--no-shared-warmup").returncode == 0
    assert run_here(*common, "--results", tmp_path / "shared").returncode == 0
    assert results_of(tmp_path / "alone") == results_of(tmp_path / "shared")


def planned(*flags: str) -> dict[str, Any]:
    options = make_options(RunOptions, parse(["run", "--device", "cpu", *flags], ""))
    (task,) = suite_maker(options, Registry(), (), None).read_tasks(["digits"])
    return {name: getattr(task, name) for name in ("channels_last", "amp", "compile")}


def test_defaults_depend_on_the_device_and_flags_win(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned() == {"channels_last": True, "amp": "off", "compile": False}
    assert planned("--no-channels-last", "--amp", "bf16", "--compile") == {
        "channels_last": False,
        "amp": "bf16",
        "compile": True,
    }
    monkeypatch.setitem(devices.DEFAULTS, "cpu", {})
    assert planned()["channels_last"] is False
    assert {settings.get("amp") for settings in devices.DEFAULTS.values()} == {None}


def test_a_task_that_states_its_layout_keeps_it(tiny: Path, tmp_path: Path) -> None:
    tiny.write_text("channels_last = false\n" + tiny.read_text())
    assert load_task(str(tiny), (), {"channels_last": True}).channels_last is False


def test_several_jobs_share_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_gpus(monkeypatch, 2)
    assert choose_devices("auto", None, 1, 3) == ["cuda:0", "cuda:1"] * 3
    assert choose_devices("cuda:1", None, 1, 2) == ["cuda:1"] * 2
    with pytest.raises(UserError, match="use --workers"):
        choose_devices("cpu", None, 1, 2)
