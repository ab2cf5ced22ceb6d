"""Shows a log directory in TensorBoard with its default flags, also while runs still grow in it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

FIRST_PORT = 6006  # TensorBoard's own
PATIENCE = 60.0  # seconds for TensorBoard to answer
RECORDS = 2  # of a run, from which on there is a picture


def free_port(first: int = FIRST_PORT, tries: int = 100) -> int:
    """The first port from `first` on that nothing listens to on 127.0.0.1.

    Raises:
        OSError: All of them are taken.
    """
    for port in range(first, first + tries):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise OSError(
        f"Could not find a free port: expected one from {first} to {first + tries - 1}, got none. "
        "Name one with --port."
    )


class Board:
    """A TensorBoard that runs during the training. Nothing waits for it but `finish`."""

    def __init__(self, logdir: Path, port: int | None, say: Callable[[str], None]) -> None:
        self.port = free_port() if port is None else port
        self._say = say
        command = [sys.executable, "-m", "tensorboard.main", f"--logdir={logdir}"]
        command += [f"--port={self.port}"]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  `end` closes it
        self.server = subprocess.Popen(  # noqa: S603  our own arguments
            command, stdout=subprocess.DEVNULL, stderr=self._errors
        )
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def finish(self) -> int:
        """Runs on until Ctrl+C.

        Returns:
            The exit code: 0 after Ctrl+C, 1 if TensorBoard didn't start.
        """
        self._thread.join()
        if self.server.poll() is not None:
            return 1
        self._say("Ctrl+C ends TensorBoard")
        return self.server.wait()

    def end(self) -> None:
        """Ends it."""
        self.server.terminate()
        self.server.wait()
        self._thread.join()
        self._errors.close()

    def _watch(self) -> None:
        """Says when the address answers, and when there is a first picture."""
        address = f"http://localhost:{self.port}"
        if not wait(lambda: answer(address) is not None, self.server, PATIENCE):
            self.server.terminate()
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip().splitlines()
            self._say(f"Could not start TensorBoard on port {self.port}: {' '.join(said[-1:])}")
            return
        self._say(f"PastNet: {address}/#pastnet")
        if wait(lambda: has_picture(answer(f"{address}/data/plugin/pastnet/index")), self.server):
            self._say("the first picture is there")


def wait(
    until: Callable[[], bool], server: subprocess.Popen[bytes], seconds: float = float("inf")
) -> bool:
    """Waits until something is so, as long as a server runs.

    Returns:
        Whether it is; False where the server has ended, or the time is over.
    """
    end = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < end:
        if until():
            return True
        time.sleep(0.2)
    return False


def answer(url: str) -> bytes | None:
    """What our server answers; None if it doesn't."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310  our own http address
            body: bytes = response.read()
            return body
    except OSError:
        return None


def has_picture(index: bytes | None) -> bool:
    """Whether the route `index` lists a run with so many records that there is a picture of it."""
    return index is not None and any(run["records"] >= RECORDS for run in json.loads(index)["runs"])
