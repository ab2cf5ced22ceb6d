"""kill -9 of a worker while two train: what the chief has recorded stays, and it waits for nobody."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tb_pastnet.core.statistics import NORM
from tests.devices import Workers
from tests.recorded import read_one

DIES = 5
PROGRAM = """
import json, os, signal, time
import tensorflow as tf
import tb_pastnet as pastnet

with strategy.scope():
    weight = tf.Variable([[0.0, 1.0]], aggregation=tf.VariableAggregation.SUM)
recorder = pastnet.Recorder(logdir, {"dense/kernel": weight}, every=1, initial_step=0)

@tf.function
def train():
    strategy.run(lambda: weight.assign_add([[0.5, 0.0]]))

for step in range(1, 9):
    if worker == 1 and step == dies:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        train()
    except tf.errors.OpError:
        break
    recorder.record(step)
begin = time.monotonic()
flushed = recorder.flush()
recorder.close()
print(json.dumps([step, flushed, time.monotonic() - begin]))
"""


@pytest.mark.promise("kill_9")
def test_the_chief_keeps_what_it_has(tmp_path: Path):
    given = {"logdir": str(tmp_path), "dies": DIES}
    chief, other = Workers().started()
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(one.run, PROGRAM, **given) for one in (chief, other)]
        with pytest.raises(AssertionError, match="the process ended"):
            runs[1].result()
        step, flushed, seconds = json.loads(runs[0].result())
    chief.close()
    other.close()
    assert flushed
    assert seconds < 60
    assert step in (DIES - 1, DIES)  # the sum of the step before may not have arrived
    log = read_one(tmp_path)
    assert log.record_steps() == list(range(1, step))
    # Both add, and are summed.
    norms = [[number, 1.0] for number in range(1, step)]
    np.testing.assert_allclose(log.values("dense/kernel")[:, NORM], norms, rtol=0.023)
    assert (log.last.offered, log.last.dropped, log.last.closed) == (step - 1, 0, True)
