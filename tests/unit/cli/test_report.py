"""What `report` counts."""

from __future__ import annotations

import io
import json

import numpy as np

import tb_pastnet as pastnet
from tb_pastnet.cli.main import main
from tb_pastnet.core.violation import MOVING_STATISTICS
from tb_pastnet.numpy import Recorder


def test_a_channel_whose_kernel_and_bias_both_leak_counts_once(tmp_path):
    arrays = {"dense/kernel": np.ones((3, 4)), "dense/bias": np.ones(4), "out/kernel": np.ones(2)}
    frozen = dict.fromkeys(("dense/kernel", "dense/bias"), False)
    weights = {name: lambda name=name: arrays[name] for name in arrays}
    counts = []
    with Recorder(
        tmp_path,
        weights,
        every=1,
        trainable=frozen,
        log=lambda numbers, step: counts.append(numbers["pastnet/violations"]),
    ) as recorder:
        for step in range(1, 4):
            for array in arrays.values():
                array[...] -= 0.1
            recorder.record(step)
    assert counts[-1] == 4
    assert len(pastnet.read(tmp_path).runs["."].violations) == 8
    out, error = io.StringIO(), io.StringIO()
    arguments = ["report", str(tmp_path), "--json", "--fail-on", "violations"]
    assert main(arguments, out, error) == 1
    told = json.loads(out.getvalue())
    [run] = told["runs"]
    assert run["violated_channels"] == 4
    [finding] = [each for each in told["findings"] if each["kind"] == "violations"]
    assert finding["channels"] == 4
    assert finding["text"].startswith("4 channels of dense ")
    assert error.getvalue().endswith(": 4 channels\n")


def test_statistics_that_moved_in_frozen_layers_fail_where_asked(tmp_path):
    arrays = {"bn/gamma": np.ones(3)}
    with Recorder(tmp_path, {"bn/gamma": lambda: arrays["bn/gamma"]}, every=1) as recorder:
        recorder.record(1)
        asked = ["report", str(tmp_path), "--fail-on", "statistics"]
        recorder.flush()
        assert main(asked, io.StringIO(), io.StringIO()) == 0
        recorder.notes.add(f"{MOVING_STATISTICS}, e.g. 'bn'")
        recorder.notes.add("Another note")
    out, error = io.StringIO(), io.StringIO()
    assert main(asked, out, error) == 1
    assert error.getvalue() == "failed: statistics in the run '.': 1 statistic\n"
    assert "still follow their inputs, e.g. 'bn' (1)" in out.getvalue()
