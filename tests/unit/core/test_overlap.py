"""Overlaps against sets that are counted one by one."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tb_pastnet.core import overlap
from tests.by_chance import mean_overlap
from tests.examples import examples


def sets(count: int = 2, most: int = 300) -> st.SearchStrategy[np.ndarray]:
    """bool (sets, elements), of none to many elements."""
    return st.integers(0, most).flatmap(lambda size: hnp.arrays(bool, (count, size)))


def members(flags: np.ndarray) -> set[int]:
    return {at for at, there in enumerate(flags.tolist()) if there}


@given(sets())
def test_an_overlap_is_intersection_over_union(flags: np.ndarray) -> None:
    a, b = map(members, flags)
    right = len(a & b) / len(a | b) if a | b else 1.0
    assert overlap.overlap(len(a & b), len(a), len(b)) == right


numbers = st.integers(0, 3000) | st.integers(0, 40)


@given(numbers, st.data())
@examples(10)
def test_chance_is_the_mean_under_the_hypergeometric_distribution(size: int, data: Any) -> None:
    one, other = (min(data.draw(numbers), size) for _ in "ab")
    found, right = float(overlap.by_chance(one, other, size)), mean_overlap([(one, other, size)])
    exact = min(one, other) <= overlap.FEW
    assert found == pytest.approx(right, rel=1e-9 if exact else 3e-5, abs=1e-12)


def test_values_that_can_be_counted_by_hand() -> None:
    found = overlap.by_chance([1, 1, 2, 3, 0], [1, 2, 2, 3, 2], [10, 2, 3, 3, 4])
    # Two of three: a third of the draws are the same set, of the others one of three is shared.
    np.testing.assert_allclose(found, [0.1, 0.5, 1 / 3 + 2 / 3 / 3, 1, 0], rtol=1e-12)


PROGRAM = """
import numpy as np
from tb_pastnet.core.overlap import by_chance
sizes = np.arange(1, 40)
print(by_chance(sizes[:, None], sizes, 10 ** np.arange(2, 9)[:, None, None]).tobytes().hex())
"""


def test_newer_instructions_give_the_same_bits() -> None:
    """Of a processor: what NumPy computes by them may end in another bit."""
    newer = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(features)},
            capture_output=True,
            check=True,
        ).stdout
        for features in ([], newer)
    }
    assert len(found) == 1


def test_chance_is_what_random_sets_overlap_by_on_average() -> None:
    rng = np.random.default_rng(4)
    flags = np.arange(200) < np.array([[120], [30]])
    drawn = rng.permuted(np.broadcast_to(flags, (4000, 2, 200)), axis=2)
    overlaps = (drawn[:, 0] & drawn[:, 1]).sum(axis=1) / (drawn[:, 0] | drawn[:, 1]).sum(axis=1)
    # Four standard errors.
    assert overlap.by_chance(120, 30, 200) == pytest.approx(
        overlaps.mean(), abs=4 * overlaps.std() / np.sqrt(4000)
    )


@given(st.lists(sets(most=40), max_size=5))
def test_layers_joined_are_their_sums(layers: list[np.ndarray]) -> None:
    a, b = ({(n, x) for n, one in enumerate(layers) for x in members(one[at])} for at in (0, 1))
    one, other, both = (
        (
            sum(int(each.sum()) for each in some)
            for some in zip(*((x[0], x[1], x[0] & x[1]) for x in layers), strict=True)
        )
        if layers
        else (0, 0, 0)
    )
    assert overlap.overlap(both, one, other) == (len(a & b) / len(a | b) if a | b else 1.0)


@given(st.lists(st.tuples(*3 * [st.integers(0, 30)]), max_size=4))
@examples(10)
def test_by_chance_each_layer_is_drawn_by_itself(layers: list[tuple[int, int, int]]) -> None:
    layers = [(min(a, n), min(b, n), n) for a, b, n in layers]
    chance = overlap.ByChance((2,))
    for one, other, size in layers:
        # The second place has none of them, but one of its own.
        chance.add(*np.array([[one], [other], [size]], float), where=[True, False])
    chance.add(*np.array([[1.0], [1.0], [10.0]]), where=[False, True])
    found = chance.overlap()
    few = sum(min(a, b) for a, b, _ in layers) <= overlap.FEW
    assert found[0] == pytest.approx(mean_overlap(layers), rel=1e-9 if few else 1e-4)
    assert found[1] == pytest.approx(0.1)


def test_empty_sets_and_no_elements_overlap_by_one() -> None:
    assert overlap.overlap(0, 0, 0) == 1
    assert overlap.overlap(0, 0, 3) == 0
    assert overlap.by_chance(0, 0, 0) == overlap.by_chance(0, 0, 7) == 1
    assert overlap.overlap([], [], []).shape == (0,)


def test_what_is_unknown_stays_unknown() -> None:
    nan = np.nan
    found = overlap.overlap([nan, 1, 1, 0], [2, nan, 2, 0], [2, 2, nan, nan])
    assert np.isnan(found).all()
    assert np.isnan(overlap.by_chance([nan, 1, 90], [1, nan, nan], [4, 4, 99])).all()


@pytest.fixture(params=["numpy", "table"])
def _either_way_to_count(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with NumPy before 2, which can't count bits."""
    if request.param == "table":
        monkeypatch.setattr(overlap, "_set_bits", overlap._set_bits_by_table)


@pytest.mark.usefixtures("_either_way_to_count")
@pytest.mark.parametrize("size", [0, 1, 7, 8, 63, 64, 65, 1000])
def test_bits_are_counted(size: int) -> None:
    rng = np.random.default_rng(size)
    flags = rng.random((5, 3, size)) < rng.random((5, 3, 1))
    packed = overlap.words(np.packbits(flags, axis=-1))
    assert packed.dtype == np.uint64
    assert packed.shape == (5, 3, -(-size // 64))
    assert overlap.count(packed).tolist() == flags.sum(axis=-1).tolist()


@pytest.mark.usefixtures("_either_way_to_count")
@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_each_two_sets_are_counted(count: int) -> None:
    flags = np.random.default_rng(count).random((count, 130)) < 0.4
    found = overlap.count_pairs(overlap.words(np.packbits(flags, axis=-1)))
    right = [[len(members(a) & members(b)) for b in flags] for a in flags]
    assert found.dtype == np.int64
    assert found.tolist() == right


def test_the_table_knows_every_sixteen_bits() -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    assert overlap._set_bits_by_table(every.view(np.uint64)).tolist() == [
        int(x).bit_count() for x in every
    ]
