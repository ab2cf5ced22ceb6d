from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.core.mask_words import packed_words, unpacked_words

kernel = pytest.importorskip("tb_pastnet.core.held_kernel", reason="needs numba")

SIZES = (1, 7, 8, 9, 63, 64, 65, 129, 4097)
RNG = np.random.default_rng(0)


def masks_of(size):
    """Random ones, runs of bytes, and those that hold nothing or all."""
    runs = np.arange(size) // 24 % 3
    yield RNG.random(size) < 0.7, RNG.random(size) < 0.5
    yield runs > 0, runs > 1
    yield np.ones(size, bool), np.ones(size, bool)
    yield np.ones(size, bool), np.zeros(size, bool)
    yield np.zeros(size, bool), np.zeros(size, bool)


@pytest.mark.parametrize("size", SIZES)
def test_words_have_the_bits_of_a_mask(size):
    for mask, _ in masks_of(size):
        words = packed_words(mask)
        assert [int(words[i // 64]) >> i % 64 & 1 for i in range(size)] == [*mask]
        np.testing.assert_array_equal(unpacked_words(words, size), mask)


@pytest.mark.parametrize("size", [*SIZES, 512, 3000])
def test_words_become_zero_and_nothing_around_them(size):
    for values in (np.zeros(size), np.arange(size) == size - 1, np.arange(size) % 1024 == 7):
        now = np.concatenate([[3], values, [5]]).astype(np.uint64)
        kernel.zero_words(now.ctypes.data + 8, now[:1], size)
        assert (now[0], now[-1], now[1:-1].any()) == (3, 5, False)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("word", [np.uint16, np.uint32, np.uint64])
def test_held_elements_are_zeroed_and_restored_and_no_other_is_touched(size, word):
    for kept, free in masks_of(size):
        through = kept & free
        held = RNG.integers(0, np.iinfo(word).max, size, word, endpoint=True)
        around = RNG.integers(1, np.iinfo(word).max, size + 2, word, endpoint=True)
        bits = packed_words(kept), packed_words(through)

        now = around.copy()
        kernel.zero(now.ctypes.data + now.itemsize, now[:1], bits[1])
        np.testing.assert_array_equal(now[1:-1], np.where(through, around[1:-1], 0))
        assert now[0] == around[0]
        assert now[-1] == around[-1]

        now = around.copy()
        kernel.restore(now.ctypes.data + now.itemsize, held[kept & ~through], *bits)
        expected = np.where(through, around[1:-1], np.where(kept, held, 0))
        np.testing.assert_array_equal(now[1:-1], expected)
        assert now[0] == around[0]
        assert now[-1] == around[-1]
