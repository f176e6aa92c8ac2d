"""The simulated accelerator computes what the CPU computes, to the bit, and is as strict as it says."""

import copy
import io
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.device import child_path, load
from tests.device.conftest import SIMULATED

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(not SIMULATED, reason="of the simulation alone"),
    pytest.mark.usefixtures("device"),
]


@pytest.fixture(autouse=True)
def sim() -> Iterator[None]:
    load()
    torch.sim.synchronize()
    torch.sim.set_sync_debug_mode("default")
    torch.sim.reset_counters()
    yield
    torch.sim.set_sync_debug_mode("default")
    torch.use_deterministic_algorithms(False)


def child(code: str, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    """A process of its own that has the device after `import torch`."""
    env = {**os.environ, "PYTHONPATH": child_path(), **env}
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True)
    assert not check or result.returncode == 0, result.stderr
    return result


def pinned(value: float, size: int = 4) -> torch.Tensor:
    return torch.full((size,), value).pin_memory()


@contextmanager
def no_sync() -> Iterator[None]:
    torch.sim.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.sim.set_sync_debug_mode("default")


# The same bits as the CPU's


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, groups=2)
        self.norm2 = nn.BatchNorm2d(16)
        self.head = nn.Linear(16 * 4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.adaptive_avg_pool2d(F.silu(self.norm2(self.conv2(x))), 2)
        return self.head(F.dropout(x.flatten(1), 0.2, self.training))


def train(model: nn.Module, optimizer: Any, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> list[torch.Tensor]:
    losses = []
    for x, y in batches:
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def batches(steps: int = 4, size: int = 12, dtype: torch.dtype = torch.float32) -> list[tuple[torch.Tensor, ...]]:
    torch.manual_seed(1)
    return [(torch.randn(6, 3, size, size, dtype=dtype), torch.randint(5, (6,))) for _ in range(steps)]


def assert_same_training(model: nn.Module, make_optimizer: Any, data: Any, form: torch.memory_format) -> None:
    here, there = model.to(memory_format=form), copy.deepcopy(model).to("sim", memory_format=form)
    data = [(x.to(memory_format=form), y) for x, y in data]
    torch.manual_seed(2)  # seeds the CPU and, as with CUDA, the devices
    expected = train(here, make_optimizer(here.parameters()), data)
    moved = [(x.to("sim"), y.to("sim")) for x, y in data]
    losses = train(there, make_optimizer(there.parameters()), moved)
    assert all(torch.equal(a, b.cpu()) for a, b in zip(expected, losses, strict=True))
    for (name, a), b in zip(here.state_dict().items(), there.state_dict().values(), strict=True):
        assert b.device == torch.device("sim:0")
        assert torch.equal(a, b.cpu()), name
        assert a.stride() == b.stride(), name
    for (name, a), b in zip(here.named_parameters(), there.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad.cpu()) and a.grad.stride() == b.grad.stride(), name


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3, nesterov=True, foreach=False),
    "sgd foreach": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3, foreach=True),
    "sgd fused": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3, fused=True),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2),
    "adam fused": lambda p: torch.optim.Adam(p, lr=1e-2, fused=True),
    "adamw fused": lambda p: torch.optim.AdamW(p, lr=1e-2, fused=True),
}


@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_gives_the_same_bits(optimizer: str, dtype: torch.dtype, form: torch.memory_format) -> None:
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    assert_same_training(Net().to(dtype), OPTIMIZERS[optimizer], batches(dtype=dtype), form)
    assert torch.sim.unrecorded() == 0


@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("name", ["resnet18", "resnet50d", "convnext_atto", "efficientnet_b0"])
def test_timm_networks_give_the_same_bits(name: str, form: torch.memory_format) -> None:
    import timm

    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=5)
    assert_same_training(model, OPTIMIZERS["sgd fused"], batches(steps=2, size=32), form)


