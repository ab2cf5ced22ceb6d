"""Frozen tensors of any dtype and order, without copies of their values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed")
import tb_pastnet as pastnet  # noqa: E402

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


class Odd(torch.nn.Module):
    """Frozen weights of several forms beside one that trains."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.line = torch.nn.Linear(65, 129, dtype=dtype)
        self.conv = torch.nn.Conv2d(3, 9, 3, dtype=dtype).to(memory_format=torch.channels_last)
        self.turned = torch.nn.ConvTranspose2d(4, 6, 2, groups=2, dtype=dtype)
        self.attention = torch.nn.MultiheadAttention(8, 2, dtype=dtype)
        self.requires_grad_(False)
        self.head = torch.nn.Linear(2, 2)


def train(recorder: Any, model: Any, optimizer: Any, steps: Any) -> None:
    for step in steps:
        optimizer.zero_grad()
        model.head(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        recorder.record(step)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_bit_of_any_frozen_tensor_is_found_by_its_channel(dtype: Any, tmp_path: Path) -> None:
    model, rng = Odd(dtype), np.random.default_rng(5)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    recorder = pastnet.torch.Recorder(tmp_path, model, optimizer, every=1, audit="fingerprints")
    train(recorder, model, optimizer, [1, 2])
    weights = {weight.name: weight for weight in recorder._source.network.weights}
    bits, meant = {2: torch.int16, 4: torch.int32, 8: torch.int64}, set()
    for name, weight in weights.items():
        if not name.startswith("head"):
            tensor = weight.entry.stored
            place = tuple(int(rng.integers(size)) for size in tensor.shape)
            tensor.data.view(bits[tensor.element_size()])[place] ^= 1
            one = np.zeros(tuple(tensor.shape), bool)
            one[place] = True
            meant.add((name, int(np.flatnonzero(weight.axis.split(one).any(1))[0])))
    train(recorder, model, optimizer, [3])
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {(each.variable, each.channel) for each in run.violations} == meant
    assert {each.first_step for each in run.violations} == {3}
    assert {each.cause for each in run.violations} <= {"loaded", "written", "unknown"}


def test_another_dtype_is_no_movement_and_said(tmp_path: Path) -> None:
    model = Odd(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    recorder = pastnet.torch.Recorder(tmp_path, model, optimizer, every=1, audit="fingerprints")
    train(recorder, model, optimizer, [1])
    model.line.float()
    train(recorder, model, optimizer, [2, 3])
    with torch.no_grad():
        model.line.weight[7, 1] += 1
    train(recorder, model, optimizer, [4])
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert [(each.variable, each.channel) for each in run.violations] == [("line/weight", 7)]
    (note,) = [text for text in run.notes if "dtype" in text]
    assert "audit='values'" in note
    assert run.verified.fewest_records == 3
