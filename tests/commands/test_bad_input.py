"""Whatever a user gets wrong is said in one line with exit code 2, before anything is trained or written."""

import resource
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.commands.bad_sets import SET_CASES, write_sets
from tests.commands.bad_vectors import VECTOR_CASES, write_vectors
from tests.conftest import TINY, run_all
from tests.image_sets import (
    WNIDS,
    write_celeba,
    write_cifar,
    write_class_folders,
    write_fashion_mnist,
    write_imagenet,
)

PLUGIN = """
from dataclasses import dataclass
from benchmark.interface import Method
class M(Method):
    title, reference, labels = "t", "r 2026", {"Mine": {}}
METHOD = M
"""
DERIVED = """
from benchmark.interface import Combination, Derived, Member
class M(Derived):
    title, reference, labels = "mine", "me 2026", {"Mine": {}}
    members = staticmethod(lambda config, seed, num_epochs: None)
    combine = staticmethod(lambda config, predictions, validation: Combination(predictions[0]))
METHOD = M
"""
OWN = """
extends = "cifar10-cpu"
title = "Cats and dogs"
[data]
source = "folder"
path = "pets"
image_size = 32
test_share = 0.5
"""
ARRAYS = """
extends = "cifar10-cpu"
title = "Own arrays"
[data]
source = "arrays"
path = "FILE"
image_size = 8
test_share = 0.5
"""
BROKEN_TOML = 'title = "x"\nepochs = = 3\n'


