"""Write two small examples of predictions that were made elsewhere: by classifiers and regressors of scikit-learn."""

import csv
import shlex
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import BayesianRidge, LogisticRegression

from benchmark.base.files import check_folder
from benchmark.base.program import program

SEEDS = 5
WORST = 150
"""The error of a regressor that counts as a loss of 1; smaller ones count in proportion."""


def write_examples(folder: Path) -> str:
    """Write the examples into a folder; return the commands to run on them."""
    check_folder(folder, "", "--example DIR")
    write_digits(folder / "digits")
    write_diabetes(folder / "diabetes.csv")
    place = shlex.quote(str(folder))
    return (
        f"Two classifiers of digits, five seeds each, with probabilities: {folder / 'digits'}/\n"
        f"Two regressors, one run each, with a loss and a confidence: {folder / 'diabetes.csv'}\n\n"
        f"{program()} score {place}/digits/*.npz --task digits-of-mine --results {place}/results\n"
        f"{program()} score {place}/diabetes.csv --task diabetes --results {place}/results\n"
        f"{program()} figures --results {place}/results"
    )


def write_digits(folder: Path) -> None:
    """Train two classifiers on five random halves of the training images; write a file for each with probabilities."""
    folder.mkdir(exist_ok=True)
    images, labels = load_digits(return_X_y=True)
    images, test = images / 16, np.arange(len(labels)) % 2 == 1
    for seed in range(SEEDS):
        half = np.random.default_rng(seed).permutation(np.flatnonzero(~test))[:200]
        models: dict[str, Any] = {
            "forest": RandomForestClassifier(100, random_state=seed),
            "logistic": LogisticRegression(max_iter=1000),
        }
        for name, model in models.items():
            probabilities = model.fit(images[half], labels[half]).predict_proba(images[test]).astype(np.float32)
            np.savez(folder / f"{name}-{seed}.npz", labels=labels[test], probabilities=probabilities)


def write_diabetes(path: Path) -> None:
    """Train two regressors once; write a line per method and patient with loss and confidence."""
    patients, progress = load_diabetes(return_X_y=True)
    test = np.arange(len(progress)) % 2 == 1
    forest = RandomForestRegressor(100, random_state=0).fit(patients[~test], progress[~test])
    by_tree = np.stack([tree.predict(patients[test]) for tree in forest.estimators_])
    ridge = BayesianRidge().fit(patients[~test], progress[~test])
    predicted = {
        "forest": (by_tree.mean(axis=0), by_tree.std(axis=0)),
        "ridge": ridge.predict(patients[test], return_std=True),
    }
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(("method", "id", "loss", "confidence"))
        for method, (mean, doubt) in predicted.items():
            loss = np.minimum(np.abs(mean - progress[test]) / WORST, 1)
            rows = zip(np.flatnonzero(test), loss, -doubt, strict=True)
            lines.writerows((method, patient, f"{each:.6f}", f"{sure:.6f}") for patient, each, sure in rows)
