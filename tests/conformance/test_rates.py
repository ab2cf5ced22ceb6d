"""The learning rate of a record: that of the update which made its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conformance.story import small


def falling(step: int) -> float:
    return 0.5 / step


def rising(step: int) -> float:
    return 0.001 * step


def test_a_schedule_is_read_at_the_update(begin: Any) -> None:
    room = begin(small(), rates={"d7": falling})
    room.train(6)
    expected = [falling(step) for step in range(1, 7)]
    np.testing.assert_allclose(room.run().learning_rates, expected, rtol=1e-6)


def test_the_latest_of_several_updates_counts(begin: Any) -> None:
    room = begin(small(), rates={"d7": falling})
    for step in range(1, 5):
        for _ in range(3):
            room.update()
        room.record(step)
    expected = [falling(3 * step) for step in range(1, 5)]
    np.testing.assert_allclose(room.run().learning_rates, expected, rtol=1e-6)


@pytest.mark.parametrize("several", [False, True], ids=["groups", "optimizers"])
def test_a_weight_has_the_rate_of_its_group(begin: Any, several: bool) -> None:
    settings = {"optimizers": True} if several else {}
    room = begin(small(), rates={"d7": falling, "d9": rising}, **settings)
    for step in range(1, 5):
        room.update()
        room.update()
        room.record(step)
    run = room.run()
    highest = [max(falling(2 * step), rising(2 * step)) for step in range(1, 5)]
    np.testing.assert_allclose(run.learning_rates, highest, rtol=1e-6)
    for layer, rate in {"d7": falling, "d9": rising}.items():
        for name in run.layers[layer].variables:
            rates = run.variables[name].learning_rates
            np.testing.assert_allclose(rates, [rate(2 * step) for step in range(1, 5)], rtol=1e-6)


def test_without_a_rate_none_is_recorded(begin: Any) -> None:
    room = begin(small())
    room.put(small())
    room.record(1)
    assert np.isnan(room.run().learning_rates).all()
