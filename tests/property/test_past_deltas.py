"""The past as deltas of 16 bits, for any values before and after a step."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tb_pastnet import PastDeltas

SIZE = 4160  # kept as deltas
LEAST = 2.0**-126
MOST = float(tf.bfloat16.max)

WEIGHTS = {dtype: tf.Variable(tf.zeros(SIZE, dtype)) for dtype in (tf.float32, tf.float64)}
DELTAS = {dtype: PastDeltas([weight]) for dtype, weight in WEIGHTS.items()}


def moved(dtype, before, after):
    """Past and delta after a step, for the first elements of a variable that repeats them."""
    weight, deltas = WEIGHTS[dtype], DELTAS[dtype]
    weight.assign(np.resize(before, SIZE))
    with deltas.step():
        weight.assign(np.resize(after, SIZE))
    return deltas.values()[0].numpy()[: len(before)], deltas.delta()[0].numpy()[: len(before)]


def floats(width):
    # Processors take subnormal numbers for zero.
    return arrays(
        f"float{width}",
        16,
        elements=st.floats(width=width, allow_subnormal=False),
        fill=st.nothing(),
    )


@given(st.sampled_from([32, 64]), st.data())
def test_the_past_is_right_to_a_256th_of_the_movement(width, data):
    before, after = data.draw(floats(width)), data.draw(floats(width))
    past, delta = moved(tf.float32 if width == 32 else tf.float64, before, after)
    with np.errstate(all="ignore"):
        true = after.astype(np.longdouble) - before
        finite = np.isfinite(true) & (np.abs(true) <= MOST)
        error = np.abs(past.astype(np.longdouble) - before)
        ulp = np.maximum(np.spacing(np.abs(before)), np.spacing(np.abs(after)))
        bound = np.abs(true) / 256 + ulp + 2 * LEAST
    assert (error <= bound)[finite].all()
    equal = before == after
    assert (past == before)[equal].all()
    assert (delta == 0)[equal].all()
    assert (delta != 0)[~equal].all()
    assert (np.sign(delta) == np.sign(true))[finite].all()


@given(floats(32), floats(32))
def test_what_is_not_finite_never_becomes_a_false_number(before, after):
    odd = ~np.isfinite(before) | ~np.isfinite(after)
    assume(odd.any())
    past, _ = moved(tf.float32, before, after)
    told = odd & ~np.isnan(past)
    np.testing.assert_array_equal(past[told], before[told])
