"""Mixed images: the draws, the pictures, both labels, RegMixup's two forms, and whole trainings."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn.functional import cross_entropy, one_hot

from benchmark.check.harness import images, make_batch, small
from benchmark.config.ingredients import MixingConfig
from benchmark.interface import Batch, Progress
from benchmark.train.distributed import Team
from benchmark.train.steps.mixing import Mixture, draw_mixture, mix, mix_images, prepared, rows_of, training_step
from methods import Registry
from tests.conftest import run_here
from tests.store.test_damage import make_jobs
from tests.train.test_speed_settings import assert_resumes, make_job
from tests.train.test_trainer import make_trainer

REGISTRY = Registry()
CPU = torch.device("cpu")
PROGRESS = Progress(0, 1, 0, 1)


@pytest.mark.parametrize(("name", "alpha"), [("mixup", 0.3), ("regmixup", 10.0), ("mixup", 2.0)])
def test_shares_are_beta_distributed_and_partners_permuted(name: str, alpha: float) -> None:
    config = MixingConfig(name, alpha=alpha)  # type: ignore[arg-type]
    drawn = [draw_mixture(config, 6, (8, 8), seed=0, epoch=1, step=step) for step in range(2000)]
    assert stats.kstest([each.share for each in drawn], stats.beta(alpha, alpha).cdf).pvalue > 1e-3
    assert all(sorted(each.partners) == list(range(6)) for each in drawn)
    counts = np.bincount([each.partners[0] for each in drawn], minlength=6)
    assert stats.chisquare(counts).pvalue > 1e-3
    again = draw_mixture(config, 6, (8, 8), seed=0, epoch=1, step=7)
    assert (again.share, *again.partners) == (drawn[7].share, *drawn[7].partners)


def test_published_constants() -> None:
    assert [MixingConfig(name).used_alpha for name in ("mixup", "cutmix", "regmixup")] == [0.3, 1.0, 10.0]  # type: ignore[arg-type]


def test_mixup_of_images() -> None:
    x, y = images(0), images(1)
    found = mix_images(x.double(), y.double(), Mixture(0.3, np.arange(len(x))))
    assert torch.allclose(found, 0.3 * x.double() + 0.7 * y.double(), atol=1e-12)


def test_a_box_has_the_share_that_the_labels_say() -> None:
    config, areas = MixingConfig("cutmix"), []
    for step in range(300):
        mixture = draw_mixture(config, 4, (10, 8), 0, 0, step)
        assert mixture.box is not None
        zeros, ones = torch.zeros(4, 1, 10, 8), torch.ones(4, 1, 10, 8)
        mixed = mix_images(zeros, ones, mixture)
        assert mixed.mean().item() == pytest.approx(1 - mixture.share)
        top, left, bottom, right = mixture.box
        assert mixed[:, :, top:bottom, left:right].sum() == mixed.sum(), "one box, the same for all"
        areas.append(1 - mixture.share)
    assert 0 <= min(areas) < 0.05
    assert 0.6 < max(areas) <= 1


def test_the_loss_of_a_mixed_batch_is_that_of_soft_targets() -> None:
    method = small(REGISTRY.get("cross_entropy"), "SR").make()
    batch = make_batch(method)
    mixed = mix(batch, Mixture(0.3, np.roll(np.arange(len(batch.labels)), 1)))
    assert mixed.partners is not None
    assert torch.equal(mixed.partners, batch.labels.roll(1))
    assert torch.equal(mixed.indices, batch.indices)
    targets = 0.3 * one_hot(batch.labels, 5) + 0.7 * one_hot(batch.labels.roll(1), 5)
    method.eval()
    logits, _ = method.network(mixed.images)
    expected = cross_entropy(logits, targets)
    assert method.training_step(mixed, PROGRESS).loss.item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize(("reduction", "factor"), [("sum", 1.0), ("mean", 0.5)])
@pytest.mark.parametrize("label", ["SR", "SAT", "CCL-SC"])
def test_regmixup_adds_plain_cross_entropy_beside_any_loss(label: str, reduction: str, factor: float) -> None:
    file = {"SR": "cross_entropy", "SAT": "self_adaptive", "CCL-SC": "ccl_sc"}[label]
    method = small(REGISTRY.get(file), label).make().eval()
    config = MixingConfig("regmixup", weight=0.7, reduction=reduction)  # type: ignore[arg-type]
    batch = prepared(make_batch(method), config, 0, 0, 0)
    own = replace(batch, beside=None)
    assert batch.partners is None
    assert batch.beside is not None
    assert torch.equal(batch.images, make_batch(method).images), "the method's own batch stays"
    beside = batch.beside
    assert beside.partners is not None
    logits = method.network(beside.images)[0][:, :5]
    mixed = beside.share * cross_entropy(logits, beside.labels)
    mixed = mixed + (1 - beside.share) * cross_entropy(logits, beside.partners)
    expected = factor * (method.training_step(own, PROGRESS).loss + 0.7 * mixed)
    assert training_step(method, batch, PROGRESS, config).loss.item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("name", ["mixup", "cutmix", "regmixup"])
def test_ranks_train_on_parts_of_the_same_mixture(tiny: Path, name: str) -> None:
    (job,) = make_jobs(tiny, ["SR"], seeds=1, **{"mixing.name": name})
    whole = make_trainer(job, REGISTRY)
    method = whole.start().method
    parts = zip(*(replace(whole, ranks=Team(rank, 2)).batches(method, 1) for rank in range(2)), strict=True)
    for expected, shared in zip(whole.batches(method, 1), parts, strict=True):
        found = [*shared] if name != "regmixup" else [part.beside for part in shared]
        wanted = expected.beside if name == "regmixup" else expected
        assert wanted is not None
        assert torch.equal(torch.cat([part.images for part in found]), wanted.images)
        assert torch.equal(torch.cat([part.partners for part in found]), wanted.partners)
        assert {part.share for part in found} == {wanted.share}


def test_rows_of_a_batch() -> None:
    batch = Batch((torch.arange(4.0)[:, None],), torch.arange(4), torch.arange(4), torch.arange(4), 0.2)
    part = rows_of(replace(batch, beside=batch), slice(1, 3))
    assert part.beside is not None
    assert part.labels.tolist() == part.beside.labels.tolist() == [1, 2]
    assert part.share == 0.2


@pytest.mark.parametrize("label", ["SR", "DG"])
@pytest.mark.parametrize("name", ["mixup", "cutmix"])
def test_a_killed_job_resumes_to_the_bit(tiny: Path, tmp_path: Path, name: str, label: str) -> None:
    assert_resumes(make_job(tiny, label, f"mixing.name={name}"), tmp_path, CPU)


def test_what_cannot_learn_from_two_labels_is_refused_in_one_line(tiny: Path, tmp_path: Path) -> None:
    result = run_here("--datasets", tiny, "--methods", "sr", "sat", "--with", "mixup", "--results", tmp_path / "r")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert (
        "SAT+mixup cannot learn from the two labels of mixed images (mixing.name = mixup); use regmixup"
        in result.stderr
    )
    assert not (tmp_path / "r").exists()


def test_regmixup_goes_with_every_method(tiny: Path, tmp_path: Path) -> None:
    methods = ("sr", "sat", "ccl-sc", "selectivenet")
    common = ("--datasets", tiny, "--methods", *methods, "--with", "regmixup", "sam", "cosine", "--seeds", 1)
    result = run_here(*common, "--set", "epochs=3", "--results", tmp_path)
    assert result.returncode == 0, result.stderr
    table = (tmp_path / "tables" / f"{tiny.stem}.md").read_text()
    for label in ("SR", "SAT", "CCL-SC", "SelectiveNet"):
        assert f"{label}+RegMixup+cosine+SAM" in table
