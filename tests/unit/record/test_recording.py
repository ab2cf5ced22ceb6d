"""The line when a training ends."""

from tb_pastnet.format.overhead import Overhead
from tb_pastnet.record.recording import nothing_recorded, summary_line


def test_all_that_there_is_to_say():
    cost = Overhead(steps=1000, training=20.0, records=1.0, copies=0.5, masks=0.1)
    assert summary_line("runs/a", 1234, 1, 0.25, cost) == (
        "PastNet: 1,234 records, 1 violation, sparsity 25.0%, recording overhead 8.0%. "
        "See: tensorboard --logdir runs/a"
    )


def test_what_is_not_known_is_left_out():
    text = "PastNet: 1 record, no violations. See: tensorboard --logdir 'my runs'"
    assert summary_line("my runs", 1, 0, 0.0, Overhead()) == text


def test_a_training_shorter_than_the_way_to_the_first_record():
    assert nothing_recorded("a", 1, 10) == (
        "No record in a: the training made 1 step, but every=10. Use a smaller every=."
    )
