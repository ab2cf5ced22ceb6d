"""Properties of blocks of every version: names that come and go, and bytes that were changed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tb_pastnet.core.quantize import NAN
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format.block import decode_block, open_block, restore
from tests.sealed import EIGHT, NUMBERED, as_counts, block, block_payload, sealed

PLACE = {"tag": "channels/w", "step": 1000, "lineage": 1}
SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 9))
NAMES = st.lists(
    st.one_of(st.sampled_from(NUMBERED), st.text(min_size=1, max_size=9), st.just("number 77")),
    min_size=1,
    max_size=10,
    unique=True,
).filter(lambda names: not {"nonfinite", "nonfinite_count"} <= {*names})


@st.composite
def planes(draw, names=NAMES):
    """Statistics in any order, some of them predicted by one before."""
    shape, chosen = draw(SHAPES), draw(names)
    codes = {name: draw(hnp.arrays(np.int16, shape)) for name in chosen}
    near = {}
    for place, name in enumerate(chosen):
        bases = [base for base in chosen[:place] if base not in near]
        if bases and draw(st.booleans()):
            near[name] = draw(st.sampled_from(bases))
    return codes, near


@given(planes())
def test_statistics_that_are_known_come_back_and_no_others(drawn):
    codes, near = drawn
    found = decode_block(block(codes, near=near, **PLACE), **PLACE)
    usable = {name for name in codes if name in NUMBERED and near.get(name, name) in NUMBERED}
    assert set(found.unknown) == set(codes) - usable
    for row, name in enumerate(STATISTICS):
        expected = codes[name] if name in usable else np.int16(NAN)
        if name == "nonfinite":
            expected = as_counts(np.asarray(expected))
            if "nonfinite_count" in usable:
                expected = codes["nonfinite_count"]
        np.testing.assert_array_equal(
            found.codes[row], np.broadcast_to(expected, found.codes[row].shape)
        )


@given(planes(st.just(EIGHT)), st.sets(st.integers(0, 7)))
def test_versions_hold_the_same_and_rows_alone_are_as_among_all(drawn, rows):
    codes, near = drawn
    found = [
        decode_block(block(codes, version=1, **PLACE), **PLACE),
        decode_block(block(codes, near=near, **PLACE), **PLACE),
    ]
    needed = tuple(sorted(rows))
    found.append(restore([open_block(block(codes, near=near, **PLACE), **PLACE, rows=needed)]))
    for name in ("sequence", "steps", "past_steps"):
        for version in found[1:]:
            np.testing.assert_array_equal(getattr(version, name), getattr(found[0], name))
    for row, name in enumerate(EIGHT):
        expected = as_counts(codes[name]) if name == "nonfinite" else codes[name]
        np.testing.assert_array_equal(found[0].codes[row], expected)
        np.testing.assert_array_equal(found[1].codes[row], expected)
        assert row not in rows or (found[2].codes[row] == expected).all()


@pytest.mark.parametrize("version", [1, 2])
@given(drawn=planes(st.just(EIGHT)), data=st.data())
def test_a_payload_that_was_cut_or_changed_is_read_or_refused(version, drawn, data):
    payload = bytearray(block_payload(drawn[0], version))
    payload = payload[: data.draw(st.integers(0, len(payload)))]
    for _ in range(data.draw(st.integers(0, 3)) if payload else 0):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    message = sealed(bytes(payload), version=version, kind=1, **PLACE)
    try:
        found = decode_block(message, **PLACE)
    except UnreadableRecord:
        return
    assert found.codes.shape == (len(STATISTICS), len(found.steps), found.channels)
