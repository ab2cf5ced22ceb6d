"""What a logged step costs, of us and of every peer, as a share of a training step.

A training step is that of an own compiled loop: forward, backward, Adam. Logged are all variables,
with all our statistics. What is done to log a step is timed right after one, by turns with the
other ways, each beside a step of its own: median and quartiles of these pairs. Our records leave
the training thread for a queue; what the thread behind it takes of a processor is a row of its own.
The limit is what it takes to stream 12 bytes a weight: current and past are read, past is written.

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

from benchmarks._models import ALL_TASKS, Task, tiny
from benchmarks._options import pairs_of, with_pairs
from benchmarks._pairs import Seconds, after, interleaved
from benchmarks._peers import PEERS, Peer, shares_of
from benchmarks._recording_ways import PLAIN, Ours, limits, ours, peers
from benchmarks._rows import Rows
from benchmarks._training import ready, step
from tools.steps import Failure

SHARES = "A logged step, as a share of a training step"
TIMES = "The same in milliseconds, beside the limit"
TIMES_OF_LIMIT = 3.0
CALLS = {"CNN": 2, "200 small variables": 5}
"""Logged steps of each way in a round; one of networks whose steps are long."""

EVERY = 10


class Column:
    """Measures one network.

    Args:
        rows: its figures go there.
        name: of the network.
        make: makes it.
        pairs: how often everything is timed.
    """

    def __init__(self, rows: Rows, name: str, make: Callable[[Any], Task], pairs: int) -> None:
        self._rows = rows
        self._name = name
        self._make = make
        self._pairs = pairs

    def measure(self) -> None:
        """Times ours, the peers that share our process, and the limit."""
        task = ready(self._make)
        weights = task.model.count_params()
        print(f"\n{self._name}: {task.words}", flush=True)
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            own = ours(task.model, Path(folder), stack)
            others = peers(task.model, Path(folder), stack)
            actions = {**own.actions, **others}
            calls = CALLS.get(self._name, 1)
            steps, spent = after(step(task), list(actions.values()), self._pairs, calls)
            self._add("milliseconds of a step", 1e3 * np.median(steps, axis=0), "ms", TIMES)
            times = dict(zip(actions, spent, strict=True))
            shares = dict(zip(actions, 100 * spent / steps, strict=True))
            self._ours(shares, self._behind(own, calls) / float(np.median(steps)))
            for name in others:
                self._add(name, shares[name], "%")
        self._limit(weights, times)

    def peer(self, peer: Peer) -> None:
        """Times a peer in its own environment, or says why it can't be."""
        try:
            found = shares_of(peer, self._name, self._pairs)
        except Failure as failure:
            row = self._rows.fail(SHARES, peer.what, failure, column=self._name)
            print(f"  {peer.what:52} {row.cell}", flush=True)
        else:
            self._add(peer.what, 100 * np.array(found), "%")

    def _ours(self, shares: dict[str, Seconds], behind: float) -> None:
        each = shares["record"]
        tenth = (shares["compare"] + shares["copy"] + (EVERY - 2) * shares["idle"]) / EVERY
        self._add("ours, every=1", each, "%", bar=PLAIN.get(self._name))
        self._add(f"ours, every={EVERY}: of the whole training", tenth, "%")
        self._add("the past copy alone", shares["copy"], "%")
        self._add("with no record due", shares["idle"], "%")
        self._add("behind the queue, processor time of a record", [100 * behind], "%")

    def _behind(self, own: Ours, calls: int) -> float:
        own.flush()
        # One when it was made, one that isn't timed, and those of the pairs.
        return own.behind.seconds() / (2 + self._pairs * calls)

    def _limit(self, weights: int, times: dict[str, Seconds]) -> None:
        ways = limits(weights)
        streams = interleaved(*ways.values(), pairs=self._pairs, calls=5)
        for name, one in zip(ways, streams, strict=True):
            self._add(f"limit: 12 bytes a weight, {name}", 1e3 * one, "ms", TIMES)
        self._add("ours, every=1", 1e3 * times["record"], "ms", TIMES)
        ratio = times["record"] / min(np.median(one) for one in streams)
        self._add("ours / the lower limit", ratio, "", TIMES, bar=TIMES_OF_LIMIT)

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
    top.add_argument("--only", metavar="NETWORK", choices=ALL_TASKS, help="one of the four")
    chosen = top.parse_args(argv)
    tasks = {"tiny": tiny} if chosen.smoke else ALL_TASKS
    pairs = pairs_of(chosen)
    rows = Rows("recording")
    print(f"{pairs} pairs: median (quartiles)")
    columns = [
        Column(rows, name, make, pairs)
        for name, make in tasks.items()
        if chosen.only in (None, name)
    ]
    for column in columns:
        column.measure()
    if not (chosen.smoke or chosen.no_peers):
        for column in columns:
            for peer in PEERS:
                column.peer(peer)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
