"""What moves between records, bit for bit: small updates of 16 bits, of many channels."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import tb_pastnet as pastnet

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

CHANNELS, EVERY = 100_000, 5


@pytest.mark.parametrize("rate", [1e-5, 1e-6])
@pytest.mark.parametrize("kind", ["AdamW", "SGD"])
def test_small_updates_in_16_bits_move_the_channels_whose_bits_change(
    tmp_path: Path, kind: str, rate: float
) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, CHANNELS, bias=False, dtype=torch.bfloat16)
    optimizer = getattr(torch.optim, kind)(model.parameters(), rate)
    bits = []
    with pastnet.torch.Recorder(tmp_path, model, optimizer, every=EVERY) as recorder:
        for step in range(1, 3 * EVERY + 1):
            model.weight.grad = torch.randn_like(model.weight) * (step % 4)
            optimizer.step()
            recorder.record(step)
            if step == 1 or step % EVERY == 0:
                bits.append(model.weight.detach().view(torch.int16).numpy().copy())
    (run,) = pastnet.read(tmp_path).runs.values()
    (layer,) = run.layers.values()
    expected = [(new != old).any(axis=1) for old, new in pairwise(bits)]
    np.testing.assert_array_equal(layer.moved[1:], expected)
    assert 0 < np.mean(expected) < 1
