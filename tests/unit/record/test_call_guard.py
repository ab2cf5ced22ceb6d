"""One call at a time: nested ones do nothing, and one that was cut off keeps none out."""

from tb_pastnet.record.call_guard import CallGuard, guarded
from tb_pastnet.record.failures import Failures


class Guarded:
    """An object whose calls may be nested."""

    def __init__(self):
        self._guard, self._failures = CallGuard(), Failures()
        self.calls = []

    @guarded("Could not call")
    def call(self, *within):
        self.calls.append(len(within))
        for method in within:
            method()


def test_a_call_within_a_call_does_nothing():
    one = Guarded()
    one.call(one.call, lambda: one.calls.append(one._guard.run(one.call)))
    assert one.calls == [2, False]
    [text] = one._failures.counts()
    assert text == "Could not call: a signal handler or thread called within another call"
    one.call()
    assert one.calls == [2, False, 0]


def test_a_call_that_was_cut_off_keeps_none_out():
    one = Guarded()
    assert one._guard.enter()  # and Ctrl-C, before it could leave
    one.call()
    assert one.calls == [0]
    assert one._guard.enter()
    assert one._guard.run(one.calls.clear)
    assert (one.calls, one._guard.thread) == ([], 0)