def test_operators_give_the_same_bits_and_strides() -> None:
    torch.manual_seed(0)
    x, index = torch.randn(6, 7), torch.randint(6, (4,))
    cases = {
        "log_softmax": lambda x, i: x.log_softmax(1),
        "gather": lambda x, i: x.gather(0, i[:, None].expand(4, 7)),
        "index_select": lambda x, i: x.index_select(0, i),
        "index_copy_": lambda x, i: x.clone().index_copy_(0, i[:1], x[3:4]),
        "sort": lambda x, i: x.sort(dim=1, descending=True, stable=True),
        "cumsum": lambda x, i: x.cumsum(0),
        "searchsorted": lambda x, i: torch.searchsorted(x[0].sort().values, x[1]),
        "scatter": lambda x, i: x.scatter(0, i[:, None], 3.0),
        "where": lambda x, i: torch.where(x > 0, x, 0.0),
        "lerp": lambda x, i: x.lerp(x.t().reshape(6, 7), 0.3),
        "foreach": lambda x, i: torch._foreach_add([x, x[0]], [x, x[1]], alpha=2),
        "advanced index": lambda x, i: x[i, i],
        "mask": lambda x, i: x[x > 0],
        "assignment": lambda x, i: x.clone().index_put_((i,), x[0]),
        "masked assignment": lambda x, i: torch.where(x > 0, x, x).masked_fill_(x > 0, 2),
        "transposed": lambda x, i: x.t() * 2,
        "out resizes": lambda x, i: torch.add(x, x, out=torch.empty(0, device=x.device)),
        "sort out": lambda x, i: torch.sort(x, out=(x.new_empty(0), i.new_empty(0))),
        "cat": lambda x, i: torch.cat([x, x[:2]]),
        "topk": lambda x, i: x.topk(3),
        "matmul": lambda x, i: x @ x.t(),
        "one_hot": lambda x, i: F.one_hot(i),
        "interpolate": lambda x, i: F.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
        "norm": lambda x, i: torch.nn.utils.get_total_norm([x, x[0]]),
        "quantile": lambda x, i: x.quantile(0.3),
        "unique": lambda x, i: i.unique(return_counts=True),
        "bincount": lambda x, i: i.bincount(minlength=9),
        "repeat_interleave": lambda x, i: torch.repeat_interleave(x[:4], i, dim=0),
        "unbind": lambda x, i: x.unbind(1),
        "var_mean": lambda x, i: torch.var_mean(x, 0),
        "arange": lambda x, i: torch.arange(5, device=x.device) + torch.tril_indices(3, 3, device=x.device)[0, 0],
        "half": lambda x, i: (x.half() * 2).bfloat16(),
        "scalar from the host": lambda x, i: x * torch.tensor(0.3, dtype=torch.float64),
        "set_": lambda x, i: torch.empty(0, device=x.device).set_(x.untyped_storage(), 3, (2, 2), (7, 1)),
        "split in place": lambda x, i: [part.mul_(2) for part in x.clone().split(2)],
    }
    for name, case in cases.items():
        expected, got = case(x, index), case(x.to("sim"), index.to("sim"))
        pairs = [(expected, got)] if isinstance(expected, torch.Tensor) else zip(expected, got, strict=True)
        for a, b in pairs:
            assert b.device == torch.device("sim:0"), name
            assert torch.equal(a, b.cpu()) and a.dtype == b.dtype and a.stride() == b.stride(), name


def test_views_share_memory_and_in_place_results_are_the_tensor_itself() -> None:
    x = torch.zeros(4, 4, device="sim")
    assert x.add_(1) is x
    x[1].fill_(5)
    x.t()[:, 2] = 7
    x.view(-1)[0] = 9
    assert x.cpu().tolist() == [[9, 1, 1, 1], [5, 5, 5, 5], [7, 7, 7, 7], [1, 1, 1, 1]]
    assert x[1].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    x.resize_(6, 4)
    assert x.shape == (6, 4) and x[:4].cpu()[0, 0] == 9 and x[4:].isnan().all()


