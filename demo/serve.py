"""Shows a log directory in TensorBoard with its default flags."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

FIRST_PORT = 6006  # TensorBoard's own
PATIENCE = 60.0  # seconds for TensorBoard to answer


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


def wait(url: str, server: subprocess.Popen[bytes], seconds: float = PATIENCE) -> bool:
    """Waits until a server answers.

    Returns:
        Whether it did; False as soon as the server has ended.
    """
    end = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310  our own http address
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    return False


def serve(logdir: Path, port: int | None) -> int:
    """Runs TensorBoard until Ctrl+C and says where the tab is.

    Args:
        logdir: The directory to show.
        port: The port, or None for the first free one from 6006 on.

    Returns:
        The exit code: 0 after Ctrl+C, 1 if TensorBoard didn't start.
    """
    port = free_port() if port is None else port
    command = [sys.executable, "-m", "tensorboard.main", f"--logdir={logdir}", f"--port={port}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            if not wait(f"http://localhost:{port}/", server):
                print(f"Could not start TensorBoard on port {port}; see its message above.")
                server.terminate()
                return 1
            print(f"\nPastNet: http://localhost:{port}/#pastnet   (Ctrl+C ends)", flush=True)
            return server.wait()
        except KeyboardInterrupt:
            server.terminate()
            return 0
