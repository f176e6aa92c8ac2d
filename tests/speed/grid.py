"""What a grid costs: workers, shared warm-ups and metrics."""

import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import torch

from benchmark.measure import metrics
from tests.conftest import ROOT
from tests.speed.steps import small_trainer
from tests.speed.timing import Row, in_turns, median_ratio, seconds

WARMED_UP = ("SR", "SAT", "SAT+EM", "DG", "CCL-SC")


def train_together(start: Barrier, took: "multiprocessing.Queue[float]") -> None:
    torch.set_num_threads(1)
    trainer, state = small_trainer(1_280)
    trainer.train_epoch(state)
    start.wait()
    took.put(seconds(lambda: trainer.train_epoch(state)))


def throughput(workers: int) -> float:
    """Epochs per second of so many processes with one thread each."""
    spawn = multiprocessing.get_context("spawn")
    start, took = spawn.Barrier(workers), spawn.Queue()
    processes = [spawn.Process(target=train_together, args=(start, took)) for _ in range(workers)]
    for process in processes:
        process.start()
    slowest = max(took.get() for _ in processes)
    for process in processes:
        process.join()
    return workers / slowest


def workers_row(rounds: int) -> Row:
    ratios = [throughput(2) / throughput(1) for _ in range(rounds)]
    return ["two workers ÷ one worker, throughput", f"{statistics.median(ratios):.2f}", "≥ 1.7", "one thread each"]


def ranking_row(rounds: int) -> Row:
    draws = np.random.default_rng(0)
    confidence, error = draws.random(10**6), (draws.random(10**6) < 0.2).astype(np.float64)

    def everything() -> None:
        ranked = metrics.ranked_loss(confidence, error)
        metrics.mean_risk(ranked)
        metrics.curve(ranked)

    took = in_turns(rounds, ours=everything, sort=lambda: np.argsort(confidence))
    ratio = median_ratio(took["ours"], took["sort"])
    return ["risk curve, AURC and 201 coverages of 10⁶ samples ÷ argsort", f"{ratio:.2f}", "≤ 2.5", ""]


def saving_row() -> Row:
    """A small suite with and without shared warm-ups, and what the plan promises."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        draws = np.random.default_rng(0)
        labels = np.arange(1_600) % 10
        images = (draws.integers(0, 160, (1_600, 32, 32, 3)) + 9 * labels[:, None, None, None]).astype(np.uint8)
        arrays = {f"{split}_images": images for split in ("train", "test")}
        arrays |= {f"{split}_labels": labels for split in ("train", "test")}
        np.savez(root / "x.npz", **arrays)
        task = root / "scaled.toml"
        settings = 'source = "arrays"\npath = "x.npz"\nval = 0.0\ntrain_images = 0\ntest_images = 200\n'
        task.write_text(f'extends = "cifar10-cpu"\n[data]\n{settings}')
        common = [sys.executable, str(ROOT / "run_all.py"), "--datasets", str(task), "--methods", *WARMED_UP]
        common += ["--seeds", "1", "--workers", "1", "--data-dir", folder]
        planned = json.loads(subprocess.check_output([*common, "--dry-run", "--json"], text=True))
        promised = planned["epochs"] / planned["epochs_naive"]
        subprocess.run(
            [*common, "--results", f"{folder}/try", "--max-steps", "1"], check=True, stdout=subprocess.DEVNULL
        )
        took = {}
        for name, flags in (("alone", ["--no-shared-warmup"]), ("shared", [])):
            started = time.perf_counter()
            subprocess.run([*common, "--results", f"{folder}/{name}", *flags], check=True, stdout=subprocess.DEVNULL)
            took[name] = time.perf_counter() - started
    measured = took["shared"] / took["alone"]
    remark = f"{measured:.3f} of the time for {promised:.3f} of the epochs"
    return ["shared warm-ups: time ÷ promised by the plan", f"{measured / promised:.2f}", "≤ 1.10", remark]
