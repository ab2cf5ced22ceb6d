"""Which process writes, and whether all set the same masks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet.keras.strategies import check_agreed, writes
from tests.devices import Workers


def of(**task):
    """A variable of a strategy that has this task in a cluster."""
    jobs = task.pop("jobs", ("worker",))
    spec = tf.train.ClusterSpec({job: [f"{job}:1", f"{job}:2"] for job in jobs})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, **task)
    return SimpleNamespace(distribute_strategy=SimpleNamespace(cluster_resolver=resolver))


@pytest.mark.parametrize(
    ("task", "chief"),
    [
        ({"task_type": "worker", "task_id": 0}, True),
        ({"task_type": "worker", "task_id": 1}, False),
        ({"task_type": "worker", "task_id": 0, "jobs": ("chief", "worker")}, False),
        ({"task_type": "chief", "task_id": 0, "jobs": ("chief", "worker")}, True),
        ({"task_type": "evaluator", "task_id": 0}, False),
        ({"task_type": "ps", "task_id": 0, "jobs": ("worker", "ps")}, False),
        ({}, True),
    ],
)
def test_one_of_a_cluster_writes(task, chief):
    assert writes([tf.Variable(1.0), of(**task)]) is chief


def test_a_process_of_its_own_writes():
    mirrored = tf.distribute.MirroredStrategy(["CPU:0"])
    with mirrored.scope():
        variable = tf.Variable(1.0)
    assert writes([])
    assert writes([variable, tf.Variable(1.0)])
    check_agreed(variable, "a mask", np.ones(3, bool))  # there is nobody to ask


AGREE = """
import numpy as np
import tensorflow as tf
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.strategies import check_agreed, workers, writes

def says(what, *masks):
    try:
        check_agreed(variable, what, *masks)
    except InvalidArgument as error:
        return str(error)

with strategy.scope():
    variable = tf.Variable(1.0)
ones = np.ones(9, bool)
assert (workers([]), workers([variable, tf.Variable(1.0)])) == (1, 2)
print(writes([variable]))
"""
SAME = """
print(says("a mask", ones, ~ones), says("b", ones), says("b", ones))
print(says("a mask", ones, np.arange(9) == worker))
print(says("one of two" if worker else "the other", ones))
print(says("a mask", ones))
"""
DIFFERENT = (
    "Could not set a mask: expected the same in all workers, got 2 different ones in 2 replicas. "
    "Use the same seed for masks in every worker."
)


def test_workers_that_agree_and_that_do_not(two_workers):
    chief, other = (text.splitlines() for text in two_workers.run(AGREE + SAME))
    assert (chief.pop(0), other.pop(0)) == ("True", "False")
    assert chief[:2] == other[:2] == ["None None None", DIFFERENT]
    assert chief[2] == DIFFERENT.replace("a mask", "the other")
    assert other[2] == DIFFERENT.replace("a mask", "one of two")
    assert chief[3] == other[3] == "None"


ALONE = """
import time
from tb_pastnet.keras import strategies

strategies.PATIENCE = 1.0
if worker:
    time.sleep(3)
else:
    print(says("a mask", ones))
"""


def test_a_worker_that_is_left_alone_and_a_task_named_chief():
    # Of its own: TensorFlow gives up all that is collective after that.
    processes = Workers((("chief", 0), ("worker", 0)))
    chief, other = processes.run(AGREE + ALONE)
    processes.close()
    assert chief == (
        "True\nCould not set a mask: expected all workers to do so within 1 s, got no answer "
        "(DeadlineExceededError). Change masks in every worker.\n"
    )
    assert other == "False\n"
