"""What a device does to a job, as far as a CPU can show it; `tests/device/` has the rest."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from benchmark.check.harness import EPOCH, Candidate, make_batch
from benchmark.config.training import NetworkConfig
from benchmark.data import devices
from benchmark.data.dataset import prepare
from benchmark.data.devices import device_lost, out_of_memory
from benchmark.data.transfer import upload, upload_together
from benchmark.store.store import Store
from benchmark.train.context import Context
from benchmark.train.determinism import set_precision, undetermined_operators
from benchmark.train.networks import Network, build_network
from benchmark.train.pulse import Interrupted
from benchmark.train.run_job import run_job
from benchmark.train.trainer import Trainer, trained_parameters
from methods import Registry
from tests.conftest import NOWHERE, PLENTY, run_here
from tests.train.test_speed_settings import make_job

CPU = torch.device("cpu")
REGISTRY = Registry()
UNDETERMINED = "made_up_backward does not have a deterministic implementation, but you set 'torch.use_det…'"


def trainer_of(tiny: Path, label: str, *overrides: str) -> Trainer:
    job = make_job(tiny, label, *overrides)
    return Trainer(job, REGISTRY, prepare(job.task.data, NOWHERE, 0, CPU, PLENTY), CPU)


class TestFirstStepThatOverflows:
    def test_momentum_stays_zero(self, tiny: Path) -> None:
        """The fused optimiser would make it of uninitialised memory, and leave it so."""
        trainer = trainer_of(tiny, "SR", "amp=fp16", "optimizer.lr=0.01")
        state = trainer.start()
        state.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=10**6)
        moments = [state.optimizer.state[each]["momentum_buffer"] for each in trained_parameters(state.method)]
        assert not any(buffer.any() for buffer in moments)
        state = trainer.run_epoch(state)
        assert state.scaler.get_scale() < 2.0**40, "some steps were skipped"
        assert all(torch.isfinite(parameter).all() for parameter in state.method.parameters())

    def test_a_phase_that_adds_parameters_has_momentum_for_all(self, tiny: Path) -> None:
        trainer = trainer_of(tiny, "SAT", "amp=fp16")
        state = trainer.start()
        while state.epoch <= trainer.job.warmup_epochs:
            state = trainer.run_epoch(state)
        assert all("momentum_buffer" in state.optimizer.state[each] for each in trained_parameters(state.method))


def network(amp: str, extra: int = 0) -> Network:
    torch.manual_seed(0)
    made = build_network(NetworkConfig("small_cnn", (8, 16)), 5, (3, 16, 16)).eval()
    if extra:
        made.add_outputs(extra, zero=False)
    made.set_speed(channels_last=False, amp=amp, compiled=False)
    return made


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
@pytest.mark.parametrize("extra", [0, 1])
def test_the_last_layer_is_single_in_half_precision(amp: str, extra: int) -> None:
    """Logits of half precision tie: 350 of 1,000 test images of a small task shared their score."""
    made = network(amp, extra)
    images = torch.randn(400, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    logits, features = made(images)
    assert features.dtype == logits.dtype == torch.float32
    assert not torch.equal(features, network("off")(images)[1]), "the body is not"
    layers = [made.head, *([made.extra] if extra else [])]
    assert torch.equal(logits, torch.cat([layer(features) for layer in layers], 1))
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}[amp]
    assert not torch.equal(logits, logits.to(half).float())
    assert len(logits[:, 0].unique()) > len(logits[:, 0].to(half).unique())


class TestCountsOfBatches:
    def test_none_are_kept_where_nothing_reads_them(self) -> None:
        made = network("off")
        assert not [name for name in made.state_dict() if "num_batches" in name]
        body = nn.Sequential(nn.BatchNorm2d(3, momentum=None), nn.Flatten())
        averaging = Network(body, nn.Linear(12, 2))
        averaging.set_speed(channels_last=False, amp="off", compiled=False)
        averaging.train()(torch.randn(4, 3, 2, 2))
        assert int(averaging.state_dict()["body.0.num_batches_tracked"]) == 1, "a running mean of all batches needs it"

    def test_the_same_bits_as_with_them(self) -> None:
        images = torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(1))
        torch.manual_seed(0)
        counting = build_network(NetworkConfig("small_cnn", (8, 16)), 5, (3, 16, 16)).train()
        ours = network("off").train()
        for _ in range(3):
            assert torch.equal(ours(images)[0], counting(images)[0])
        kept = ours.state_dict()
        assert all(torch.equal(value, kept[name]) for name, value in counting.state_dict().items() if name in kept)

    def test_a_checkpoint_with_counts_is_read(self) -> None:
        torch.manual_seed(1)
        older = build_network(NetworkConfig("small_cnn", (8, 16)), 5, (3, 16, 16))
        ours = network("off")
        ours.load_state_dict(dict(older.state_dict()))
        assert torch.equal(ours.head.weight, older.head.weight)
        with pytest.raises(RuntimeError, match="Unexpected key"):
            ours.load_state_dict({**older.state_dict(), "body.9.weight": torch.ones(1)})


class TestPrecision:
    def test_it_is_part_of_the_id_only_where_it_is_on(self, tiny: Path) -> None:
        assert make_job(tiny, "SR", "tf32=false").id == make_job(tiny, "SR").id
        assert make_job(tiny, "SR", "tf32=true").id != make_job(tiny, "SR").id

    def test_convolutions_and_products_follow_it_and_the_environment_says_so(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "A100")
        monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 91002)
        before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
        cuda = torch.device("cuda:0")
        try:
            for on, word in ((True, "on"), (False, "off")):
                set_precision(cuda, tf32=on)
                assert torch.backends.cudnn.allow_tf32 is torch.backends.cuda.matmul.allow_tf32 is on
                assert devices.describe(cuda) == f"A100, cuDNN 91002, TF32 {word}"
        finally:
            torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before

    def test_every_job_sets_it(self, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[bool] = []
        monkeypatch.setattr("benchmark.train.run_job.set_precision", lambda device, tf32: asked.append(tf32))
        for setting in ("false", "true"):
            job = make_job(tiny, "SR", f"tf32={setting}", "epochs=3")
            run_job(job, Context(tmp_path, NOWHERE, REGISTRY), CPU, lambda values: None)
        assert asked == [False, True]


class TestUndeterminedOperators:
    def test_they_are_collected_and_other_warnings_pass(self) -> None:
        found: set[str] = set()
        with pytest.warns(UserWarning, match="something else"), undetermined_operators(found):
            for _ in range(3):
                warnings.warn(UNDETERMINED, stacklevel=1)
            warnings.warn("something else", stacklevel=1)
        assert found == {"made_up_backward"}

    def test_torch_still_says_it_in_these_words(self) -> None:
        """Of an operator that has no such version on the CPU either."""
        before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(True, warn_only=True)
        found: set[str] = set()
        try:
            with undetermined_operators(found):
                torch.zeros(4).put_(torch.tensor([0, 0]), torch.tensor([1.0, 2.0]))
        finally:
            torch.use_deterministic_algorithms(before)
        assert found == {"put_"}

    def test_the_record_names_them(self, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        step = REGISTRY.get("cross_entropy").training_step

        def warning_step(self: Any, *arguments: Any) -> Any:
            warnings.warn(UNDETERMINED, stacklevel=1)
            return step(self, *arguments)

        monkeypatch.setattr(REGISTRY.get("cross_entropy"), "training_step", warning_step)
        job = make_job(tiny, "SR", "epochs=3")

        def stop(values: dict[str, Any]) -> bool:
            monkeypatch.setattr(REGISTRY.get("cross_entropy"), "training_step", step)
            return values["epoch"] == 0

        with pytest.raises(Interrupted):
            run_job(job, Context(tmp_path, NOWHERE, REGISTRY), CPU, stop)
        run_job(job, Context(tmp_path, NOWHERE, REGISTRY), CPU, lambda values: None)
        record = Store(tmp_path).read_record(job.folder)
        assert record is not None
        assert record.provenance.undetermined_operators == ["made_up_backward"], "of the first epoch"


def test_parameters_that_moving_replaces_are_still_averaged() -> None:
    """Some devices cannot change a parameter in its place: `.to(device)` makes new ones."""
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        method = Candidate(REGISTRY.get("ccl_sc"), "CCL-SC", {"queue_size": 6, "momentum": 0.5}).make()
        method.after_step(make_batch(method), None, EPOCH)
        method = method.to(torch.float64).to(torch.float32).train()
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    key, own = (next(iter(module.parameters())) for module in (method.memory.key, method.network))
    with torch.no_grad():
        own.add_(1.0)
        expected = (key + own) / 2
        method.after_step(make_batch(method), None, EPOCH)
    assert torch.allclose(next(iter(method.memory.key.parameters())), expected)


def test_parts_of_arrays_are_sent_whole_and_in_order() -> None:
    numbers = np.arange(24).reshape(2, 12)[:, 3:9:2]
    assert upload(numbers, CPU).is_contiguous()
    arrays = [numbers, numbers > 5, numbers.astype(np.float32), np.zeros((0, 3)), np.float64([1.5])]
    for sent, array in zip(upload_together(arrays, CPU), arrays, strict=True):
        assert (sent.numpy() == array).all()
        assert sent.numpy().dtype == array.dtype


class TestLostDevice:
    def test_which_errors_it_is(self) -> None:
        assert device_lost(RuntimeError("CUDA error: device-side assert triggered"), CPU), "torch before 2.8"
        if hasattr(torch, "AcceleratorError"):
            assert device_lost(torch.AcceleratorError("an illegal memory access was encountered"), CPU)
        full = torch.OutOfMemoryError("CUDA out of memory. Tried …")
        assert out_of_memory(full) and not device_lost(full, CPU)
        crowded = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
        assert out_of_memory(crowded) and not device_lost(crowded, CPU)
        assert not device_lost(RuntimeError("mat1 and mat2 shapes cannot be multiplied"), CPU)

    PLUGIN = """
import os, pathlib, torch
from torch.nn.functional import cross_entropy
from benchmark.interface import Method, Step

class Frail(Method):
    title, reference, labels = "frail", "me 2026", {"Frail": {}}

    def training_step(self, batch, progress):
        mark = pathlib.Path(os.environ["MARK"])
        if mark.exists():
            mark.unlink()
            raise getattr(torch, "AcceleratorError", RuntimeError)("CUDA error: the device is gone")
        return Step(cross_entropy(self.network(batch.images)[0], batch.labels))

METHOD = Frail
"""

    def test_in_one_process_the_run_ends_and_says_how_to_go_on(
        self, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where jobs have processes of their own, `tests/device/` shows that another takes over."""
        plugin, mark = tmp_path / "frail.py", tmp_path / "mark"
        plugin.write_text(self.PLUGIN)
        mark.touch()
        monkeypatch.setenv("MARK", str(mark))
        chosen = ["--datasets", tiny, "--plugin", plugin, "--methods", "frail", "--seeds", 2, "--device", "cpu"]
        command = [*chosen, "--set", "epochs=3", "--results", tmp_path / "results"]
        first = run_here(*command)
        assert first.returncode == 1
        assert "the same command continues from here" in first.stderr
        assert run_here(*command).returncode == 0
