"""What a logged step costs, of us and of every peer, as a share of a training step.

A training step is that of an own compiled loop: forward, backward, Adam. Logged are all variables,
with all our statistics. What is done to log a step is timed after one, in rows of some steps that
are all logged in the same way, by turns with the other ways: median and quartiles of the rounds.
Our records leave the training thread for a queue; what the thread behind it takes of a processor is
a row of its own. The limit is what it takes to stream 12 bytes a weight: current and past are read,
past is written.

Peers that need packages of their own run as programs in environments that are made for them (some
gigabytes, once), against a step of their own; `--no-peers` leaves them out.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks._models import ALL_TASKS, Task, tiny
from benchmarks._options import pairs_of, with_pairs
from benchmarks._pairs import Action, Seconds, after
from benchmarks._peers import PEERS, Peer, shares_of
from benchmarks._recording_ways import Ours, channels, limits, ours, peers
from benchmarks._rows import Rows
from benchmarks._training import ready, step
from benchmarks._variants import VARIANTS
from tools.steps import Failure

SHARES = "A logged step, as a share of a training step"
TIMES = "The same in milliseconds, beside the limit"
LONG = ("ResNet-50", "transformer")
"""Networks whose steps take seconds: all ways of a round are timed after one step."""

LONG_PAIRS = 9
CALLS = {"CNN": 3, "200 small variables": 10}
"""Logged steps in a row of each way in a round, where it isn't one."""

EVERY = 10


class Column:
    """Measures one network.

    Args:
        rows: its figures go there.
        name: of the network.
        make: makes it.
        pairs: how often everything is timed; less often, where steps are long.
    """

    def __init__(self, rows: Rows, name: str, make: Callable[[Any], Task], pairs: int) -> None:
        self._rows = rows
        self._name = name
        self._make = make
        self._pairs = min(pairs, LONG_PAIRS) if name in LONG else pairs

    def measure(self) -> None:
        """Times ours, the peers that share our process, and the limit."""
        task = ready(self._make)
        words = f"{task.words}; {channels(task.model):,} channels; {self._pairs} pairs"
        print(f"\n{self._name}: {words}", flush=True)
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            own = self._variants(task, Path(folder), stack)
            others = peers(task.model, Path(folder), stack)
            streams = limits(task.model.count_params())
            parts = {(name, part): one for name in own for part, one in own[name].actions.items()}
            actions: dict[Any, Action] = {**parts, **others, **streams}
            calls, shared = CALLS.get(self._name, 1), self._name in LONG
            ways = list(actions.values())
            steps, spent = after(step(task), ways, self._pairs, calls, shared=shared)
            behind = {name: one.behind_a_record(task.model) for name, one in own.items()}
        usual = float(np.median(steps))
        self._add("a training step", 1e3 * np.median(steps, axis=0), "ms", TIMES)
        shares = dict(zip(actions, 100 * spent / steps, strict=True))
        for name in own:
            found = {part: shares[name, part] for part in own[name].actions}
            self._ours(name, found, 100 * behind[name] / usual)
        for other in others:
            self._add(other, shares[other], "%")
        times = dict(zip(actions, spent, strict=True))
        records_of = {name: times[name, "record"] for name in own}
        self._limit({name: times[name] for name in streams}, records_of)

    def peer(self, peer: Peer) -> None:
        """Times a peer in its own environment, or says why it can't be."""
        try:
            found = shares_of(peer, self._name, self._pairs)
        except Failure as failure:
            self._fail(peer.what, failure)
        else:
            self._add(peer.what, 100 * np.array(found), "%")

    def _variants(self, task: Task, folder: Path, stack: ExitStack) -> dict[str, Ours]:
        found = {}
        for variant in VARIANTS:
            try:
                found[variant.name] = ours(task.model, variant, folder, stack)
            except Failure as failure:
                self._fail(f"{variant.name}, every=1", failure)
        return found

    def _ours(self, name: str, shares: dict[str, Seconds], behind: float) -> None:
        bars = next(one.bars for one in VARIANTS if one.name == name)
        tenth = (shares["compare"] + shares["copy"] + (EVERY - 2) * shares["idle"]) / EVERY
        self._add(f"{name}, every=1", shares["record"], "%", bar=bars.get(self._name))
        self._add(f"{name}, every={EVERY}: of the whole training", tenth, "%")
        self._add(f"{name}: the past copy alone", shares["copy"], "%")
        self._add(f"{name}: with no record due", shares["idle"], "%")
        self._add(f"{name}: behind the queue, processor time", [behind], "%")

    def _limit(self, streams: dict[str, Seconds], records: dict[str, Seconds]) -> None:
        for name, times in streams.items():
            self._add(name, 1e3 * times, "ms", TIMES)
        least = min(float(np.median(times)) for times in streams.values())
        for name, times in records.items():
            self._add(f"{name}, every=1", 1e3 * times, "ms", TIMES)
            self._add(f"{name}, every=1 / the lower limit", times / least, "", TIMES)

    def _fail(self, what: str, failure: Failure) -> None:
        row = self._rows.fail(SHARES, what, failure, column=self._name)
        print(f"  {what}, {self._name}: {row.cell}", flush=True)

    def _add(
        self,
        name: str,
        values: Seconds | list[float],
        unit: str,
        table: str = SHARES,
        bar: float | None = None,
    ) -> None:
        self._rows.line(table, name, values, unit, column=self._name, bar=bar)


def main(argv: Sequence[str]) -> int:
    """Prints the figures.

    Returns:
        The exit code: 1 if a bar is missed.
    """
    top = with_pairs("recording", __doc__)
    top.add_argument("--no-peers", action="store_true", help="none that needs an environment")
    networks = list(ALL_TASKS)
    top.add_argument("--only", nargs="+", choices=networks, default=networks, help="of the four")
    chosen = top.parse_args(argv)
    # Each recorder compiles functions of its own; TensorFlow takes that for one traced too often.
    tf.get_logger().setLevel("ERROR")
    tasks = {name: ALL_TASKS[name] for name in chosen.only}
    tasks = {"tiny": tiny} if chosen.smoke else tasks
    pairs = pairs_of(chosen)
    rows = Rows("recording")
    print(f"{pairs} pairs: median (quartiles)")
    columns = [Column(rows, name, make, pairs) for name, make in tasks.items()]
    for column in columns:
        column.measure()
    if not (chosen.smoke or chosen.no_peers):
        for column in columns:
            for peer in PEERS:
                column.peer(peer)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
