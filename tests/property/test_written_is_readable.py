"""What `flush` acknowledges is shown, or listed as skipped with its reason, whatever the network is."""

from __future__ import annotations

import math
import tempfile
from collections import Counter

import ml_dtypes
import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument
from tests.sampled import sampled

pytestmark = pytest.mark.promise("written")

MOST = 1 << 14
"""Bytes of the longest name, see docs/reference/record_format.md."""

LETTERS = ["a", "/", ".", " ", "\0", "\n", "é", "𝄞", "\u202e", "%2e", "<b>", "_1", "*", "[", "?"]
HALVES = ["\ud800", "\udfff"]
PATHS = ["", "/", "//", "a/", "/a", "..", "k", "kept/k", "description", "timeline", "channels/k"]
FLOATS = ["f2", "f4", "f8", "g", ml_dtypes.bfloat16]
OTHERS = ["i1", "u8", "?", "c8", "O", "U3", "S2", "M8[s]", "m8[ms]", "f4,f4", "V4", ml_dtypes.int4]
SHAPES = [
    (),
    (1,),
    (0,),
    (3, 0, 2),
    (7,),
    (8, 2),
    (63,),
    (2, 64),
    (65, 1),
    (129,),
    (3, 1, 4),
    (2, 3),
]
DEEP = (
    [(1,) * 64, (2,) + (1,) * 62 + (3,)]
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0"
    else [(1,) * 32]
)


def a_name(rng):
    kind = rng.integers(8)
    if kind < 6:
        letters = LETTERS if kind else LETTERS + HALVES
        return "".join(letters[n] for n in rng.integers(0, len(letters), rng.integers(0, 9)))
    if kind == 6:
        return PATHS[rng.integers(len(PATHS))]
    # Around the limit, also with names that differ only at their ends.
    fill = ["x", "é", "/", "𝄞"][rng.integers(4)]
    return fill * (MOST // len(fill.encode()) - int(rng.integers(-2, 4))) + str(rng.integers(3))


def fits(name):
    try:
        return len(name.encode()) <= MOST
    except UnicodeEncodeError:
        return False


def an_array(rng):
    dtype = (
        FLOATS[rng.integers(len(FLOATS))]
        if rng.random() < 0.7
        else OTHERS[rng.integers(len(OTHERS))]
    )
    shapes = [*SHAPES, *DEEP]
    shape = shapes[rng.integers(len(shapes))]
    return rng.normal(size=shape).astype(dtype) if dtype in FLOATS else np.zeros(shape, dtype)


def an_axis(rng, ndim):
    if not ndim or rng.random() < 0.6:
        return None
    if rng.random() < 0.7:
        return int(rng.integers(-ndim, ndim))
    return tuple(map(int, rng.permutation(ndim)[: rng.integers(1, min(ndim, 4) + 1)]))


def norms(change, axis):
    axes = (-1,) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    first = np.moveaxis(change, axes, range(len(axes))) if change.ndim else change
    channels = math.prod(first.shape[: len(axes)]) if change.ndim else 1
    return np.sqrt((first.reshape(channels, -1) ** 2).sum(1))


def check(seed):
    rng = np.random.default_rng(seed)
    arrays = {a_name(rng): an_array(rng) for _ in range(rng.integers(1, 7))}
    if seed % 500 == 3:  # names that fit one by one, but not together
        arrays |= {"\1" * (MOST - 9) + f"/{n}": rng.normal(size=2) for n in range(60)}
    usable = {name: a for name, a in arrays.items() if a.size and a.dtype in map(np.dtype, FLOATS)}
    # Keys are patterns as well as names.
    plain = {name: array for name, array in usable.items() if not set("*?[") & set(name)}
    axes = {name: axis for name, a in plain.items() if (axis := an_axis(rng, a.ndim)) is not None}
    wanted = {name for name in usable if fits(name)}
    held = {
        name: np.zeros(a.shape) if a.ndim else False
        for name, a in plain.items()
        if rng.random() < 0.2
    }
    with tempfile.TemporaryDirectory() as logdir:
        network = {name: lambda name=name: arrays[name] for name in arrays}
        try:
            recorder = pastnet.numpy.Recorder(
                logdir, network, every=1, channel_axis=axes, trainable=held
            )
        except InvalidArgument:
            assert not wanted
            return Counter(refused=1)
        start = {name: array.copy() for name, array in usable.items()}
        for step in (1, 2):
            for name, array in usable.items():
                arrays[name] = (array + step * rng.normal(size=array.shape)).astype(array.dtype)
            recorder.record(step)
            ends = dict(arrays)
            if step == 1:
                start = ends
        flushed = recorder.flush(60)
        recorder.close()
        assert flushed, recorder.notes.counts()
        (run,) = pastnet.read(logdir).runs.values()
        assert (run.steps.tolist(), dict(run.notes)) == ([1, 2], {})
        shown = set(run.variables)
        assert shown <= wanted
        for name in shown:
            own = run.variables[name]
            change = ends[name].astype(np.float64) - start[name].astype(np.float64)
            np.testing.assert_allclose(
                own.delta_norm[1], norms(change, axes.get(name)), rtol=0.03, atol=1e-30
            )
            assert own.shape == ends[name].shape
        assert {each.variable for each in run.violations} == shown & held.keys()
        left_out = Counter(run.skipped.values())
        assert left_out.total() == len(arrays) - len(shown)
        assert all(left_out)
        room = sum(count for reason, count in left_out.items() if "no room" in reason)
        assert len(wanted - shown) == room
        assert not room or len(arrays) > 60
    return Counter(shown=len(shown), skipped=left_out.total(), networks=1)


BATCHES = [range(start, start + 100) for start in range(0, 10_000, 100)]


@pytest.mark.parametrize("seeds", sampled(BATCHES, every=100))
@pytest.mark.promise("hostile_names")
def test_flushed_weights_are_shown_or_skipped_with_a_reason(seeds, figure):
    counts = sum(map(check, seeds), Counter())
    assert counts["shown"] > 100
    assert counts["skipped"] > 100
    numbers = len(seeds), counts["shown"], counts["skipped"]
    figure("{:,} networks: {:,} weights shown, {:,} skipped", *numbers)
