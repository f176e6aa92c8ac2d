"""Corruptions beside the usual way: one image after the other, with Pillow, scipy and numpy.

`python -m tests.speed.corruptions`
"""

import argparse
import io
import statistics
from collections.abc import Callable, Mapping

import numpy as np
import torch
from matplotlib.colors import hsv_to_rgb, rgb_to_hsv
from PIL import Image
from scipy import ndimage
from tabulate import tabulate

from benchmark.config.evaluation import CORRUPTIONS, SEVERITIES
from benchmark.data.corruptions.blur import soft_disk
from benchmark.data.corruptions.constants import CONSTANTS
from benchmark.data.corruptions.corrupt import corrupt
from tests.data.corruptions.pictures import pictures
from tests.data.corruptions.recipes import moved_corners, swapped, trail, zoomed
from tests.speed.timing import Row, in_turns

BATCH = 1_000
RANDOM = np.random.default_rng(0)
Pixels = np.ndarray
"""(H, W, C), from 0 to 1."""


def by_channel(x: Pixels, work: Callable[[Pixels], Pixels]) -> Pixels:
    return np.stack([work(x[..., c]) for c in range(x.shape[2])], axis=2)


def impulse(x: Pixels, share: float) -> Pixels:
    hit, salt = RANDOM.random(x.shape) < share, RANDOM.random(x.shape) < 0.5
    return np.where(hit, salt, x)


def blurred(x: Pixels, sigma: float) -> Pixels:
    return ndimage.gaussian_filter(x, (sigma, sigma, 0), mode="nearest")


def glass(x: Pixels, sigma: float, times: float) -> Pixels:
    x = blurred(x, sigma)
    for _ in range(int(times)):
        x = swapped(x, *RANDOM.integers(0, 2, (2, *x.shape[:2])), 1)
    return blurred(x, sigma)


def motion(x: Pixels, radius: float, sigma: float) -> Pixels:
    kernel = trail(radius, sigma, np.deg2rad(RANDOM.uniform(-45, 45)))
    return by_channel(x, lambda plane: ndimage.correlate(plane, kernel, mode="nearest"))


def zoom(x: Pixels, limit: float) -> Pixels:
    zooms = np.arange(100, round(100 * limit)) / 100
    return by_channel(x, lambda plane: np.mean([plane, *(zoomed(plane, z) for z in zooms)], axis=0))


def plasma(size: int, decay: float) -> Pixels:
    cloud, step, amplitude = np.zeros((size, size)), size, 1.0
    while step > 1:
        on, off = slice(0, size, step), slice(step // 2, size, step)
        shape = size // step, size // step
        corners = cloud[on, on]
        pairs = corners + np.roll(corners, -1, 0)
        cloud[off, off] = (pairs + np.roll(pairs, -1, 1)) / 4 + amplitude * RANDOM.uniform(-1, 1, shape)
        middles = cloud[off, off]
        across = corners + np.roll(corners, -1, 1) + middles + np.roll(middles, 1, 0)
        upright = pairs + middles + np.roll(middles, 1, 1)
        cloud[on, off] = across / 4 + amplitude * RANDOM.uniform(-1, 1, shape)
        cloud[off, on] = upright / 4 + amplitude * RANDOM.uniform(-1, 1, shape)
        step, amplitude = step // 2, amplitude / decay**2
    return (cloud - cloud.min()) / np.ptp(cloud)


def fog(x: Pixels, thickness: float, decay: float) -> Pixels:
    return (x + thickness * plasma(x.shape[0], decay)[..., None]) * x.max() / (x.max() + thickness)


def in_hsv(x: Pixels, channel: int, factor: float, added: float) -> Pixels:
    hsv = rgb_to_hsv(x)
    hsv[..., channel] = (hsv[..., channel] * factor + added).clip(0, 1)
    return hsv_to_rgb(hsv)


def through_pillow(x: Pixels, work: Callable[[Image.Image], Image.Image]) -> Pixels:
    return np.asarray(work(Image.fromarray(np.uint8(x * 255)))) / 255


def saved(image: Image.Image, quality: float) -> Image.Image:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=int(quality))
    return Image.open(file)


