from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.core import channel_states
from tb_pastnet.core.quantize import ZERO, quantize, quantize_shares
from tb_pastnet.core.statistics import CHANGED, DELTA_MAX, DELTA_NORM
from tb_pastnet.reader.state_series import find_marks, make_state_series, pruned_weights
from tests import event_files as files
from tests.unit.reader.test_state_series import series

STEPS = np.arange(1, 11)


def leaking() -> np.ndarray:
    """Four channels, held from the third record on; the second moves at two of them."""
    codes = files.codes(STEPS, 4)
    files.freeze(codes, slice(2, None), slice(None))
    for record, share, size in ((5, 0.25, 0.5), (7, 0.5, 0.125)):
        codes[[DELTA_NORM, DELTA_MAX], record, 1] = quantize(size)
        codes[CHANGED, record, 1] = quantize_shares(share)
    return codes


def test_a_marked_channel_is_told_by_its_first_and_last_record_and_the_most_that_moved() -> None:
    codes = leaking()
    found = make_state_series(series(codes), files.variable("c/kernel", 4)).marks
    assert found.channels.tolist() == [1]
    assert (found.first_steps.tolist(), found.last_steps.tolist()) == ([6], [8])
    assert (found.changed.tolist(), found.largest.tolist()) == ([0.5], [0.5])


def test_without_marks_and_without_records_there_is_nothing() -> None:
    codes = files.codes(STEPS, 4)
    for some in (codes, codes[:, :0], codes[:, :, :0]):
        found = find_marks(np.full(some.shape[1:], channel_states.FROZEN, np.uint8), series(some))
        assert found.size == 0


def test_marks_are_found_in_every_slab_of_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_pastnet.reader.state_series._SLAB", 1)
    found = make_state_series(series(leaking()), files.variable("c/kernel", 4)).marks
    assert found.channels.tolist() == [1]
    assert found.largest.dtype == np.float64


def test_whole_channels_are_counted_exactly() -> None:
    codes = files.codes(STEPS, 4)
    files.prune(codes, slice(3, None), slice(0, 3))
    pruned, partial = pruned_weights(codes, 1_000_003)
    assert pruned.tolist() == [0] * 3 + [3 * 1_000_003] * 7
    assert not partial.any()


def test_parts_of_small_channels_are_exact_and_of_large_ones_within_the_precision() -> None:
    rng = np.random.default_rng(4)
    for elements in (1, 2, 9, 5000):
        kept = rng.random((elements, 50)) < rng.random(50)
        codes = files.hold(files.codes(STEPS, 50), slice(5, None), kept)
        pruned, partial = pruned_weights(codes, elements)
        right = np.count_nonzero(~kept)
        part = np.count_nonzero((kept.any(axis=0)) & (~kept).any(axis=0)) * elements
        assert (partial[:5] == 0).all()
        assert (partial[5:] == part).all()
        assert np.abs(pruned[5:] - right).max() <= (0 if elements <= 9 else 0.045 * part)


def test_a_channel_that_is_kept_in_part_is_never_all_or_nothing() -> None:
    codes = files.codes([1], 2)
    codes[6, 0] = quantize_shares([1e-9, 1 - 1e-9])
    pruned, partial = pruned_weights(codes, 10)
    assert (pruned.tolist(), partial.tolist()) == ([9 + 1], [20])
    codes[6, 0] = [ZERO, 0]
    assert pruned_weights(codes, 10)[0].tolist() == [10]
