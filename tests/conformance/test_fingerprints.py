"""Weights that are held whole, compared by fingerprints: no copy of their values is kept."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.conformance.figures import statistics
from tests.conformance.test_masks import KERNEL, columns, kernels, leak, masked, train

SIZES = (1, 7, 9, 64, 65, 129, 4097)


def flip(room: Any, name: str, channels: Any) -> None:
    """Changes the sign of one element in each of these channels."""
    now = room.values()
    now[name][1, channels] *= -1
    room.put({name: now[name]})


def test_fingerprints_show_which_channels_of_frozen_weights_moved(begin: Any) -> None:
    held = masked(*SIZES, make=lambda _: False)
    room = begin(kernels(*SIZES), trainable=held, audit="fingerprints")
    train(room, [1, 2], dict.fromkeys(held, 0))
    moved = {name: sorted({0, size // 2, size - 1}) for name, size in zip(held, SIZES, strict=True)}
    for name, channels in moved.items():
        flip(room, name, channels)
    train(room, [3, 4], dict.fromkeys(held, 0))
    run = room.run()
    found = {(each.variable, each.channel, each.first_step) for each in run.violations}
    assert found == {(name, channel, 3) for name, own in moved.items() for channel in own}
    assert {each.elements for each in run.violations} == {None}
    assert np.isnan([each.largest for each in run.violations]).all()
    assert run.verified.by == "64-bit fingerprint"
    assert run.verified.changed == len(found)


@pytest.mark.parametrize("past", ["previous", "record", "initial", 3])
@pytest.mark.parametrize("every", [1, 2])
def test_what_fingerprints_do_not_show_is_unknown(begin: Any, past: Any, every: int) -> None:
    """A delta is NumPy's, or unknown where a channel moved before it had a copy."""
    settings: Any = {"audit": "fingerprints", "past": past, "every": every}
    room = begin(kernels(9), trainable={KERNEL: False}, **settings)
    at, rng = [room.values()[KERNEL]], np.random.default_rng(7)
    for step in range(1, 25):
        if step % 5 == 0:
            leak(room, KERNEL, (rng.integers(3), rng.integers(9)), rng.normal())
        train(room, [step], {KERNEL: 0})
        at.append(room.values()[KERNEL])
    variable = room.run().variables[KERNEL]
    known = 0
    for row, (step, before) in enumerate(zip(variable.steps, variable.past_steps, strict=True)):
        expected = statistics(at[before], at[step])
        for name, own in expected.items():
            shown, rest = getattr(variable, name)[row], expected["changed"] == 0
            np.testing.assert_allclose(shown[rest], own[rest], rtol=0.045, err_msg=name)
            told = ~np.isnan(shown)
            np.testing.assert_allclose(shown[told], own[told], rtol=0.045, err_msg=name)
            known += (told & ~rest).sum()
        moved = ~np.isnan(variable.moved[row])
        assert moved.all() or row == 0
    assert known or past == "initial"


def test_a_weight_that_trains_again_gets_past_values(begin: Any) -> None:
    room = begin(kernels(9), trainable={KERNEL: False}, audit="fingerprints")
    at = [room.values()[KERNEL]]
    for step in range(1, 10):
        if step == 4:
            room.declare({KERNEL: True}, {})
        train(room, [step], {KERNEL: float(step >= 4)})
        at.append(room.values()[KERNEL])
    run = room.run()
    delta = run.variables[KERNEL].delta_norm
    moved = [np.linalg.norm(now - before, axis=0) for before, now in pairwise(at)]
    np.testing.assert_allclose(delta[:3], 0)
    # One record may have no delta: its past was still a fingerprint.
    assert np.isnan(delta[3]).all() or np.allclose(delta[3], moved[3], rtol=0.03)
    np.testing.assert_allclose(delta[4:], moved[4:], rtol=0.03)
    assert run.violations == ()


def test_a_few_channels_train_where_the_rest_is_held(begin: Any) -> None:
    free = columns(65, lambda at: (at == 3) | (at == 64))
    room = begin(kernels(65), trainable={"d65/kernel": free}, audit="fingerprints")
    at = [room.values()["d65/kernel"]]
    for step in range(1, 9):
        if step == 5:
            flip(room, "d65/kernel", [0, 33])
        train(room, [step], {"d65/kernel": free})
        at.append(room.values()["d65/kernel"])
    run = room.run()
    shown = run.variables["d65/kernel"].delta_norm
    moved = np.array([np.linalg.norm(now - before, axis=0) for before, now in pairwise(at)])
    unknown = np.isnan(shown)
    assert np.argwhere(unknown).tolist() == [[4, 0], [4, 33]]
    np.testing.assert_allclose(shown[~unknown], moved[~unknown], rtol=0.03)
    assert {(each.channel, each.first_step) for each in run.violations} == {(0, 5), (33, 5)}
    assert run.verified.values == 63 * 3
    assert run.verified.by == "64-bit fingerprint"


def test_masks_of_a_part_are_compared_by_value(begin: Any) -> None:
    room = begin(kernels(9), trainable={KERNEL: False}, audit="fingerprints")
    train(room, [1, 2], {KERNEL: 0})
    free = np.ones((3, 9), bool)
    free[0] = False
    room.declare({KERNEL: free}, {})
    train(room, [3, 4], {KERNEL: free})
    leak(room, KERNEL, (0, 5), 9.0)
    train(room, [5], {KERNEL: free})
    (violation,) = room.run().violations
    assert (violation.channel, violation.elements, violation.first_step) == (5, 1, 5)
