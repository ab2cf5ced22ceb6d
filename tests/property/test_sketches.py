"""Sketches beside their definition in plain Python, and distances beside NumPy's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_pastnet.core import sketch as module
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.float_words import WORDS, address_of, words_of
from tb_pastnet.core.sketch import sketch
from tb_pastnet.core.travel import distances
from tb_pastnet.errors import InvalidArgument, UnreadableRecord
from tb_pastnet.format.sketches import Sketches, decode_sketches, encode_sketches, whole_sketches
from tb_pastnet.record.array_copies import NetworkCopies

SIZES = (0, 1, 63, 64, 65, 129, 4097, 262_144 + 65)
MASK = (1 << 64) - 1


def splitmix64(number: int, seed: int) -> int:
    state = ((number + 1) * 0x9E3779B97F4A7C15 + seed) & MASK
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> shift)) * factor & MASK
    return state ^ (state >> 31)


def defined(values: list[float], first: int = 0) -> np.ndarray:
    result = np.zeros(64)
    for place, value in enumerate(values, first):
        row = place // 64 % 4096
        minus = splitmix64(row, 3) >> (place % 64) & 1
        minus ^= splitmix64(place // 262_144, 5) >> 63
        result[(place + (splitmix64(row, 4) >> 58)) % 64] += -value if minus else value
    return result


@pytest.mark.parametrize("size", SIZES[:-1])
@pytest.mark.parametrize("first", [0, 1, 64, 262_143])
def test_a_sketch_is_that_of_the_definition(size: int, first: int) -> None:
    values = np.random.default_rng(size).normal(size=size)
    np.testing.assert_allclose(sketch(values, first), defined(values.tolist(), first), atol=1e-12)


@given(st.sampled_from(SIZES), st.lists(st.integers(0, SIZES[-1]), max_size=4))
@settings(deadline=None, max_examples=30)
def test_parts_add_up(size: int, cuts: list[int]) -> None:
    values = np.random.default_rng(1).normal(size=size)
    ends = [0, *sorted(cut % (size + 1) for cut in cuts), size]
    parts = [sketch(values[a:b], a) for a, b in pairwise(ends)]
    np.testing.assert_allclose(np.sum(parts, axis=0), sketch(values), atol=1e-10)


@pytest.mark.parametrize("dtype", WORDS)
def test_a_kernel_sketches_words_where_they_are(dtype: str) -> None:
    pytest.importorskip("numba", reason="numba isn't installed")
    from tb_pastnet.core import network_kernel

    rng = np.random.default_rng(2)
    values = [rng.normal(size=size).astype(np.float16).astype(np.float32) for size in SIZES[1:]]
    if dtype == "bfloat16":
        values = [(each.view(np.uint32) & 0xFFFF0000).view(np.float32) for each in values]
    words = [words_of(each, dtype) for each in values]
    axes = [explicit_axis(0, each.shape, "w") for each in values]
    places = list(map(address_of, words))
    copies = NetworkCopies(axes, lambda _: (places, words), network_kernel, dtype)
    found = copies.sketches([*range(len(values))])
    np.testing.assert_allclose(found, [sketch(each) for each in values], atol=1e-10)


DIFFERENCES = {
    "one element": lambda r: np.eye(512)[:1] * np.eye(512)[:, :1],
    "one column": lambda r: np.eye(512)[r.integers(512)] * r.normal(size=(512, 1)),
    "one row": lambda r: np.eye(512)[:, r.integers(512)][:, None] * r.normal(size=512),
    "8 rows": lambda r: (
        np.isin(np.arange(512), r.choice(512, 8))[:, None] * r.normal(size=(512, 512))
    ),
    "3 large features": lambda r: np.outer(
        r.normal(size=512),
        r.normal(size=512) * np.where(np.isin(range(512), r.choice(512, 3)), 30, 1),
    ),
    "all": lambda r: r.normal(size=(512, 512)),
}


@pytest.mark.parametrize("kind", DIFFERENCES)
def test_distances_are_within_their_error_19_times_in_20(kind: str) -> None:
    inside, error = [], []
    for seed in range(120):
        apart = DIFFERENCES[kind](np.random.default_rng(seed))
        true = np.linalg.norm(apart)
        values, errors = distances(sketch(apart), np.zeros(()))
        inside.append(abs(values - true) <= errors)
        error.append(abs(values / true - 1))
    assert np.mean(inside) >= 0.95
    assert np.quantile(error, 0.95) <= 0.2


@given(st.integers(1, 5), st.integers(1, 4), st.floats(-30, 30), st.integers(0, 99))
def test_what_is_packed_is_restored_to_a_grid(records, layers, size, seed) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(records, layers, 64)) * 10.0**size
    values[rng.random((records, layers)) < 0.1] = 0
    values[rng.random((records, layers)) < 0.1] = np.nan
    numbers = np.arange(records)
    made = Sketches(
        tuple(range(1, layers + 1)),
        numbers,
        numbers * 3,
        values,
        False,
        np.zeros((records, layers)),
    )
    place = {"tag": "sketches", "step": int(numbers[-1] * 3), "lineage": 5}
    back = decode_sketches(encode_sketches(made, **place), **place)
    assert (back.variables, back.whole) == (made.variables, False)
    np.testing.assert_array_equal([back.sequence, back.steps], [numbers, numbers * 3])
    largest = np.abs(values).max(axis=2)
    np.testing.assert_array_equal(np.isnan(back.values), np.isnan(values))
    assert (np.nan_to_num(back.grid) <= np.nan_to_num(largest) / 32767 * (1 + 1e-6) + 2e-45).all()
    apart = np.nan_to_num(np.abs(back.values - values))
    assert (apart <= 0.51 * np.nan_to_num(back.grid)[..., None] + 2e-45).all()


def test_the_first_sketches_are_whole() -> None:
    values = np.random.default_rng(0).normal(size=(2, 64))
    values[1, 3] = np.inf
    made = whole_sketches((0, 4), 7, 9, values)
    back = decode_sketches(
        encode_sketches(made, tag="sketches", step=9, lineage=5), tag="sketches", step=9, lineage=5
    )
    assert back.whole
    np.testing.assert_array_equal(back.values[0, 0], values[0].astype(np.float32))
    assert np.isnan(back.values[0, 1]).all()


@given(st.binary(max_size=60))
def test_garbage_is_refused(data: bytes) -> None:
    from tb_pastnet.format.envelope import Kind, seal

    place = {"tag": "sketches", "step": 3, "lineage": 5}
    try:
        back = decode_sketches(seal(data, Kind.SKETCHES, **place), **place)
    except UnreadableRecord:
        return
    assert back.values.shape == (len(back.steps), len(back.variables), 64)


def test_what_a_reader_refuses_is_not_packed() -> None:
    steps, none = np.array([1, 1]), np.zeros((2, 1))
    with pytest.raises(InvalidArgument, match="strictly increasing"):
        encode_sketches(
            Sketches((0,), steps, steps, np.zeros((2, 1, 64)), False, none),
            tag="sketches", step=1, lineage=0,
        )  # fmt: skip
    with pytest.raises(InvalidArgument, match="values of shape"):
        encode_sketches(
            Sketches((0,), steps, steps, np.zeros((2, 2, 64)), False, none),
            tag="sketches", step=1, lineage=0,
        )  # fmt: skip


def test_the_tables_are_those_that_anybody_can_compute() -> None:
    tables = module.tables()
    assert tables.rotations[:5].tolist() == [splitmix64(n, 4) >> 58 for n in range(5)]
    assert tables.blocks[:9].tolist() == [1 - 2 * (splitmix64(n, 5) >> 63) for n in range(9)]
