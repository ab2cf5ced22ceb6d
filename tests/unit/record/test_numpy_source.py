"""A source of NumPy arrays: what a framework has to bring to be recorded."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import tb_pastnet as pastnet
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.recording import Recording
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.source import ArraySource
from tb_pastnet.record.weight import Network, Weight


class ArrayWeight(Weight):
    def __init__(self, name, array):
        super().__init__(name, array.shape, array.dtype.name, explicit_axis(-1, array.shape, name))
        self.array = array

    def read(self):
        return self.array


def recorder(logdir, arrays, *, every=1):
    network = Network.of([ArrayWeight(name, array) for name, array in arrays.items()])
    failures, start = Failures(), network.origin()
    tracker = MaskTracker(network.weights, lambda: None, None, lambda: start, failures)
    source, schedule = ArraySource(network), Schedule(every, "previous", 0)
    return Recording(logdir, source, schedule, tracker, failures)


def test_a_training_of_arrays_is_recorded_and_read(tmp_path):
    kernel, bias = np.ones((3, 2), np.float32), np.zeros(2, np.float32)
    with recorder(tmp_path, {"dense/kernel": kernel, "dense/bias": bias}) as recording:
        for step in range(1, 5):
            kernel[:, 0] += 0.5
            recording.record(step)
        assert recording.flush()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert run.steps.tolist() == [1, 2, 3, 4]
    assert list(run.variables) == ["dense/kernel", "dense/bias"]
    moved = run.variables["dense/kernel"].delta_norm
    np.testing.assert_allclose(moved[:, 0], 0.5 * np.sqrt(3), rtol=0.05)
    assert not moved[:, 1].any()
    assert not run.variables["dense/bias"].changed.any()


NEUTRAL = """
import importlib, importlib.util, pkgutil, sys
# Its one module that imports numba is loaded only where numba is installed.
kernels = importlib.util.find_spec("numba") is not None
for room in ("core", "format", "record", "reader"):
    package = importlib.import_module(f"tb_pastnet.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if kernels or module.name != "tb_pastnet.core.kernels":
            importlib.import_module(module.name)
print(sorted({"tensorflow", "keras", "torch", "jax"} & set(sys.modules)))
"""


def test_no_module_of_the_neutral_rooms_brings_a_framework():
    done = subprocess.run(
        [sys.executable, "-c", NEUTRAL], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
