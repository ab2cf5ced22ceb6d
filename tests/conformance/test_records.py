"""Which steps are recorded, and with what numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.quantize import PRECISION
from tb_pastnet.core.sketch import sketch
from tests.conformance.figures import bits_differ, compare
from tests.conformance.story import EVERY, STEPS, Story, moved, small

DUE = [1, *range(EVERY, STEPS, EVERY), STEPS]


def test_due_steps_the_first_and_the_last_are_recorded(story: Story) -> None:
    assert story.run.steps.tolist() == DUE


def test_a_call_without_a_step_counts_updates(begin: Any) -> None:
    room = begin(small(), rates={"d7": lambda step: 0.1}, start=None, every=2)
    at = [room.values()]
    for step in range(5):
        room.update()
        at.append(room.values())
        room.record(None)
        if step % 2:
            room.record(None)  # follows no update
    run = room.run()
    assert room.recorder.last_step == 5
    assert run.steps.tolist() == [1, 2, 4, 5]  # the last is that of the end
    for name, variable in run.variables.items():
        for row, step in enumerate([1, 2, 4]):
            compare(variable, row, at[step - 1][name], at[step][name])


def test_a_call_without_a_step_where_nothing_counts_is_noted(begin: Any) -> None:
    room = begin(small(), rates={"d7": lambda step: 0.1})
    for _ in range(3):
        room.update()
        room.record(None)
    room.record(1)
    run = room.run()
    assert (run.steps.tolist(), [*run.notes.values()]) == ([1], [3])
    assert "record(step" in next(iter(run.notes))


def test_what_was_recorded_is_said_once_at_the_end(begin: Any, capsys: Any) -> None:
    room = begin(small(), every=1)
    for step in (1, 2):
        room.put(moved(small(), step))
        room.record(step)
    assert repr(room.recorder).startswith(f"{type(room.recorder).__name__}('{room.logdir}'")
    assert "records=2, last_step=2" in repr(room.recorder)
    room.close()
    room.recorder.close()
    assert capsys.readouterr().err.count("PastNet: 2 records; nothing was ") == 1


def test_hyperparameters_are_in_the_log(begin: Any) -> None:
    config = {"lr": np.float32(0.5), "name": "a/b", "seed": 7, "warm": True, "end": None}
    room = begin(small(), config={**config, "most": np.inf})
    room.record(1)
    assert room.run().config == {**config, "lr": 0.5, "most": "inf"}


def test_each_statistic_is_that_of_numpy(story: Story) -> None:
    assert {*story.run.variables} == {*story.at[0]}
    for name, variable in story.run.variables.items():
        for row, step in enumerate(DUE):
            compare(variable, row, story.at[step - 1][name], story.at[step][name])


def test_a_channel_has_moved_if_a_bit_of_it_has(story: Story) -> None:
    for name, variable in story.run.variables.items():
        assert np.isnan(variable.moved[0]).all()  # there is no record before
        for row in range(1, len(DUE)):
            before, now = story.at[DUE[row - 1]][name], story.at[DUE[row]][name]
            assert variable.moved[row].tolist() == bits_differ(before, now).tolist()


def test_what_moves_between_records_and_comes_back_to_rest_has_moved(begin: Any) -> None:
    at = [small()]
    room = begin(at[0], every=4)
    for step in range(1, 17):
        at.append(moved(at[-1], step) if step in (6, 9, 15) else dict(at[-1]))
        room.put(at[-1])
        room.record(step)
    run = room.run()
    assert run.steps.tolist() == [1, 4, 8, 12, 16]
    for name, variable in run.variables.items():
        assert not variable.changed.any()  # in one step
        periods = (1, 4), (4, 8), (8, 12), (12, 16)
        differ = [bits_differ(at[old][name], at[new][name]) for old, new in periods]
        assert variable.moved[1:].tolist() == np.array(differ).tolist()
        assert variable.moved[1:].any(axis=1).tolist() == [False, True, True, True]


def test_a_zero_that_changes_its_sign_has_moved_and_not_changed(begin: Any) -> None:
    values = {"d65/kernel": np.zeros((3, 65), "f4")}
    room = begin(values)
    for step in (1, 2, 3):
        values["d65/kernel"][1, 64] = -0.0 if step > 1 else 0.0
        room.put(values)
        room.record(step)
    variable = room.run().variables["d65/kernel"]
    assert not variable.changed.any()
    assert variable.moved[1:].tolist() == [[0] * 64 + [1], [0] * 65]


def test_after_a_restart_nothing_is_known_to_have_moved(begin: Any) -> None:
    room = begin(small())
    for step in (1, 2, 3):
        room.record(step)
    room.restart(3)
    for step in (4, 5):
        room.record(step)
    run = room.run()
    assert run.steps.tolist() == [1, 2, 3, 4, 5]
    for variable in run.variables.values():
        assert np.isnan(variable.moved[[0, 3]]).all()
        assert not variable.moved[[1, 2, 4]].any()


def test_distances_are_those_of_the_weights(story: Story) -> None:
    run, right = story.run, []
    for layer in run.layers.values():
        at = [values[layer.variable] for values in story.at]
        if at[0].size <= 64:
            assert not len(layer.travel.steps)
            assert np.isnan(layer.distance(DUE[0], DUE[-1]).value)
            continue
        assert layer.travel.steps.tolist() == DUE
        for step, far, error in zip(*layer.travel, strict=True):
            right.append(abs(np.linalg.norm(at[step] - at[DUE[0]]) - far) <= error)
        distance = layer.distance(DUE[3], DUE[7])
        true = np.linalg.norm(at[DUE[7]] - at[DUE[3]])
        assert abs(distance.value - true) <= 2 * distance.error
    assert len(right) == len(DUE) * sum(values.size > 64 for values in story.at[0].values())
    assert np.mean(right) >= 0.9
    assert run.travel.steps.tolist() == DUE


def test_sketches_of_equal_arrays_are_equal(story: Story) -> None:
    found = story.run._reader.sketches()
    for row, step in enumerate(found.steps):
        for place, name in enumerate(found.variables):
            weights = story.at[step][name]
            apart = found.values[row, place] - sketch(weights)
            assert (
                np.linalg.norm(apart) <= 1e-6 * np.linalg.norm(weights) + found.grid[row, place] * 8
            )


def test_a_past_step_is_named(story: Story) -> None:
    past = [variable.past_steps.tolist() for variable in story.run.variables.values()]
    assert past == [[step - 1 for step in DUE]] * len(story.at[0])


def test_each_record_is_accounted_for(story: Story) -> None:
    account = story.run.account
    assert (account.offered, account.shown) == (len(DUE), len(DUE))
    for variable in story.run.variables.values():
        assert variable.account == account


def test_a_flush_that_succeeds_is_read_back(begin: Any) -> None:
    room = begin(small())
    for step in range(1, 20):
        room.put(moved(room.values(), step))
        room.record(step)
        if step in (1, 15, 16, 17):  # around a block
            assert room.recorder.flush(30)
            (run,) = pastnet.read(room.logdir).runs.values()
            assert run.steps.tolist() == [*range(1, step + 1)]


def test_nothing_is_noted_of_a_sound_training(story: Story) -> None:
    assert story.flushed
    assert story.notes == {}
    assert not story.run.notes
    assert story.run.violations == ()


def test_names_shapes_and_layers_are_those_of_the_weights(story: Story) -> None:
    for name, value in story.at[0].items():
        variable = story.run.variables[name]
        assert variable.layer == name.rpartition("/")[0]
        assert (variable.shape, variable.dtype) == (value.shape, "float32")
    assert {*story.run.layers["d9"].variables} == {"d9/kernel", "d9/bias"}


PASTS = {
    "previous": [0, 1, 3, 5],
    "record": [0, 1, 2, 4],
    "initial": [0, 0, 0, 0],
    "epoch": [0, 0, 3, 3],
    3: [0, 1, 3],
}


@pytest.mark.parametrize("past", PASTS)
def test_a_past_of_each_kind_is_compared_with(begin: Any, past: Any) -> None:
    at = [small()]
    room = begin(at[0], every=2, past=past)
    for step in range(1, 7):
        at.append(moved(at[-1], step))
        room.put(at[-1])
        room.record(step)
        if step == 3 and past == "epoch":
            room.sync()
    run = room.run()
    assert run.steps.tolist() == [1, 2, 4, 6][-len(PASTS[past]) :]
    for name, variable in run.variables.items():
        assert variable.past_steps.tolist() == PASTS[past]
        for row, step in enumerate(run.steps.tolist()):
            compare(variable, row, at[PASTS[past][row]][name], at[step][name])


ODD = {
    "NaN": [np.nan, 1, 2],
    "infinity": [np.inf, 1, -np.inf],
    "zero": [-0.0, 0.0, 1],
    "denormals": [1e-42, -1e-45, 1e-40],
    "largest": [3e38, -3e38, 1],
}


def test_odd_values_are_measured_as_they_are(begin: Any) -> None:
    cases = {f"{odd}{size}/kernel": (odd, size) for odd in ODD for size in (1, 8, 65)}
    values = {name: np.ones((3, size), "f4") for name, (_, size) in cases.items()}
    room = begin(values)
    for name, (odd, _) in cases.items():
        values[name][:, -1] = ODD[odd]
    for step in (1, 2):
        room.put(values)
        room.record(step)
    run = room.run()
    for name, (odd, _) in cases.items():
        is_odd(run.variables[name], odd)


def is_odd(variable: Any, odd: str) -> None:
    """The last channel of both records."""
    count = np.sum(~np.isfinite(np.asarray(ODD[odd], np.float32)))
    assert variable.nonfinite[:, -1] == pytest.approx([count, count], rel=0.05)
    assert not variable.nonfinite[:, :-1].any()
    np.testing.assert_allclose(variable.norm[:, :-1], np.sqrt(3), PRECISION)
    assert not variable.changed[1].any() or count  # a NaN differs from itself
    if not count:
        expected = np.linalg.norm(np.asarray(ODD[odd], np.float32).astype(np.float64))
        np.testing.assert_allclose(variable.norm[1, -1], expected, PRECISION, 1e-37)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_measured_as_it_is(begin: Any, dtype: str) -> None:
    of_dtype(begin, dtype)


def test_a_double_is_measured_as_it_is(begin: Any) -> None:
    of_dtype(begin, "float64")


def of_dtype(begin: Any, dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16, which NumPy lacks")
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype).type
    rng = np.random.default_rng(0)
    past = {f"d{size}/kernel": rng.normal(size=(3, size)).astype(kind) for size in (7, 64, 65)}
    now = {name: (value * kind(1.5)).astype(kind) for name, value in past.items()}
    room = begin(past)
    room.put(now)
    room.record(1)
    for name, variable in room.run().variables.items():
        assert variable.dtype == dtype
        compare(variable, 0, past[name], now[name])