def write(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "tiny.toml": TINY,
        "broken.toml": BROKEN_TOML,
        "binary.toml": None,
        "unknown_key.toml": TINY.replace("epochs = 4", "epoch = 4"),
        "wrong_type.toml": TINY.replace("epochs = 4", 'epochs = "four"'),
        "missing.toml": TINY.replace("batch_size = 32\n", ""),
        "bad_value.toml": TINY.replace("lr = 0.2", "lr = -1"),
        "bad_source.toml": TINY.replace('source = "digits"', 'source = "digit"'),
        "bad_network.toml": TINY.replace('"small_cnn"', '"smal_cnn"'),
        "bad_parent.toml": 'extends = "cifar11"\n',
        "bad_method.toml": TINY.replace("[method.ccl_sc]", "[method.ccl_cs]"),
        "bad_setting.toml": TINY.replace("queue_size = 16", "queue_sise = 16"),
        "bad_choice.toml": TINY.replace("queue_size = 16", 'loss_form = "papers"'),
        "bad_coverage.toml": TINY.replace("[100, 90, 80]", "[100, 0]"),
        "bad_channels.toml": TINY.replace("[0.287]", "[0.287, 0.3]").replace("[0.353]", "[0.353, 0.3]"),
        "no_method.py": "x = 1\n",
        "syntax.py": "def (:\n",
        "raises.py": "raise RuntimeError('at import')\n",
        "incomplete.py": "from benchmark.interface import Method\nclass M(Method):\n    pass\nMETHOD = M\n",
        "cross_entropy.py": "x = 1\n",
        "exits.py": "raise SystemExit(0)\n",
        "wordy.py": "raise RuntimeError('one\\ntwo\\nthree')\n",
        "plain_config.py": PLUGIN.replace("METHOD =", "class C: pass\nM.Config = C\nMETHOD ="),
        "label_list.py": PLUGIN.replace('{"Mine": {}}', '["Mine"]'),
        "no_epochs.py": PLUGIN.replace("METHOD =", "M.warmup = 'cross_entropy'\nMETHOD ="),
        "no_warmup.py": PLUGIN.replace(
            "METHOD =",
            "@dataclass\nclass C:\n    warmup_epochs: int = 1\nM.Config = C\nM.warmup = 'cross_entrpy'\nMETHOD =",
        ),
        "taken.py": PLUGIN.replace("Mine", "sat_em").replace("sat_em", "SAT+EM"),
        "no_start.py": PLUGIN.replace("METHOD =", "M.starts_from = 'cross_entrpy'\nMETHOD ="),
        "idle_start.py": PLUGIN.replace("METHOD =", "M.starts_from = 'deep_ensemble'\nMETHOD ="),
        "no_coverage.py": PLUGIN.replace("METHOD =", "M.one_per_coverage = 'share'\nMETHOD ="),
        "no_members.py": DERIVED,
        "bad_member.py": DERIVED.replace("None", "[Member('cross_entropi', seed)]"),
        "endless.py": DERIVED.replace("None", "[Member('endless', seed)]"),
        "bad_recipe.py": DERIVED.replace("None", "[Member('cross_entropy', seed, {'epochs': 0})]"),
        "idle.py": DERIVED.replace("None", "[]"),
        "flat_recipe.py": DERIVED.replace("None", "[Member('cross_entropy', seed, {'schedule': 'cosine'})]"),
        "no_epoch.py": DERIVED.replace("None", "[Member('cross_entropy', seed, epoch=3)]"),
        "from_abstaining.py": PLUGIN.replace("METHOD =", "M.starts_from = 'self_adaptive'\nMETHOD ="),
        "greek.py": PLUGIN.replace("Mine", "β-loss"),
        "scored.py": PLUGIN.replace("Mine", "SR+margin"),
        "tables.toml": TINY,
        "Tables.toml": TINY,
        "...toml": TINY,
        ".hidden.toml": TINY,
        "...py": PLUGIN,
        "-m.py": PLUGIN,
        "objects.toml": ARRAYS.replace("FILE", "objects.npz"),
        "cut.toml": ARRAYS.replace("FILE", "cut.npz"),
        "floats.toml": ARRAYS.replace("FILE", "floats.npz"),
        "uneven.toml": ARRAYS.replace("FILE", "uneven.npz"),
        "unlabelled.toml": ARRAYS.replace("FILE", "unlabelled.npz"),
        "negative.toml": ARRAYS.replace("FILE", "negative.npz"),
        "too_many.toml": ARRAYS.replace("FILE", "whole.npz").replace("test_share", "classes = 2\ntest_share"),
        "text.toml": ARRAYS.replace("FILE", "file.txt"),
        "deep.toml": OWN.replace('"pets"', '"deep"'),
        "broken_image.toml": OWN.replace('"pets"', '"broken"'),
        "loop.toml": 'extends = "loop"\n',
        "duplicate.toml": TINY.replace("epochs = 4", "epochs = 4\nepochs = 5"),
        "infinite.toml": TINY.replace("lr = 0.2", "lr = inf"),
        "not_a_number.toml": TINY.replace("lr = 0.2", "lr = nan"),
        "dated.toml": TINY.replace("epochs = 4", "epochs = 2024-01-01"),
        "copy/tiny.toml": TINY,
        "no_methods.toml": TINY.replace('methods = ["CCL-SC", "SAT+EM", "SAT", "DG", "SR"]', "methods = []"),
        "bad_reference.toml": TINY.replace('reference = "CCL-SC"', 'reference = "nobody"'),
        "named.toml": 'name = "x"\n' + TINY,
        "method_number.toml": "method = 3\n" + TINY.split("[method")[0],
        "own.toml": OWN,
        "pathless.toml": OWN.replace('path = "pets"\n', ""),
        "file.txt": "not a folder",
    }
    write_class_folders(tmp_path / "pets", 2, ("cat",))
    (tmp_path / "pets" / "dog").mkdir()
    write_class_folders(tmp_path / "broken", 2, ("cat", "dog"))
    next((tmp_path / "broken" / "cat").iterdir()).write_bytes(b"no image")
    write_class_folders(tmp_path / "deep", 2, ("cat", "dog"))
    Image.fromarray(np.zeros((4, 4), np.uint16)).save(next((tmp_path / "deep" / "cat").iterdir()), format="PNG")
    write_arrays(tmp_path)
    write_data_sets(tmp_path / "data")
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"\xff\xfe\x00") if text is None else path.write_text(text)
    return {name: tmp_path / name for name in texts} | write_sets(tmp_path) | write_vectors(tmp_path)


def write_arrays(folder: Path) -> None:
    """An npz file of six images, and what can be wrong with one."""
    images, labels = np.zeros((6, 8, 8, 3), np.uint8), np.arange(6) % 3
    for name, arrays in {
        "whole": {"images": images, "labels": labels},
        "objects": {"images": np.array([{}] * 6, dtype=object), "labels": labels},
        "floats": {"images": images / 255, "labels": labels},
        "uneven": {"images": images, "labels": labels[:5]},
        "unlabelled": {"images": images},
        "negative": {"images": images, "labels": labels - 1},
    }.items():
        np.savez(folder / f"{name}.npz", **arrays)
    (folder / "cut.npz").write_bytes((folder / "whole.npz").read_bytes()[:300])


