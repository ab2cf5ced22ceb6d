"""A hundred thousand steps: bounded on disk and in memory, and nothing that matters is left out."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tb_pastnet.core.channel_states import FROZEN, STATE
from tb_pastnet.core.thinning import CAPACITY
from tests.tensorboards import LOADERS, board

pytestmark = [pytest.mark.promise("long_runs"), pytest.mark.prove]

STEPS = 100_000
CHANNELS = 64
HELD = range(70_003, 70_010)
"""Steps at which the layer is frozen: far fewer than the stride at that place."""

CEILING = CAPACITY * (1 + math.log2(1 + STEPS / CAPACITY))
BYTES_A_CELL = 5


MEMORY = 64
"""MiB that recording and showing may take at most, beside what TensorFlow and TensorBoard take."""


class Long(NamedTuple):
    """A run of 100,000 recorded steps.

    Attributes:
        folder: its log directory.
        grown: MiB that the training process grew by, from the first hundredth to the end.
    """

    folder: Path
    grown: float


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Long:
    """Records it."""
    import keras

    import tb_pastnet as pastnet
    from benchmarks.long_run import resident

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
            if step == STEPS // 100:
                before = resident()
    return Long(folder, resident() - before)


@pytest.fixture
def log(long: Long) -> Path:
    return long.folder


def test_memory_stays_under_the_ceiling(
    long: Long, tmp_path: Path, figure: Callable[..., None]
) -> None:
    from benchmarks.long_run import serving

    routes = ("/index", "/overview?run=a", "/layer?run=a&layer=dense")
    served = serving(long.folder, routes) - serving(tmp_path, ["/index"])
    figure(
        f"{STEPS:,} steps × {CHANNELS} channels: {long.grown:.0f} MiB more where it is recorded, "
        f"{served:.0f} MiB where it is shown; ceiling {MEMORY}",
        met=max(long.grown, served) <= MEMORY,
    )
    assert long.grown <= 2 * MEMORY
    assert served <= 2 * MEMORY or math.isnan(served)


def test_the_file_stays_under_the_ceiling(log: Path, figure: Callable[..., None]) -> None:
    size = sum(path.stat().st_size for path in log.rglob("*") if path.is_file())
    ceiling = CEILING * CHANNELS * BYTES_A_CELL
    assert size <= ceiling
    figure(f"{size / 2**20:.1f} MiB on disk; ceiling {ceiling / 2**20:.1f}")


@pytest.mark.parametrize("loader", LOADERS)
def test_first_last_and_every_mask_change_are_shown_and_the_rest_is_counted(
    log: Path, loader: str, figure: Callable[..., None]
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
    figure(
        f"{loader} loader: {account['shown']:,} records shown, {account['thinned']:,} counted as "
        f"thinned; first, last and {len(changes)} changes of masks there"
    )
