"""Augmentations against torchvision's transforms of one image: same parameters, same pixels."""

import itertools

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import chisquare, ks_2samp
from torchvision.transforms import CenterCrop, ColorJitter, RandomResizedCrop
from torchvision.transforms import functional as F

from benchmark.check.sync_guard import no_host_syncs
from benchmark.config.training import AugmentConfig
from benchmark.data.augment import RATIO, Draws, draw, jitter_colors, normalise, perturb, random_boxes, view
from benchmark.data.crops import RaggedBatch, Raw, center_crop, resized_crop
from benchmark.data.transfer import upload_together


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(count: int, height: int = 12, width: int = 10, channels: int = 3) -> torch.Tensor:
    return torch.randint(0, 256, (count, channels, height, width), generator=generator()).to(torch.uint8)


def ragged(sizes: list[tuple[int, int]], channels: int = 3) -> tuple[RaggedBatch, list[torch.Tensor]]:
    images = [pictures(1, h, w, channels)[0] for h, w in sizes]
    lengths = np.array([image.numel() for image in images])
    flat = torch.cat([image.reshape(-1) for image in images])
    return RaggedBatch(flat, np.cumsum(lengths) - lengths, np.array(sizes), channels), images


def sizes_of(images: torch.Tensor) -> np.ndarray:
    return np.tile(np.array(images.shape[2:]), (len(images), 1))


def here(draws: Draws, device: str = "cpu") -> Draws:
    arrays = [*draws.arrays().values()]
    return draws.uploaded(iter(upload_together(arrays, torch.device(device))))


def augmented(images: torch.Tensor, config: AugmentConfig, seed: int = 5) -> torch.Tensor:
    height, width = images.shape[2:]
    return view(images, config, here(draw(config, sizes_of(images), generator(seed))), (height, width))


@pytest.mark.parametrize("config", [AugmentConfig(4, True), AugmentConfig(3, False), AugmentConfig(0, True)])
def test_padded_crop_and_flip_equal_torchvision_with_the_same_draws(config: AugmentConfig) -> None:
    images = pictures(64)
    ours = augmented(images, config)
    draws = generator(5)
    offsets = torch.randint(0, 2 * config.crop_padding + 1, (2, 64), generator=draws)
    mirrored = torch.rand(64, generator=draws) < (0.5 if config.flip else 0)
    for i in range(64):
        expected = F.crop(F.pad(images[i], [config.crop_padding] * 4), int(offsets[0, i]), int(offsets[1, i]), 12, 10)
        assert torch.equal(ours[i], F.hflip(expected) if mirrored[i] else expected)


def test_padded_crop_and_flip_are_drawn_uniformly() -> None:
    """A single bright pixel shows the offset and the flip of each image."""
    images = torch.zeros(18_000, 1, 5, 5)
    images[:, :, 1, 1] = 1
    counts = augmented(images, AugmentConfig(1, True), seed=0).sum((0, 1))
    assert counts.sum() == 18_000
    assert len(counts[counts > 0]) == 3 * 5
    assert (counts.sum(1)[:3] - 6000).abs().max() < 4 * (18_000 * 2 / 9) ** 0.5


