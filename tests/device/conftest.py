"""The device that these tests run on: a simulated one, or a real one that SELBENCH_TEST_DEVICE names."""

import os
from collections.abc import Iterator

import pytest
import torch

from benchmark.data.devices import enter
from tests.device import child_path, load

NAME = os.environ.get("SELBENCH_TEST_DEVICE", "sim")
SIMULATED = NAME == "sim"


@pytest.fixture(scope="session")
def device() -> torch.device:
    if SIMULATED:
        if not hasattr(torch, "AcceleratorError"):
            pytest.skip("the simulation is written for torch 2.8 and later")
        load()
    return enter(torch.device(NAME))


@pytest.fixture
def simulated(device: torch.device) -> Iterator[None]:
    """For what only the simulated device can be made to do."""
    if not SIMULATED:
        pytest.skip("only the simulated device can be made to")
    torch.sim.reset_counters()
    yield
    torch.sim.set_sync_debug_mode("default")


@pytest.fixture
def children(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that a test starts have the device too."""
    if SIMULATED:
        monkeypatch.setenv("PYTHONPATH", child_path())
