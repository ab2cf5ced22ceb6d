"""Flags along a run, against what was planted at each record."""

from __future__ import annotations

import numpy as np

from tb_pastnet.core.lane_flags import Flag, LayerCounts, flags


def counts(**given: object) -> LayerCounts:
    """Counts of two layers at six records, 0 where nothing else is said."""
    none = np.zeros((2, 6))
    return LayerCounts(*(np.array(given.get(name, none), float) for name in LayerCounts._fields))


STEPS = np.array([1, 10, 20, 30, 40, 50])


def test_freezing_one_layer_and_releasing_another_are_two_flags() -> None:
    frozen = [[4, 4, 0, 0, 0, 0], [0, 0, 3, 3, 3, 3]]
    assert flags(STEPS, counts(frozen=frozen)) == [
        Flag("freeze", 1, 1, 1, 4),
        Flag("freeze", 20, 20, 1, 3),
        Flag("unfreeze", 20, 20, 1, 4),
    ]


def test_a_schedule_that_prunes_at_each_record_has_one_flag() -> None:
    weights = [[0, 5, 9, 12, 12, 20], [0, 1, 1, 1, np.nan, np.nan]]
    assert flags(STEPS, counts(weights=weights)) == [
        Flag("prune", 10, 30, 3, 13),
        Flag("prune", 50, 50, 1, 8),
    ]


def test_a_frozen_channel_that_is_pruned_or_gets_nan_is_not_released() -> None:
    frozen = [[3, 3, 2, 1, 1, 1]] * 2
    pruned, nonfinite = [[0, 0, 1, 1, 1, 1]] * 2, [[0, 0, 0, 1, 1, 1]] * 2
    found = flags(STEPS, counts(frozen=frozen, pruned=pruned, nonfinite=nonfinite))
    assert [flag.kind for flag in found] == ["freeze", "nonfinite"]


def test_violations_and_resuming_are_flagged_where_they_begin() -> None:
    violated = [[0, 0, 0, 2, 2, 0]] * 2
    assert flags(STEPS, counts(violated=violated), [25]) == [
        Flag("resume", 25, 25, 1, 0),
        Flag("violation", 30, 30, 1, 4),
    ]
