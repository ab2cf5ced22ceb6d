"""What follows where held weights have moved."""

from __future__ import annotations

import logging

import pytest

from tb_pastnet.core.violation import Violation
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.alerts import LOG, STOP, Alerts, checked
from tb_pastnet.record.failures import Failures


def violation(channel, variable="a/kernel", cause="weight_decay", step=7):
    return Violation(variable, channel, step, step, 1, 2, 0.5, cause)


def test_a_line_for_each_variable_and_cause_once(caplog):
    alerts = Alerts(LOG, Failures())
    assert not alerts.violated
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        alerts.tell([])
        alerts.tell([violation(0), violation(3), violation(1, "b/bias", "unknown")])
        alerts.tell([violation(4, step=9)])
        alerts.tell([violation(0, cause="loaded", step=9)])
    said = "changed while frozen or pruned, first seen at step"
    assert [record.message for record in caplog.records] == [
        f"2 channels of a/kernel {said} 7. Likely cause: weight decay.",
        f"1 channel of b/bias {said} 7. Likely cause: unknown.",
        f"1 channel of a/kernel {said} 9. Likely cause: weights were loaded or set.",
    ]
    assert alerts.violated
    assert not alerts.stops


def test_a_function_gets_what_is_new_and_may_fail(caplog):
    told, failures = [], Failures()

    def tell(violations):
        told.append([each.channel for each in violations])
        raise ValueError("no network")

    alerts = Alerts(tell, failures)
    alerts.tell([violation(0), violation(1)])
    alerts.tell([])
    alerts.tell([violation(2)])
    assert told == [[0, 1], [2]]
    text = "Could not call the function of on_violation=: ValueError: no network"
    assert failures.counts() == {text: 2}


def test_stop_waits_for_a_violation():
    alerts = Alerts(STOP, Failures())
    assert not alerts.stops
    alerts.tell([violation(0)])
    assert alerts.stops


@pytest.mark.parametrize("wish", ["raise", None, 3])
def test_other_wishes_are_refused(wish):
    with pytest.raises(InvalidArgument, match="expected 'log', 'stop' or a function"):
        checked(wish, stops=True)
    with pytest.raises(InvalidArgument, match="expected 'log' or a function"):
        checked(wish, stops=False)
