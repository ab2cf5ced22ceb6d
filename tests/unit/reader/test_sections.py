"""Cells as they are sent: what comes back is what was there, in few bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tb_pastnet.core.quantize import INFINITE, NAN, ZERO
from tb_pastnet.reader import sections as cells
from tb_pastnet.reader.sections import listed, row_by_row, smallest, stretches

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=30)
SPECIAL = {ZERO: 0.0, INFINITE: np.inf, NAN: np.nan}


def meant(codes: np.ndarray) -> np.ndarray:
    """The value of each code, one by one."""
    values = [
        SPECIAL[code] if code in SPECIAL else 2.0 ** (code / 16) for code in codes.ravel().tolist()
    ]
    return np.array(values).reshape(codes.shape)


@pytest.mark.parametrize(
    ("largest", "dtype"),
    [(255, "uint8"), (256, "uint16"), (1 << 16, "uint32"), (1 << 32, "float64"), (0.5, "float64"),
     (np.nan, "float64")],
)  # fmt: skip
def test_counts_take_the_smallest_type_that_holds_them(largest: float, dtype: str) -> None:
    counts = np.array([0.0, largest])
    assert smallest(counts).dtype.name == dtype
    np.testing.assert_array_equal(smallest(counts), counts)


def test_elements_come_row_by_row_however_they_lie() -> None:
    array = np.arange(6).reshape(2, 3)
    assert row_by_row(array).tolist() == list(range(6))
    assert row_by_row(np.asfortranarray(array)).tolist() == list(range(6))


@given(hnp.arrays(np.uint8, SHAPES, elements=st.sampled_from([0, 1, 3, 4, 0x84])))
def test_stretches_are_the_states_channel_by_channel(states: np.ndarray) -> None:
    state, lengths = stretches(states)
    again = np.repeat(state, lengths).reshape(states.T.shape)
    np.testing.assert_array_equal(again, states.T)
    assert (state[1:] != state[:-1]).all()
    assert lengths.dtype in (np.uint8, np.uint16, np.uint32)


def test_states_that_last_take_few_bytes() -> None:
    states = np.repeat(np.arange(6, dtype=np.uint8), 100)[:, None].repeat(50, axis=1)
    state, lengths = stretches(states)
    assert state.tolist() == list(range(6)) * 50
    assert (lengths.dtype, set(lengths.tolist())) == (np.uint8, {100})
    _, lengths = stretches(np.zeros((70_000, 2), np.uint8))
    assert (lengths.dtype, lengths.tolist()) == (np.uint32, [140_000])


@given(st.data(), st.sampled_from([1, 7, 1 << 18]))
def test_listed_deltas_are_those_that_the_codes_mean(data: st.DataObject, strip: int) -> None:
    least = data.draw(st.integers(-9000, 9000))
    numbers = st.integers(least, least + data.draw(st.sampled_from([0, 40, 600])))
    some = numbers | st.sampled_from([ZERO, INFINITE, NAN])
    codes = data.draw(hnp.arrays(np.int16, SHAPES, elements=some))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "_STRIP", strip)
        places, values = listed(codes)
    assert places.shape == codes.shape
    np.testing.assert_allclose(values[places], meant(codes), rtol=1e-12)
    assert (values[0], values[-2]) == (0, np.inf)
    assert np.isnan(values[-1])
    assert (np.diff(values[:-1]) > 0).all()
    assert places.dtype == (np.uint8 if len(values) <= 256 else np.uint16)


def test_a_byte_tells_253_deltas_and_the_special_ones_apart() -> None:
    for count, dtype in ((253, np.uint8), (254, np.uint16)):
        codes = np.append(np.arange(count, dtype=np.int16) - 300, [ZERO, INFINITE, NAN])[None]
        places, values = listed(codes.astype(np.int16))
        assert places.dtype == dtype
        np.testing.assert_allclose(values[places], meant(codes), rtol=1e-12)


@pytest.mark.parametrize(
    "codes", [[ZERO + 1, NAN - 1], [ZERO + 1], [NAN - 1], [ZERO], [INFINITE, NAN]]
)
def test_the_ends_of_the_grid_are_told_from_what_is_special(codes: list[int]) -> None:
    places, values = listed(np.array([codes], np.int16))
    with np.errstate(over="ignore"):
        expected = np.exp2(np.array(codes) / 16.0)
    numbers = [code not in SPECIAL for code in codes]
    np.testing.assert_allclose(values[places][0][numbers], expected[numbers])
    special = [SPECIAL[code] for code in codes if code in SPECIAL]
    np.testing.assert_array_equal(values[places][0][~np.array(numbers)], special)
