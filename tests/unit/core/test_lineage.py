"""One answer after any restart."""

import numpy as np
import pytest

from tb_pastnet.core.lineage import first_steps_after, run_number, supersede, writers_of


def kept(*lineages, starts=None):
    entries = [np.asarray(steps) for steps in lineages]
    marks = supersede(entries, starts or [None] * len(entries))
    return [steps[mark].tolist() for steps, mark in zip(entries, marks, strict=True)]


def test_a_restart_replaces_what_came_at_and_after_its_first_step():
    assert kept([0, 10, 20, 30], [20, 30, 40]) == [[0, 10], [20, 30, 40]]


def test_a_second_restart_from_further_back_replaces_both():
    assert kept([0, 1, 2, 3], [2, 3], [1]) == [[0], [], [1]]


def test_a_lineage_without_records_replaces_nothing():
    assert kept([0, 1], np.zeros(0, np.int64)) == [[0, 1], []]


def test_a_start_known_from_elsewhere_counts():
    assert kept([0, 1, 2], [2], starts=[None, 1]) == [[0], [2]]
    assert kept([0, 1, 2], [1], starts=[None, 9]) == [[0], [1]]


def test_nothing_to_order():
    assert supersede([], []) == []
    assert first_steps_after([]) == []


@pytest.mark.parametrize(
    ("spans", "writers"),
    [
        ([], []),
        ([(0, 9)], [0]),
        ([(0, 9), (9, 20), (30, 40)], [0, 0, 0]),
        # Of one order the later may have begun before.
        ([(30, 40), (0, 9)], [0, 0]),
        ([(0, 9), (5, 20)], [0, 1]),
        ([(0, 90), (5, 7)], [0, 1]),
        ([(5, 7), (0, 90)], [0, 1]),
        ([(0, 9), (5, 20), (8, 30)], [0, 1, 2]),
        # One that began again, and one that either may have been: the newest.
        ([(0, 9), (5, 20), (10, 15)], [0, 1, 0]),
        ([(0, 9), (5, 20), (30, 40)], [0, 1, 1]),
        # One record is a moment.
        ([(0, 9), (5, 5)], [0, 0]),
        # No records, no time.
        ([None, (0, 9), None, (5, 20), None], [0, 0, 0, 1, 1]),
        # The clocks of two machines.
        ([(0, 9), (8.95, 20)], [0, 0]),
        ([(0, 9), (8.85, 20)], [0, 1]),
    ],
)
def test_who_records_while_another_does_has_not_restarted_it(spans, writers):
    assert writers_of(spans) == writers


@pytest.mark.parametrize(
    ("origins", "resumes", "expected"),
    [
        ([], False, 0),
        ([], True, 0),
        (["a"], False, 0),
        (["b"], False, 1),
        (["b"], True, 0),
        (["b", "c"], True, 1),
        (["a", "b"], True, 0),
        # Its own goes before one that has recorded nothing.
        (["a", None], False, 0),
        (["b", None], False, 1),
        (["a", "a"], False, 1),
    ],
)
def test_a_training_goes_on_in_the_run_of_its_origin(origins, resumes, expected):
    assert run_number("a", origins, resumes=resumes) == expected
