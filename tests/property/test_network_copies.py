"""All weights measured in one compiled call, against the definition in NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.statistics import VALUE_ROWS, channel_statistics
from tb_pastnet.record.array_copies import NetworkCopies

ODD = np.array([0.0, -0.0, 1.5, -2.0, 3e38, 1e-40, np.nan, np.inf, -np.inf], np.float32)
SIDES = (1, 2, 3, 7, 8, 9, 63, 64, 65, 129)


@pytest.fixture(scope="module")
def kernel():
    pytest.importorskip("numba", reason="numba isn't installed")
    from tb_pastnet.core import network_kernel

    return network_kernel


@st.composite
def axes(draw):
    """How an array splits into channels, of at most 70,000 elements."""
    if draw(st.integers(0, 9)) == 0:
        shape = draw(st.sampled_from([(4097,), (1, 4097), (4097, 2), (3, 4097)]))
    else:
        sides = draw(st.lists(st.sampled_from(SIDES), min_size=1, max_size=4))
        while np.prod(sides) > 70_000:
            sides.pop()
        shape = tuple(sides)
    return explicit_axis(draw(st.integers(0, len(shape) - 1)), shape, "w")


@settings(deadline=None)
@given(
    st.lists(axes(), min_size=1, max_size=6),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 0, 1e-3, 0.5]),
    st.booleans(),
)
def test_one_call_gives_what_the_definition_gives(kernel, axes, seed, odd, replace):
    rng = np.random.default_rng(seed)

    def drawn():
        values = [rng.standard_normal(axis.shape).astype(np.float32) for axis in axes]
        for value in values:
            chosen = rng.random(value.shape) < odd
            value[chosen] = rng.choice(ODD, chosen.sum())
        return values

    past, current = drawn(), drawn()
    for old, new in zip(past, current, strict=True):
        np.copyto(new, old, where=rng.random(old.shape) < 0.3)
    shown = [past]
    copies = NetworkCopies(
        axes, lambda: ([each.__array_interface__["data"][0] for each in shown[-1]], shown), kernel
    )
    shown.append(current)
    found = copies.compare(replace=replace)
    pairs = zip(current, past, axes, strict=True)
    defined = np.concatenate([channel_statistics(*pair)[:VALUE_ROWS] for pair in pairs], axis=1)
    np.testing.assert_allclose(found, defined, rtol=1e-6)
    for kept, wanted in zip(copies.past(), current if replace else past, strict=True):
        np.testing.assert_array_equal(kept.view(np.uint32), wanted.view(np.uint32))
