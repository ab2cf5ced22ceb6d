"""Stores that are slow, fail, or whose writers die: what was acknowledged is there, exits are clean."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tb_pastnet.reader.local_log import LocalLog
from tests import slow_store  # noqa: F401 - registers it
from tests.gcs import Gcs, gcs
from tests.recorded import Recorded, read_one
from tests.stores import S3, Fault, s3

pytestmark = pytest.mark.promise("stores")

ROOT = Path(__file__).parents[2]
PROVE = pytest.mark.prove
CASES = [pytest.param(seed, marks=() if seed == 0 else PROVE) for seed in range(100)]
FAULTS = (503, 500, 403, "reset", 0.2, 1.0)


@pytest.fixture(scope="module")
def store() -> Iterator[S3]:
    with s3() as server:
        yield server


@pytest.fixture(scope="module")
def google() -> Iterator[Gcs]:
    with gcs() as server:
        yield server


@contextmanager
def started(
    url: str, end: str, exit_timeout: float = 60.0, client: str = ""
) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.fault.writing", url, end, str(exit_timeout), client]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as training:
        try:
            yield training
        finally:
            training.kill()


def ended(
    url: str, end: str = "exit", exit_timeout: float = 60.0, client: str = ""
) -> tuple[str, str]:
    """What it said on its way to a good end."""
    with started(url, end, exit_timeout, client) as training:
        out, err = training.communicate(timeout=120)
        assert training.returncode == 0, err
    return out, err


def stored(url: str) -> Recorded:
    log = LocalLog(url)  # its copy goes with it
    return read_one(Path(log.path))


@pytest.mark.parametrize("seed", CASES)
def test_faults_at_any_point_lose_nothing_and_end_in_order(
    store: S3, seed: int, figure: Any
) -> None:
    luck, url = random.Random(seed), f"s3://bucket/faults/{seed}"
    first = len(store.puts) + 1
    faults = {first + luck.randrange(1, 12): luck.choice(FAULTS) for _ in range(3)}
    store.fault = faults.get
    out, _ = ended(url)
    log = stored(url)
    assert {*map(int, out.split())} <= {*log.record_steps()}
    assert log.record_steps() == [*range(1, 41)]
    assert sorted(log.changes) == [*range(40)]
    assert log.last.closed
    assert log.last.dropped == 0
    figure(
        "3 faults (503, 500, 403, reset, slow) at any point: 40 of 40 records there, exit code 0"
    )


@pytest.mark.parametrize("seed", CASES[:50])
def test_what_was_acknowledged_survives_kill(store: S3, seed: int, figure: Any) -> None:
    luck, url = random.Random(seed), f"s3://bucket/killed/{seed}"
    store.fault = lambda number: luck.choice((None, None, 0.05, 503))
    with started(url, "kill") as training:
        assert training.stdout is not None
        told = [int(training.stdout.readline()) for _ in range(luck.randrange(1, 6))]
        time.sleep(luck.random() / 5)
        training.kill()
        told += map(int, training.communicate()[0].split())
    steps = stored(url).record_steps()
    assert {*told} <= {*steps}
    assert steps == [*range(1, len(steps) + 1)]
    figure("kill -9 at any point: 0 acknowledged records lost, and no gap")


def test_a_store_that_is_slow_at_exit_is_waited_for(store: S3, figure: Any) -> None:
    url = "s3://bucket/slow"
    store.fault = lambda number: 2.0
    ended(url, "late")
    assert stored(url).record_steps() == [*range(1, 41)]
    figure("2 seconds a request at exit: 40 of 40 records there")


def test_a_store_that_hangs_at_exit_is_given_up_after_the_time_that_was_given(
    store: S3, figure: Any
) -> None:
    store.fault = lambda number: 30.0
    _, err = ended("s3://bucket/hangs", "late", exit_timeout=1.0)
    assert "Dropped 40 records that could not be written within 1 seconds" in err
    figure("a store that hangs at exit: 40 of 40 records given up, said so, exit code 0")


@pytest.mark.parametrize("client", ["gcsfs", pytest.param("tensorflow", marks=PROVE)])
def test_google_that_is_slow_at_exit_is_waited_for(google: Gcs, client: str) -> None:
    url = f"gs://bucket/slow/{client}"
    google.fault = lambda number: 2.0
    ended(url, "late", client=client)
    assert stored(url).record_steps() == [*range(1, 41)]


DELAYS = [0.1, *(pytest.param(n / 20, marks=PROVE) for n in range(15) if n != 2)]


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("client", [pytest.param("gcsfs", marks=PROVE), "tensorflow"])
def test_an_upload_that_ends_while_python_does_leaves_the_exit_code(
    google: Gcs, client: str, delay: float, figure: Any
) -> None:
    given_up = threading.Event()

    def fault(number: int) -> Fault:
        assert given_up.wait(100)
        return delay

    google.fault = fault
    with started(f"gs://bucket/{client}/{delay}", "failed", 0.2, client) as training:
        assert training.stderr is not None
        assert any(
            "Dropped 40 records that could not be written within 0.2 seconds" in line
            for line in training.stderr
        )
        given_up.set()
        _, err = training.communicate(timeout=120)
    assert training.returncode == 3, err
    figure("uploads that ended while Python did: exit codes kept")


def test_a_store_that_uploads_as_files_are_closed(tmp_path: Path) -> None:
    url = f"slow://{tmp_path}/runs/a"
    ended(url, "late", client="slow")
    assert stored(url).record_steps() == [*range(1, 41)]
    _, err = ended(f"slow://{tmp_path}/runs/b", "late", 0.2, client="slow")
    assert "Dropped 40 records that could not be written within 0.2 seconds" in err
