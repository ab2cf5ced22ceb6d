"""Runs that are thinned, of any steps: which records are stored, and that their numbers are true."""

from __future__ import annotations

import tempfile
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tb_pastnet as pastnet
from tb_pastnet.core import thinning

FIRST = 3
"""Due records that are all stored here."""


def stored(number: int) -> bool:
    """All of the first three, every second of the next six, every fourth of the next twelve, …"""
    begin, stride = 0, 1
    while number >= begin + FIRST * stride:
        begin, stride = begin + FIRST * stride, 2 * stride
    return number % stride == 0


runs = st.fixed_dictionaries(
    {
        "every": st.integers(1, 4),
        "past": st.sampled_from(["previous", "record", "initial", 1, 2, 3]),
        "strides": st.lists(st.sampled_from([1, 1, 1, 1, 2, 3, 7]), min_size=1, max_size=120),
        "moves": st.sampled_from([1.0, 0.5, 0.1]),
        "masks": st.sets(st.integers(0, 119), max_size=4),
        "log": st.booleans(),
        "seed": st.integers(0, 2**32 - 1),
    }
)


@settings(max_examples=150)
@given(runs)
def test_what_is_stored_is_true(drawn):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thinning, "CAPACITY", FIRST)
        train(drawn)


def train(drawn):
    every, past, rng = drawn["every"], drawn["past"], np.random.default_rng(drawn["seed"])
    weight = rng.normal(size=(3, 5)).astype("f4")
    at, told, changed = {0: weight.copy()}, [], set()
    options = {"every": every, "past": past, "initial_step": 0}
    if drawn["log"]:
        options["log"] = lambda numbers, step: told.append(step)
    with tempfile.TemporaryDirectory() as logdir:
        recorder = pastnet.numpy.Recorder(logdir, {"w": lambda: weight}, **options)
        due, last, free, fresh = [], 0, np.ones((3, 5), bool), False
        for call, step in enumerate(accumulate(drawn["strides"])):
            if call in drawn["masks"]:
                free, fresh = np.ones((3, 5), bool), True
                free[:, call % 5] = False
                recorder.declare(trainable={"w": free})
            if step // every > last // every or (last == 0 and past not in (2, 3)):
                due.append(step)
                if fresh:
                    changed.add(step)
                    fresh = False
            if rng.random() < drawn["moves"]:
                weight += free * rng.normal(size=(3, 5)).astype("f4")
            at[step] = weight.copy()
            recorder.record(step)
            last = step
        recorder.close()
        if not due:
            return
        (run,) = pastnet.read(logdir).runs.values()
        check(run, at, due, changed, last)
    if drawn["log"]:
        assert [*dict.fromkeys(told)][: len(due)] == due


def check(run, at, due, changed, last):
    account, w = run.account, run.variables.get("w")
    assert account.offered == account.shown + account.thinned
    steps = run.steps.tolist()
    by_rule = [step for number, step in enumerate(due) if stored(number)]
    assert {*by_rule} <= {*steps} <= {*due, last}
    for number, step in enumerate(due):
        assert (step in steps) == (stored(number) or step == last or step in changed) or (
            step == due[-1]
        )
    for row, step in enumerate(steps):
        before = at[int(w.past_steps[row])].astype("f8")
        true = np.linalg.norm(at[step].astype("f8") - before, axis=0)
        known = ~np.isnan(w.delta_norm[row])
        np.testing.assert_allclose(w.delta_norm[row][known], true[known], rtol=0.023)
        np.testing.assert_allclose(w.norm[row], np.linalg.norm(at[step], axis=0), rtol=0.023)
        if row:
            moved = (at[steps[row - 1]].view("i4") != at[step].view("i4")).any(axis=0)
            assert (w.moved[row][~np.isnan(w.moved[row])] == 1).tolist() == moved.tolist()
