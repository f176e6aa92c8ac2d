"""What the ingredients of a training cost beside the plain one: `python -m tests.speed.ingredients`."""

import argparse
from dataclasses import replace

import torch
from tabulate import tabulate

from benchmark.config.ingredients import AveragingConfig
from benchmark.train.trainer import State, Trainer
from tests.speed.steps import epoch_again, small_trainer
from tests.speed.timing import Row, in_turns, median_ratio

IMAGES = 1_280
SHARP = ("sam", "f-sam", "asam")
OTHERS = {
    "mixup": "mixing.name=mixup",
    "CutMix": "mixing.name=cutmix",
    "RegMixup": "mixing.name=regmixup",
    "cosine": "network.classifier=cosine",
}


def averaging(name: str) -> tuple[Trainer, State]:
    """SR, with an average taken beside."""
    trainer, _ = small_trainer(IMAGES)
    trainer = replace(trainer, job=replace(trainer.job, averages=(AveragingConfig(name),)))  # type: ignore[arg-type]
    return trainer, trainer.start()


def sharpness_rows(rounds: int, label: str) -> list[Row]:
    """An epoch with two passes a step beside two epochs with one."""
    made = {name: small_trainer(IMAGES, f"optimizer.sharpness={name}", label=label) for name in ("none", *SHARP)}
    works = {name: lambda pair=pair: epoch_again(*pair) for name, pair in made.items()}  # type: ignore[misc]
    took = in_turns(rounds, **works, again=works["none"])
    return [
        [
            f"{label} with {name} ÷ 2 × {label}",
            f"{median_ratio(took[name], took['none'], took['again']):.3f}",
            "≤ 1.05",
            "",
        ]
        for name in SHARP
    ]


def other_rows(rounds: int) -> list[Row]:
    made = {name: small_trainer(IMAGES, setting) for name, setting in OTHERS.items()}
    made |= {"SWA": averaging("swa"), "EMA": averaging("ema"), "none": small_trainer(IMAGES)}
    works = {name: lambda pair=pair: epoch_again(*pair) for name, pair in made.items()}  # type: ignore[misc]
    took = in_turns(rounds, **works)
    remarks = {"RegMixup": "a second forward and backward pass", "SWA": "once an epoch; its epoch has 20 steps"}
    names = [name for name in made if name != "none"]
    return [
        [f"SR with {name} ÷ SR", f"{median_ratio(took[name], took['none']):.3f}", "", remarks.get(name, "")]
        for name in names
    ]


def rows(rounds: int) -> list[Row]:
    return [*sharpness_rows(rounds, "SR"), *sharpness_rows(rounds, "CCL-SC"), *other_rows(rounds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    torch.set_num_threads(1)
    found = rows(parser.parse_args().rounds)
    print(tabulate(found, ["what", "measured", "bar", "remark"], tablefmt="pipe", disable_numparse=True))


if __name__ == "__main__":
    main()
