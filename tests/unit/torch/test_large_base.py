"""A frozen base without copies of its values: single bits, swapped elements, negated channels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed")
import tb_pastnet as pastnet  # noqa: E402

SIDE = 2048


def large_base(size: int) -> Any:
    """Frozen bfloat16 weights of `size` bytes, one half a table, the other layers; and a head."""
    half = size // 4
    table = torch.nn.Embedding(half // SIDE, SIDE, dtype=torch.bfloat16)
    layers = [
        torch.nn.Linear(SIDE, SIDE, bias=False, dtype=torch.bfloat16)
        for _ in range(max(1, half // SIDE**2))
    ]
    base = torch.nn.Sequential(table, *layers).requires_grad_(False)
    return torch.nn.ModuleDict({"base": base, "head": torch.nn.Linear(2, 2)})


def change(words: Any, kind: str, rng: np.random.Generator) -> None:
    """Changes a channel, given as 16-bit words, in a way that its sums hardly tell."""
    if kind == "a bit":
        words[int(rng.integers(len(words)))] ^= 1 << int(rng.integers(15))
    elif kind == "a swap":
        one = int(rng.integers(len(words)))
        others = torch.nonzero(words != words[one])
        other = int(others[int(rng.integers(len(others)))])
        words[[one, other]] = words[[other, one]].clone()
    else:
        words ^= -(2**15)


@pytest.mark.parametrize(
    ("size", "tries"),
    [(8 * 10**7, 5), pytest.param(10**9, 300, marks=[pytest.mark.prove, pytest.mark.alone])],
)
def test_each_change_is_found_at_the_next_record_by_its_channel(
    size: int, tries: int, tmp_path: Path
) -> None:
    torch.manual_seed(11)
    model, rng = large_base(size), np.random.default_rng(12)
    optimizer = torch.optim.SGD(model["head"].parameters(), 0.1)
    recorder = pastnet.torch.Recorder(tmp_path, model, optimizer, every=1, audit="fingerprints")

    def train(step: int) -> None:
        optimizer.zero_grad()
        model["head"](torch.ones(1, 2)).sum().backward()
        optimizer.step()
        recorder.record(step)

    train(1)
    train(2)
    frozen = dict(model["base"].named_parameters(prefix="base"))
    meant: dict[tuple[str, int], int] = {}
    kinds = ["a bit", "a swap", "a negated channel"] * tries
    for step, kind in enumerate(kinds, start=3):
        name = str(rng.choice([*frozen]))
        words = frozen[name].data.view(torch.int16)
        whole = [n for n in range(len(words)) if (name.replace(".", "/"), n) not in meant]
        channel = int(rng.choice(whole))
        change(words[channel], kind, rng)
        meant[name.replace(".", "/"), channel] = step
        train(step)
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {(one.variable, one.channel): one.first_step for one in run.violations} == meant
