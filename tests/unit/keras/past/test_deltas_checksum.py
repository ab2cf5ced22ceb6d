from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet.keras.past.past_deltas import checksum

SIZES = [0, 1, 3, 2047, 2048, 2049, 10_001]


def spread(number):
    return number + (number >> 32)


def by_hand(values):
    """Each number times an odd factor of its own, in Python's whole numbers."""
    flat = values.reshape(-1)
    cut = len(flat) - len(flat) % 2048
    blocks = [spread(number) for number in flat[:cut].view(np.int64).tolist()]
    if flat.dtype == np.float64:
        rest = [spread(number) for number in flat[cut:].view(np.int64).tolist()]
    else:
        rest = flat[cut:].view(np.int32).tolist()
    total = sum((2 * at + 1) * number for at, number in enumerate(blocks))
    total += sum((2 * (cut + at) + 1) * number for at, number in enumerate(rest))
    return total % 2**63


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("jit", [None, True], ids=["graph", "XLA"])
def test_it_is_the_sum_that_it_says(dtype, jit):
    compiled = tf.function(checksum, jit_compile=jit, reduce_retracing=False)
    for size in SIZES:
        values = np.random.default_rng(size).normal(size=size).astype(dtype)
        assert compiled(tf.constant(values)).numpy() == by_hand(values)
        assert checksum(tf.constant(values)).numpy() == by_hand(values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_bit_counts(dtype):
    values = np.random.default_rng(0).normal(size=2100).astype(dtype)
    marks = {checksum(tf.constant(values)).numpy()}
    bits = values.view(np.int32 if dtype is np.float32 else np.int64)
    width = 8 * bits.itemsize
    for at in (0, 1, 2047, 2048, 2099):
        for bit in range(0, width, 5):
            bits[at] ^= np.array(1, bits.dtype) << np.array(bit, bits.dtype)
            marks.add(checksum(tf.constant(values)).numpy())
            bits[at] ^= np.array(1, bits.dtype) << np.array(bit, bits.dtype)
    assert len(marks) == 1 + 5 * len(range(0, width, 5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_signs_that_flip_do_not_cancel_out(dtype):
    values = np.random.default_rng(0).normal(size=4160).astype(dtype)
    marks = {checksum(tf.constant(values)).numpy(), checksum(tf.constant(-values)).numpy()}
    flips = [(0, 1), (1, 3), (1, 2049), (7, 9, 11, 13), (4157, 4159), (1, 4159), range(1, 4160, 2)]
    for flipped in flips:
        changed = values.copy()
        changed[list(flipped)] *= -1
        marks.add(checksum(tf.constant(changed)).numpy())
    assert len(marks) == 2 + len(flips)


def test_the_order_counts():
    values = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    orders = [values, values.T, values[::-1], values[:, ::-1], np.roll(values, 1, 0)]
    for one, other in ((0, 1), (5, 4000), (2, 2050), (0, 4095)):
        swapped = values.copy().reshape(-1)
        swapped[[one, other]] = swapped[[other, one]]
        orders.append(swapped.reshape(64, 64))
    marks = {checksum(tf.constant(order)).numpy() for order in orders}
    assert len(marks) == len(orders)
