"""`pastnet demo`, as after `pip install tb-pastnet`: no framework can be imported."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.cli.demo_training import EVERY, FREEZE, PRUNE, RUNS, STEPS
from tests.commands import command
from tests.sampled import sampled
from tools.steps import ROOT

PROGRAM = """
import sys
for name in "tensorflow keras torch jax sklearn".split():
    sys.modules[name] = None
from tb_pastnet.__main__ import run
from tb_pastnet.cli import demo_training
demo_training.BATCH = 64  # quicker
sys.exit(run())
"""


def started(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    call = [sys.executable, "-c", PROGRAM, "demo", "--logdir", str(folder), *arguments]
    return subprocess.Popen(
        call, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def said_until(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    assert process.stdout is not None
    for line in process.stdout:
        if match := re.search(pattern, line):
            return match
    raise AssertionError(f"it ended without {pattern!r}: {process.communicate()[1]}")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "new"
    with started("--once", folder=folder) as process:
        out, _ = process.communicate()
    assert process.returncode == 0
    assert f"tensorboard --logdir {folder}" in out
    return folder


def test_each_run_is_recorded_whole(log: Path) -> None:
    runs = pastnet.read(log).runs
    assert sorted(runs) == sorted(run.name for run in RUNS)
    for run in runs.values():
        assert run.steps.tolist() == [1, *range(EVERY, STEPS + 1, EVERY)]
        assert not run.notes


def test_the_freeze_holds_and_the_planted_leak_is_found_with_its_cause(log: Path) -> None:
    runs = pastnet.read(log).runs
    assert list(runs["plain"].violations) == list(runs["freeze_and_prune"].violations) == []
    leaks = runs["leak"].violations
    assert {(each.layer, each.cause, each.first_step) for each in leaks} == {
        ("hidden1", "weight_decay", FREEZE)
    }
    for name in ("freeze_and_prune", "leak"):
        overview = runs[name].overview()
        frozen = overview.frozen[:, overview.layers.index("hidden1")]
        assert (frozen == np.where(overview.steps >= FREEZE, overview.channels[0], 0)).all()


def test_an_eighth_is_pruned_each_time(log: Path) -> None:
    overview = pastnet.read(log).runs["freeze_and_prune"].overview()
    pruned = overview.pruned[:, overview.layers.index("hidden2")]
    times = np.searchsorted(PRUNE, overview.steps, side="right")
    assert pruned.tolist() == (4 * times).tolist()


def test_a_run_that_is_there_is_left_alone(log: Path) -> None:
    before = sorted(path.stat().st_mtime_ns for path in log.rglob("*"))
    done = command("demo", "--once", "--logdir", str(log))
    assert done.code == 2
    assert "--logdir" in done.error
    assert sorted(path.stat().st_mtime_ns for path in log.rglob("*")) == before


@pytest.mark.parametrize("how", sampled([signal.SIGINT, signal.SIGTERM], 2))
def test_tensorboard_shows_it_on_loopback_and_ends_with_it(
    tmp_path: Path, how: signal.Signals
) -> None:
    with started(folder=tmp_path) as process:
        try:
            address = said_until(process, r"PastNet: (http://localhost:(\d+)/)#pastnet")
            said_until(process, "first picture")
            with urllib.request.urlopen(f"{address[1]}data/plugin/pastnet/index") as answer:
                assert b'"plain"' in answer.read()
        finally:
            process.send_signal(how)
            process.communicate()
    assert process.returncode == 0
    with socket.socket() as probe:
        assert probe.connect_ex(("localhost", int(address[2])))


@pytest.mark.prove
def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with started("--port", str(port), folder=tmp_path) as process:
            said_until(process, f"Could not start TensorBoard on port {port}: .")
            process.communicate()
    assert process.returncode == 2
