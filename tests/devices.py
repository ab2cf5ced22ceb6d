"""Processes in which TensorFlow trains on two devices, or as two workers."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

import pytest

from tests.interpreter import Interpreter

# Devices can't be divided once TensorFlow has begun. What a second strategy of a process reduces
# TensorFlow takes for what the first did.
DIVIDE = """
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
shared["strategy"] = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
assert shared["strategy"].num_replicas_in_sync == 2
"""

# A strategy of workers has to be made before TensorFlow does anything else.
JOIN = """
import os

os.environ["TF_CONFIG"] = {config!r}
import tensorflow as tf

shared["strategy"] = tf.distribute.MultiWorkerMirroredStrategy()
shared["worker"] = {worker}
assert shared["strategy"].num_replicas_in_sync == 2
"""

SECONDS = 240
"""In which a program of two workers has to end: one that fails leaves the other waiting."""

Tasks = tuple[tuple[str, int], ...]
TWO: Tasks = (("worker", 0), ("worker", 1))


class Workers:
    """Two workers of one strategy, as two processes on this machine that run the same programs.

    Programs have `strategy`, and `worker`, 0 or 1.

    Args:
        tasks: type and index of each; the first is the chief.
        begin: what each does at first, with `config` and `worker` in braces.
    """

    def __init__(self, tasks: Tasks = TWO, begin: str = JOIN) -> None:
        self._tasks, self._begin = tasks, begin
        self._processes: list[Interpreter] = []

    def run(self, program: str, **given: Any) -> list[str]:
        """What the program prints in each worker; it fails if it does in one of them."""
        if not self._processes:
            self._processes = self.started()
        with ThreadPoolExecutor(len(self._processes)) as pool:
            runs = [pool.submit(one.run, program, **given) for one in self._processes]
            done, late = wait(runs, SECONDS, FIRST_EXCEPTION)
            if late:
                # In a collective that nobody else enters any more.
                for process in self._processes:
                    process.kill()
                self._processes = []
            failed = [error for run in done if (error := run.exception()) is not None]
            assert not failed, failed[0]
            assert not late, f"{len(late)} of {len(runs)} workers didn't end in {SECONDS} s"
        return [run.result() for run in runs]

    def close(self) -> None:
        with ThreadPoolExecutor(len(self._tasks)) as pool:
            list(pool.map(Interpreter.close, self._processes))

    def started(self) -> list[Interpreter]:
        """New processes of these workers, to be run at the same time."""
        return [
            Interpreter(begin=self._begin.format(config=config, worker=worker))
            for worker, config in enumerate(configs(self._tasks))
        ]


def configs(tasks: Tasks = TWO) -> list[str]:
    """What TF_CONFIG says in each task of a cluster on this machine."""
    cluster: dict[str, list[str]] = {}
    for (kind, _), port in zip(tasks, free_ports(len(tasks)), strict=True):
        cluster.setdefault(kind, []).append(f"127.0.0.1:{port}")
    return [
        json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
        for kind, index in tasks
    ]


@pytest.fixture(scope="session")
def two_devices() -> Iterator[Interpreter]:
    """A process in which `strategy` mirrors two devices."""
    process = Interpreter(begin=DIVIDE)
    yield process
    process.close()


@pytest.fixture(scope="session")
def two_workers() -> Iterator[Workers]:
    """Two processes whose `strategy` is of both."""
    processes = Workers()
    yield processes
    processes.close()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    # All are held before the first is let go, so that none is found twice.
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
