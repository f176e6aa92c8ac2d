"""Write the card of a selector: what it is, what it keeps, for whom it abstains, and what it must not be used for."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

from benchmark.base.units import counted
from benchmark.measure.scores import TITLES
from benchmark.selector.files import Content, Guarantee

MOST_CLASSES = 30


@dataclass(frozen=True)
class Tested:
    """What the selector does on test images."""

    labels: NDArray[np.int64]
    wrong: NDArray[np.bool_]
    kept: NDArray[np.bool_]


def card(content: Content, tested: Tested) -> str:
    """Return the card in Markdown."""
    title = f"{content.origin['method']} on {content.origin['title']}"
    parts = [
        f"# Selector: {title}",
        f"A classifier of {counted(len(content.classes), 'class', 'classes')} that abstains where it is not sure. "
        f"Its score is {content.score} ({TITLES[content.score]}); it keeps an image whose confidence is at least "
        f"**{content.threshold:.8g}**.",
        "## What it keeps",
        kept_text(content.guarantee, tested),
        "## For whom it abstains",
        f"On the test images, by true class; those of whom it keeps least come first{left_out(content)}.",
        class_table(content, tested),
        "## What it must not be used for",
        misuse(content),
        "## How to use it",
        usage(content),
        "## Where it comes from",
        tabulate(sorted(flat(content.origin).items()), ["", ""], "github", disable_numparse=True),
    ]
    return "\n\n".join(parts) + "\n"


def per_cent(share: float) -> str:
    return f"{100 * share:.2f} %"


def kept_text(guarantee: Guarantee | None, tested: Tested) -> str:
    """Return what was measured on the test images, and what is promised."""
    count, kept = len(tested.kept), int(tested.kept.sum())
    risk = f"{per_cent(tested.wrong[tested.kept].mean())} of these are wrong" if kept else "nothing is wrong of nothing"
    lines = [
        f"- Measured on {counted(count, 'test image')}: it keeps {per_cent(kept / max(count, 1))}, and {risk}. Without "
        f"abstention {per_cent(tested.wrong.mean())} are wrong."
    ]
    if guarantee is not None:
        lines.append(f"- Guaranteed: {promise(guarantee)}")
    return "\n".join(lines)


def promise(guarantee: Guarantee) -> str:
    """Return the guarantee as a sentence."""
    sure = f"with a probability of at least {per_cent(1 - guarantee.delta)} over the draw of them"
    found = f"from {counted(guarantee.num_images, 'held-out image')} ({guarantee.bound})"
    what = f"at most {per_cent(guarantee.risk)} of what it keeps is wrong" if guarantee.risk is not None else "it"
    if guarantee.coverage is not None:
        ends = f"between {per_cent(guarantee.low or 0)} and {per_cent(1 if guarantee.high is None else guarantee.high)}"
        what = f"it keeps {ends} of all images ({per_cent(guarantee.coverage)} were wanted)"
    held_out = f" Held out: {guarantee.held_out}." if guarantee.held_out else ""
    return f"{what}, {sure}, {found}.{held_out}"


def class_table(content: Content, tested: Tested) -> str:
    """Return coverage and risk of each class, the least kept first."""
    rows = []
    for number, name in enumerate(content.classes):
        own = tested.labels == number
        kept = own & tested.kept
        if own.any():
            risk = tested.wrong[kept].mean() if kept.any() else None
            rows.append((kept.sum() / own.sum(), -(1.0 if risk is None else risk), name, own.sum(), risk))
    lines = [
        (name, count, per_cent(coverage), "–" if risk is None else per_cent(risk))
        for coverage, _, name, count, risk in sorted(rows, key=lambda row: row[:2])[:MOST_CLASSES]
    ]
    return str(tabulate(lines, ["class", "images", "kept", "wrong of these"], "github", disable_numparse=True))


def left_out(content: Content) -> str:
    more = len(content.classes) - MOST_CLASSES
    return f"; {MOST_CLASSES} of {len(content.classes):,} classes are shown" if more > 0 else ""


def misuse(content: Content) -> str:
    """Return what the promise does not cover."""
    lines = [
        "Images of another kind than the held-out ones stand for: other cameras, places, times or mixtures of classes. "
        "What is promised and what was measured say nothing of them, and an image of none of the classes gets one of "
        "them all the same.",
        f"Images that were prepared otherwise. It expects {form(content)}; mean and standard deviation are taken "
        "care of inside.",
        "Another threshold. It can be edited in selector.json, or given to the graph; the guarantee is then void.",
        "Single classes or groups of people. The promise is about all images together; some groups are served worse "
        "than others, as the table above shows for classes.",
        "A choice among many selectors by these test images, which would then no longer be test images.",
    ]
    return "\n".join(f"- {line}" for line in lines)


def form(content: Content) -> str:
    """Return the form of the images that go in."""
    channels, height, width = content.network.shape
    kind = "floats (float32)" if content.network.floats else "8-bit pixels (uint8)"
    colours = {1: "grey", 3: "red, green, blue"}.get(channels, counted(channels, "channel"))
    return f"{kind} in the shape (N, {channels}, {height}, {width}), {colours}, row by row from the top"


def usage(content: Content) -> str:
    """Return how it is called, with and without the suite."""
    return (
        "With onnxruntime and numpy alone: `python example.py IMAGES.npy`. The graph `model.onnx` takes `images` "
        f"({form(content)}) and returns `class`, `confidence` and `kept`; `threshold` is an input with a default.\n\n"
        'With the suite (`pip install "selbench[export]"`):\n\n'
        "```python\n"
        "import benchmark as sb\n\n"
        'selector = sb.Selector.load("FOLDER")\n'
        "classes, kept = selector(images)\n"
        "```"
    )


def flat(values: dict[str, object], prefix: str = "") -> dict[str, str]:
    """Return nested values under names such as `libraries.torch`."""
    found: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = str(value)
    return found
