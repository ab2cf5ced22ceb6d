"""Trains a ResNet-50 in torch, on a GPU if there is one, and times `record` after each step."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from itertools import count
from typing import Any

from benchmarks._pairs import after
from tb_pastnet.core.numba_switch import SWITCH

torch: Any = importlib.import_module("torch")
transformers: Any = importlib.import_module("transformers")
pastnet: Any = importlib.import_module("tb_pastnet.torch")


def main(pairs: str, size: str) -> None:
    """Prints seconds of steps, and of records with numba and without."""
    whole = size == "whole"
    torch.set_num_threads(2)
    torch.manual_seed(0)
    depths, widths = ([3, 4, 6, 3], [256, 512, 1024, 2048]) if whole else ([1], [8])
    config = transformers.ResNetConfig(
        depths=depths, hidden_sizes=widths, embedding_size=64 if whole else 8, num_labels=1000
    )
    on_gpu = torch.cuda.is_available()
    device = "cuda" if on_gpu else "cpu"
    model = transformers.ResNetForImageClassification(config).to(device)
    side = 128 if whole else 32
    x = torch.randn(32, 3, side, side, device=device)
    y = torch.randint(0, 1000, (32,), device=device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step() -> None:
        optimizer.zero_grad()
        model(x, labels=y).loss.backward()
        optimizer.step()
        if on_gpu:
            torch.cuda.synchronize()

    recorders = []
    for fast in ("1", "0"):
        os.environ[SWITCH] = fast
        folder = tempfile.mkdtemp()
        recorders.append(pastnet.Recorder(folder, model, optimizer=optimizer, every=1))
    numbers = [count(1), count(1)]
    actions = [
        lambda recorder=recorder, number=number: recorder.record(next(number))
        for recorder, number in zip(recorders, numbers, strict=True)
    ]
    steps, spent = after(step, actions, int(pairs), 2)
    sys.stdout.write(json.dumps([*zip(steps.tolist(), spent.tolist(), strict=True)]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
