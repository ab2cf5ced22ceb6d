"""What the tests of training share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interpreter import Interpreter

# Devices can't be divided once TensorFlow has begun. What a second strategy of a process reduces
# TensorFlow takes for what the first did.
DIVIDE = """
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
shared["strategy"] = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
assert shared["strategy"].num_replicas_in_sync == 2
"""


@pytest.fixture(scope="session")
def two_devices() -> Iterator[Interpreter]:
    """A process in which `strategy` mirrors two devices."""
    process = Interpreter(begin=DIVIDE)
    yield process
    process.close()
