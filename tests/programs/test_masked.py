"""Masks on a model with several optimizers: what is held is held whichever of them steps."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest

import tb_pastnet as pastnet
from tests.programs.programs import PROGRAMS


@pytest.mark.parametrize("name", ["gan", "actor_critic"])
def test_both_optimizers_hold(name: str, tmp_path: Path) -> None:
    keras.utils.set_random_seed(5)
    program = PROGRAMS[name](tmp_path)
    parts = [layer for layer in program.model.layers if layer.weights]
    firsts = [part.layers[0] for part in parts]
    assert len(firsts) == 2
    masks = pastnet.Masks(program.model)
    masks.prune_smallest(0.5, scope="layer", variables=firsts)
    masks.freeze(firsts[0].bias)
    before = [np.array(layer.kernel) for layer in firsts]
    callback = pastnet.PastNetCallback(tmp_path / "log", every=1)
    program.train([callback])
    callback.close()
    for layer, kernel in zip(firsts, before, strict=True):
        kept = masks.kept[layer.kernel]
        assert abs(kept.mean() - 0.5) < 0.1
        after = np.array(layer.kernel)
        assert not after[~kept].any()
        assert (after[kept] != kernel[kept]).any()
    assert not np.array(firsts[0].bias).any()
    # Of a layer as of the model: biases that nothing prunes don't count.
    assert masks.sparsity(firsts[0]) == masks.sparsity(firsts[0].kernel)
    run = pastnet.read(tmp_path / "log").runs["."]
    assert not run.violations
    assert run.sparsity[-1] == pytest.approx(masks.sparsity())
    # One trace, in which each optimizer has its hook.
    assert not run.notes
