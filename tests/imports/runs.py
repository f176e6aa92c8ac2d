"""Made-up runs to bring in: noise around the truth, so that rankings and calibration are neither perfect nor chance."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.conftest import run_here

Arrays = dict[str, NDArray[Any]]
SAMPLES, CLASSES = 120, 4


def labels() -> NDArray[np.int64]:
    return np.arange(SAMPLES) % CLASSES


def logits(seed: int = 0, strength: float = 2.0) -> NDArray[np.float32]:
    noise = np.random.default_rng(seed).standard_normal((SAMPLES, CLASSES))
    return (noise + strength * np.eye(CLASSES)[labels()]).astype(np.float32)


def softmax(table: NDArray[Any]) -> NDArray[Any]:
    powers = np.exp(table.astype(np.float64))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def logit_run(noise: int = 0, /, **more: Any) -> Arrays:
    return {"labels": labels(), "logits": logits(noise), **more}


def loss_run(noise: int = 0, /, **more: Any) -> Arrays:
    random = np.random.default_rng(noise)
    confidence = random.random(SAMPLES)
    return {"loss": np.clip(random.random(SAMPLES) - 0.5 * confidence, 0, 1), "confidence": confidence, **more}


def save(folder: Path, **runs: Arrays) -> list[Path]:
    """Write `vit_0=…` as vit-0.npz, and so on."""
    paths = []
    for name, arrays in runs.items():
        paths.append(folder / f"{name.replace('_', '-')}.npz")
        np.savez(paths[-1], **arrays)
    return paths


def grid(folder: Path, methods: tuple[str, ...] = ("a", "b"), seeds: int = 3) -> list[Path]:
    runs = {
        f"{name}_{seed}": logit_run(100 * index + seed) for index, name in enumerate(methods) for seed in range(seeds)
    }
    return save(folder, **runs)


def imported(results: Path, *words: object) -> str:
    """Bring runs in; return what was printed, errors included."""
    done = run_here("score", *words, "--results", results)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def refused(*words: object) -> str:
    """Return the one line that says why."""
    done = run_here("score", *words)
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
