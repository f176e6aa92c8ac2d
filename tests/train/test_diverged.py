"""Runs that have no result: diverged, collapsed, or failed with what they need; on a tiny task, end to end."""

import json
from pathlib import Path

import pytest

from tests.conftest import run_all, run_here
from tests.launch.test_grid import files

pytestmark = pytest.mark.usefixtures("alone")

DIVERGING = '''
"""Cross-entropy times BAD."""
from torch.nn.functional import cross_entropy
from benchmark.interface import Method, Prediction, Step

class Fragile(Method):
    title, reference, labels = "fragile", "nobody 2026", {"Fragile": {}}

    def training_step(self, batch, progress):
        logits, _ = self.network(batch.images)
        return Step(cross_entropy(logits, batch.labels) * BAD)

METHOD = Fragile
'''


def test_a_loss_that_is_no_number_is_a_recorded_fact(tiny: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "fragile.py"
    plugin.write_text(DIVERGING.replace("BAD", "(float('nan') if progress.epoch == 1 else 1)"))
    common = ("--datasets", tiny, "--plugin", plugin, "--methods", "fragile", "sr", "--results", tmp_path / "r")
    result = run_here(*common, "--reference", "sr")
    assert result.returncode == 1
    assert "diverged: the loss is nan in epoch 1" in result.stderr
    assert "Fragile, seed 0, 1: diverged (the loss is nan in epoch 1)." in result.stdout
    row = next(line for line in result.stdout.splitlines() if line.startswith("|        100"))
    assert row.split("|")[2].strip() == "diverged" or row.split("|")[3].strip() == "diverged"
    history = next((tmp_path / "r" / "tiny" / "fragile").rglob("history.csv")).read_text().splitlines()
    assert history[-1].startswith("1,nan"), "the learning curve up to the end"
    again = run_here(*common, "--reference", "sr")
    assert "4 jobs, 4 done already" in again.stderr
    assert again.returncode == 1, "it is still no result"
    assert not files(tmp_path / "r", "checkpoint.pt", "error.txt")
    shown = json.loads(run_here(*common, "--dry-run", "--json").stdout)
    assert sorted(job["state"] for job in shown["tasks"][0]["jobs"]) == ["diverged", "diverged", "done", "done"]


def test_a_collapsed_network_is_no_result(tiny: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "fragile.py"
    plugin.write_text(DIVERGING.replace("* BAD", "* 0"))
    result = run_here("--datasets", tiny, "--plugin", plugin, "--methods", "fragile", "--results", tmp_path / "r",
                     "--seeds", 1, "--set", "optimizer.weight_decay=30", "--set", "optimizer.momentum=0")  # fmt: skip
    assert result.returncode == 1
    assert "collapsed: every test image is called class" in result.stderr


def test_what_needs_a_failed_job_fails_with_it_and_the_rest_goes_on(tiny: Path, tmp_path: Path) -> None:
    member = tmp_path / "member.py"
    member.write_text(DIVERGING.replace("* BAD", "").replace("return", "assert progress.epoch < 2; return"))
    derived = tmp_path / "pair.py"
    derived.write_text("""
from benchmark.interface import Combination, Derived, Member
class Pair(Derived):
    title, reference, labels = "pair", "nobody 2026", {"Pair": {}}
    members = staticmethod(lambda config, seed, num_epochs: [Member("member", seed)])
    combine = staticmethod(lambda config, predictions, validation: Combination(predictions[0]))
METHOD = Pair
""")
    for workers in (1, 2):
        result = run_all("--datasets", tiny, "--plugin", member, "--plugin", derived, "--methods", "pair", "sr",
                         "--results", tmp_path / f"r{workers}", "--workers", workers)  # fmt: skip
        assert result.returncode == 1
        assert result.stderr.count("it needs Fragile seed") == 2 * 2, "once as it happens, once at the end"
        assert len(files(tmp_path / f"r{workers}", "record.json")) == 2


def test_derived_predictions_that_are_no_numbers_are_no_result(tiny: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "pair.py"
    plugin.write_text(
        """
import numpy as np
from benchmark.interface import Combination, Derived, Member, Prediction
class Pair(Derived):
    title, reference, labels = "pair", "nobody 2026", {"Pair": {}}
    members = staticmethod(lambda config, seed, num_epochs: [Member("cross_entropy", seed), Member("focal", seed)])
    combine = staticmethod(lambda config, predictions, validation: Combination(Prediction(VALUE)))
METHOD = Pair
""".replace("VALUE", "predictions[0].logits * np.nan")
    )
    result = run_here("--datasets", tiny, "--plugin", plugin, "--methods", "pair", "sr", "--results", tmp_path / "r",
                     "--seeds", 1, "--reference", "sr")  # fmt: skip
    assert result.returncode == 1
    assert "the predicted logits are not finite" in result.stderr
    assert "Traceback" not in result.stderr
    plugin.write_text(plugin.read_text().replace("predictions[0].logits * np.nan", "predictions[1].logits"))
    assert run_here("--datasets", tiny, "--plugin", plugin, "--methods", "pair", "--results", tmp_path / "r",
                   "--seeds", 1).returncode == 0  # fmt: skip
    records = {r["method"]: r for path in (tmp_path / "r" / "tiny").rglob("record.json")
               if "diverged" not in (r := json.loads(path.read_text()))}  # fmt: skip
    cost = {method: record["provenance"]["seconds"] for method, record in records.items()}
    assert cost["pair"] == pytest.approx(cost["cross_entropy"] + cost["focal"]), "two methods of one seed count twice"
