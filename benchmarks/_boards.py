"""A real TensorBoard to ask over HTTP, and what it costs: time, bytes, memory."""

from __future__ import annotations

import contextlib
import http.client
import os
import subprocess
import sys
import time
import urllib.parse
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tb_pastnet.cli.board import PATIENCE, answer, free_port, wait

LOADERS = {"fast": "true", "slow": "false"}
_ROUTES = "/data/plugin/pastnet"
_QUIET = 0.05  # of a core: less is no work


class Reply(NamedTuple):
    """An answer.

    Attributes:
        status: of HTTP.
        seconds: from the request to the last byte.
        wire: bytes of the body as it was sent.
        body: unpacked.
        tag: its entity tag.
    """

    status: int
    seconds: float
    wire: int
    body: bytes
    tag: str


class Board:
    """A TensorBoard that runs.

    Args:
        server: its process.
        port: that it listens to.
    """

    def __init__(self, server: subprocess.Popen[bytes], port: int) -> None:
        self._server = server
        self.port = port
        self.address = f"http://127.0.0.1:{port}"

    def get(self, route: str, known: str = "", **query: object) -> Reply:
        """Asks a route of the plugin as a browser would.

        Args:
            route: below the plugin's address.
            known: the entity tag of an answer that is there already.
            query: the parameters; those that are None are left out.
        """
        given = {name: str(value) for name, value in query.items() if value is not None}
        path = f"{_ROUTES}{route}" + (f"?{urllib.parse.urlencode(given)}" if given else "")
        headers = {"Accept-Encoding": "gzip", **({"If-None-Match": known} if known else {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        start = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        sent = answer.read()
        seconds = time.perf_counter() - start
        connection.close()
        packed = answer.headers.get("Content-Encoding") == "gzip"
        body = zlib.decompress(sent, 31) if packed else sent
        return Reply(answer.status, seconds, len(sent), body, answer.headers.get("ETag", ""))

    def resident(self) -> float:
        """Memory of all its processes now, in MiB."""
        return self._memory("VmRSS")

    def most_resident(self) -> float:
        """The most memory that each of its processes has had, together, in MiB."""
        return self._memory("VmHWM")

    def settle(self, seconds: float = 3.0, most: float = 900.0) -> None:
        """Waits until it has nothing more to do.

        Args:
            seconds: for which its processes have to be idle.
            most: after which it is given up.

        Raises:
            TimeoutError: it never is.
        """
        end = time.monotonic() + most
        while time.monotonic() < end:
            before = self._work()
            time.sleep(seconds)
            if self._work() - before < _QUIET * seconds:
                return
        raise TimeoutError(f"Could not wait for TensorBoard: expected it idle within {most:.0f} s.")

    def _memory(self, name: str) -> float:
        return sum(_status(pid, name) for pid in family(self._server.pid)) / 1024

    def _work(self) -> float:
        """Seconds of processor time of all its processes so far."""
        stats = (_told(pid, "stat") for pid in family(self._server.pid))
        fields = (text.rpartition(")")[2].split() for text in stats if text)
        return sum(int(some[11]) + int(some[12]) for some in fields) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def board(logdir: Path, loader: str = "", *flags: str) -> Iterator[Board]:
    """Starts TensorBoard on a log directory and ends it.

    Args:
        logdir: the log directory.
        loader: "fast" or "slow"; "" for the one that it chooses by itself.
        flags: more of its flags.

    Raises:
        RuntimeError: it doesn't start.
    """
    port = free_port(6106)
    command = [sys.executable, "-m", "tensorboard.main", f"--logdir={logdir}", f"--port={port}"]
    command += ["--host=127.0.0.1", *flags]
    command += [f"--load_fast={LOADERS[loader]}"] if loader else []
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as server:
        try:
            url = f"http://127.0.0.1:{port}/"
            if not wait(lambda: answer(url) is not None, server, PATIENCE):
                raise RuntimeError(
                    f"Could not start TensorBoard: expected an answer on port {port}."
                )
            yield Board(server, port)
        finally:
            server.terminate()


def family(pid: int) -> Iterator[int]:
    """A process and its descendants, on Linux."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*"):
        for child in _told(pid, f"task/{task.name}/children").split():
            yield from family(int(child))


def _status(pid: int, name: str) -> int:
    """A number of a process; 0 of one that has ended."""
    _, _, value = _told(pid, "status").partition(f"{name}:")
    return int(value.split()[0]) if value else 0


def _told(pid: int, name: str) -> str:
    """What Linux says of a process, "" of one that is gone meanwhile."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
