"""Odd values and odd variables, from the weights to the routes, in both loaders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tb_pastnet as pastnet
from tests.both_loaders import in_both
from tests.tensorboards import Board

pytestmark = pytest.mark.promise("odd_values")

STEPS = range(1, 5)
FLOATS = ("float16", "bfloat16", "float32", "float64")
TINY = {"float16": 2.0**-24, "bfloat16": 1e-39, "float32": 1e-42, "float64": 1e-310}
"""Subnormal in each dtype."""
TINY_CHANNEL = 3


def columns(dtype: str, step: int) -> np.ndarray:
    """Channels: a NaN, +Inf, −Inf, a subnormal, −0 that becomes 0, one that moves, one at rest."""
    values: np.ndarray = np.tile(np.array([2.0, -1.0, 0.5])[:, None], 7)
    values[1, :3] = np.nan, np.inf, -np.inf
    values[:, 3] = TINY[dtype] * (step % 2)
    values[:, 4] = -0.0 if step % 2 else 0.0
    values[:, 5] *= step
    # Not by TensorFlow's cast, which makes zeros of subnormals.
    return values.astype(tf.as_dtype(dtype).as_numpy_dtype)


def record(logdir: Path) -> None:
    made: dict[str, Any] = {f"{dtype}/kernel": tf.Variable(columns(dtype, 0)) for dtype in FLOATS}
    made["scalar/scale"] = tf.Variable(1.0)
    made["empty/kernel"] = tf.Variable(tf.zeros((3, 0)))
    made["count/count"] = tf.Variable(0, dtype=tf.int64)
    made["flag/flag"] = tf.Variable(True)
    made["wave/kernel"] = tf.Variable(tf.zeros((2,), tf.complex64))
    made["free/kernel"] = tf.Variable(tf.zeros((2,)), shape=tf.TensorShape(None))
    with pastnet.Recorder(logdir / "run", made, every=1, initial_step=0) as recorder:
        for step in STEPS:
            for dtype in FLOATS:
                made[f"{dtype}/kernel"].assign(columns(dtype, step))
            made["scalar/scale"].assign(1.0 + step)
            recorder.record(step)


def asked(here: Board) -> Any:
    """Every channel of every layer, and what the index says of the rest."""
    index = here.json("/index")
    (network,), (run,) = index["networks"], index["runs"]
    assert run["notes"] == []
    assert run["account"]["shown"] == run["account"]["offered"] == len(STEPS)
    channels = {
        layer["id"]: [
            here.json("/channel", run="run", layer=layer["id"], channel=channel)
            for channel in range(layer["variables"][0]["channels"])
        ]
        for layer in network["layers"]
    }
    return channels, run["skipped"]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    logdir = tmp_path_factory.mktemp("odd")
    record(logdir)
    return in_both(logdir, asked)


@pytest.mark.parametrize("dtype", FLOATS)
def test_finite_channels_are_exact_beside_those_that_are_not(told: Any, dtype: str) -> None:
    values = np.stack([columns(dtype, step) for step in (0, *STEPS)]).astype(np.float64)
    with np.errstate(invalid="ignore"):
        deltas = np.diff(values, axis=0)
    for channel, found in enumerate(told[0][dtype]):
        finite = np.isfinite(values[1:, :, channel])
        assert found["nonfinite"] == (~finite).sum(1).tolist()
        if not finite.all():
            continue
        for name, now in (("norm", values[1:]), ("past_norm", values[:-1]), ("delta_norm", deltas)):
            expected = np.sqrt((now[:, :, channel] ** 2).sum(1))
            if channel == TINY_CHANNEL:
                # What isn't zero is never told as zero, and a zero is exactly that.
                assert [value > 0 for value in found[name]] == now[:, 0, channel].astype(
                    bool
                ).tolist()
            else:
                np.testing.assert_allclose(found[name], expected, rtol=0.023)
        changed = (deltas[:, :, channel] != 0).mean(1)
        np.testing.assert_allclose(found["changed"], changed, rtol=0.023)


def test_a_scalar_is_one_channel(told: Any) -> None:
    (scalar,) = told[0]["scalar"]
    np.testing.assert_allclose(scalar["norm"], [2, 3, 4, 5], rtol=0.023)
    np.testing.assert_allclose(scalar["delta_norm"], [1] * 4, rtol=0.023)


def test_what_is_not_recorded_says_why(told: Any, figure: Any) -> None:
    channels, skipped = told
    assert set(channels) == {*FLOATS, "scalar"}
    assert {entry["name"]: entry["reason"] for entry in skipped} == {
        "empty/kernel": "it has no elements",
        "count": "its dtype int64 isn't a floating one",
        "flag": "its dtype bool isn't a floating one",
        "wave/kernel": "its dtype complex64 isn't a floating one",
        "free/kernel": "its shape <unknown> isn't fixed",
    }
    count = sum(map(len, channels.values()))
    figure(
        f"{count} channels of 4 dtypes in both loaders, {len(skipped)} variables skipped with a reason"
    )
