"""However a probe's records were split, written again, restarted: the same series."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.format.function_change import LAYER, Place, encode_function_change
from tb_pastnet.format.tags import TAG_FUNCTION
from tb_pastnet.reader.function_series import make_function
from tb_pastnet.reader.series_source import StoredMessage
from tests import probed
from tests.unit.reader.test_runs import lineage

PLACES = [Place(LAYER, name, 1) for name in "abcd"]


@st.composite
def lineages(draw):
    """Of each: its first step, the places and the seed of each message, and its messages twice."""
    found = []
    for ordinal in range(1, draw(st.integers(1, 3)) + 1):
        start, sizes = draw(st.integers(0, 20)), draw(st.lists(st.integers(1, 5), max_size=4))
        messages, at = [], 0
        for size in sizes:
            places = draw(st.lists(st.sampled_from(PLACES), min_size=1, unique=True))
            steps = range(start + at, start + at + size)
            messages.append(probed.change(steps, at, places=places, seed=ordinal))
            at += size
        again = draw(st.lists(st.sampled_from(messages), max_size=3)) if messages else []
        found.append((ordinal, range(start, start + at), messages, again))
    return found


def message(change, ordinal):
    step = int(change.steps[-1])
    sealed = encode_function_change(change, tag=TAG_FUNCTION, step=step, lineage=ordinal)
    return StoredMessage(step, 0.0, sealed)


def replayed(written):
    """By step and place what stands: each lineage forgets what came from its first step on."""
    cells = {}
    for _, steps, messages, _ in written:
        if len(steps):
            cells = {key: value for key, value in cells.items() if key[0] < steps.start}
        for change in messages:
            for record, step in enumerate(change.steps.tolist()):
                for place, one in enumerate(change.places):
                    cells[step, one.name] = change.values[:, record, place]
    return cells


@given(lineages())
def test_a_series_is_what_was_written_last(written):
    readings = {
        (f"r{ordinal}", TAG_FUNCTION): [message(one, ordinal) for one in (*messages, *again)]
        for ordinal, _, messages, again in written
    }
    found = make_function([lineage(ordinal, steps) for ordinal, steps, _, _ in written], readings)
    right = replayed(written)
    assert found.steps.tolist() == sorted({step for step, _ in right})
    assert {one.name for one in found.places} == {name for _, name in right}
    assert len(found.places) == len({one.name for one in found.places})
    for at, step in enumerate(found.steps.tolist()):
        for place, one in enumerate(found.places):
            expected = right.get((step, one.name), np.full(4, np.nan, np.float32))
            np.testing.assert_array_equal(found.values[:, place, at], expected)
    assert not found.notes
