"""All weights measured in one compiled call, against the definition in NumPy."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_pastnet.core import pieces
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.fingerprint import fingerprints
from tb_pastnet.core.float_words import WORDS, OtherValues, address_of, values_of, words_of
from tb_pastnet.core.statistics import VALUE_ROWS, channel_statistics
from tb_pastnet.record import array_copies
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
        shape = draw(st.sampled_from([(4097,), (1, 4097), (4097, 2), (3, 4097), (5, 4097, 3)]))
    else:
        sides = draw(st.lists(st.sampled_from(SIDES), min_size=1, max_size=4))
        while np.prod(sides) > 70_000:
            sides.pop()
        shape = tuple(sides)
    return explicit_axis(draw(st.integers(0, len(shape) - 1)), shape, "w")


def rounded(values, dtype):
    """The nearest values of a dtype, roughly, as float32."""
    if dtype == "float16":
        with np.errstate(over="ignore"):
            return values.astype(np.float16).astype(np.float32)
    keep = 0xFFFF0000 if dtype == "bfloat16" else 0xFFFFFFFF
    return (values.view(np.uint32) & np.uint32(keep)).view(np.float32)


@settings(deadline=None)
@given(
    st.lists(axes(), min_size=1, max_size=6),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 0, 1e-3, 0.5]),
    st.booleans(),
    st.sampled_from(list(WORDS)),
    # From so many elements on, several threads share a network.
    st.sampled_from([4, 100, 1000, pieces.PIECE]),
)
def test_one_call_gives_what_the_definition_gives(kernel, axes, seed, odd, replace, dtype, piece):
    rng = np.random.default_rng(seed)

    def drawn():
        values = [rng.standard_normal(axis.shape).astype(np.float32) for axis in axes]
        for value in values:
            chosen = rng.random(value.shape) < odd
            value[chosen] = rng.choice(ODD, chosen.sum())
        return [rounded(value, dtype) for value in values]

    past, current = drawn(), drawn()
    for old, new in zip(past, current, strict=True):
        np.copyto(new, old, where=rng.random(old.shape) < 0.3)
    shown = [past]

    def locate(wanted):
        words = [words_of(each, wanted) for each in shown[-1]]
        return list(map(address_of, words)), words

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", piece)
        patch.setattr(pieces, "CACHED", max(1, piece // 8))
        patch.setattr(array_copies, "processors", lambda: 3)
        copies = NetworkCopies(axes, locate, kernel, dtype)
    assert copies._past.itemsize == WORDS[dtype]().itemsize
    shown.append(current)
    found = copies.compare(replace=replace)
    pairs = zip(current, past, axes, strict=True)
    defined = np.concatenate([channel_statistics(*pair)[:VALUE_ROWS] for pair in pairs], axis=1)
    np.testing.assert_allclose(found, defined, rtol=1e-6)
    words = [words_of(each, dtype) for each in current]
    prints = [fingerprints(*pair, fast=False) for pair in zip(words, axes, strict=True)]
    np.testing.assert_array_equal(copies.prints, np.concatenate(prints))
    for kept, wanted in zip(copies.past(), current if replace else past, strict=True):
        np.testing.assert_array_equal(kept.view(np.uint32), wanted.view(np.uint32))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_past_copies_follow_weights_that_get_another_dtype(kernel, dtype):
    axis = explicit_axis(0, (3, 5), "w")
    past = rounded(np.linspace(-2, 2, 15, dtype=np.float32), dtype)
    shown = [past]

    def locate(wanted):
        words = words_of(shown[-1], wanted)
        return [address_of(words)], words

    copies = NetworkCopies([axis], locate, kernel, dtype)
    shown.append(past + np.float32(1e-7))
    with pytest.raises(OtherValues):
        locate(dtype)
    expected = channel_statistics(shown[-1].reshape(3, 5), past.reshape(3, 5), axis)[:VALUE_ROWS]
    np.testing.assert_allclose(copies.compare(replace=True), expected, rtol=1e-6)
    np.testing.assert_array_equal(copies.past()[0].ravel(), shown[-1])


FULL = """
import errno, sys
import numpy as np
from numba.core import caching

def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")

caching.IndexDataCacheFile.save = full
import tb_pastnet as pastnet
array = np.ones((3, 4), np.float32)
with pastnet.numpy.Recorder(sys.argv[1], {"a": lambda: array}, every=1) as recorder:
    array += 1
    recorder.record(1)
    assert type(recorder._source._copies[0][0]).__name__ == "NetworkCopies"
    print(recorder.notes.counts())
print(list(pastnet.read(sys.argv[1]).runs.values())[0].variables["a"].changed)
"""


def test_what_is_compiled_works_where_no_disk_keeps_it(kernel, tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    command = [sys.executable, "-c", FULL, str(tmp_path / "run")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["{}", "[[1. 1. 1. 1.]]"], done


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_each_word_has_the_value_that_its_dtype_gives_it(kernel, dtype):
    words = np.arange(1 << 16, dtype=np.uint16).view(WORDS[dtype])
    if dtype == "float16":
        values = words.view(np.float16).astype(np.float32)
    else:
        values = pytest.importorskip("ml_dtypes", reason="it comes with TensorFlow and JAX")
        values = words.view(values.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(values_of(words), values)
    axis = explicit_axis(0, (1 << 16,), "w")
    shown = [np.zeros_like(words)]
    copies = NetworkCopies([axis], lambda _: ([address_of(shown[-1])], shown), kernel, dtype)
    shown.append(words)
    found = copies.compare(replace=False)
    expected = channel_statistics(values, np.zeros(1 << 16, np.float32), axis)
    np.testing.assert_array_equal(found, expected[:VALUE_ROWS])
