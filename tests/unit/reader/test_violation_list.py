"""The list of violations and their marks on the picture."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tb_pastnet.core import channel_states
from tb_pastnet.core import violation as core
from tb_pastnet.core.quantize import quantize, quantize_shares
from tb_pastnet.core.statistics import CHANGED, DELTA_MAX
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.state_series import StateSeries
from tb_pastnet.reader.store import Store
from tb_pastnet.reader.violation_list import Violation, join_violations, mark, violations_of
from tests import event_files as files
from tests.providers import CALLER, MemoryProvider, memory_run

W = files.variable("conv1/kernel", 4)
FIRST = core.Violation(W.id, 1, 6, 8, 2, 9, 0.25, "momentum")


def leaking(channels: tuple[int, ...] = (2,)) -> np.ndarray:
    """Four frozen channels, some of which move at the records 4 to 6."""
    codes = files.freeze(files.codes(range(1, 11), 4), slice(1, None), slice(None))
    for channel in channels:
        codes[DELTA_MAX, 4:7, channel] = quantize([0.5, 2.0, 1.0])
        codes[CHANGED, 4:7, channel] = quantize_shares([1 / 9, 1 / 9, 1 / 3])
    return codes


def run_of(codes: np.ndarray) -> tuple[CatalogRun, StateSeries]:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(0))
    writer.records(range(1, 11), {W.id: codes})
    store = Store(provider)
    run = store.catalog(CALLER).runs["a"]
    return run, store.reader(CALLER, run).state_series(W.id)


def test_a_mark_stands_from_the_first_to_the_last_step() -> None:
    told = np.full((5, 3), channel_states.FROZEN, np.uint8)
    steps = np.array([2, 6, 7, 8, 20])
    found = mark(told, steps, [FIRST, replace(FIRST, channel=2, first_step=20, last_step=90)])
    assert found is told
    assert ((told & channel_states.VIOLATED) != 0).T.tolist() == [
        [False] * 5,
        [False, True, True, True, False],
        [False] * 4 + [True],
    ]
    assert (told & channel_states.STATE == channel_states.FROZEN).all()


def test_a_violation_between_two_records_marks_none() -> None:
    told = mark(np.zeros((2, 2), np.uint8), np.array([5, 9]), [FIRST])
    assert not told.any()


def test_what_only_the_records_know_is_listed_from_them() -> None:
    _, moves = run_of(leaking())
    assert violations_of(W, "conv1", [], moves.marks) == (
        1,
        [
            Violation(
                layer="conv1",
                variable="conv1/kernel",
                channel=2,
                first_step=5,
                last_step=7,
                elements=3,
                held=9,
                largest=2.0,
                cause="unknown",
                text="conv1/kernel, channel 2: held weights moved from step 5 to 7, by at most "
                "2 in one record. Likely cause: unknown.",
            )
        ],
    )


def test_a_single_record_is_told_by_its_step() -> None:
    codes = leaking()
    codes[CHANGED, 5:7] = channel_states.ZERO
    _, (found,) = violations_of(W, "conv1", [], run_of(codes)[1].marks)
    assert "moved at step 5, by at most 0.5 in one record" in found.text
    assert found.elements == 1


def test_a_channel_that_the_audit_knows_isnt_listed_from_its_records() -> None:
    _, moves = run_of(leaking((1, 2)))
    total, found = violations_of(W, "conv1", [FIRST], moves.marks)
    assert total == 2
    assert [(one.channel, one.cause) for one in found] == [(1, "momentum"), (2, "unknown")]
    assert found[0] == Violation("conv1", *vars(FIRST).values(), FIRST.text)


def test_channels_of_a_part_have_their_own_numbers() -> None:
    _, moves = run_of(leaking())
    _, (found,) = violations_of(W, "conv1", [], moves.marks, 100)
    assert found.channel == 102
    assert ", channel 102:" in found.text


def test_the_order_is_by_first_step_then_layer_then_channel() -> None:
    run, moves = run_of(files.codes(range(1, 11), 4))
    audited = {
        "block/conv2/kernel": [replace(FIRST, variable="block/conv2/kernel", channel=0)],
        "conv1/bias": [replace(FIRST, variable="conv1/bias", first_step=1)],
        W.id: [replace(FIRST, channel=3), FIRST, replace(FIRST, largest=math.inf, first_step=7)],
    }
    total, found = join_violations(
        run, audited, [(one, moves.marks) for one in sorted(run.variables)]
    )
    assert total == 5
    assert [(one.first_step, one.variable, one.channel) for one in found] == [
        (1, "conv1/bias", 1),
        (6, "conv1/kernel", 1),
        (6, "conv1/kernel", 3),
        (6, "block/conv2/kernel", 0),
        (7, "conv1/kernel", 1),
    ]


def test_all_are_counted_and_the_first_are_listed() -> None:
    run, moves = run_of(leaking((0, 1, 2, 3)))
    later = [replace(FIRST, variable="conv1/bias", channel=channel) for channel in range(4)]
    bias = run_of(files.codes(range(1, 11), 4))[1]
    marks = [(W.id, moves.marks), ("conv1/bias", bias.marks)] * 4
    total, found = join_violations(run, {"conv1/bias": later}, marks, most=3)
    assert total == 32
    assert found == join_violations(run, {"conv1/bias": later}, marks, most=None)[1][:3]
    assert len(join_violations(run, {"conv1/bias": later}, marks, most=None)[1]) == 32
    assert [(one.variable, one.channel) for one in found] == [(W.id, 0)] * 3
