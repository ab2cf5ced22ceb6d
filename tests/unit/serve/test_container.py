from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tb_pastnet.serve.http.answers import pack
from tests.containers import unpack

DTYPES = st.sampled_from([np.uint8, np.int16, np.uint32, np.float32, np.float64])


@given(
    st.dictionaries(
        st.text(),
        DTYPES.flatmap(lambda t: hnp.arrays(t, hnp.array_shapes(min_dims=1, min_side=0))),
        max_size=5,
    )
)
def test_what_is_packed_comes_back(sections: dict[str, np.ndarray]) -> None:
    header, found = unpack(pack({"name": "ü\ud800"}, sections))
    assert header["name"] == "ü\ud800"
    assert list(found) == list(sections)
    for name, array in sections.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_every_section_lies_at_a_multiple_of_eight() -> None:
    data = pack({"x": "y"}, {"a": np.zeros(3, np.uint8), "b": np.zeros(5, np.int16)})
    (length,) = struct.unpack_from("<I", data)
    start = -(-(4 + length) // 8) * 8
    header, _ = unpack(data)
    assert [entry["offset"] for entry in header["sections"]] == [0, 8]
    assert len(data) == start + 8 + 16


def test_arrays_of_any_layout_are_packed_row_by_row() -> None:
    array = np.arange(6, dtype=">i2").reshape(2, 3).T
    assert unpack(pack({}, {"a": array}))[1]["a"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_another_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match="^Could not pack section 'a': expected a dtype of u1"):
        pack({}, {"a": np.zeros(1, np.int64)})


def test_arrays_that_lie_column_by_column_are_packed_row_by_row() -> None:
    array = np.arange(300 * 7, dtype=np.int16).reshape(300, 7)
    for some in (array.T, array[::2, ::3], array[:, 1:2], array[:0].T, array.T.astype(">i2")):
        data = pack({}, {"a": some})
        assert data == pack({}, {"a": np.ascontiguousarray(some).astype("<i2")})
        np.testing.assert_array_equal(unpack(data)[1]["a"], some)