class TestRandomResizedCrop:
    @pytest.mark.parametrize("size", [(256, 341), (500, 256), (256, 900), (24, 24)])
    def test_boxes_have_torchvisions_distribution(self, size: tuple[int, int]) -> None:
        """Two-sample Kolmogorov–Smirnov on area, ratio, top and left; an extreme shape takes the middle often."""
        ours = random_boxes(np.tile(size, (4000, 1)), (0.08, 1.0), generator())
        torch.manual_seed(1)
        image = torch.zeros(3, *size)
        theirs = np.array([RandomResizedCrop.get_params(image, [0.08, 1.0], list(RATIO)) for _ in range(4000)])
        top, left, height, width = ours.T
        assert (top >= 0).all()
        assert (left >= 0).all()
        assert (top + height <= size[0]).all()
        assert (left + width <= size[1]).all()
        for of in (lambda b: b[:, 2] * b[:, 3], lambda b: b[:, 3] / b[:, 2], lambda b: b[:, 0], lambda b: b[:, 1]):
            assert ks_2samp(of(ours), of(theirs)).pvalue > 1e-3

    def test_where_no_crop_fits_it_is_torchvisions_middle(self) -> None:
        for size in ((10, 400), (400, 10)):
            ours = random_boxes(np.array([size]), (0.9, 1.0), generator())[0]
            assert tuple(ours) == RandomResizedCrop.get_params(torch.zeros(1, *size), [0.9, 1.0], list(RATIO))

    @pytest.mark.parametrize("target", [(32, 32), (9, 20), (64, 64)])
    def test_pixels_equal_torchvisions_antialiased_resize(self, target: tuple[int, int]) -> None:
        """Float images within 1e-6; PIL, which rounds between the two passes, within one grey level."""
        batch, images = ragged([(40, 50), (61, 33), (36, 36), (90, 31)] * 12)
        boxes = random_boxes(batch.sizes, (0.08, 1.0), generator())
        ours = resized_crop(batch, boxes, target)
        for image, box, found in zip(images, boxes, ours, strict=True):
            place = [int(number) for number in box]
            expected = F.resized_crop(image.float(), *place, list(target), antialias=True)
            assert (255 * found - expected).abs().max() < 255e-6
            pil = Image.fromarray(image.permute(1, 2, 0).numpy())
            theirs = np.asarray(F.resized_crop(pil, *place, list(target))).transpose(2, 0, 1)
            assert np.abs(255 * found.numpy() - theirs).max() < 1.01

    def test_images_of_one_size_give_the_same(self) -> None:
        images = pictures(40, 30, 40)
        boxes = random_boxes(sizes_of(images), (0.08, 1.0), generator())
        flat = RaggedBatch(images.reshape(-1), np.arange(40) * 3600, sizes_of(images), 3)
        assert torch.equal(resized_crop(images, boxes, (16, 16)), resized_crop(flat, boxes, (16, 16)))

    def test_a_step_of_the_pipeline(self) -> None:
        """Through `view`, with the flip that follows the crop."""
        config = AugmentConfig(0, True, True)
        batch, images = ragged([(40, 50), (61, 33)])
        draws = draw(config, batch.sizes, generator(2))
        found = view(batch, config, here(draws), (24, 24))
        for image, box, mirrored, ours in zip(images, draws.boxes, draws.mirrored[:, 0], found, strict=True):
            expected = F.resized_crop(image.float(), *map(int, box), [24, 24], antialias=True) / 255
            assert (ours - (F.hflip(expected) if mirrored else expected)).abs().max() < 1e-6


@pytest.mark.parametrize("size", [(16, 16), (20, 24)])
def test_the_middle_is_torchvisions_centre_crop_to_the_bit(size: tuple[int, int]) -> None:
    batch, images = ragged([(25, 40), (31, 24), (24, 27), (20, 24)])
    for image, ours in zip(images, center_crop(batch, size), strict=True):
        assert torch.equal(ours, CenterCrop(size)(image))


OPERATIONS = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation)


class TestColourJitter:
    @pytest.mark.parametrize("channels", [3, 1])
    def test_pixels_equal_torchvision_in_every_order(self, channels: int) -> None:
        orders = np.array(list(itertools.permutations(range(3))))
        images = pictures(6, channels=channels).float() / 255
        factors = 0.6 + 0.8 * torch.rand(6, 3, generator=generator())
        ours = jitter_colors(images, factors, torch.from_numpy(orders))
        for image, factor, order, found in zip(images, factors, orders, ours, strict=True):
            for operation in order:
                image = OPERATIONS[operation](image, float(factor[operation]))
            assert (found - image).abs().max() < 1e-6

    def test_eight_bit_images_differ_from_pils_by_its_rounding(self) -> None:
        """PIL cuts to whole grey levels after each operation; the next ones multiply that by up to 1.4."""
        images = pictures(30, 20, 20)
        config = AugmentConfig(color_jitter=0.4)
        draws = draw(config, sizes_of(images), generator())
        ours = view(images, config, here(draws), (20, 20))
        for image, factor, order, found in zip(images, draws.factors, draws.order, ours, strict=True):
            pil = Image.fromarray(image.permute(1, 2, 0).numpy())
            for operation in order:
                pil = OPERATIONS[operation](pil, float(factor[operation]))
            difference = np.abs(255 * found.numpy() - np.asarray(pil).transpose(2, 0, 1))
            assert difference.max() < 1 + 1.4 + 1.4**2
            assert difference.mean() < 2

    def test_factors_and_orders_have_torchvisions_distribution(self) -> None:
        count = 6000
        draws = draw(AugmentConfig(color_jitter=0.4), np.ones((count, 2), np.int64), generator())
        torch.manual_seed(0)
        theirs = [ColorJitter.get_params((0.6, 1.4), (0.6, 1.4), (0.6, 1.4), None) for _ in range(count)]
        for index in range(3):
            assert ks_2samp(draws.factors[:, index], [params[1 + index] for params in theirs]).pvalue > 1e-3
        codes = {order: number for number, order in enumerate(itertools.permutations(range(3)))}
        seen = np.bincount([codes[tuple(order)] for order in draws.order.tolist()], minlength=6)
        assert chisquare(seen).pvalue > 1e-3

    def test_a_strength_above_one_never_turns_brightness_negative(self) -> None:
        factors = draw(AugmentConfig(color_jitter=1.5), np.ones((500, 2), np.int64), generator()).factors
        assert 0 <= factors.min() < 0.1
        assert 2.4 < factors.max() < 2.5