@pytest.mark.parametrize("optimizer", ["sgd", "sgd foreach", "adam fused"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_with_a_scaler_skips_the_step_that_overflows(dtype: torch.dtype, optimizer: str) -> None:
    torch.manual_seed(0)
    model = Net().to("sim")
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    scaler = torch.amp.GradScaler("sim", init_scale=2.0**40, growth_interval=100)
    before = copy.deepcopy(model.state_dict())
    losses = []
    x, y = (t.to("sim") for t in batches(1)[0])
    for step in range(45):
        with torch.autocast("sim", dtype=dtype):
            output = model(x)
            loss = F.cross_entropy(output, y)
        assert output.dtype == dtype and loss.dtype == torch.float32
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
        if step == 0 and dtype == torch.float16:  # the scaled loss is beyond half precision's range
            assert scaler.get_scale() == 2.0**39
            for (name, a), b in zip(before.items(), model.state_dict().values(), strict=True):
                assert "running" in name or "batches" in name or torch.equal(a, b), name
    assert losses[-1] < 0.7 * losses[0]


def test_autocast_sorts_operators_as_cuda_does() -> None:
    x = torch.randn(4, 4, device="sim")
    with torch.autocast("sim", dtype=torch.float16):
        assert (x @ x).dtype == F.linear(x, x).dtype == F.conv2d(x[None, None], x[None, None]).dtype == torch.float16
        assert (x @ x).softmax(1).dtype == (x @ x).exp().dtype == (x @ x).sum().dtype == torch.float32
        assert (x @ x).relu().dtype == torch.float16
    assert torch.get_autocast_dtype("sim") == torch.float16


def test_modules_are_copied_and_saved(tmp_path: Path) -> None:
    model = Net().to("sim")
    twin = copy.deepcopy(model)
    twin.load_state_dict(model.state_dict())
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    for location in ("cpu", "sim:0", None):
        file.seek(0)
        loaded = torch.load(file, map_location=location)
        assert loaded["head.weight"].device == torch.device(location or "sim:0")
        twin.load_state_dict(loaded)
        for a, b in zip(model.state_dict().values(), twin.state_dict().values(), strict=True):
            assert torch.equal(a, b)
    assert all(p.is_sim for p in twin.parameters()) and not any(p.is_sim for p in twin.cpu().parameters())
    assert Net().sim(1).head.weight.device == torch.device("sim:1")


def test_random_numbers_are_the_devices_own() -> None:
    torch.manual_seed(7)
    host = torch.get_rng_state()
    torch.sim.manual_seed_all(3)
    a = torch.rand(5, device="sim")
    F.dropout(a, 0.5), torch.randperm(9, device="sim"), a.bernoulli_(0.5), torch.randn_like(a)
    assert torch.equal(host, torch.get_rng_state())
    torch.sim.manual_seed(3)
    assert torch.equal(torch.rand(5, device="sim").cpu(), torch.rand(5, generator=torch.Generator().manual_seed(3)))
    assert torch.equal(torch.rand(5, device="sim:1"), torch.rand(5, generator=torch.Generator().manual_seed(3)).to(1))
    state = torch.sim.get_rng_state()
    b = torch.rand(5, device="sim")
    torch.sim.set_rng_state(state)
    assert torch.equal(b, torch.rand(5, device="sim"))
    own = torch.Generator(device="sim").manual_seed(3)
    assert torch.equal(torch.rand(5, device="sim", generator=own), torch.rand(5, device="sim:1").sim() * 0 + _first(3))
    with pytest.raises(RuntimeError, match="device type"):
        torch.rand(5, device="sim", generator=torch.Generator())


def _first(seed: int) -> torch.Tensor:
    return torch.rand(5, generator=torch.Generator().manual_seed(seed)).to("sim")


# 1. Streams and late copies


def test_a_copy_from_pinned_memory_is_late_until_its_stream_launches() -> None:
    source, target = pinned(1.0), torch.zeros(4, device="sim")
    target.copy_(source, non_blocking=True)
    assert torch.sim.pending() == 1 and not torch.accelerator.current_stream().query()
    source.fill_(2.0)  # too early: the wrong bytes are sent
    assert (target + 0).tolist() == [2.0] * 4
    assert torch.sim.pending() == 0 and torch.accelerator.current_stream().query()


def test_who_forgets_to_wait_for_a_stream_computes_with_poison() -> None:
    stream, source = torch.Stream(device="sim"), pinned(1.0)
    with stream:
        assert torch.accelerator.current_stream() == stream
        x = source.to("sim", non_blocking=True)
    assert torch.accelerator.current_stream() != stream
    wrong = x + 0
    torch.accelerator.current_stream().wait_stream(stream)
    assert torch.sim.pending() == 1  # waiting is no work yet
    right = x + 0
    assert wrong.isnan().all() and right.tolist() == [1.0] * 4
    x.record_stream(torch.accelerator.current_stream())


def test_events_carry_what_was_queued_before_them_and_no_more() -> None:
    stream = torch.Stream(device="sim")
    buffers = pinned(1.0), pinned(2.0)
    with stream:
        x = buffers[0].to("sim", non_blocking=True)
        event = stream.record_event()
        y = buffers[1].to("sim", non_blocking=True)
    assert not event.query() and torch.sim.pending() == 2
    event.synchronize()
    assert event.query() and torch.sim.pending() == 1
    for buffer in buffers:
        buffer.fill_(3.0)
    stream.synchronize()
    assert x.tolist() == [1.0] * 4 and y.tolist() == [3.0] * 4
    assert torch.Event(device="sim").query()


def test_streams_wait_for_streams_that_wait() -> None:
    first, second = torch.Stream(device="sim"), torch.Stream(device="sim")
    source, back = pinned(1.0), torch.zeros(4).pin_memory()
    with first:
        x = source.to("sim", non_blocking=True)
    second.wait_event(first.record_event())
    with second:
        back.copy_(x, non_blocking=True)
    assert not second.query() and back.tolist() == [0.0] * 4
    torch.accelerator.current_stream().wait_stream(second)
    torch.zeros(1, device="sim")
    assert back.tolist() == [1.0] * 4 and torch.sim.pending() == 0


def test_copies_to_pinned_memory_are_late_too() -> None:
    x = torch.ones(4, device="sim")
    back = x.to("cpu", non_blocking=True)
    assert back.is_pinned() and back.isnan().all()
    torch.accelerator.synchronize()
    assert back.tolist() == [1.0] * 4


def test_inference_mode() -> None:
    model = Net().to("sim").eval()
    x = torch.randn(2, 3, 12, 12).pin_memory()
    with torch.inference_mode():
        y = model(x.to("sim", non_blocking=True)).softmax(1)
        late = x.to("sim", non_blocking=True)
    assert y.is_inference() and torch.equal(late.cpu(), x)  # sent after the mode was left
    assert torch.equal(y.cpu(), model.cpu()(x).detach().softmax(1))


def test_a_freed_source_is_kept_until_it_is_sent() -> None:
    source = pinned(1.0)
    x = source.to("sim", non_blocking=True)
    del source
    assert x.tolist() == [1.0] * 4


def test_late_copies_convert_and_keep_channels_last() -> None:
    source = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    with no_sync():
        x = source.pin_memory().to("sim", torch.float16, non_blocking=True)
    assert torch.sim.pending() == 1 and x.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(x.cpu(), source.half())
    assert torch.sim.pending() == 0


def test_a_thread_sends_while_another_computes() -> None:
    stream = torch.Stream(device="sim")
    slots = [(torch.empty(1000).pin_memory(), torch.empty(1000, device="sim")) for _ in range(3)]
    sent: dict[int, torch.Event] = {}
    free: dict[int, torch.Event] = {}
    ready, room = threading.Semaphore(0), threading.Semaphore(len(slots))

    def send() -> None:
        with stream:
            for step in range(60):
                room.acquire()
                host, there = slots[step % 3]
                if step >= 3:
                    sent[step - 3].synchronize()
                    stream.wait_event(free[step - 3])
                host.fill_(step)
                there.copy_(host, non_blocking=True)
                sent[step] = stream.record_event()
                ready.release()

    thread = threading.Thread(target=send)
    thread.start()
    total = torch.zeros(1000, device="sim")
    for step in range(60):
        ready.acquire()
        here = torch.accelerator.current_stream()
        assert here != stream  # every thread has its own
        here.wait_event(sent[step])
        total += slots[step % 3][1]
        free[step] = here.record_event()
        room.release()
    thread.join()
    assert total.tolist() == [sum(range(60))] * 1000
    assert torch.sim.unrecorded() == 0


def test_autograd_runs_backward_on_the_stream_of_forward() -> None:
    stream, source = torch.Stream(device="sim"), pinned(2.0)
    weight = torch.ones(4, device="sim", requires_grad=True)
    stream.wait_stream(torch.accelerator.current_stream())
    with stream:
        loss = (source.to("sim", non_blocking=True) * weight).sum()
    loss.backward()
    torch.accelerator.current_stream().wait_stream(stream)
    assert weight.grad.tolist() == [2.0] * 4


def test_events_measure_time() -> None:
    start, end = (torch.Event(device="sim", enable_timing=True) for _ in range(2))
    start.record()
    torch.ones(10, device="sim").sum()
    end.record()
    torch.accelerator.synchronize()
    assert 0 < start.elapsed_time(end) < 10_000
    start.record()
    pinned(1.0).to("sim", non_blocking=True)
    end.record()
    with pytest.raises(RuntimeError, match="completed"):
        start.elapsed_time(end)


# 2. Poison


def test_fresh_memory_is_poisoned() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert torch.empty(50, dtype=dtype, device="sim").isnan().all()
    assert (torch.empty(50, dtype=torch.int64, device="sim") < 0).all()
    assert (torch.empty(50, dtype=torch.uint8, device="sim") == 255).all()
    x = torch.zeros(3, device="sim")
    assert torch.empty_like(x).isnan().all() and x.new_empty(2).isnan().all()
    assert torch.empty_strided((2, 3), (1, 2), device="sim").isnan().all()
    assert torch.empty_permuted((2, 3), (1, 0), device="sim").isnan().all()


# 3. Mixed devices


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, cpu: x + cpu,
        lambda x, cpu: cpu + x,
        lambda x, cpu: cpu.add_(x),
        lambda x, cpu: cpu[0].add_(x[0]),
        lambda x, cpu: x @ cpu,
        lambda x, cpu: torch.cat([x, cpu]),
        lambda x, cpu: torch.stack([x[0, 0], cpu[0, 0]]),
        lambda x, cpu: torch._foreach_add([x], [cpu]),
        lambda x, cpu: torch._foreach_mul_([x[0, 0]], [cpu[0, 0]]),
        lambda x, cpu: x[torch.tensor([0, 1])],
        lambda x, cpu: x.index_put_((torch.tensor([0, 1]),), x[0]),
        lambda x, cpu: F.conv2d(x[None, None], cpu[None, None]),
        lambda x, cpu: F.cross_entropy(x, torch.tensor([0, 1, 2])),
        lambda x, cpu: torch.where(cpu > 0, x, x),
        lambda x, cpu: torch.add(x, x, out=cpu),
        lambda x, cpu: x + x.to("sim:1"),
        lambda x, cpu: x * x[0, 0].to("sim:1"),
        lambda x, cpu: torch.cat([x, x.to("sim:1")]),
    ],
)
def test_mixed_devices_are_refused(mix: Any) -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        mix(torch.ones(3, 3, device="sim"), torch.ones(3, 3))


