"""What is trained is as without a recorder, and nothing raises into it."""

from __future__ import annotations

import gc
import inspect
import random
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument, PastNetError, UnknownName, UnwritableLog
from tests.conformance.figures import compare
from tests.conformance.story import moved, small

RATES = {"d7": lambda step: 0.1 / step}


@pytest.mark.parametrize("past", ["previous", "record"])
def test_training_is_bit_identical(begin: Any, past: str) -> None:
    seen = [
        begin(small(), str(recorded), rates=RATES, recorded=recorded, every=3, past=past).train(10)
        for recorded in (False, True)
    ]
    for alone, recorded in zip(*seen, strict=True):
        assert {name: value.tobytes() for name, value in alone.items()} == {
            name: value.tobytes() for name, value in recorded.items()
        }


def test_records_are_of_the_updates_of_the_framework(begin: Any) -> None:
    room = begin(small(), rates=RATES)
    at = [small(), *room.train(6)]
    run = room.run()
    assert run.steps.tolist() == [1, 2, 3, 4, 5, 6]
    for name, variable in run.variables.items():
        for row in range(6):
            compare(variable, row, at[row][name], at[row + 1][name])


class Hostile:
    """Raises wherever it is looked at."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __int__(self) -> int:
        raise RuntimeError("no number")

    def __repr__(self) -> str:
        raise RuntimeError("no text")


GARBAGE: list[Any] = [None, "", "x", -1, 2**70, 1.5, float("nan"), float("inf"), b"\xff", 1j, ...]
GARBAGE += [[], {}, {"x": 1}, {"d7/kernel": 2}, np.zeros(2), object(), print, int, Hostile()]


@pytest.mark.parametrize("seed", range(2))
def test_no_call_raises_after_construction(begin: Any, seed: int) -> None:
    rng, room = random.Random(seed), begin(small())
    for name, _ in inspect.getmembers(type(room.recorder), inspect.isfunction):
        if name.startswith("_") or name in ("close", "follow"):
            continue
        for _ in range(12):
            given = [rng.choice(GARBAGE) for _ in range(rng.randrange(5))]
            words = rng.sample(["step", "timeout", "trainable", "nonsense"], rng.randrange(3))
            before = sum(room.recorder.notes.counts().values())
            call = getattr(room.recorder, name)
            call(*given, **{word: rng.choice(GARBAGE) for word in words})
            try:
                inspect.signature(call).bind(*given, **dict.fromkeys(words))
            except TypeError:
                assert sum(room.recorder.notes.counts().values()) > before
    assert any("Write " in text for text in room.recorder.notes.counts())
    made = room.recorder.records
    room.restart(0)
    for step in range(1, 6):
        room.put(moved(room.values(), step))
        room.record(step)
    assert room.recorder.records > made
    assert room.recorder.close(1, 2, 3) is None


def test_a_recorder_that_is_closed_does_nothing(begin: Any) -> None:
    room = begin(small())
    room.put(moved(small(), 1))
    room.record(1)
    room.recorder.close()
    assert room.recorder.flush()
    for step in (2, 3):
        room.put(moved(room.values(), step))
        room.record(step)
    room.sync()
    room.recorder.close()
    (run,) = pastnet.read(room.logdir).runs.values()
    assert run.steps.tolist() == [1]


def test_a_step_that_no_log_can_hold_is_counted(begin: Any) -> None:
    room = begin(small(), start=None)
    for step in (-1, 1, 2**53, 2**53 + 1):
        room.put(moved(room.values(), 1))
        room.record(step)
    assert any("2 ** 53" in text for text in room.recorder.notes.counts())
    assert room.run().steps.tolist() == [1, 2**53]


def test_a_closed_recorder_leaves_nothing_behind(begin: Any) -> None:
    room = begin(small(), rates=RATES)
    room.train(3)
    room.close()
    recorder = weakref.ref(room.recorder)
    room.recorder = room.callback = room.masks = None
    gc.collect()
    assert recorder() is None


def test_what_a_budget_leaves_out_is_accounted_for(begin: Any) -> None:
    room = begin(small(), budget=1e-9)
    for step in range(1, 40):
        room.put(moved(room.values(), step))
        room.record(step)
    account = room.run().account
    assert account.offered == account.shown + account.thinned
    assert account.thinned > 0


WRONG: dict[str, list[Any]] = {
    "every": [0, -1, 1.5, "x"],
    "past": ["last", 0, -3, 1000],
    "budget": [0, -1, "x"],
    "channel_axis": [{"d7/kernel": 5}],
}


@pytest.mark.parametrize(("argument", "value"), [(k, v) for k, each in WRONG.items() for v in each])
def test_a_value_that_cannot_be_used_is_refused(
    begin: Any, tmp_path: Path, argument: str, value: Any
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        begin(small(), **{argument: value})
    word = {"channel_axis": "axis"}.get(argument, f"{argument}=")
    assert word in str(refused.value)
    assert not (tmp_path / "run").exists()


UNKNOWN = {
    "variables": ["nowhere"],
    "channel_axis": {"nowhere": 0},
}


@pytest.mark.parametrize("argument", UNKNOWN)
def test_a_name_of_nothing_is_refused(begin: Any, argument: str) -> None:
    with pytest.raises(UnknownName) as refused:
        begin(small(), **{argument: UNKNOWN[argument]})
    assert "nowhere" in str(refused.value)


@pytest.mark.parametrize("word", ["trainable", "kept"])
def test_a_mask_of_nothing_is_refused(begin: Any, word: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        begin(small(), **{word: {"no/where": np.ones(2)}})
    # A pytree of masks is refused as a whole.
    assert isinstance(refused.value, UnknownName) or f"{word}=" in str(refused.value)


BAD_MASKS = [np.ones(2), np.full((3, 7), 2), np.full((3, 7), np.nan), 2, "x"]


@pytest.mark.parametrize("word", ["trainable", "kept"])
@pytest.mark.parametrize("mask", BAD_MASKS, ids=str)
def test_a_mask_of_another_form_is_refused(begin: Any, word: str, mask: Any) -> None:
    with pytest.raises(PastNetError) as refused:
        begin(small(), **{word: {"d7/kernel": mask}})
    assert isinstance(refused.value, ValueError)
    assert "d7/kernel" in str(refused.value)


def test_a_directory_that_cannot_be_written_is_refused(begin: Any) -> None:
    with pytest.raises(UnwritableLog) as refused:
        begin(small(), "/dev/null/log")
    assert "/dev/null/log" in str(refused.value)


def test_only_chosen_variables_are_recorded(begin: Any) -> None:
    room = begin(small(), variables=["*/kernel"])
    room.put(moved(small(), 1))
    room.record(1)
    assert {*room.run().variables} == {"d7/kernel", "d9/kernel"}


def test_an_axis_is_corrected_by_name(begin: Any) -> None:
    room = begin(small(), channel_axis={"d7/kernel": 0})
    after = moved(small(), 1)
    room.put(after)
    room.record(1)
    shown = room.run().variables["d7/kernel"].norm[0]
    np.testing.assert_allclose(shown, np.linalg.norm(after["d7/kernel"], axis=1), rtol=0.0225)


def test_a_log_can_be_read_while_it_is_written(begin: Any) -> None:
    room = begin(small())
    for step in (1, 2):
        room.put(moved(room.values(), step))
        room.record(step)
    assert room.recorder.flush(30)
    first = pastnet.read(room.logdir)
    room.put(moved(room.values(), 3))
    room.record(3)
    (run,) = first.runs.values()
    assert run.steps.tolist() == [1, 2]
    assert room.run().steps.tolist() == [1, 2, 3]
