"""The past that a record names is the one that it was compared with, however `record` is called."""

from __future__ import annotations

import logging
from itertools import product

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.quantize import PRECISION
from tests.rooms import LOOPS, ROOMS
from tests.sampled import sampled

pytestmark = pytest.mark.promise("past")

EVERY, STEPS = 5, 36
BACK = "back"
"""In a way of calling: weights and steps go back to that of a number."""

WAYS = {
    "each step": range(1, STEPS),
    "due steps": range(EVERY, STEPS, EVERY),
    "every second": range(2, STEPS, 2),
    "with gaps": [*range(1, 8), 12, 13, 14, 19, 20, 27, 28, 29, 30, 35],
    "from 0": range(STEPS - 1),
    "due steps from 0": range(0, STEPS, EVERY),
    "going back": [*range(1, 18), (BACK, 11), *range(12, 31)],
    "going back at due steps": [5, 10, 15, 20, (BACK, 10), 15, 20, 25],
    "seldom": [10, 20, 30],
    "multiplied": [1000 * epoch for epoch in range(1, 6)],
    "late": [*range(17, STEPS)],
}
AT_STEPS = ("each step", "due steps", "from 0", "due steps from 0", "going back", "seldom")
EPOCH = 7
"""Steps of an epoch, after which a way of "multiplied" numbers calls `record`."""


def first_of(way):
    """The step of the values before training."""
    return -1 if "from 0" in way else WAYS[way][0] - 1 if way == "late" else 0


def train(room, way):
    """Trains and calls; returns the values by step, as of each call."""
    number = first_of(way)
    at, told = {number: room.values()}, {}
    seen = at  # at the start and at calls
    for call in WAYS[way]:
        if isinstance(call, tuple):
            number = call[1]
            told = {step: states for step, states in told.items() if step <= number}
            room.put(at[number])
            room.restart(number) if number % 2 else None
            if number % 2 == 0:
                room.record(number)
            continue
        for _ in range(EPOCH if way == "multiplied" else call - number):
            room.step()
            number += 1
            at[number] = room.values()
            if number != call:
                end_epoch(room, number)
        if way == "multiplied":
            at, number = {**seen, call: room.values()}, 0
            seen = at
        room.record(call)
        told[call] = dict(at)
        end_epoch(room, number)
    room.close()
    return told


def end_epoch(room, number):
    """After the record of its last step, if there is one."""
    if number % EPOCH == 0 and room.settings["past"] == "epoch":
        room.sync()


def norms(values, axis):
    rows = np.moveaxis(values.astype(np.float64), axis, 0)
    return np.linalg.norm(rows.reshape(len(rows), -1), axis=1)


def check(run, told, way):
    """Compares each record with NumPy; returns by step how far back its past is, NaN for none."""
    lags = {}
    for name, variable in run.variables.items():
        axis = 1 if name == "d/kernel" else 0
        shown = zip(variable.steps.tolist(), variable.past_steps.tolist(), strict=True)
        for row, (step, past) in enumerate(shown):
            at = told[step]
            now = at[step][name]
            np.testing.assert_allclose(variable.norm[row], norms(now, axis), PRECISION)
            if np.isnan(variable.delta_norm[row]).all():
                of_past = variable.past_norm, variable.delta_max, variable.changed
                assert past == step
                assert all(np.isnan(each[row]).all() for each in of_past)
                assert set(run.layers[variable.layer].states()[row]) == {"no data"}
                lags[step] = np.nan
                continue
            lags[step] = step - past
            then = at[past]
            before, delta = norms(then[name], axis), norms(now - then[name], axis)
            np.testing.assert_allclose(variable.past_norm[row], before, PRECISION)
            np.testing.assert_allclose(variable.delta_norm[row], delta, PRECISION, 1e-7)
            changed = (now != then[name]).mean(axis=tuple(set(range(now.ndim)) - {axis}))
            np.testing.assert_allclose(variable.changed[row], changed, PRECISION)
    return lags


def recorded(tmp_path, caplog, room, way, channels=7, **settings):
    if room == "v1":
        settings["initial_step"] = max(first_of(way), 0)
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        trained = ROOMS[room](tmp_path / "a", channels, every=EVERY, **settings)
        told = train(trained, way)
    if not trained.recorder.records:  # none fitted into the budget
        assert "budget" in settings
        return {}
    run = pastnet.read(str(tmp_path))["a"]
    lags = check(run, told, way)
    # Of the end: its past is the newest copy, if there is one. A budget leaves out due steps.
    if len(lags) > 1 and (max(lags) % EVERY or "budget" in settings):
        lags.pop(max(lags))
    unknown = [text for text in run.notes if text.startswith("Made a record without deltas")]
    lines = [line for line in caplog.messages if line.startswith("Made a record without deltas")]
    without = np.isnan(list(lags.values())).sum()
    assert bool(without) <= bool(unknown)
    assert len(lines) == len(unknown) <= 1
    assert not [text for text in run.notes if text.startswith("Could not")]
    return lags


@pytest.mark.parametrize(("room", "way"), sampled(product(ROOMS, WAYS), 3))
def test_previous_is_named_truly(tmp_path, caplog, room, way):
    lags = recorded(tmp_path, caplog, room, way, past="previous")
    assert lags
    if way in ("each step", "from 0") and room in LOOPS:
        assert set(lags.values()) == {1}
    if room in LOOPS and way in ("due steps", "seldom"):
        assert np.isnan(list(lags.values())).all()
    if room in ("torch", "torch, two optimizers", "torch, LBFGS") and way in AT_STEPS:
        assert set(lags.values()) == {1}


@pytest.mark.parametrize(
    ("room", "way", "past", "settings"),
    sampled(
        product(
            ("numpy", "torch", "torch, two optimizers", "torch, skipped"),
            WAYS,
            ("record", 1, 3, EVERY, "epoch", "initial"),
            ({}, {"initial_step": 0}, {"budget": 0.5}),
        ),
        37,
    ),
)
def test_every_past_is_named_truly(tmp_path, caplog, room, way, past, settings):
    if first_of(way):
        settings = {key: value for key, value in settings.items() if key != "initial_step"}
    lags = recorded(tmp_path, caplog, room, way, past=past, **settings)
    if past == "record" and "budget" not in settings and way != "multiplied":
        # At most the first has none.
        assert not np.isnan(list(lags.values())[1:]).any()


@pytest.mark.parametrize("channels", [1, 8, 63, 64, 65, 129, 4097])
@pytest.mark.parametrize("room", ["numpy", "torch"])
def test_all_channels_of_a_record_without_a_past_have_no_data(tmp_path, caplog, room, channels):
    lags = recorded(tmp_path, caplog, room, "late", channels, past="previous")
    assert np.isnan(lags[17])
    assert lags[20] == 1
