from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.reader.layer_events import Event, merge_events, recorded_events
from tb_pastnet.reader.mask_history import MaskEvent

STEPS = np.array([10, 20, 30, 40])


def recorded(step: int, kind: str = "trainable") -> Event:
    return {"step": step, "kind": kind, "text": "as recorded"}


def test_the_log_tells_the_exact_step_and_the_weights() -> None:
    found = merge_events([], STEPS, [MaskEvent(17, "kept", 1024, 4096)])
    text = "kept 1,024 of 4,096 weights"
    assert found == [{"step": 17, "kind": "kept", "text": text, "through": 1024, "elements": 4096}]


def test_what_the_log_explains_isnt_told_twice() -> None:
    logged = [MaskEvent(step, "trainable", 1, 2) for step in (11, 40)]
    found = merge_events([recorded(20), recorded(30), recorded(40)], STEPS, logged)
    assert [(one["step"], one["text"]) for one in found] == [
        (11, "trainable 1 of 2 weights"),
        (30, "as recorded"),
        (40, "trainable 1 of 2 weights"),
    ]


def test_a_change_at_the_record_before_explains_nothing_and_other_kinds_stay() -> None:
    logged = [MaskEvent(10, "kept", 1, 2)]
    kinds = ("learning_rate", "restart", "trainable")
    found = merge_events([recorded(10, kind) for kind in kinds[:2]] + [recorded(20)], STEPS, logged)
    assert [one["kind"] for one in found] == [*kinds[:2], "kept", "trainable"]


def test_there_are_never_too_many() -> None:
    logged = [MaskEvent(step, "kept", 1, 2) for step in range(200)]
    rates = [recorded(step, "learning_rate") for step in range(200)]
    assert len(merge_events(rates, STEPS, logged)) == 256


def test_no_records_are_no_error() -> None:
    assert merge_events([], np.zeros(0, np.int64), []) == []


@pytest.mark.parametrize(
    ("rates", "changes"),
    [
        ([0.1, 0.1, 0.1, 0.01, 0.01], [(3, 0.1, 0.01)]),
        ([0.1, 0.09, 0.08, 0.07, 0.06], []),
        ([0.1, 0.05, 0.02, 0.005, 0.1, 0.1], [(4, 0.005, 0.1)]),  # from the record before
        ((1 + np.cos(np.linspace(0, np.pi, 100))) / 1000, []),
        ([np.nan, 0.1, np.nan, 0.1, np.inf, 0.2], [(5, 0.1, 0.2)]),
    ],
)
def test_changes_of_the_learning_rate(rates: list[float], changes: list[Any]) -> None:
    codes = np.zeros((len(STATISTICS), len(rates), 2), np.int16)
    series: Any = SimpleNamespace(
        steps=np.arange(len(rates)),
        writers=np.zeros(len(rates), np.int64),
        learning_rates=np.array(rates),
        codes=codes,
    )
    found = recorded_events(series)
    assert {one["kind"] for one in found} <= {"learning_rate"}
    assert [(one["step"], one["from"], one["to"]) for one in found] == changes
    series.writers[2:] = 1
    restarts = [one["step"] for one in recorded_events(series) if one["kind"] == "restart"]
    assert restarts == [2]
