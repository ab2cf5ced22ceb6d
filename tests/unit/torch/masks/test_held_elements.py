from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from tb_pastnet.torch.masks import held_elements  # noqa: E402

SHAPE = 129, 5
RNG = np.random.default_rng(0)
WAYS = {
    "HeldElements": (RNG.random(SHAPE) < 0.7, RNG.random(SHAPE) < 0.5),
    "PackedElements": (RNG.random(SHAPE) < 0.7, RNG.random(SHAPE) < 0.5),
    "RangeElements": (np.ones(SHAPE, bool), np.arange(645).reshape(SHAPE) >= 300),
    "RangeElements pruned": (np.arange(645).reshape(SHAPE) >= 300, np.ones(SHAPE, bool)),
    "HeldElements pruned": (RNG.random(SHAPE) < 0.7, np.ones(SHAPE, bool)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_each_way_of_holding_does_the_same(way, dtype, monkeypatch):
    kind = way.split()[0]
    if kind != "HeldElements":
        pytest.importorskip("numba", reason="needs numba")
        monkeypatch.setattr(held_elements, "PACKED_FROM", 1)
        monkeypatch.setattr(held_elements, "_PART", 128)  # several threads
    kept, trainable = map(torch.from_numpy, WAYS[way])
    through = kept & trainable
    before = torch.randn(SHAPE, dtype=torch.float64).to(dtype)
    before[:, 2] = -0.0
    made = held_elements.held_elements(before, kept, through, None)
    assert type(made).__name__ == kind
    assert made.fits(before)
    expected = torch.where(kept, before, 0)

    now = torch.randn(SHAPE, dtype=torch.float64).to(dtype)
    held = torch.where(through, now, expected)
    assert made.differing(held) == 0
    assert made.differing(now) > 0
    made.restore(now)
    same(now, held)
    other = torch.where(through, now, 1)
    with monkeypatch.context() as without_numba:
        without_numba.setattr(held_elements, "_kernels", lambda: None)
        made.restore(other)
    same(other, held)
    doubled = now.to(torch.float64) + 1
    made.for_other(doubled).restore(doubled)
    same(doubled, torch.where(through, doubled, held.double()))

    for gradient in (torch.full(SHAPE, torch.nan), torch.ones(SHAPE[::-1], dtype=dtype).t()):
        masked = torch.where(through, gradient, 0)
        same(made.zero(gradient), masked)
    rows = torch.tensor([[1, 64, 128, 1]])
    sparse = torch.sparse_coo_tensor(rows, torch.ones(4, 5), SHAPE, check_invariants=False)
    dense = torch.where(through, sparse.to_dense(), 0)
    same(made.zero(sparse).to_dense(), dense)


def same(tensor, other):
    """All bits, also those of NaN and of zeros."""
    assert torch.equal(held_elements.as_integers(tensor), held_elements.as_integers(other))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("first", [0, 1, 2, 3, 5])
def test_a_range_may_begin_and_end_within_a_word(dtype, first, monkeypatch):
    monkeypatch.setattr(held_elements, "PACKED_FROM", 1)
    monkeypatch.setattr(held_elements, "_PART", 64)
    for last in (1, 8, 600, 643, 645):
        through = ~((torch.arange(645) >= first) & (torch.arange(645) < first + last))
        before = torch.randn(645).to(dtype)
        made = held_elements.held_elements(before, torch.ones(645, dtype=bool), through, None)
        same(made.zero(torch.ones(645, dtype=dtype)), through.to(dtype))
        now = torch.ones(645, dtype=dtype)
        made.restore(now)
        same(now, torch.where(through, 1, before).to(dtype))


def test_masks_that_hold_nothing_need_nothing():
    every = torch.ones(SHAPE, dtype=torch.bool)
    assert held_elements.held_elements(torch.zeros(SHAPE), every, every, None) is None
