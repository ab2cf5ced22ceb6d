"""Results come in order, whatever does the work."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tb_pastnet.reader import threads
from tb_pastnet.reader.threads import a_few_at_once, in_threads, together


@pytest.mark.parametrize("each", [in_threads, a_few_at_once])
def test_results_come_in_order_and_errors_reach_the_caller(each: Any) -> None:
    assert list(each(lambda n: n * n, range(50))) == [n * n for n in range(50)]
    assert list(each(str, [])) == []
    with pytest.raises(ZeroDivisionError):
        list(each(lambda n: 1 // n, [1, 0]))


def test_only_a_few_are_made_ahead() -> None:
    made: list[int] = []
    results = a_few_at_once(made.append, range(1000))
    next(results)
    assert len(made) <= 2 * threads.THREADS


def test_others_do_the_work() -> None:
    names = set(in_threads(lambda _: threading.current_thread().name, range(8)))
    assert all(name.startswith("pastnet") for name in names)


def test_one_thing_alone_is_done_here() -> None:
    assert [*in_threads(lambda _: threading.current_thread(), [1])] == [threading.current_thread()]


def test_inside_of_a_thread_nothing_waits_for_another() -> None:
    def inner(number: int) -> list[str]:
        return list(in_threads(lambda _: threading.current_thread().name, range(number)))

    for names in in_threads(inner, [3] * 4 * threads.THREADS):
        assert len(set(names)) == 1


def test_two_things_that_wait_for_each_other_are_done_at_once() -> None:
    meeting = threading.Barrier(2, timeout=60)

    def meet(name: str) -> str:
        meeting.wait()
        return name

    assert together(lambda: meet("a"), lambda: meet("b")) == ("a", "b")


def test_what_either_of_two_raises_reaches_the_caller() -> None:
    def fail() -> None:
        raise OSError("gone")

    for pair in ((fail, int), (int, fail)):
        with pytest.raises(OSError, match="gone"):
            together(*pair)