def test_normalise() -> None:
    pixels = torch.tensor([[[[0, 255]]]], dtype=torch.uint8)
    assert normalise(pixels, torch.tensor([0.5]), torch.tensor([0.25])).flatten().tolist() == [-2.0, 2.0]
    floats = torch.tensor([[[[3.0]]]])
    assert normalise(floats, torch.tensor([1.0]), torch.tensor([2.0])).item() == 1.0


EVERYTHING = {
    "padded crop": AugmentConfig(2),
    "flip": AugmentConfig(0, True),
    "crop and flip": AugmentConfig(2, True),
    "random resized crop": AugmentConfig(0, False, True),
    "jitter": AugmentConfig(color_jitter=0.4),
    "all": AugmentConfig(2, True, True, 0.4),
    "none": AugmentConfig(),
}


@pytest.mark.parametrize("config", EVERYTHING.values(), ids=EVERYTHING)
@pytest.mark.parametrize("kind", ["one size", "different sizes"])
def test_no_augmentation_waits_for_the_device(config: AugmentConfig, kind: str) -> None:
    """On the meta device, with everything that would read a value back forbidden."""
    batch, _ = ragged([(40, 50), (61, 33), (36, 36)])
    raw: Raw = RaggedBatch(batch.flat.to("meta"), batch.starts, batch.sizes, 3)
    if kind == "one size":
        raw, batch = torch.empty(3, 3, 32, 32, dtype=torch.uint8, device="meta"), None
    sizes = np.full((3, 2), 32) if batch is None else batch.sizes
    draws = draw(config, sizes, generator())
    mean = torch.zeros(3, device="meta")
    with no_host_syncs():
        images = normalise(view(raw, config, here(draws, "meta"), (32, 32)), mean, mean)
        assert images.shape == (3, 3, 32, 32)
        assert images.dtype == torch.float32


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_image_has_draws_of_its_own(name: str) -> None:
    same = pictures(1, 32, 32).expand(40, -1, -1, -1).contiguous()
    different = len({bytes(image.numpy()) for image in augmented(same, EVERYTHING[name]).float()})
    least, most = {"none": (1, 1), "flip": (2, 2), "padded crop": (12, 25)}.get(name, (20, 40))
    assert least <= different <= most


def test_nothing_is_drawn_for_what_is_off() -> None:
    random = generator()
    assert draw(AugmentConfig(), np.ones((4, 2), np.int64), random) == Draws()
    assert torch.equal(random.get_state(), generator().get_state())


VECTORS = AugmentConfig(noise=0.5, feature_dropout=0.3)


def test_noise_and_feature_dropout_equal_numpy_with_the_same_draws() -> None:
    vectors = torch.randn(200, 50, 1, 1, generator=generator(1))
    draws = draw(VECTORS, np.ones((200, 2), np.int64), generator(), 50)
    ours = perturb(vectors, VECTORS, here(draws)).numpy()[:, :, 0, 0]
    assert draws.noise is not None and draws.kept is not None
    noisy = vectors.numpy()[:, :, 0, 0] + np.float32(0.5) * draws.noise
    assert np.array_equal(ours, np.where(draws.kept, noisy, 0))
    assert draws.noise.mean() == pytest.approx(0, abs=0.03)
    assert draws.noise.std() == pytest.approx(1, abs=0.03)
    assert draws.kept.mean() == pytest.approx(0.7, abs=0.02)
    assert len({bytes(row) for row in draws.kept}) == 200, "every vector has draws of its own"


def test_a_part_of_a_batch_has_the_draws_of_the_whole() -> None:
    whole = draw(VECTORS, np.ones((20, 2), np.int64), generator(), 5)
    part = whole.part(slice(7, 11))
    assert part.noise is not None and part.kept is not None
    assert np.array_equal(part.noise, whole.noise[7:11])
    assert np.array_equal(part.kept, whole.kept[7:11])


def test_no_augmentation_of_vectors_waits_for_the_device() -> None:
    draws = draw(VECTORS, np.ones((3, 2), np.int64), generator(), 6)
    mean, raw = torch.zeros(6, device="meta"), torch.empty(3, 6, 1, 1, dtype=torch.float16, device="meta")
    with no_host_syncs():
        vectors = perturb(normalise(raw, mean, mean), VECTORS, here(draws, "meta"))
        assert (vectors.shape, vectors.dtype) == ((3, 6, 1, 1), torch.float32)
