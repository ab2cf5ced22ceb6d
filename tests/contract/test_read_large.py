"""A log as large as a study of lottery tickets makes them opens in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tb_pastnet as pastnet
from benchmarks._logs import Size, write_logs

SIZE = Size(runs=20, layers=300, channels=9_000, steps=1_000)
SECONDS = 10.0


@pytest.mark.prove
@pytest.mark.alone
@pytest.mark.promise("read_back")
def test_twenty_runs_of_300_layers_open_in_seconds(
    tmp_path: Path, figure: Callable[..., None]
) -> None:
    write_logs(tmp_path, SIZE, variants=1)
    size = sum(path.stat().st_size for path in tmp_path.rglob("*tfevents*"))
    start = time.monotonic()
    log = pastnet.read(tmp_path)
    opened = time.monotonic() - start
    assert [len(run.steps) for run in log.runs.values()] == [1_000] * 20
    assert {len(run.layers) for run in log.runs.values()} == {300}
    start = time.monotonic()
    run = log.runs["run_00"]
    numbers = sum(layer.relative_delta.size for layer in run.layers.values())
    read = time.monotonic() - start
    assert numbers == 9_000 * 1_000
    figure(
        f"20 runs × 300 layers × 1,000 steps, {size / 2**20:,.0f} MiB: open in {opened:.1f} s; "
        f"{numbers:,} relative deltas of one run in {read:.1f} s",
        met=opened < SECONDS,
    )
