"""A process of Python for many programs. TensorFlow takes long to import: one process does it, once.

Each interpreter is forked from that one, which imports TensorFlow and Keras and does nothing with
them: a fork has threads, devices and a mode of its own. Other imports have a process of their own.
All workers of pytest share these processes, which end with the pytest that the workers belong to.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

from tools.steps import ROOT

KERAS = "import keras, tensorflow"
TORCH = "import tb_pastnet.torch, torch.distributed.fsdp, torch.distributed.tensor.parallel"

SERVER = """
import gc, os, select, shutil, signal, socket, sys
from tests.interpreter import exists, serve
gc.disable()
exec(sys.argv[2])
gc.enable()
gc.freeze()  # forks look for garbage only in what is their own, and share the rest
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that end
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    listener.listen()
    print("ready", flush=True)
    while exists(int(sys.argv[3])):
        if not select.select([listener], [], [], 1)[0]:
            continue
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            serve(connection)
            sys.exit()
        connection.close()
shutil.rmtree(os.path.dirname(sys.argv[1]), ignore_errors=True)
"""

STRICT = """
import warnings
warnings.filterwarnings("error", category=DeprecationWarning, module="__main__")
"""
"""Begin with it, and what is deprecated in a program fails it."""

LOOP = """
import contextlib, io, json, sys, traceback
shared = {}
exec(begin, {"shared": shared})
for line in stream:
    program, given = json.loads(line)
    if "keras" in sys.modules:
        sys.modules["keras"].utils.clear_session()
    said, error = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(said):
            exec(program, {"__name__": "__main__", **shared, **given})
    except BaseException:
        error = traceback.format_exc()
    print(json.dumps([said.getvalue(), error]), file=stream, flush=True)
"""


def serve(connection: socket.socket) -> None:
    """What a forked process does, until nobody is at the other end."""
    with connection.makefile("rw", encoding="utf-8") as stream:
        begin, folder, environment = json.loads(stream.readline())
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        stream.write(f"{os.getpid()}\n")
        stream.flush()
        exec(LOOP, {"begin": begin, "stream": stream})


def exists(pid: int) -> bool:
    """Whether a process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@functools.cache
def _server(imports: str) -> str:
    """The address of a process that has imported, and forks others: the first worker starts it."""
    import fcntl  # not on Windows, where other tests run

    whole = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(whole))
    folder = Path(tempfile.gettempdir(), f"pastnet-{run}")
    folder.mkdir(mode=0o700, exist_ok=True)
    address = folder / f"{zlib.crc32(imports.encode()):x}"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not address.exists():
            _start(imports, address, whole)
    return str(address)


def _start(imports: str, address: Path, whole: int) -> None:
    process = subprocess.Popen(
        # A crash shows where.
        [sys.executable, "-X", "faulthandler", "-c", SERVER, address, imports, str(whole)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    process.returncode = 0  # Nobody waits for it: it ends after all that may need it.
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "ready\n"


class Interpreter:
    """Runs programs one after the other, each with names and a session of Keras of its own.

    It starts with the first.

    Args:
        begin: what it does at first; all programs have the names that it puts into `shared`.
        imports: what the process has imported that it is forked from.
    """

    def __init__(self, begin: str = "", imports: str = KERAS) -> None:
        self._begin, self._imports = begin, imports
        self._stream: Any = None
        self._pid = 0

    def run(self, program: str, **given: Any) -> str:
        """What a program prints; it fails if the program does."""
        if self._stream is None:
            self.start()
        self._say([program, given])
        line = self._stream.readline()
        assert line, f"the process ended in {program[:200]}"
        said, error = json.loads(line)
        assert not error, error
        return str(said)

    def start(self) -> None:
        """Begins, and doesn't wait for it."""
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(_server(self._imports))
        self._stream = self._connection.makefile("rw", encoding="utf-8")
        self._say([self._begin, str(Path.cwd()), dict(os.environ)])
        self._pid = int(self._stream.readline())

    def _say(self, what: Any) -> None:
        self._stream.write(json.dumps(what) + "\n")
        self._stream.flush()

    def alive(self) -> bool:
        """Whether it has not ended."""
        return exists(self._pid)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Ends it wherever it is."""
        if self._stream is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, how)
            self.close()

    def close(self) -> None:
        """Lets it end after its last program."""
        if self._stream is not None:
            with self._connection, self._stream, contextlib.suppress(OSError):  # it may have ended
                self._connection.shutdown(socket.SHUT_WR)
                self._stream.read()
            self._stream = None