def write_data_sets(folder: Path) -> None:
    """Official sets that have come to harm."""
    write_cifar(folder / "cut" / "cifar-10-batches-bin", 1, {"data_batch_1.bin": 5})
    write_celeba(folder / "uncounted")
    attributes = folder / "uncounted" / "celeba" / "list_attr_celeba.txt"
    attributes.write_text("99" + attributes.read_text()[2:])
    write_celeba(folder / "misprinted")
    partition = folder / "misprinted" / "celeba" / "list_eval_partition.txt"
    partition.write_text(partition.read_text().replace(" 2", " 7"))
    write_celeba(folder / "binary")
    (folder / "binary" / "celeba" / "list_eval_partition.txt").write_bytes(b"\xff\xfe\x00")
    write_imagenet(folder / "lacking")
    shutil.rmtree(folder / "lacking" / "imagenet" / "val" / WNIDS[1])
    write_fashion_mnist(folder / "changed" / "FashionMNIST" / "raw", packed=False)
    (folder / "torn" / "svhn").mkdir(parents=True)
    (folder / "torn" / "svhn" / "train_32x32.mat").write_bytes(b"MATLAB 5.0")


CASES = [
    (["--datasets", "{...toml}"], "a task cannot be called '..', which names its folder of results; rename the file"),
    (["--datasets", "{.hidden.toml}"], "a task cannot be called '.hidden'"),
    (["--datasets", "{Tables.toml}"], "a task cannot be called 'Tables'"),
    (["--plugin", "{...py}"], "its name names a folder of results"),
    (["--plugin", "{-m.py}"], "its name names a folder of results"),
    (["--retries", "-1"], "from 0 to|expected one argument"),
    (["--retries", "often"], "a whole number from 0 to 100, got 'often'"),
    (["--datasets", "{loop.toml}"], "loop.toml extends itself"),
    (["--datasets", "{duplicate.toml}"], "cannot read .*overwrite"),
    (["--datasets", "{infinite.toml}"], "expected a number from 1e-12 to 1,000,000,000, got inf"),
    (["--datasets", "{not_a_number.toml}"], "expected a number from 1e-12 to 1,000,000,000, got nan"),
    (["--datasets", "{dated.toml}"], "expected a whole number from 1 to 100,000, got"),
    (["--datasets", "{objects.toml}"], "cannot be read as an npz file.*pickle"),
    (["--datasets", "{cut.toml}"], "cannot be read as an npz file"),
    (["--datasets", "{text.toml}"], "cannot be read as an npz file"),
    (["--datasets", "{floats.toml}"], "must be uint8"),
    (["--datasets", "{uneven.toml}"], "one whole number per image"),
    (["--datasets", "{unlabelled.toml}"], "has no array 'labels'; it has images"),
    (["--datasets", "{negative.toml}"], "label"),
    (["--datasets", "{too_many.toml}"], "label"),
    (["--datasets", "{deep.toml}"], "more than 8 bits per channel"),
    (["--datasets", "{broken_image.toml}"], "cannot be read as an image"),
    (["--datasets", "cifar10", "--data-dir", "{data}/cut"], "is missing, cut short or changed"),
    (["--datasets", "celeba", "--data-dir", "{data}/uncounted"], "says it lists 99"),
    (["--datasets", "celeba", "--data-dir", "{data}/misprinted"], "expected an image name and 0, 1 or 2"),
    (["--datasets", "celeba", "--data-dir", "{data}/binary"], "is not a text file"),
    (["--datasets", "imagenet", "--data-dir", "{data}/lacking"], r"has 3 class folders, expected 1000"),
    (["--datasets", "fashion-mnist", "--data-dir", "{data}/changed"], "is not the official file"),
    (["--datasets", "svhn", "--data-dir", "{data}/torn"], "no complete SVHN"),
    (["paper"], "required: NAME"),
    (["paper", "cifar11"], "did you mean 'cifar10'"),
    (["paper", "cifar10", "--scale", "gpu"], "invalid choice"),
    (["paper", "cifar10", "--json"], "needs --dry-run"),
    (["paper", "all", "--cluster", "8xA100"], "--cluster needs --dry-run; add --dry-run"),
    (["--cluster", "8xA100"], "--cluster needs --dry-run"),
    (["--dry-run", "--cluster", "8xA100", "--gpus-per-job", "4"], "leave out --gpus-per-job"),
    (["--set", "resources.gpus=1.5"], "gpus above 1 must be whole, got 1.5"),
    (["--step-seconds", "tiny=0.1"], "--step-seconds needs --dry-run"),
    (["--dry-run", "--price", "A100=2"], "--price needs --cluster"),
    (["--dry-run", "--speed", "A100=2"], "--speed needs --cluster"),
    *(
        (["--dry-run", "--cluster", text], "up to 1000 devices such as 8xA100 or 8xA100,4xL4, got")
        for text in ("", "A100", "8", "8x", "0xA100", "8xA100,", "8 A100", "1001xA100", "8xA100;4xL4")
    ),
    (["--dry-run", "--cluster", "8xA100", "--price", "A100"], "expected NAME=NUMBER, got 'A100'"),
    (
        ["--dry-run", "--cluster", "8xA100", "--price", "A100=free"],
        "a number from 1e-06 to 1,000,000, got 'free'",
    ),
    (["--dry-run", "--cluster", "8xA100", "--price", "A10=1"], "of --price: 'A10': did you mean 'A100'"),
    (["--dry-run", "--cluster", "8xA100", "--speed", "A100=0"], "from 1e-06 to 1,000,000, got '0'"),
    (["--dry-run", "--cluster", "8xA100,4xL4", "--price", "A100=1"], "has no price for L4; add L4=PRICE to --price"),
    (
        ["--dry-run", "--cluster", "8xA100", "--step-seconds", "tyni=1"],
        "of --step-seconds: 'tyni': did you mean 'tiny'",
    ),
    (["--dry-run", "--cluster", "8xA100", "--step-seconds", "tiny=nan"], "from 1e-09 to 86,400, got 'nan'"),
    (
        ["--dry-run", "--cluster", "8xA100", "--step-seconds", "tiny=1", "--set", "resources.gpus=2"],
        "resources.gpus = 2 cannot be simulated",
    ),
    (["--dry-run", "--cluster", "8xA100", "--results", "{file.txt}"], "cannot write to results folder"),
    (["tune", "digits"], "required: METHOD"),
    (["tune", "digits", "ccl-cs"], "did you mean 'CCL-SC'"),
    (["tune", "digits", "ccl-sc", "--grid", "weight"], "expected FIELD=VALUE,VALUE"),
    (["tune", "digits", "ccl-sc", "--grid", "wieght=1,2"], "did you mean 'weight'"),
    (["tune", "digits", "focal"], "has no grid for Focal"),
    (["explain", "digits"], "required: METHOD"),
    (["explain", "digits", "sr", "90", "--results", "{nowhere}"], "no results in"),
    (["diff", "{nowhere}"], "required: "),
    (["diff", "{nowhere}", "{nowhere}"], "no results in"),
    (["figures", "--results", "{nowhere}"], "no results in"),
    (["tables", "--paper", "cifar10", "--results", "{nowhere}"], "no results in"),
    (["audit", "--frobnicate"], "unknown argument"),
    (["list", "everything"], "unknown argument"),
    (["--scores", "marginn"], "did you mean 'margin'"),
    (["--scores", "abstention"], "unknown score 'abstention'"),
    (["tables", "--scores", "odin"], "unknown score 'odin'"),
    (["--threshold", "median"], "invalid choice"),
    (["--set", "evaluate_at=9"], "evaluate_at must lie between 1 and epochs"),
    (["--set", "model_coverages=120"], "coverages are per cent"),
    (["--set", "data.test_holdout=200"], "leaves no test image"),
    (["--set", "schedule.name=cyclic", "--set", "schedule.cycles=0"], "a whole number from 1 to 100,000, got '0'"),
    (["--set", "method.snapshot_ensemble.last=9", "--methods", "all"], "last must lie between"),
    (["--set", "method.deep_ensemble.size=1"], "size: expected a whole number from 2 to 1,000, got '1'"),
    (["--set", "method.ccl-sc+supcon.loss_form=released", "--methods", "ccl-sc+supcon"], "has no meaning"),
    (["--plugin", "{no_start.py}", "--methods", "mine"], "did you mean 'cross_entropy'"),
    (["--plugin", "{idle_start.py}", "--methods", "mine"], "trains nothing itself"),
    (["--plugin", "{no_coverage.py}", "--methods", "mine"], "needs a field share"),
    (["--plugin", "{no_members.py}", "--methods", "mine"], "members fails|must return"),
    (["--plugin", "{bad_member.py}", "--methods", "mine"], "did you mean 'cross_entropy'"),
    (["--plugin", "{endless.py}", "--methods", "mine"], "trains nothing itself"),
    (["--plugin", "{bad_recipe.py}", "--methods", "mine"], "epochs: expected a whole number from 1 to 100,000, got 0"),
    (["--plugin", "{idle.py}", "--methods", "mine"], "names no training"),
    (["--plugin", "{flat_recipe.py}", "--methods", "mine"], "schedule: expected a table"),
    (["--plugin", "{no_epoch.py}", "--methods", "mine"], "name it in evaluate_at"),
    (["--plugin", "{from_abstaining.py}", "--methods", "mine"], "neither may have outputs"),
    (["--plugin", "{greek.py}"], "plain letters"),
    (["--plugin", "{scored.py}"], "would mean 'SR' read with the score margin"),
    (["--set", "method.SelectiveNet.coverage=0.5", "--methods", "selectivenet"], "set by model_coverages"),
    (["--set", "method.snapshot_ensemble.cycles=3", "--methods", "snapshot-ensemble"], "must divide epochs"),
    (["check"], "required: FILE.py"),
    (["check", "{nowhere}.py"], "not a Python file that exists"),
    (["check", "ccl-cs"], "did you mean 'CCL-SC'"),
    (["check", "sr", "--set", "x"], "expected FIELD=VALUE"),
    (["check", "focal", "--set", "gama=1"], "did you mean 'gamma'"),
    (["check", "{syntax.py}"], "cannot be loaded: SyntaxError"),
    (["--datasets", "digit"], "did you mean 'digits'"),
    (["--datasets", "no/such.toml"], "does not exist"),
    (["--datasets", "{broken.toml}"], "line 2"),
    (["--datasets", "{binary.toml}"], "cannot read"),
    (["--datasets", "{unknown_key.toml}"], "did you mean 'epochs'"),
    (["--datasets", "{wrong_type.toml}"], "expected a whole number from 1 to 100,000, got 'four'"),
    (["--datasets", "{missing.toml}"], "'batch_size' is missing"),
    (["--datasets", "{bad_value.toml}"], "lr: expected a number from 1e-12 to 1,000,000,000, got -1"),
    (["--datasets", "{bad_source.toml}"], "did you mean 'digits'"),
    (["--datasets", "{bad_network.toml}"], "did you mean 'small_cnn'"),
    (["--datasets", "{bad_parent.toml}"], "did you mean 'cifar10'"),
    (["--datasets", "{bad_method.toml}"], "did you mean"),
    (["--datasets", "{bad_setting.toml}"], "did you mean 'queue_size'"),
    (["--datasets", "{bad_choice.toml}"], "did you mean 'paper'"),
    (["--datasets", "{bad_coverage.toml}"], "coverages are per cent"),
    (["--datasets", "{bad_channels.toml}"], "has 1 channel"),
    (["--datasets", "celeba"], r"no CelebA in .*list_attr_celeba.txt.*--data-dir"),
    (["--datasets", "imagenet"], r"no '.*imagenet/train'.*image-net.org.*--data-dir"),
    (["--datasets", "svhn"], "no complete SVHN in .*--data-dir"),
    (["prepare"], "required: TASK"),
    (["prepare", "cifar11"], "did you mean 'cifar10'"),
    (["prepare", "celeba"], "celeba: no CelebA in"),
    (
        ["prepare", "imagenet", "--set", "data.cache_size=100"],
        "image_size = 224 must be positive and at most cache_size",
    ),
    (["--datasets", "{own.toml}"], "class folder '.*dog' has no image"),
    (["prepare", "{own.toml}"], "class folder '.*dog' has no image"),
    (["--datasets", "{own.toml}", "--dry-run"], "class folder '.*dog' has no image"),
    (["--datasets", "{own.toml}", "--set", "data.path=no/where"], "/no/where' does not exist"),
    (["--datasets", "{own.toml}", "--set", "data.classes=3"], r"has 2 class folders, expected 3"),
    (["--datasets", "{pathless.toml}"], "needs the path of your data"),
    (["--data-budget", "lots"], "expected an amount of memory such as 500MB or 2GB, got 'lots'"),
    (["--data-budget", "-1"], "expected an amount|expected one argument"),
    (["--set", "augment.crop_scale=0.5"], "must be two shares in order"),
    (["--set", "augment.color_jitter=-1"], "a number from 0 to 10, got '-1'"),
    (["--set", "data.val_images=5"], "val_images is a part of the official_val split"),
    (["--set", "data.cache_size=10"], "must be positive and at most cache_size"),
    (["--set", "data.attribute=Bald"], "means nothing to source 'digits'"),
    (["--datasets", "gaussians", "--set", "augment.color_jitter=0.4"], "needs 8-bit images"),
    (["--datasets", "cifar10", "--data-dir", "{file.txt}"], "--data-dir"),
    (["--datasets"], "expected at least one argument"),
    (["--methods"], "expected at least one argument"),
    (["--methods", "ccl-cs"], "did you mean 'CCL-SC'"),
    (["--methods", "sat+er"], r"did you mean 'SAT\+EM'"),
    (["--seeds", "0"], "from 1 to 10,000, got '0'"),
    (["--seeds", "many"], "from 1 to 10,000, got 'many'"),
    (["--seeds", "2", "--seed-list", "1"], "not allowed with"),
    (["--seed-list", "-1"], "from 0 to|expected at least one argument"),
    (["--coverages", "0"], "above 0"),
    (["--coverages", "101"], "from 0 to 100, got '101'"),
    (["--coverages", "33.3"], "steps of 0.5"),
    (["--workers", "-1"], "from 0 to|expected one argument"),
    (["--device", "gpu"], "unknown device 'gpu'"),
    (["--device", "cuda:99"], "not available"),
    (["--test", "wilcoxon"], "invalid choice"),
    (["--set", "optimizer.lr"], "expected KEY=VALUE"),
    (["--set", "optimizer.rate=1"], "unknown key"),
    (["--set", "optimiser.lr=1"], "did you mean 'optimizer'"),
    (["--set", "epochs.x=1"], "is a value, not a table"),
    (["--set", "epochs=0"], "from 1 to 100,000, got '0'"),
    (["--set", "method.ccl-sc.queue=1"], "unknown key"),
    (["--set", "method.nobody.x=1"], "unknown method"),
    (["--set", "data.val=1.5"], "val must be"),
    (["--set", "epochs=2"], "warmup_epochs"),
    (["--set", "data.val=0.999"], "leaves fewer than 2"),
    (["--set", "data.official_val=true", "--set", "data.val=0"], "no validation split of its own"),
    (["--set", "data.image_size=32"], "is 8×8"),
    (["--set", "optimizer.name=adam"], "momentum belongs to sgd"),
    (["--set", "network.name=vgg16", "--set", "network.dropout=0.5"], "belongs to small_cnn and mlp"),
    (["--set", "network.name=vgg16"], "vgg16 needs square images of at least 32×32"),
    (
        ["--set", "network.name=timm:resnet18.a1_in1k"],
        "'.a1_in1k' names pretrained weights.* from scratch as timm:resnet18",
    ),
    (["--set", "checkpoint=best", "--set", "data.val=0"], "needs validation images"),
    (["--reference", "sr", "--methods", "dg"], "not among the methods"),
    (["--max-steps", "0"], "from 1 to 1,000,000, got '0'"),
    (["--json"], "needs --dry-run"),
    (["--sedes", "5"], "did you mean --seeds"),
    (["--frobnicate"], "unknown argument"),
    (["-q", "-v"], "not allowed with"),
    (["table"], "did you mean 'tables'"),
    (["frobnicate"], "unknown command"),
    (["tables", "--results", "{nowhere}"], "no results in"),
    (["--results", "{file.txt}"], "cannot write to results folder"),
    (["--results", "{file.txt}/below"], "cannot write to results folder"),
    (["--plugin", "{nowhere}.py"], "not a Python file that exists"),
    (["--plugin", "{file.txt}"], "not a Python file"),
    (["--plugin", "{no_method.py}"], "METHOD"),
    (["--plugin", "{syntax.py}"], "cannot be loaded: SyntaxError"),
    (["--plugin", "{raises.py}"], "cannot be loaded: RuntimeError: at import"),
    (["--plugin", "{incomplete.py}"], "lacks title, reference, labels"),
    (["--plugin", "{cross_entropy.py}"], "name of a built-in method"),
    (["--plugin", "{exits.py}"], "cannot be loaded: SystemExit"),
    (["--plugin", "{wordy.py}"], "one two three"),
    (["--plugin", "{plain_config.py}"], "Config must be a dataclass"),
    (["--plugin", "{label_list.py}"], "labels must map"),
    (["--plugin", "{no_epochs.py}"], "needs a field warmup_epochs"),
    (["--plugin", "{no_warmup.py}", "--methods", "mine"], "did you mean 'cross_entropy'"),
    (["--plugin", "{taken.py}"], "is taken by another method"),
    (["--datasets", "{tables.toml}"], "cannot be called 'tables'"),
    (["--datasets", "{no_methods.toml}"], "at least one method"),
    (["--datasets", "{bad_reference.toml}"], "unknown reference"),
    (["--datasets", "{named.toml}"], "remove 'name'"),
    (["--datasets", "{method_number.toml}"], "expected a table, got 3"),
    (["--datasets", "{tiny.toml}", "{copy/tiny.toml}"], "two tasks are called 'tiny'"),
    (["--set", "name=foo"], "remove 'name'"),
    (["--set", "methods="], "at least one method"),
    (["--set", "method=3"], "expected a table|is a value"),
    (["--methods", "sr", "--set", "method.ccl_sc.nonsense=1"], "unknown key"),
    (["--set", "data.source=DIGITS"], "did you mean 'digits'"),
    (["--dry-run", "--set", "data.image_size=32"], "is 8×8"),
    (["--datasets", "cifar10", "--dry-run", "--set", "data.image_size=64"], "is 32×32"),
    *SET_CASES,
    *VECTOR_CASES,
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bad")
    return {**write(folder), "nowhere": folder / "nowhere", "data": folder / "data"}


@pytest.mark.parametrize(("arguments", "message"), CASES, ids=[" ".join(a) for a, _ in CASES])
def test_one_line_and_exit_code_2(
    arguments: list[str], message: str, made: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    import re

    from benchmark.cli import main

    def no_network(*_: object, **__: object) -> None:
        raise OSError("no network")

    for downloader in (
        "cifar.download_and_extract_archive",
        "svhn.download_url",
        "celeba.download_file_from_google_drive",
    ):
        monkeypatch.setattr(f"torchvision.datasets.{downloader}", no_network)
    monkeypatch.setattr("benchmark.data.sources.fashion_mnist.DEBIAN", tmp_path / "nowhere")
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "results" / "notes.txt"
    kept.parent.mkdir()
    kept.write_text("mine")
    words = [re.sub(r"\{(.+?)\}", lambda m: str(made[m[1]]), word) for word in arguments]
    if "--datasets" not in words and (not words or words[0].startswith("-")):
        words = ["--datasets", str(made["tiny.toml"]), *words]
    code = main(words)
    out, said = capsys.readouterr()
    err = "".join(line for line in said.splitlines(keepends=True) if not line.startswith("caching "))
    assert code == 2, (code, out, err)
    assert re.search(message, err), err
    assert err.count("\n") == 1, err
    assert err.startswith("error: ")
    assert "Traceback" not in err
    left = {path for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "data")}
    assert left == {kept.parent, kept}, "the results are as they were"
    assert kept.read_text() == "mine"


def test_as_a_process_too() -> None:
    result = run_all("--methods", "srr")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_too_little_memory_to_load_torch_is_one_line() -> None:
    limit = 600 * 2**20
    set_limit = partial(resource.setrlimit, resource.RLIMIT_AS, (limit, limit))
    result = run_all("--datasets", "digits", "--dry-run", preexec_fn=set_limit)
    assert result.returncode == 1
    assert result.stderr.startswith("error: too little memory (")
    assert result.stderr.count("\n") == 1


def test_underscores_in_flags_are_dashes(made: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    from benchmark.cli import main

    arguments = ["--datasets", str(made["tiny.toml"]), "--dry_run", "--data_dir=x_y", "--seed_list", "3", "7"]
    assert main(arguments) == 0
    assert "10 jobs" in capsys.readouterr().out
