"""The logs that the kept answers are about: event files that are written once, and then only read.

`python -m tests.golden.kept_logs` writes those that aren't there yet. Files that are there are never
written again: what is kept is what today's code answers about yesterday's bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tb_pastnet.core.violation import Violation
from tests import event_files as files
from tests import probed
from tests.contract.test_http_api import sample_log
from tests.contract.test_own_writer import write_own
from tests.e2e.stories import neighbour, story
from tests.event_files import LineageWriter
from tests.generated_logs import Damage, Made, Mask, Moved, Writer
from tests.golden import contents
from tests.oracle.cases import log_of

FOLDER = Path(__file__).parent / "logs"


def shown(logdir: Path) -> None:
    """Four runs: free, frozen step by step, frozen with a leak, pruned; and one of scalars."""
    story(logdir)
    neighbour(logdir)


def messages(logdir: Path) -> None:
    """Every kind of message and each coding of masks, as the golden files have them."""
    writer = LineageWriter(logdir, "golden", lineage=contents.LINEAGE)
    stored = contents.messages()
    writer.put("description", 10, stored.pop("description.bin"))
    for coding, step in contents.MASK_STEPS.items():
        writer.put(contents.MASK, step, stored.pop(f"mask_{coding}.bin"))
    del stored["function_digest.bin"]  # of the same steps as function.bin
    for name, message in stored.items():
        tag = name.removesuffix(".bin")
        tag = contents.CHANNELS if tag == "channels" else tag
        writer.put(tag, contents.LAST_STEP, message)


def restarts(logdir: Path) -> None:
    """A restart that goes back, one with other layers, two writers at a time, and users' own."""
    files.write_run(logdir, steps=range(60), ordinal=1, lineage=0xAAAA)
    files.write_run(logdir, steps=range(40, 90), ordinal=2, lineage=0x1111)
    files.write_run(logdir, "changed", steps=range(30), ordinal=1, lineage=7)
    layers = {"conv1": 5, "block/other": 6}
    files.write_run(logdir, "changed", steps=range(25, 50), ordinal=2, lineage=8, layers=layers)
    pair = [LineageWriter(logdir, "two", at, at + 20) for at in (1, 2)]
    for writer in pair:
        writer.first_step = writer.ordinal
        writer.describe(writer.ordinal)
    for first in range(0, 60, 20):
        for writer in pair:
            writer.records(range(first + writer.ordinal, first + 20, 2))
    write_own(logdir, "own", [1, 2, 3, 4, 3, 4, 5])
    write_own(logdir, "a", [1, 2])


def mixed() -> Made:
    """Lineages of one run with masks, violations, probes, lost records and several segments."""
    masks = (
        Mask(2, "kept", 0, 0.5), Mask(5, "trainable", 1, 0.0), Mask(9, "kept", 0, 0.9),
        Mask(12, "kept", 1, 0.0), Mask(20, "trainable", 1, 1.0),
    )  # fmt: skip
    moved = Moved(4, 3, 0, "momentum"), Moved(11, 9, 1, "=later"), Moved(4, 0, 2, "unknown")
    first = Writer(
        "a", 1, 3, (1, 2, 3) * 8, 7, 0, audited=True, closed=False, probe=True, lost=1,
        masks=masks, moved=moved, segment_every=11,
    )  # fmt: skip
    second = Writer(
        "a", 2, 30, (1,) * 30, 16, 0, audited=True, closed=True, probe=True, lost=0,
        masks=masks[:3], moved=moved[:1], segment_every=31,
    )  # fmt: skip
    other = Writer(
        "b", 1, 0, (5, 1) * 10, 4, 1, audited=False, closed=True, probe=False, lost=2,
        masks=(Mask(1, "kept", 0, 0.5), Mask(8, "trainable", 0, 0.0)), moved=(), segment_every=9,
    )  # fmt: skip
    odd = Writer(
        "c", 1, 2, (2,) * 12, 5, 2, audited=True, closed=True, probe=True, lost=0,
        masks=(Mask(3, "kept", 0, 0.0),), moved=(Moved(6, 2, 0, "bypassed"),), segment_every=13,
    )  # fmt: skip
    return Made((first, second, other, odd), own=(1, 2, 4, 4))


def damaged() -> Made:
    """The same, with files that are flipped, cut, zeroed and grown."""
    damage = (
        Damage(0, "flip", 0.4, 3), Damage(1, "flip", 0.7, 1), Damage(2, "cut", 0.6, 0),
        Damage(4, "zeros", 0.5, 0), Damage(5, "garbage", 0, 5), Damage(3, "flip", 0.2, 6),
    )  # fmt: skip
    made = mixed()
    return Made(made.writers, made.own, damage)


def stalled(logdir: Path) -> None:
    """A run in which what is free stands still, some is not finite, and one that has no record."""
    steps = range(10, 400, 10)
    codes = files.codes(steps, 6, seed=4)
    files.poison(codes, slice(20, 24), slice(4, 6))
    codes[2:5, 10:, 1] = files.ZERO
    writer = LineageWriter(logdir, "still", every=10, first_step=10)
    writer.describe(9, audited=True)
    found = [Violation("block/conv2/kernel", 3, 200, 390, 9, 9, 2.5, "loaded")]
    writer.violations(390, found)
    notes = {"The queue was full": 3}
    writer.records(steps, {"block/conv2/kernel": codes}, thinned=4, dropped=1, notes=notes)
    probed.written(writer, steps)
    LineageWriter(logdir, "empty", lineage=9).describe(0)


def together(logdir: Path) -> None:
    """Variables that share series, of which a restart has others, and a lost block."""
    three = {"conv1": 5, "block/conv2": 6, "block/conv3": 3}
    LineageWriter(logdir, "apart", layers=three).describe(0)
    for run, lost in (("whole", False), ("lost", True)):
        first = LineageWriter(logdir, run, lineage=11, layers=three, together=((0, 2, 4), (1, 5)))
        first.describe(1)
        first.records(range(1, 41))
        other = {**three, "block/conv2": 4}
        second = LineageWriter(logdir, run, 2, 12, layers=other, together=((0, 4), (1, 3, 5)))
        second.first_step = 35
        second.describe(35)
        second.records(range(35, 60))
        second.close(59)
        if lost:
            Damage(0, "flip", 0.5, 3).befall([first.path])


LOGS: dict[str, Callable[[Path], object]] = {
    "sample": sample_log,
    "shown": shown,
    "messages": messages,
    "restarts": restarts,
    "mixed": lambda folder: mixed().write(folder),
    "damaged": lambda folder: damaged().write(folder),
    "stalled": stalled,
    "oracle": lambda folder: log_of(1, folder),
    "together": together,
}

if __name__ == "__main__":
    for name, write in LOGS.items():
        if not (FOLDER / name).exists():
            (FOLDER / name).mkdir(parents=True)
            write(FOLDER / name)