def test_scalars_from_the_host_are_allowed_and_no_sync() -> None:
    x = torch.ones(3, device="sim")
    with no_sync():
        y = torch.where(x > 0, x * torch.tensor(2.0) + 1, torch.tensor(0.0)) - torch.tensor(1, dtype=torch.int32)
        y.fill_(torch.tensor(4.0))
    assert y.tolist() == [4.0] * 3


def test_copies_between_devices() -> None:
    x = torch.arange(4.0, device="sim:0")
    with no_sync():
        y = x.to("sim:1")
    assert y.device == torch.device("sim:1") and y.tolist() == [0, 1, 2, 3]


# 4. Pinned memory


def test_pinned_memory() -> None:
    x = torch.arange(8.0)
    assert not x.is_pinned() and x.pin_memory().is_pinned() and x.pin_memory()[3:].is_pinned()
    assert torch.equal(x.pin_memory(), x)
    assert torch.empty(3, pin_memory=True).is_pinned() and torch.zeros(3, pin_memory=True).tolist() == [0.0] * 3
    assert not torch.empty(3, device="sim").is_pinned()
    assert not torch.empty(3).is_pinned()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=4, pin_memory=True)
    assert all(batch.is_pinned() for (batch,) in loader)


# 5. Host syncs


SYNCS = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool(x[0] > 0),
    "float": lambda x: float(x[0]),
    "tolist": lambda x: x.tolist(),
    "nonzero": lambda x: x.nonzero(),
    "where": lambda x: torch.where(x > 0),
    "masked_select": lambda x: x.masked_select(x > 0),
    "mask": lambda x: x[x > 0],
    "masked put": lambda x: x.index_put_((x > 0,), x.clone()),
    "unique": lambda x: x.unique(),
    "unique_consecutive": lambda x: x.unique_consecutive(),
    "bincount": lambda x: x.long().bincount(),
    "equal": lambda x: torch.equal(x, x.clone()),
    "allclose": lambda x: torch.allclose(x, x),
    "repeat_interleave": lambda x: x.repeat_interleave(x.long()),
    "cpu": lambda x: x.cpu(),
    "to host memory": lambda x: torch.empty(4).copy_(x, non_blocking=True),
    "tensor": lambda x: torch.tensor([1.0], device="sim"),
    "to": lambda x: torch.ones(4).to("sim"),
    "to without blocking": lambda x: torch.ones(4).to("sim", non_blocking=True),
    "blocking copy of pinned memory": lambda x: x.copy_(torch.ones(4, pin_memory=True)),
    "copy of scattered pinned memory": lambda x: x.copy_(torch.ones(8, pin_memory=True)[::2], non_blocking=True),
}


