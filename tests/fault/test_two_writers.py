"""Processes that record into one place of a store: at once, and one after the other was killed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import tb_pastnet as pastnet
from tb_pastnet.reader.notes import AT_ONCE
from tests.fault.test_stores import PROVE, ROOT
from tests.stores import S3, s3

pytestmark = pytest.mark.promise("supersession")

CASES = [pytest.param(seed, marks=() if seed < 1 else PROVE) for seed in range(20)]


@pytest.fixture(scope="module")
def store() -> Iterator[S3]:
    with s3() as server:
        yield server


@contextmanager
def training(url: str, first: int, count: int) -> Iterator[subprocess.Popen[str]]:
    """One that has been acknowledged something."""
    command = [sys.executable, "-m", "tests.fault.array_training", url, str(first), str(count)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline(), process.stderr and process.stderr.read()
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> str:
    """What it said since its first step, when it has ended."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


@pytest.mark.parametrize("seed", CASES)
def test_of_two_writers_at_once_none_vanishes_and_both_are_noted(store: S3, seed: int) -> None:
    luck, url = random.Random(seed), f"s3://bucket/at_once/{seed}/run"
    first = luck.choice([1, 1, 11, 41])
    with training(url, 1, 0) as older:
        time.sleep(luck.random())
        with training(url, first, luck.randrange(30, 300)) as younger:
            ended(younger)
        last = int(ended(older).split()[-1])
    runs = pastnet.read(f"s3://bucket/at_once/{seed}").runs
    assert [*runs] == ["run", "run (2)"]
    steps, thinned = runs["run"].steps, runs["run"].account.thinned
    assert (steps[0], steps[-1], len(steps)) == (1, last, last - thinned)
    assert thinned == 0 or last > 1024  # a busy machine gives the older one time for so many
    assert runs["run (2)"].steps[0] == first
    for run in runs.values():
        assert run.account.superseded == 0
        assert run.account.shown + run.account.thinned == run.account.offered
        assert run.notes[AT_ONCE] == 1


@pytest.mark.parametrize("seed", CASES)
def test_a_restart_after_kill_is_no_second_writer(store: S3, seed: int) -> None:
    luck, url = random.Random(seed), f"s3://bucket/restarts/{seed}/run"
    with training(url, 1, 100_000) as killed:
        time.sleep(luck.random() / 2)
        killed.kill()
        killed.wait()
        first = luck.randrange(2, 11)
        with training(url, first, 30) as resumed:
            ended(resumed)
    (run,) = pastnet.read(f"s3://bucket/restarts/{seed}").runs.values()
    assert (run.name, len(run.lineages)) == ("run", 2)
    assert run.steps.tolist() == [*range(1, first + 30)]
    assert AT_ONCE not in run.notes
    assert run.account.superseded == run.account.offered - run.account.shown
