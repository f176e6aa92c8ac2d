"""Train scikit-learn's forest and logistic regression on the vectors that the methods of a task train on.

From the project's root: python results/reference/features/forests.py TASK.toml DATA_FOLDER OUT, then
`run_all.py score OUT/*.npz --task NAME --results …`. A file is a run, with the training rows of its seed.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from benchmark.config.load import load_task
from benchmark.data.cache import Folders
from benchmark.data.dataset import DataSet, Split, prepare

SEEDS = 5
BUDGET = 10**10


def vectors(data: DataSet, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Return the standardised vectors of a split, and their labels."""
    batches = [batch.flatten(1) for batch in data.eval_batches(split, 1000)]
    return torch.cat(batches).numpy(), split.labels.numpy()


def main(task_file: str, data_folder: str, out: str) -> None:
    task, folder = load_task(task_file), Path(data_folder)
    Path(out).mkdir(parents=True, exist_ok=True)
    for seed in range(SEEDS):
        data = prepare(task.data, Folders(folder, folder / "cache"), seed, torch.device("cpu"), BUDGET, build=False)
        X, y = vectors(data, data.train)
        X_test, y_test = vectors(data, data.test)
        models = {
            "forest": RandomForestClassifier(200, random_state=seed, n_jobs=-1),
            "logistic": LogisticRegression(C=1e-3, max_iter=200),
        }
        for name, model in models.items():
            probabilities = model.fit(X, y).predict_proba(X_test)
            np.savez(Path(out, f"{name}-{seed}.npz"), labels=y_test, probabilities=probabilities, ids=data.test.ids)
            print(f"{task.name} {name} seed {seed}: {np.mean(probabilities.argmax(1) == y_test):.4f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
