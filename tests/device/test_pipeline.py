"""Batches on their way to the device: never used before they have arrived, nor overwritten before they have left."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from benchmark.config.training import AugmentConfig
from benchmark.data.dataset import DataSet, Split
from benchmark.data.devices import forbidden_syncs, wait_for
from benchmark.data.images import Images, Pictures, Ragged
from benchmark.data.residency import place_on_device
from benchmark.data.transfer import Lane, Sender, upload, upload_together
from benchmark.doctor import batches as doctor
from benchmark.doctor.examination import Patient, Trouble
from benchmark.doctor.launches import Launches
from methods import Registry
from tests.device.conftest import SIMULATED

pytestmark = pytest.mark.device
CPU, PLENTY, COUNT = torch.device("cpu"), 10**12, 150
CONFIGS = {"crop and flip": AugmentConfig(2, True), "resized": AugmentConfig(0, True, True, 0.3)}


def one_size() -> Pictures:
    return np.random.default_rng(0).integers(0, 256, (COUNT, 3, 16, 16), dtype=np.uint8)


def ragged() -> Pictures:
    draws = np.random.default_rng(1)
    sizes = draws.integers(16, 30, (COUNT, 2))
    return Ragged(draws.integers(0, 256, 3 * int(sizes.prod(axis=1).sum()), dtype=np.uint8), sizes, 3)


def data_on(device: torch.device, budget: int, make: Callable[[], Pictures] = one_size) -> DataSet:
    images = Images.of(make(), np.arange(COUNT) % 7)
    split = Split(
        place_on_device([images], device, budget)[0],
        torch.from_numpy(images.labels).to(device),
        images.rows.astype(np.int32),
    )
    half = torch.full((3,), 0.5, device=device)
    return DataSet(split, None, split, half, half, 7, (3, 16, 16), None, "")


def epoch(data: DataSet, config: AugmentConfig = CONFIGS["crop and flip"]) -> list[torch.Tensor]:
    found = [
        each for batch in data.batches(16, 0, 0, config, 2) for each in (*batch.views, batch.labels, batch.indices)
    ]
    return [*found, *data.eval_batches(data.test, 40)]


def equal(found: list[torch.Tensor], expected: list[torch.Tensor], exactly: bool = True) -> bool:
    pairs = list(zip(found, expected, strict=True))
    if exactly:
        return all(torch.equal(ours.cpu(), theirs) for ours, theirs in pairs)
    return all(torch.allclose(ours.cpu().float(), theirs.float(), atol=1e-5) for ours, theirs in pairs)


@pytest.mark.parametrize("budget", [PLENTY, 0], ids=["resident", "streamed"])
@pytest.mark.parametrize("make", [one_size, ragged])
@pytest.mark.parametrize("name", CONFIGS)
def test_batches_are_those_of_the_cpu(
    device: torch.device, budget: int, make: Callable[[], Pictures], name: str
) -> None:
    expected = epoch(data_on(CPU, PLENTY, make), CONFIGS[name])
    assert equal(epoch(data_on(device, budget, make), CONFIGS[name]), expected, SIMULATED)


@pytest.mark.parametrize("make", [one_size, ragged])
@pytest.mark.parametrize("name", CONFIGS)
def test_streamed_batches_are_the_resident_ones(device: torch.device, make: Callable[[], Pictures], name: str) -> None:
    resident = [each.cpu() for each in epoch(data_on(device, PLENTY, make), CONFIGS[name])]
    assert equal(epoch(data_on(device, 0, make), CONFIGS[name]), resident)


def test_a_step_sends_one_parcel(device: torch.device) -> None:
    """Rows, offsets and mirrors of two views, for pictures that lie on the device."""
    batches = data_on(device, PLENTY).batches(16, 0, 0, CONFIGS["crop and flip"], 2)
    with Launches(device.type) as launches:
        count = len([*batches])
    assert launches.counts["_to_copy"] == (1 + 2) * count, "and each view becomes float"


def test_no_batch_makes_the_host_wait(device: torch.device) -> None:
    for budget in (PLENTY, 0):
        batches = data_on(device, budget).batches(16, 0, 0, CONFIGS["resized"], 1)
        next(batches)
        with forbidden_syncs(device) as told:
            if not told:
                pytest.skip("this kind of device cannot tell")
            for _ in range(3):
                next(batches)


def test_arrays_arrive_as_they_are(device: torch.device) -> None:
    numbers = np.arange(24).reshape(2, 12)[:, 3:9:2]
    assert upload(numbers, device).is_contiguous()
    arrays = [numbers, numbers > 5, numbers.astype(np.float32), np.zeros((0, 3)), np.float64([1.5])]
    sent = upload_together(arrays, device)
    for ours, array in zip(sent, arrays, strict=True):
        assert ours.device == device and ours.is_contiguous()
        assert (ours.cpu().numpy() == array).all() and ours.cpu().numpy().dtype == array.dtype


def test_ranks_make_their_rows(device: torch.device) -> None:
    """Parts of arrays that do not lie together on the host."""

    def rows(count: int) -> slice:
        return slice(count // 2, count)

    config = CONFIGS["crop and flip"]
    part, whole = (
        [*data.batches(16, 0, 0, config, 1, *how)]
        for data, how in ((data_on(device, PLENTY), (rows,)), (data_on(CPU, PLENTY), ()))
    )
    for ours, all_of_them in zip(part, whole, strict=True):
        assert torch.allclose(ours.images.cpu(), all_of_them.images[rows(len(all_of_them.labels))], atol=1e-6)


def waits_for_nothing(*_: object) -> None:
    """What a wait is replaced by."""


def arrived_without_wait(self: Sender, sent: torch.Tensor, copied: torch.Event) -> torch.Tensor:
    sent.record_stream(torch.accelerator.current_stream(self.device))
    return sent


def arrived_without_record(self: Sender, sent: torch.Tensor, copied: torch.Event) -> torch.Tensor:
    torch.accelerator.current_stream(self.device).wait_event(copied)
    return sent


class TestMutants:
    """A wait that is taken away shows, here and to `doctor`."""

    @pytest.mark.parametrize(
        ("owner", "name", "mutant"),
        [(Sender, "arrived", arrived_without_wait), (Lane, "wait_until_free", waits_for_nothing)],
        ids=["no wait on the upload", "no wait before reuse"],
    )
    def test_wrong_bytes(
        self,
        device: torch.device,
        simulated: None,
        monkeypatch: pytest.MonkeyPatch,
        owner: type,
        name: str,
        mutant: object,
    ) -> None:
        expected = epoch(data_on(CPU, PLENTY))
        monkeypatch.setattr(owner, name, mutant)
        assert not equal(epoch(data_on(device, 0)), expected)
        with pytest.raises(Trouble, match=r"streamed batches, while the device is busy with .* differ"):
            doctor.batches(Patient(device, Registry()))

    def test_memory_that_goes_too_early(
        self, device: torch.device, simulated: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        epoch(data_on(device, 0))
        wait_for(device)
        assert torch.sim.unrecorded() == 0
        monkeypatch.setattr(Sender, "arrived", arrived_without_record)
        epoch(data_on(device, 0))
        assert torch.sim.unrecorded() > 0