@pytest.mark.parametrize("name", SYNCS)
def test_host_syncs_are_counted_and_refused(name: str) -> None:
    x = torch.ones(4, device="sim")
    SYNCS[name](x)
    assert torch.sim.syncs() == 1, torch.sim.sync_counts()
    with no_sync(), pytest.raises(RuntimeError, match="called a synchronizing operation: "):
        SYNCS[name](x)
    torch.sim.set_sync_debug_mode("warn")
    with pytest.warns(UserWarning, match="called a synchronizing operation: "):
        SYNCS[name](x)


def test_what_is_no_sync() -> None:
    host, model = torch.ones(4).pin_memory(), Net().to("sim")
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    data = [tuple(t.to("sim") for t in batch) for batch in batches(2)]
    train(model, optimizer, data)
    torch.sim.reset_counters()
    with no_sync():
        x = host.to("sim", non_blocking=True)
        x[x > 0] = 0.0
        x.repeat_interleave(torch.ones(4, dtype=torch.long, device="sim"), output_size=4)
        torch.zeros(3, device="sim"), torch.full((2,), 3.0, device="sim"), torch.arange(4, device="sim")
        x.fill_(3.0).mul_(2).view(2, 2)[0] = 1.0
        x.to("cpu", non_blocking=True)
        train(model, optimizer, data)
    assert torch.sim.syncs() == 0