def small_and_large(image: Image.Image, share: float) -> Image.Image:
    small = image.resize((int(image.width * share), int(image.height * share)), Image.Resampling.BOX)
    return small.resize(image.size, Image.Resampling.BOX)


def elastic(x: Pixels, reach: float, sigma: float, corner: float) -> Pixels:
    side = len(x)
    rows, columns = np.mgrid[:side, :side].astype(float)
    places = moved_corners(RANDOM.integers(-32768, 32768, 6), corner * side, side, side)
    across, down = np.tensordot(places, [columns, rows, np.ones_like(rows)], 1)
    x = by_channel(x, lambda plane: ndimage.map_coordinates(plane, [down, across], order=1, mode="mirror"))
    fields = RANDOM.uniform(-1, 1, (2, side, side))
    dy, dx = (reach * side * ndimage.gaussian_filter(f, sigma * side, truncate=3) for f in fields)
    return by_channel(x, lambda plane: ndimage.map_coordinates(plane, [rows + dy, columns + dx], order=1))


USUAL: Mapping[str, Callable[..., Pixels]] = {
    "gaussian noise": lambda x, std: x + RANDOM.normal(0, std, x.shape),
    "shot noise": lambda x, photons: RANDOM.poisson(x * photons) / photons,
    "impulse noise": impulse,
    "speckle noise": lambda x, std: x + x * RANDOM.normal(0, std, x.shape),
    "gaussian blur": blurred,
    "defocus blur": lambda x, radius, sigma: by_channel(
        x, lambda plane: ndimage.correlate(plane, soft_disk(radius, sigma, 1) / 65536, mode="mirror")
    ),
    "glass blur": glass,
    "motion blur": motion,
    "zoom blur": zoom,
    "fog": fog,
    "brightness": lambda x, added: in_hsv(x, 2, 1, added),
    "contrast": lambda x, kept: (x - x.mean((0, 1))) * kept + x.mean((0, 1)),
    "saturate": lambda x, factor, added: in_hsv(x, 1, factor, added),
    "jpeg": lambda x, quality: through_pillow(x, lambda image: saved(image, quality)),
    "pixelate": lambda x, share: through_pillow(x, lambda image: small_and_large(image, share)),
    "elastic": elastic,
}


def ours(images: torch.Tensor, kind: str) -> None:
    for severity in SEVERITIES:
        for start in range(0, len(images), BATCH):
            corrupt(images[start : start + BATCH], kind, severity, torch.arange(start, min(start + BATCH, len(images))))


def usual(images: torch.Tensor, kind: str) -> None:
    for constants in CONSTANTS[kind]:
        for image in images.permute(0, 2, 3, 1).numpy():
            np.uint8(USUAL[kind](image / 255, *constants).clip(0, 1) * 255)


def rows(count: int, sample: int, rounds: int) -> list[Row]:
    shown = pictures(100)
    images, few = shown.repeat(-(-count // 100), 1, 1, 1)[:count], shown[:sample]
    found, seconds = [], []
    for kind in CORRUPTIONS:
        took = in_turns(rounds, ours=lambda kind=kind: ours(images, kind), usual=lambda kind=kind: usual(few, kind))  # type: ignore[misc]
        fast, slow = (statistics.median(took[name]) / size for name, size in (("ours", count), ("usual", len(few))))
        seconds.append((fast, slow))
        found.append([kind, f"{5 / fast:,.0f}", f"{5 / slow:,.0f}", f"{slow / fast:.1f}"])
    fast, slow = map(sum, zip(*seconds, strict=True))
    return [*found, ["all", f"{80 / fast:,.0f}", f"{80 / slow:,.0f}", f"{slow / fast:.1f}"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--sample", type=int, default=20, help="images for the usual way, at most 100")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = rows(arguments.images, arguments.sample, arguments.rounds)
    print(tabulate(found, ["corruption", "images/s", "usual way", "ratio"], tablefmt="pipe", disable_numparse=True))


if __name__ == "__main__":
    main()
