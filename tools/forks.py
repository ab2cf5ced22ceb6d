"""Runs of pytest in processes that are forked from one that has imported the frameworks, once.

`Forks` starts that process in a copy of the repository, and this module is its program: it has
imported nothing of the repository but this, so each run sees the modules as they are then.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any, NamedTuple, cast

PLUGINS = "hypothesis", "_hypothesis_pytestplugin", "xdist.plugin", "schemathesis.pytest.plugin"
IMPORTS = (
    *PLUGINS,
    *("numpy", "pandas", "tensorflow", "keras", "torch", "torch.distributed", "torch._dynamo"),
    *("jax", "jax.numpy", "flax", "optax", "equinox", "haiku"),
    *("tensorboard.program", "tensorboard.default", "tensorboard.backend.application", "numba"),
)
OPTIONS = (
    *("-x", "-q", "--no-header", "-p", "no:cacheprovider", "--hypothesis-seed=0"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # plugins that a framework has imported
)
PATIENCE = 20
"""Seconds by the clock for each second of a processor: what waits forever uses none."""
PASSED = {0, 5}
"""Exit codes of pytest: all passed, or none is there."""


class Outcome(NamedTuple):
    """Of a run.

    Attributes:
        code: pytest's exit code; less than 0: the signal that ended it.
        seconds: of processors, with the processes that it waited for.
    """

    code: int
    seconds: float


class Forks:
    """Runs tests in a copy of the repository, one run at a time.

    Args:
        copy: the folder.
        imports: what the process imports; what isn't installed is left out.
    """

    def __init__(self, copy: Path, imports: Sequence[str] = IMPORTS) -> None:
        self.copy = copy
        env = os.environ | {"PYTHONPATH": str(copy)}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # as tools/environment.py does
        for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
            env[name] = "1"  # as tests/conftest.py does
        self._process = subprocess.Popen(
            [sys.executable, __file__, *imports],
            cwd=copy, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._tasks = cast("IO[str]", self._process.stdin)
        self._outcomes = cast("IO[str]", self._process.stdout)

    def run(
        self, files: Sequence[str], without: Collection[str], seconds: float, calls: Path | None
    ) -> Outcome:
        """Runs files of tests, until one fails.

        Args:
            files: by their paths in the copy.
            without: tests of them that don't run, by their ids.
            seconds: of processors that it may take.
            calls: the file into which `Calls` writes; then a test that fails stops nothing.
        """
        task = {"files": [*files], "without": [*without], "seconds": seconds}
        task["calls"] = str(calls) if calls else ""
        print(json.dumps(task), file=self._tasks, flush=True)
        return Outcome(*json.loads(self._outcomes.readline()))

    def close(self) -> None:
        """Ends the process."""
        with self._process:
            self._tasks.close()


class Without:
    """A plugin of pytest: leaves out tests."""

    def __init__(self, without: Collection[str]) -> None:
        self._without = {*without}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """A hook."""
        items[:] = [item for item in items if item.nodeid not in self._without]


class Calls:
    """A plugin of pytest: which functions of the package each test calls, and how long it takes.

    It writes, by the id of a test, its seconds and its functions, as [path, first line]; -1 and
    none where it didn't pass. What runs before a test, as fixtures do, belongs to all: the id "".
    """

    def __init__(self, into: Path) -> None:
        self._into, self._package = into, str(Path.cwd() / "tb_pastnet") + os.sep
        self._codes: dict[int, Any] = {}
        self._start = 0.0
        self._tests: dict[str, Any] = {"": [0.0, []]}
        sys.settrace(self._trace)
        threading.settrace(self._trace)

    def _trace(self, frame: FrameType, event: str, _: Any) -> None:
        self._codes[id(frame.f_code)] = frame.f_code

    def _take(self) -> list[tuple[str, int]]:
        sys.settrace(self._trace)  # a test may have set its own
        codes, self._codes = [*self._codes.values()], {}
        own = [code for code in codes if code.co_filename.startswith(self._package)]
        root = Path.cwd()
        return [
            (Path(code.co_filename).relative_to(root).as_posix(), code.co_firstlineno)
            for code in own
        ]

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A hook: a phase of a test has ended."""
        now = time.process_time() + sum(os.times()[2:4])
        calls = self._take()
        if report.when != "call":
            self._tests[""][1] += calls
        elif report.passed:
            self._tests[report.nodeid] = [now - self._start, calls]
        if not report.passed:
            self._tests[report.nodeid] = [-1, []]
        self._start = now

    def pytest_sessionfinish(self) -> None:
        """A hook."""
        sys.settrace(None)
        self._into.write_text(json.dumps(self._tests), "utf-8")


def run_tests(task: dict[str, Any]) -> int:
    """What a forked process does."""
    import pytest

    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    most = int(task["seconds"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    calls = [Calls(Path(task["calls"]))] if task["calls"] else []
    options = [*OPTIONS[bool(calls) :], f"--basetemp={Path.cwd() / '.tmp'}"]
    return int(pytest.main([*options, *task["files"]], [Without(task["without"]), *calls]))


def wait(pid: int, seconds: float) -> Outcome:
    """Waits for a forked process, and ends it with all that it started if it takes too long."""
    end = time.monotonic() + PATIENCE * seconds
    while True:
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > end:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return Outcome(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime)


def main() -> None:
    """The program: forks a process for each line that it reads."""
    sys.path[0] = str(Path.cwd())  # not this folder, whose names are modules as well
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    import pytest  # noqa: F401

    for name in sys.argv[1:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # forks look for garbage only in what is their own, and share the rest
    for line in sys.stdin:
        task = json.loads(line)
        pid = os.fork()
        if not pid:
            code = 3
            try:
                code = run_tests(task)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        print(json.dumps(wait(pid, task["seconds"])), file=answers, flush=True)


if __name__ == "__main__":
    main()
