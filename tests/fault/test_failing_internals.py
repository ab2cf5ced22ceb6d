"""Any exception at any internal call: training goes on as if nobody observed it."""

from __future__ import annotations

import logging
import random
import shutil

import numpy as np
import pytest

from tb_pastnet.core.quantize import NAN
from tb_pastnet.core.statistics import KEPT, MOVED, NORM, TRAINABLE
from tests.fault.injected import Injector, Point
from tests.fault.observed import STEPS, eagerly, train
from tests.recorded import read_one

pytestmark = [
    pytest.mark.promise("failing_internals"),
    pytest.mark.filterwarnings("ignore:Even though the `tf.config:UserWarning"),  # of tf.data
]

SETTINGS = ({"every": 1}, {"every": 2, "past": 3}, {"every": 3, "past": "epoch"})
A_RUN = STEPS // 2


@pytest.fixture(scope="module")
def unobserved():
    with eagerly():
        yield train(None)


def points_of(logdir, settings):
    """Both ends of every call that the training thread makes in us."""
    counter = Injector()
    train(logdir, injector=counter, **settings)
    return [Point(name, event) for name in sorted(counter.counts) for event in ("call", "return")]


def number_of(log, step):
    """The record of a step, None where there is none."""
    return next((key for key, own in log.steps.items() if own == step), None)


def check(logdir, folder, trained, caplog):
    """What is in the log is right, and what isn't is counted."""
    log, expected, each = (read_one(name) for name in (logdir, folder / "whole", folder / "each"))
    last = log.last
    assert last.closed
    assert len(log.record_steps()) + last.thinned + last.dropped == last.offered
    # Nobody can count a record that nobody knew to be due.
    assert expected.last.offered - last.offered <= len(trained.raised)
    for key, step in log.steps.items():
        # A record that failed before it was known to be due is made at the step after it.
        other = number_of(expected, step)
        same_past = other is not None and log.past_steps[key] == expected.past_steps[other]
        for variable, codes in log.codes.items():
            known = expected.codes[variable][other] if same_past else None
            good = each.codes[variable][number_of(each, step)] if known is None else known
            rows = slice(None) if same_past else [NORM, KEPT, TRAINABLE, MOVED]
            if key == min(log.steps):
                # What has moved since the record before is unknown if that is none.
                good = good.copy()
                good[MOVED, codes[key][MOVED] == NAN] = NAN
            np.testing.assert_array_equal(codes[key][rows], good[rows], f"{variable} at {step}")
    final = {
        (entry.variable, entry.mask): entry.through for _, entry in sorted(log.changes.items())
    }
    assert final == {
        (entry.variable, entry.mask): entry.through for _, entry in sorted(expected.changes.items())
    }
    assert sum(last.notes.values()) >= len(trained.raised) - trained.silent
    own = [record for record in caplog.records if record.name == "tb_pastnet"]
    said = [record.getMessage() for record in own if record.module != "alerts"]
    assert len(said) == len(set(said))
    assert {text.split(". Training")[0] for text in said} == set(last.notes)


def fail_at(tmp_path, caplog, unobserved, points, settings):
    """How many of the points failed."""
    raised = 0
    for first in range(0, len(points), A_RUN):
        logdir = tmp_path / str(first)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "tb_pastnet"):
            trained = train(logdir, points[first : first + A_RUN], **settings)
        assert trained.losses == unobserved.losses
        assert trained.weights == unobserved.weights
        check(logdir, tmp_path, trained, caplog)
        raised += len(trained.raised)
    return raised


def test_some_calls_fail(tmp_path, caplog, unobserved):
    points = points_of(tmp_path / "whole", SETTINGS[0])
    shutil.copytree(tmp_path / "whole", tmp_path / "each")
    some = random.Random(5).sample(points, A_RUN)
    assert fail_at(tmp_path, caplog, unobserved, some, SETTINGS[0]) > A_RUN / 2


@pytest.mark.prove
@pytest.mark.parametrize("settings", SETTINGS, ids=["previous", "k", "epoch"])
def test_every_call_fails(tmp_path, caplog, unobserved, settings, figure):
    points = points_of(tmp_path / "whole", settings)
    train(tmp_path / "each", every=1)
    random.Random(3).shuffle(points)
    raised = fail_at(tmp_path, caplog, unobserved, points, settings)
    # What is called once in a training, as where a violation begins, is past when it is aimed at;
    # with a record each third step some aim at steps without one.
    assert raised > len(points) / 2
    figure(
        f"{raised:,} of {len(points):,} ends of internal calls failed: 0 losses or weights differ"
    )
