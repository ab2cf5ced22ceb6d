"""A source of arrays: one pass where it fits, and nothing is held between records."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.numba_switch import SWITCH
from tb_pastnet.core.statistics import CHANGED, KEPT, TRAINABLE, channel_statistics
from tb_pastnet.record.array_copies import ArrayCopies, NetworkCopies
from tb_pastnet.record.source import ArraySource, PlainCopies
from tb_pastnet.record.weight import Network, Weight

SHAPES = {
    "kernel": ((3, 3, 4, 8), np.float32, -1),
    "half": ((6, 5), np.float16, 0),
    "bias": ((8,), np.float32, 0),
    "short": ((8,), np.float16, 0),
    "scalar": ((), np.float32, ()),
    "double": ((4, 3), np.float64, -1),
    "mixed": ((2, 3, 4), np.float32, (2, 0)),
    "large": ((600, 900), np.float32, 0),
}


class Changing(Weight):
    """A weight whose array is another one after each update, as in JAX."""

    def __init__(self, name, array, axis):
        super().__init__(
            name, array.shape, array.dtype.name, explicit_axis(axis, array.shape, name)
        )
        self.array = array
        self.views = []

    def read(self):
        view = self.array[...]
        self.views.append(weakref.ref(view))
        return view


def network(rng):
    return Network.of(
        [
            Changing(name, np.asarray(rng.normal(size=shape)).astype(dtype), axis)
            for name, (shape, dtype, axis) in SHAPES.items()
        ]
    )


def update(weights, rng):
    for weight in weights:
        moves = rng.random(weight.shape) < 0.5
        step = np.where(moves, rng.normal(size=weight.shape), 0)
        weight.array = np.asarray(weight.array + step.astype(weight.dtype), weight.dtype)


def expected(weights, past):
    pairs = zip(weights, past, strict=True)
    return np.concatenate(
        [channel_statistics(weight.array, array, weight.axis) for weight, array in pairs], axis=1
    )


@pytest.fixture(params=["1", "0"], ids=["numba", "numpy"])
def source(request, monkeypatch):
    monkeypatch.setenv(SWITCH, request.param)
    rng = np.random.default_rng(0)
    return ArraySource(network(rng)), rng


def check(statistics, weights, past):
    defined = expected(weights, past)
    np.testing.assert_allclose(statistics[: CHANGED + 2], defined[: CHANGED + 2], rtol=1e-6)
    np.testing.assert_array_equal(statistics[[KEPT, TRAINABLE]], 1)


def test_it_gives_what_the_definition_says(source):
    source, rng = source
    weights = source.network.weights
    start = [weight.array.copy() for weight in weights]
    source.copy(1)
    for replace in (False, True, True):
        latest = [np.array(array) for array in source.past(1)]
        update(weights, rng)
        check(source.compare(1, replace=replace), weights, latest)
        check(source.compare(0), weights, start)
    for array, weight in zip(source.past(1), weights, strict=True):
        np.testing.assert_array_equal(array, weight.array)


def test_one_pass_measures_what_fits_in_float32_and_the_definition_the_rest(source):
    source, _ = source
    *fast, plain = source._copies[0]
    assert {type(part) for part in fast} <= {NetworkCopies, ArrayCopies}
    assert type(plain) is PlainCopies
    assert [weight.name for weight in plain._weights] == ["double", "mixed"]


def test_weights_that_are_not_contiguous_are_measured_all_the_same(monkeypatch):
    monkeypatch.setenv(SWITCH, "1")
    rng = np.random.default_rng(0)
    source = ArraySource(network(rng))
    weights = source.network.weights
    past = [weight.array for weight in weights]
    for weight in weights:
        weight.array = np.asfortranarray(weight.array * weight.array.dtype.type(2))
    check(source.compare(0), weights, past)


def test_no_view_outlives_a_record(source):
    source, rng = source
    for _ in range(3):
        update(source.network.weights, rng)
        source.compare(0, replace=True)
        source.copy(1)
    gc.collect()
    views = [view for weight in source.network.weights for view in weight.views]
    assert len(views) >= 5 * len(SHAPES)
    assert [view for view in views if view() is not None] == []