def test_waiting_on_purpose_is_counted_but_never_refused() -> None:
    event = torch.accelerator.current_stream().record_event()
    with no_sync():
        event.synchronize()
        torch.accelerator.current_stream().synchronize()
        torch.accelerator.synchronize()
    assert torch.sim.sync_counts() == {"event.synchronize": 1, "stream.synchronize": 1, "device.synchronize": 1}


# 6. and 7. Memory


def test_memory_statistics_want_initialisation() -> None:
    child("""
import torch
try:
    torch.sim.reset_peak_memory_stats(0)
except RuntimeError as error:
    assert "Invalid device argument 0: did you call init?" in str(error)
else:
    raise AssertionError
assert not torch.sim.is_initialized() and torch.sim.memory_allocated() == 0
torch.sim.set_device(1)
assert torch.sim.is_initialized() and torch.sim.current_device() == 1
torch.sim.reset_peak_memory_stats(0)
""")
    child("import torch; torch.ones(1, device='sim'); torch.sim.reset_peak_memory_stats(1)")
    child("import torch; torch.sim.init(); torch.sim.reset_peak_memory_stats()")


def test_memory_statistics() -> None:
    torch.sim.empty_cache()
    before = torch.sim.memory_allocated("sim:0")
    x = torch.empty(1000, device="sim")
    assert torch.sim.memory_allocated() == before + 4096 == torch.accelerator.memory_allocated()
    y = x * 2 + 1
    del x, y
    assert torch.sim.memory_allocated() == before
    assert torch.sim.max_memory_allocated() >= before + 3 * 4096
    torch.sim.reset_peak_memory_stats("sim:0")
    assert torch.sim.max_memory_allocated() == before
    assert torch.sim.memory_reserved() >= before + 3 * 4096
    torch.sim.empty_cache()
    free, total = torch.sim.mem_get_info()
    assert torch.sim.memory_reserved() == before == total - free


