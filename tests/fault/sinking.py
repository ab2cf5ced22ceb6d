"""A program that only writes, for the tests that end it: `python sinking.py LOGDIR [how it ends]`.

It offers a record and a change of a mask a step and prints each step that a flush has acknowledged. It needs no TensorFlow,
so that it starts quickly.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from types import SimpleNamespace

import numpy as np

from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.core.violation import Violation
from tb_pastnet.format.description import Description, encode_description
from tb_pastnet.format.files import join
from tb_pastnet.format.function_change import LAYER, Place
from tb_pastnet.format.tags import DESCRIPTIONS, lineage_directory
from tb_pastnet.record.batch import Batch, Record, Span
from tb_pastnet.record.changes import MaskUpdate
from tb_pastnet.record.ending import TrainingEnd
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.lineage_writer import LineageWriter
from tb_pastnet.record.messages import Message
from tb_pastnet.record.overhead_timer import OverheadTotals
from tb_pastnet.record.segments import create_lineage, segments_in
from tb_pastnet.record.sink import Sink
from tests.patience import be_patient


def begun(segments, batch, describe, failures, totals=None, **settings):
    """A sink whose first lineage has begun."""
    sink = Sink(failures, TrainingEnd(), **{"exit_seconds": segments.exit_seconds, **settings})
    totals = totals or OverheadTotals()
    sink.begin(LineageWriter(segments, batch, describe, totals, sink.deferred))
    assert sink.flush()
    return sink


def make_sink(logdir, exit_timeout=60.0, **settings):
    """A sink for two variables of 40 channels and a probe of two places."""
    run = create_lineage(logdir)

    def describe(first_step, step):
        text = Description(run.lineage, run.ordinal, "o", 1, "previous", first_step, 0.0)
        return [
            Message(tag, step, encode_description(text, tag=tag, step=step)) for tag in DESCRIPTIONS
        ]

    spans = [Span("a/kernel", 0, 30, True), Span("a/bias", 30, 40, False)]
    directory = join(logdir, lineage_directory(run.ordinal, run.lineage))
    segments = segments_in(directory, time.time(), exit_timeout)
    failures = Failures()
    probe = SimpleNamespace(inputs=(), places=[Place(LAYER, "a", 10), Place(LAYER, "b", 10)])
    batch = Batch(spans, run.lineage, probe=probe)
    return begun(segments, batch, describe, failures, **settings), failures


def offer(sink, step):
    """One record whose values say its step, also those of the probe."""
    values, function = (
        np.full((len(STATISTICS), 40), float(step)),
        np.full((4, 2), step, np.float32),
    )
    number = sink.reserve()
    return sink.offer(Record(number, step, step - 1, time.time(), 0.1, values, function))


def flags(step, elements=90):
    """A random mask that its step determines."""
    return np.random.default_rng(step).random(elements) < 0.5


def mask(step, variable="a/kernel", kind="kept", elements=90):
    """That mask as it is handed over."""
    kept = flags(step, elements)
    return MaskUpdate(variable, kind, np.packbits(kept), elements, int(kept.sum()))


def change(sink, step):
    """A change of a mask and a violation that goes on, both of which say their step."""
    sink.masks(step, [mask(step)])
    sink.violations(step, [Violation("a/kernel", 2, 1, step, 1, 9, float(step), "ema")])


def fork(sink):
    """A child that goes on as if it were the parent."""
    offer(sink, 1)
    if os.fork() == 0:
        for step in range(2, 50):
            change(sink, step)
            offer(sink, step)
        sink.flush()
        sink.close()
        sys.exit(0)
    os.wait()
    offer(sink, 2)


def interrupt(sink):
    """Ctrl-C while the first group is written."""
    # A job in the background, as of a CI, is started with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    write = sink._background._writer.segments.write

    def interrupting(head, body):
        sink._background._writer.segments.write = write
        os.kill(os.getpid(), signal.SIGINT)
        write(head, body)

    sink._background._writer.segments.write = interrupting


def run(sink, first, steps, *, flush=True):
    """Offers, and prints what is acknowledged."""
    for step in range(first, first + steps):
        change(sink, step)
        offer(sink, step)
        if flush and step % 3 == 0 and sink.flush():
            sys.stdout.write(f"{step}\n")
            sys.stdout.flush()


def fail():
    raise RuntimeError("the training failed")


ENDS = {
    "raise": fail,
    "exit": lambda: sys.exit(3),
    "_exit": lambda: os._exit(4),
    "sigterm": lambda: os.kill(os.getpid(), signal.SIGTERM),
}


def main(logdir, end="run", first=1):
    if end != "blocked":
        be_patient()
    sink, _ = make_sink(logdir)
    if end == "fork":
        fork(sink)
        return
    if end == "interrupt":
        interrupt(sink)
    if end == "blocked":
        sink._background._writer.segments.write = lambda head, body: time.sleep(3600)
    run(sink, first, 1_000_000 if end == "run" else 40, flush=end != "blocked")
    ENDS.get(end, lambda: None)()


if __name__ == "__main__":
    main(sys.argv[1], *sys.argv[2:3], *map(int, sys.argv[3:4]))
