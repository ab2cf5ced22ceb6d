"""Readers and a writer at a time: every answer is whole, quick, and memory doesn't grow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from benchmarks._boards import Board, board

pytestmark = [pytest.mark.promise("soak"), pytest.mark.prove]

READERS = 4
LONG = float(os.environ.get("PASTNET_SOAK_SECONDS", "600"))
QUICK = 0.2
"""Seconds that 99 of 100 answers may take at most."""

WARM = 0.3
"""Share of the time after which memory has to stand still."""

FLAT = 0.05
"""Share of the memory that it may grow by from there on."""


class Soak(NamedTuple):
    """What a soak showed.

    Attributes:
        took: seconds of each answer, by route.
        statuses: how many answers of each.
        torn: what was wrong with answers.
        wrote: what the writer says.
        memory: seconds and MiB, samples of TensorBoard with its data server.
    """

    took: dict[str, list[float]]
    statuses: Counter[str]
    torn: list[str]
    wrote: dict[str, int]
    memory: np.ndarray

    def p99(self, route: str | None = None) -> float:
        """Seconds within which 99 of 100 answers came."""
        some = [one for name, took in self.took.items() for one in took if route in (None, name)]
        return float(np.quantile(some, 0.99))

    def growth(self) -> tuple[float, float]:
        """The median memory once it is warm, and how much the line through it grows, in MiB."""
        seconds, mebibytes = self.memory
        warm = seconds >= WARM * seconds[-1]
        slope, _ = np.polyfit(seconds[warm], mebibytes[warm], 1)
        return float(np.median(mebibytes[warm])), float(slope * (seconds[-1] * (1 - WARM)))


def start(module: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", f"tests.soak.{module}", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def end(process: subprocess.Popen[str]) -> Any:
    """Closes the input of a process and gives what it printed last."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err[-2000:]
    return json.loads(out)


def sample(here: Board, seconds: float, pause: float) -> np.ndarray:
    """Seconds and MiB of memory, for so long."""
    begun, samples = time.monotonic(), []
    while (since := time.monotonic() - begun) < seconds:
        samples.append((since, here.resident()))
        time.sleep(pause)
    return np.array(samples).T


def soak(logdir: Path, loader: str, seconds: float, *flags: str) -> Soak:
    """Runs a writer, a TensorBoard and readers.

    Args:
        logdir: empty.
        loader: "fast" or "slow".
        seconds: for which readers ask.
        flags: of TensorBoard.
    """
    with start("writing", logdir) as writer, board(logdir, loader, *flags) as here:
        assert writer.stdout.readline() == "ready\n"
        patience = time.monotonic() + 60
        while len(json.loads(here.get("/index").body)["runs"]) < 2:
            assert time.monotonic() < patience, "TensorBoard reads nothing"
            time.sleep(0.2)
        readers = [start("reading", here.port, seconds, seed) for seed in range(READERS)]
        memory = sample(here, seconds, min(2.0, seconds / 50))
        told, wrote = [end(reader) for reader in readers], end(writer)
    took: dict[str, list[float]] = {}
    for route, some in (pair for one in told for pair in one["took"].items()):
        took.setdefault(route, []).extend(some)
    statuses: Counter[str] = sum((Counter(one["statuses"]) for one in told), Counter())
    return Soak(took, statuses, [text for one in told for text in one["torn"]], wrote, memory)


def tell(found: Soak, loader: str, seconds: float, figure: Any) -> None:
    """Records what a soak showed."""
    answers, wrote = found.statuses.total(), found.wrote
    figure(
        f"{seconds:.0f} s, {loader} loader: {len(found.torn)} of {answers:,} answers torn "
        f"({found.statuses['304']:,} of them 304, {found.statuses['404']:,} of runs just deleted); "
        f"{wrote['records']:,} records written, {wrote['came']} runs came, {wrote['went']} went"
    )
    times = ", ".join(f"{name} {1e3 * found.p99(name):.0f}" for name in sorted(found.took))
    figure(f"{loader} loader: p99 {1e3 * found.p99():.0f} ms ({times})", met=found.p99() <= QUICK)
    level, grew = found.growth()
    figure(
        f"{loader} loader: memory {level:.0f} MiB, {grew:+.1f} MiB in the last {1 - WARM:.0%} of "
        "the time",
        met=grew <= FLAT * level,
    )


@pytest.mark.parametrize("loader", ["fast", "slow"])
def test_readers_and_a_writer_for_a_moment(tmp_path: Path, loader: str, figure: Any) -> None:
    found = soak(tmp_path, loader, 10, "--reload_interval=1")
    assert found.torn == []
    assert set(found.took) == {"/index", "/overview", "/layer", "/channel", "/export.csv"}
    assert found.statuses["200"] > 20
    assert not set(found.statuses) - {"200", "304", "404"}


@pytest.mark.alone
@pytest.mark.parametrize(("loader", "part"), [("fast", 1.0), ("slow", 0.25)])
def test_readers_and_a_writer_for_long(
    tmp_path: Path, loader: str, part: float, figure: Any
) -> None:
    found = soak(tmp_path, loader, LONG * part)
    tell(found, loader, LONG * part, figure)
    assert found.torn == []
    assert found.statuses["304"] > 0
    assert found.wrote["went"] > 0 or LONG * part < 60
