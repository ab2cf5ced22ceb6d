"""Weights at rest: what fingerprints tell of them, against NumPy on kept values."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.statistics import MOVED, VALUE_ROWS, channel_statistics
from tb_pastnet.record import resting
from tb_pastnet.record.array_recorder import ArrayWeight, RatedSource
from tb_pastnet.record.resting import HeldChannels, Resting
from tb_pastnet.record.weight import Network

AXES: dict[Any, tuple[int, ...]] = {
    -1: (3, 65), 0: (9, 4), 1: (2, 7, 3), (0, 2): (3, 5, 4), (-2, -1): (5, 1, 3), (): (),
}  # fmt: skip


def source_of(arrays: dict[str, np.ndarray], axes: dict[str, Any], held: Any) -> RatedSource:
    weights = [
        ArrayWeight(
            name,
            array.shape,
            array.dtype.name,
            explicit_axis(axes[name], array.shape, name),
            partial(arrays.__getitem__, name),
        )
        for name, array in arrays.items()
    ]
    for weight in weights:
        weight.declared_trainable = not held[weight.name]
    at_rest = Resting.among(weights, HeldChannels(), always=True)
    return RatedSource(Network.of(weights), 0.1, resting=at_rest)


@given(st.data())
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_each_number_is_numpys_or_unknown(dtype: str, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    axis = data.draw(st.sampled_from([*AXES]))
    shapes = {"a/w": AXES[axis], "b/w": (4, 3)}
    arrays = {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}
    held = {"a/w": True, "b/w": False}
    source = source_of(arrays, {"a/w": axis, "b/w": 0}, held)
    past = {name: array.copy() for name, array in arrays.items()}
    last = dict(past)
    for _ in range(4):
        leaks = data.draw(st.lists(st.integers(0, arrays["a/w"].size - 1), max_size=3))
        flat = arrays["a/w"].reshape(-1)
        flat[leaks] = data.draw(st.sampled_from([-1.0, np.nan, np.inf, 1e-30]))
        arrays["b/w"][0] += 1
        replace, thaws = data.draw(st.booleans()), data.draw(st.booleans())
        source.network.weights[0].declared_trainable |= thaws
        result = source.compare(0, replace=replace)
        begin = 0
        for weight in source.network.weights:
            name, channels = weight.name, weight.axis.channels
            shown = result[:, begin : begin + channels]
            begin += channels
            with np.errstate(all="ignore"):
                expected = channel_statistics(arrays[name], past[name], weight.axis)
            bits = [weight.axis.split(each).tobytes() for each in (arrays[name], last[name])]
            if not np.isnan(shown[MOVED]).any():
                assert bool(shown[MOVED].any()) == (bits[0] != bits[1])
            told = ~np.isnan(shown[:VALUE_ROWS])
            same = np.array(
                [one.tobytes() == other.tobytes() for one, other in zip(
                    weight.axis.split(arrays[name]), weight.axis.split(past[name]), strict=True)]
            )  # fmt: skip
            assert told[:, same].all()
            np.testing.assert_allclose(
                shown[:VALUE_ROWS][told], expected[:VALUE_ROWS][told], rtol=1e-6
            )
        last = {name: array.copy() for name, array in arrays.items()}
        if replace:
            past = dict(last)


def test_little_memory_is_copied_and_much_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {name: np.zeros((64, 64), "f4") for name in ("a/w", "b/w", "c/w")}
    axes, held = dict.fromkeys(arrays, 0), {"a/w": True, "b/w": True, "c/w": False}
    weights = source_of(arrays, axes, held).network.weights
    for most, found in ((2 * 64 * 64 * 4, None), (2 * 64 * 64 * 4 - 1, [0, 1])):
        monkeypatch.setattr(resting, "MOST_COPIED", most)
        at_rest = Resting.among(weights, HeldChannels())
        assert (None if at_rest is None else at_rest.numbers) == found
