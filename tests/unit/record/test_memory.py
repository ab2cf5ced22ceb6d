"""A recorder that takes much of the free memory says so once, with what lowers it."""

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.record import memory

WEIGHTS = 1000
BYTES = 4 * WEIGHTS


def lines(tmp_path, caplog, monkeypatch, free, **settings):
    monkeypatch.setattr(memory, "free_memory", lambda: free)
    weight = np.ones((WEIGHTS // 10, 10), np.float32)
    recorder = pastnet.numpy.Recorder(tmp_path, {"w": lambda: weight}, every=1, **settings)
    for step in range(1, 4):
        recorder.record(step)
    recorder.restart(3)
    recorder.record(4)
    recorder.close()
    return [line for line in caplog.messages if "that are free" in line]


def test_much_of_the_free_memory_is_said_once(tmp_path, caplog, monkeypatch):
    (line,) = lines(tmp_path, caplog, monkeypatch, 10 * BYTES - 1)
    assert "takes 4 kB for past values" in line
    assert "variables=" in line


def test_values_of_frozen_weights_have_another_mend(caplog, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 1 << 20)
    memory.warn_of_memory(1 << 20, 1 << 21)
    (line,) = caplog.messages
    assert "audit='fingerprints'" in line
    assert "variables=" not in line


@pytest.mark.parametrize("free", [None, 10 * BYTES, 1 << 40])
def test_little_or_what_is_not_known_is_not_said(tmp_path, caplog, monkeypatch, free):
    assert lines(tmp_path, caplog, monkeypatch, free) == []


def test_what_the_kernel_says_is_in_bytes():
    free = memory.free_memory()
    assert free is None or 1 << 20 < free < 1 << 50
