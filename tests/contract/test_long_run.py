"""A hundred thousand steps: bounded on disk and in memory, and nothing that matters is left out."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tb_pastnet.core.states import FROZEN, STATE
from tb_pastnet.core.thinning import CAPACITY
from tests.tensorboards import LOADERS, board

STEPS = 100_000
CHANNELS = 64
HELD = range(70_003, 70_010)
"""Steps at which the layer is frozen: far fewer than the stride at that place."""

CEILING = CAPACITY * (1 + math.log2(1 + STEPS / CAPACITY))
BYTES_A_CELL = 5


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of 100,000 recorded steps."""
    import keras

    import tb_pastnet as pastnet

    folder = tmp_path_factory.mktemp("long")
    layer = keras.layers.Dense(CHANNELS, use_bias=False)
    model = keras.Sequential([keras.Input((4,)), layer])
    moves = np.random.default_rng(0).normal(0, 1e-3, (64, 4, CHANNELS)).astype(np.float32)
    with pastnet.Recorder(folder / "a", model, every=1) as recorder:
        for step in range(1, STEPS + 1):
            layer.trainable = step not in HELD
            if layer.trainable:
                layer.kernel.assign_add(moves[step % len(moves)])
            recorder.record(step)
            if not step % 1000:
                recorder.flush()
    return folder


@pytest.mark.prove
def test_the_file_stays_under_the_ceiling(log: Path) -> None:
    size = sum(path.stat().st_size for path in log.rglob("*") if path.is_file())
    assert size <= CEILING * CHANNELS * BYTES_A_CELL


@pytest.mark.prove
@pytest.mark.parametrize("loader", LOADERS)
def test_first_last_and_every_mask_change_are_shown_and_the_rest_is_counted(
    log: Path, loader: str
) -> None:
    with board(log, loader) as here:
        (run,) = here.json("/index")["runs"]
        header, arrays = here.arrays("/layer", run="a", layer="dense")
    account = run["account"]
    assert account["offered"] == STEPS
    assert account["shown"] + account["thinned"] == STEPS
    assert account["shown"] <= CEILING + 3
    assert header["account"] == account
    steps = arrays["steps"]
    assert (steps[0], steps[-1]) == (1, STEPS)
    assert {HELD.start, HELD.stop} <= set(steps.tolist())
    frozen = steps[((arrays["state"] & STATE) == FROZEN).all(axis=0)]
    assert frozen.min() == HELD.start
    assert frozen.max() < HELD.stop
    changes = [event["step"] for event in header["events"] if event["kind"] == "trainable"]
    assert changes == [HELD.start, HELD.stop]
