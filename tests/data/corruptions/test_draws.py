"""Draws: a hash against the same in another arithmetic, and as random numbers."""

import numpy as np
import torch
from scipy.stats import chisquare

from benchmark.data.corruptions.draws import Draws, keys, mixed


def lowbias32(number: int) -> int:
    """The hash with Python's whole numbers, which never wrap."""
    number ^= number >> 16
    number = number * 0x7FEB352D % 2**32
    number ^= number >> 15
    number = number * 0x846CA68B % 2**32
    return number ^ number >> 16


def test_the_hash_wraps_as_whole_numbers_modulo_two_to_the_32() -> None:
    random = np.random.default_rng(0)
    numbers = np.concatenate([[0, 1, 2**31 - 1, 2**31, 2**32 - 1], random.integers(0, 2**32, 2000)]).astype(np.uint32)
    ours = mixed(torch.from_numpy(numbers.view(np.int32))).numpy().view(np.uint32)
    assert ours.tolist() == [lowbias32(int(number)) for number in numbers]


def test_a_hash_gives_two_draws() -> None:
    """The first half of the draws are the lower halves of the hashes, the second the upper halves."""
    key = 123456789
    words = [lowbias32(lowbias32(place) ^ key) for place in range(3)]
    expected = [word % 2**16 for word in words] + [word // 2**16 for word in words]
    draws = Draws(torch.tensor([[key]], dtype=torch.int32))
    assert draws.numbers(6).tolist() == [expected]
    assert draws.numbers(5).tolist() == [expected[:5]]
    assert draws.centred(6).tolist() == [[number - 32768 for number in expected]]


def test_draws_are_uniform_and_independent_of_place_and_image() -> None:
    numbers = Draws(keys("a stream", torch.arange(500))).numbers(400).numpy()
    for byte in (numbers % 256, numbers // 256):
        assert chisquare(np.bincount(byte.reshape(-1), minlength=256)).pvalue > 0.01
    pairs = [
        (numbers[:, :-1], numbers[:, 1:]),
        (numbers[:-1], numbers[1:]),
        (numbers[:, :200], numbers[:, 200:]),
    ]
    for one, other in pairs:
        joint = np.bincount((one // 4096 * 16 + other // 4096).reshape(-1), minlength=256)
        assert chisquare(joint).pvalue > 0.01


def test_images_and_streams_have_keys_of_their_own() -> None:
    ids = torch.arange(60_000)
    one, other = keys("fog 1", ids), keys("fog 2", ids)
    assert len(one.unique()) == len(other.unique()) == 60_000
    assert not (one == other).any()
    assert torch.equal(keys("fog 1", ids[[7, 3]]), one[[7, 3]])
