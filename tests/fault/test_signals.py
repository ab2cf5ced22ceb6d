"""A signal handler that calls the Recorder in the middle of one of its own calls: no hang, no loss."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.numpy import Recorder
from tests.doc_programs import programs_of
from tests.recorded import read_lineages

pytestmark = pytest.mark.promise("signals")

HANG_SECONDS = 60.0
CALLS: dict[str, Callable[[Recorder], Any]] = {
    "record": lambda recorder: recorder.record((recorder.last_step or 0) + 1),
    "flush": lambda recorder: recorder.flush(30.0),
    "close": lambda recorder: recorder.close(30.0),
}


@contextmanager
def no_hang() -> Iterator[None]:
    """Fails what waits for ever: Python lets a handler end the wait for a lock."""

    def ring(*_: object) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Bytecodes:
    """Counts the bytecodes that this thread runs, and raises a signal at one of them."""

    def __init__(self, nth: int = 0) -> None:
        self.count = 0
        self._nth = nth

    def __call__(self, frame: Any, event: str, _: object) -> Any:
        frame.f_trace_opcodes = True
        self.count += event == "opcode"
        if self.count == self._nth and event == "opcode":
            signal.raise_signal(signal.SIGUSR1)
        return self

    @contextmanager
    def counted(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self)
        try:
            yield
        finally:
            sys.settrace(before)


def on_disk(logdir: Path) -> set[int]:
    """The recorded steps that a reader finds, were the process killed now."""
    return {step for lineage in read_lineages(logdir) for step in lineage.record_steps()}


def interrupt(logdir: Path, call: str, inner: str, bytecodes: Bytecodes) -> bool | None:
    """Records three steps, then makes a call that is interrupted by another one, and goes on.

    Returns:
        What `flush` answered in the handler; None if another call was made there.
    """
    weight = np.ones((3, 2), np.float32)
    recorder = Recorder(logdir, {"a/kernel": lambda: weight}, every=1, past="record")
    for _ in range(3):
        CALLS["record"](recorder)
    weight += 1  # whatever is called now, `close` records it
    answers: list[Any] = []

    def handle(*_: object) -> None:
        tracing = sys.gettrace()
        sys.settrace(None)
        made = recorder.records
        answers.append(CALLS[inner](recorder))
        if answers[0]:
            assert on_disk(logdir) >= set(range(1, made + 1))
        sys.settrace(tracing)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with no_hang():
            with bytecodes.counted():
                CALLS[call](recorder)
            CALLS["record"](recorder)
            acknowledged = recorder.flush(30.0)
            recorder.close(30.0)
    finally:
        signal.signal(signal.SIGUSR1, before)
    check(logdir, recorder, acknowledged, closed="close" in (call, answers and inner))
    return answers[0] if answers and inner == "flush" else None


def check(logdir: Path, recorder: Recorder, acknowledged: bool, *, closed: bool) -> None:
    """Each record is shown, or counted: as dropped, or as a call that could not be carried out."""
    run = pastnet.read(logdir).runs["."]
    account = run.account
    assert run.closed
    assert (account.shown, account.unreadable, account.superseded) == (len(run.steps), 0, 0)
    assert account.offered == account.shown + account.dropped
    assert account.shown >= 3
    assert (account.shown == recorder.records) or closed
    # What is refused after the end is counted, and then nothing is acknowledged any more.
    assert acknowledged != closed
    assert all("Could not make a record" in text for text in recorder.notes.counts())


def points(tmp_path: Path, call: str, count: int) -> list[int]:
    whole = Bytecodes()
    interrupt(tmp_path / f"counted {call}", call, "flush", whole)
    return sorted(random.Random(f"{call}{count}").sample(range(1, whole.count), count))


def interrupt_all(tmp_path: Path, call: str, count: int) -> list[bool | None]:
    """Interrupts a call at some points, by each call; returns what flushes answered."""
    places = points(tmp_path, call, count)
    answers = []
    for inner in CALLS:
        for nth in places:
            try:
                logdir = tmp_path / f"{call} {inner} {nth}"
                answers.append(interrupt(logdir, call, inner, Bytecodes(nth)))
            except AssertionError as error:
                raise AssertionError(f"{inner} in {call}, at bytecode {nth}: {error}") from error
    return [answer for answer in answers if answer is not None]


@pytest.mark.parametrize("call", CALLS)
def test_some_points(tmp_path: Path, call: str) -> None:
    answers = interrupt_all(tmp_path, call, 12)
    assert call == "close" or all(answers)


@pytest.mark.prove
@pytest.mark.parametrize("call", CALLS)
def test_many_points(tmp_path: Path, call: str, figure: Any) -> None:
    answers = interrupt_all(tmp_path, call, 500)
    figure(
        f"a signal within {call} at 500 points, for each of {', '.join(CALLS)}: 0 hangs, 0 "
        f"acknowledged lost; flush there is True at {sum(answers)} of {len(answers)}"
    )
    assert call == "close" or sum(answers) >= 0.95 * len(answers)


PROGRAM = """
import os, sys, numpy, tb_pastnet as pastnet
weight = numpy.ones((3, 2), "f")
recorder = pastnet.numpy.Recorder(sys.argv[1], {"a/kernel": lambda: weight}, every=1)
exec(sys.argv[2])
for step in range(1, 100):
    weight *= 1.01
    recorder.record(step)
    if step == 50:
        os.kill(os.getpid(), signal.SIGUSR1)
    if step == 60:
        os.kill(os.getpid(), getattr(signal, sys.argv[3]))
"""


@pytest.mark.parametrize(("end", "shown"), [("SIGKILL", 50), ("SIGTERM", 60)])
def test_the_documented_handlers(tmp_path: Path, end: str, shown: int) -> None:
    handlers = programs_of("docs/how_to/recording.md")[1]
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), handlers, end]
    code = subprocess.run(command, check=False).returncode
    assert code == (-signal.SIGKILL if end == "SIGKILL" else 128 + signal.SIGTERM)
    run = pastnet.read(tmp_path).runs["."]
    assert {*range(1, shown + 1)} <= {*run.steps.tolist()}
    assert run.closed == (end == "SIGTERM")