def test_a_limit_of_memory() -> None:
    limit = torch.sim.mem_get_info()[1]
    torch.sim.limit_memory(torch.sim.memory_allocated() + 10_000, 0)
    try:
        x = torch.ones(1000, device="sim")
        for grow in (lambda: torch.empty(10_000, device="sim"), lambda: x[None] * x[:, None], lambda: x.repeat(9)):
            with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
                grow()
        torch.empty(10_000, device="sim:1")
        assert (x + 1).sum().item() == 2000
    finally:
        torch.sim.limit_memory(limit, 0)
    child(
        """
import torch
try:
    torch.empty(2000, device="sim:1")
except torch.OutOfMemoryError:
    torch.empty(200, device="sim:1")
else:
    raise AssertionError
""",
        SIM_LIMIT_BYTES="4096",
    )


# 8. A lost device


def test_a_lost_device_stays_lost() -> None:
    child("""
import torch
x, other = torch.ones(3, device="sim:0"), torch.ones(3, device="sim:1")
late = torch.ones(3).pin_memory()
torch.sim.lose(0)
event = torch.Event(device="sim")
for use in (lambda: x + 1, lambda: x.cpu(), lambda: x.copy_(late, non_blocking=True), lambda: torch.zeros(3).to("sim"),
            torch.accelerator.synchronize, torch.accelerator.current_stream().synchronize, lambda: x[0].item(),
            lambda: torch.empty(3, device="sim:0"), event.record) * 2:
    try:
        use()
    except torch.AcceleratorError as error:
        assert "lost" in str(error)
    else:
        raise AssertionError(use)
assert (other + 1).tolist() == [2.0] * 3
""")


def test_a_device_is_lost_once_after_so_many_launches(tmp_path: Path) -> None:
    once = tmp_path / "once"
    once.touch()
    code = "import torch\nx = torch.zeros(1, device='sim')\nfor _ in range(8): x += 1\nprint(x.item())"
    env = {"SIM_LOSE_AFTER": "5", "SIM_LOSE_ONCE": str(once)}
    result = child(code, check=False, **env)
    assert result.returncode == 1 and "AcceleratorError" in result.stderr
    assert not once.exists()
    assert child(code, **env).stdout == "8.0\n"


