"""Which exceptions end a training, as the code that closes its log sees them."""

from __future__ import annotations

import pytest

from tb_pastnet.record.ending import TrainingEnd


def closed_in_handler(ending: TrainingEnd, error: BaseException) -> bool:
    try:
        raise error
    except BaseException:
        ending.look()
    return ending.normal


@pytest.mark.parametrize(
    ("error", "normal"),
    [
        (ValueError(), False),
        (KeyboardInterrupt(), False),
        (SystemExit(), False),
        (StopIteration(), True),  # the data have ended
        (type("OutOfRangeError", (Exception,), {})(), True),
    ],
)
def test_what_is_handled_at_the_end_ends_the_training(error, normal):
    assert closed_in_handler(TrainingEnd(), error) is normal


def test_what_was_handled_at_the_beginning_does_not():
    first = ValueError()
    try:
        raise first
    except ValueError:
        ending = TrainingEnd()
        ending.look()
    assert ending.normal
    ending.begin()
    assert not closed_in_handler(ending, first)  # raised again, in a training that began after it


def test_another_exception_in_its_place_in_memory_is_another():
    for _ in range(100):
        try:
            raise ValueError
        except ValueError:
            ending = TrainingEnd()
        assert not closed_in_handler(ending, ValueError())


def test_a_trainer_knows_where_its_loop_ends():
    ending = TrainingEnd()
    ending.enter()
    assert not ending.normal
    ending.leave()
    assert closed_in_handler(ending, ValueError())