def test_errors_of_backward_keep_their_type() -> None:
    for change, error in (("lose(0)", "AcceleratorError"), ("limit_memory(0, 0)", "OutOfMemoryError")):
        child(f"""
import torch
loss = torch.ones(100, device="sim", requires_grad=True).exp().sum()
torch.sim.{change}
try:
    loss.backward()
except torch.{error}:
    pass
else:
    raise AssertionError
""")


# 9. Memory in use by another stream


@pytest.mark.parametrize("how", ["forgotten", "recorded", "waited", "synchronised"])
def test_memory_freed_under_another_stream(how: str) -> None:
    stream = torch.Stream(device="sim")
    x = torch.ones(100, device="sim")
    stream.wait_stream(torch.accelerator.current_stream())
    with stream:
        y = x + 1
    if how == "recorded":
        x.record_stream(stream)
    elif how == "waited":
        torch.accelerator.current_stream().wait_stream(stream)
    elif how == "synchronised":
        stream.synchronize()
    del x
    assert torch.sim.unrecorded() == (how == "forgotten")
    del y  # allocated where it was used
    assert torch.sim.unrecorded() == (how == "forgotten")


# 10. and 11. Counters and names


def test_launches_count_what_computes() -> None:
    x = torch.empty(4, 4, device="sim")
    x.view(8, 2).t()[:, 1:2].detach().t().expand(6, 2), x.resize_(4, 4), torch.empty_like(x)
    assert torch.sim.launches() == 0
    x.zero_()
    assert torch.sim.launches() == 1
    F.conv2d(x[None, None], x[None, None])
    assert torch.sim.launches() == 2
    torch._foreach_add_([x, x], 1.0)
    assert torch.sim.launches() == 3
    x.clone()
    assert torch.sim.launches() == 4


def test_names() -> None:
    assert torch.sim.device_count() == torch.accelerator.device_count() == 2
    assert torch.sim.is_available() and torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("sim")
    assert torch.get_device_module("sim") is torch.sim is sys.modules["torch.sim"]
    assert torch.sim.get_device_name() == "simulated accelerator" == torch.sim.get_device_properties(0).name
    assert torch.sim.current_device() == 0
    with torch.sim.device("sim:1"):
        assert torch.sim.current_device() == 1 == torch.empty(1, device="sim").device.index
        assert torch.sim.current_stream().device == torch.device("sim:1")
    assert torch.sim.current_device() == 0
    with pytest.raises(RuntimeError, match="ordinal"):
        torch.empty(1, device="sim:2")
    with torch.device("sim"):
        assert torch.ones(2).is_sim


def test_loading_twice_does_nothing() -> None:
    before = torch.sim
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load()
    assert torch.sim is before


def test_children_have_the_device_at_once(tmp_path: Path) -> None:
    script = tmp_path / "spawn_parent.py"
    script.write_text(
        "import torch, torch.multiprocessing as mp\n"
        "def work(queue): queue.put(torch.ones(3, device='sim').sum().item())\n"
        "if __name__ == '__main__':\n"
        "    queue = mp.get_context('spawn').SimpleQueue()\n"
        "    child = mp.get_context('spawn').Process(target=work, args=(queue,))\n"
        "    child.start(); child.join(); print(queue.get())\n"
    )
    env = {**os.environ, "PYTHONPATH": child_path()}
    done = subprocess.run([sys.executable, "-W", "error", str(script)], env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("3.0\n", "")


def test_a_forked_child_is_refused() -> None:
    x = torch.ones(3, device="sim")
    reader, writer = multiprocessing.Pipe()
    if (pid := os.fork()) == 0:
        try:
            x + 1
        except RuntimeError as error:
            writer.send(str(error))
        os._exit(0)
    os.waitpid(pid, 0)
    assert "Cannot re-initialize sim in forked subprocess" in reader.recv()
