"""A reader of a soak: asks as a page does and proves each answer. `python -m tests.soak.reading`.

It takes the port of a TensorBoard and the seconds, and prints JSON at its end: how long each answer
took in seconds, by route, and what was wrong.
"""

from __future__ import annotations

import csv
import hashlib
import json
import random
import sys
import time
from collections import Counter
from typing import Any

import numpy as np

from benchmarks._boards import Board, Reply
from tb_pastnet.core.quantize import dequantize
from tb_pastnet.core.statistics import DELTA_NORM, PAST_NORM
from tests.event_files import CREATED, codes
from tests.layers import arrays_of
from tests.soak.writing import LAYERS, LIFE
from tests.tensorboards import strict_json

THINKS = 0.1
"""Seconds between two requests of one reader."""

BLOCK = 16
STEPS = np.arange(1, LIFE * BLOCK + 1)


def truth(channels: int) -> np.ndarray:
    """The relative delta of each channel at each step, from what the writer puts in."""
    values = dequantize(codes(STEPS, channels))
    return (values[DELTA_NORM] / values[PAST_NORM]).T


TRUTH = {layer: truth(channels) for layer, channels in LAYERS.items()}


class Torn(Exception):
    """An answer that can't be true."""


def demand(holds: Any, what: str, got: object = "") -> None:
    """Raises Torn unless something holds."""
    if not holds:
        raise Torn(f"{what}: {got!r}"[:300])


def whole(account: dict[str, int]) -> None:
    """Everything that was offered is shown: nothing here is ever lost or replaced."""
    rest = {name: count for name, count in account.items() if name not in ("offered", "shown")}
    demand(account["offered"] == account["shown"] + sum(rest.values()), "account", account)
    demand(not any(rest.values()), "records that are not shown", account)


def counts_up(steps: np.ndarray) -> None:
    """Records 1, 2, 3, … without a gap."""
    demand(np.array_equal(steps, STEPS[: len(steps)]), "steps", steps[:5].tolist())
    demand(len(steps) % BLOCK == 0, "part of a block", len(steps))


class Reader:
    """Asks and remembers.

    Args:
        port: of TensorBoard.
        seed: of its choices.
    """

    def __init__(self, port: int, seed: int) -> None:
        self.board = Board(None, port)  # type: ignore[arg-type]
        self.choose = random.Random(seed)
        self.took: dict[str, list[float]] = {}
        self.statuses: Counter[int] = Counter()
        self.torn: list[str] = []
        self.runs: dict[str, int] = {}
        self.tags: dict[str, str] = {}
        self.bodies: dict[tuple[str, str], str] = {}

    def ask(self, route: str, **query: Any) -> Reply | None:
        """Asks a route, now and then with the tag of the answer before.

        Returns:
            A new answer; None where nothing changed or the run is gone.
        """
        key = f"{route}?{query}"
        known = self.tags.get(key, "") if self.choose.random() < 0.5 else ""
        reply = self.board.get(route, known, **query)
        self.took.setdefault(route, []).append(reply.seconds)
        self.statuses[reply.status] += 1
        if reply.status == 404:
            error = strict_json(reply.body)["error"]
            demand(error["code"] == "not_found" and "run" in query, "404", error)
            self.runs.pop(query["run"], None)
            return None
        if reply.status == 304:
            demand(known and reply.tag == known and not reply.body, "304", (known, reply.tag))
            return None
        demand(reply.status == 200, f"status of {key}", (reply.status, reply.body[:200]))
        demand(reply.tag, "no ETag", key)
        digest = hashlib.sha256(reply.body).hexdigest()
        self.tags[key] = reply.tag
        before = self.bodies.setdefault((key, reply.tag), digest)
        demand(before == digest, "one ETag of two answers", key)
        return reply

    def index(self) -> None:
        reply = self.ask("/index")
        if reply is None:
            return
        body, seen = strict_json(reply.body), {}
        for run in body["runs"]:
            whole(run["account"])
            name, records = run["name"], run["records"]
            demand(records == run["account"]["shown"], "records", run)
            demand(
                records == 0 or (run["first_step"], run["last_step"]) == (1, records), "run", run
            )
            demand(
                records >= self.runs.get(name, 0),
                f"{name} went back from {self.runs.get(name)}",
                records,
            )
            layers = body["networks"][run["network"]]["layers"]
            demand({one["id"]: one["channels"] for one in layers} == LAYERS, "layers", layers)
            demand(not run["notes"], "notes", run["notes"])
            seen[name] = records
        self.runs = seen

    def overview(self, run: str) -> None:
        reply = self.ask("/overview", run=run, cols=self.choose.choice((64, 128, 256)))
        if reply is None:
            return
        header, arrays = arrays_of(reply.body)
        for account in header["accounts"]:
            whole(account)
        demand(header["layers"] == list(LAYERS), "layers", header["layers"])
        demand(header["channels"] == list(LAYERS.values()), "channels", header["channels"])
        for shares in arrays["shares"]:
            sums, empty = shares.sum(axis=1, dtype=int), shares[:, 0] > 0
            demand((sums == 255).all(), "shares of a column", sums.tolist()[:5])
            # Of the last records of all, those of the layers that are written first are there first.
            older = arrays["steps"] <= arrays["steps"][-1] - BLOCK
            demand(not (empty & older).any(), "columns without data", empty.tolist()[-9:])
        ends = arrays["steps"]
        demand((np.diff(ends) > 0).all() and (ends >= arrays["first_steps"]).all(), "columns")
        # The timeline, which tells when, is the last of what is written together.
        told = np.isfinite(arrays["wall_times"])
        demand((np.diff(told.astype(int)) <= 0).all(), "times within others", told.tolist()[-5:])
        times = arrays["wall_times"][told]
        demand((times == CREATED + ends[told]).all(), "times", times.tolist()[:5])

    def layer(self, run: str) -> None:
        name = self.choose.choice(list(LAYERS))
        reply = self.ask("/layer", run=run, layer=name)
        if reply is None:
            return
        header, arrays = arrays_of(reply.body)
        whole(header["account"])
        steps = arrays["steps"].astype(int)
        counts_up(steps)
        demand(header["account"]["shown"] == len(steps), "shown", header["account"])
        demand(arrays["delta"].shape == (LAYERS[name], len(steps)), "shape", arrays["delta"].shape)
        near = np.isclose(arrays["delta"], TRUTH[name][:, : len(steps)], rtol=0.05)
        demand(near.all(), f"values of {run} {name}", np.argwhere(~near)[:3].tolist())

    def channel(self, run: str) -> None:
        name = self.choose.choice(list(LAYERS))
        at = self.choose.randrange(LAYERS[name])
        reply = self.ask("/channel", run=run, layer=name, channel=at)
        if reply is None:
            return
        body = strict_json(reply.body)
        counts_up(np.array(body["steps"]))
        told = np.array(body["delta_norm"]) / np.array(body["past_norm"])
        near = np.isclose(told, TRUTH[name][at, : len(told)], rtol=0.05)
        demand(len(told) == len(body["steps"]) and near.all(), f"values of {run} {name} {at}")

    def export(self, run: str) -> None:
        reply = self.ask("/export.csv", run=run, layer="conv1")
        if reply is None:
            return
        rows = list(csv.DictReader(reply.body.decode().splitlines()))
        steps = np.array([int(row["step"]) for row in rows]).reshape(-1, LAYERS["conv1"])
        counts_up(steps[:, 0])
        demand((steps == steps[:, :1]).all(), "rows of a step")

    def read(self, seconds: float) -> None:
        """Asks until the time is over."""
        end = time.monotonic() + seconds
        asks = (self.overview, self.layer, self.channel, self.export)
        while time.monotonic() < end:
            try:
                if not self.runs or self.choose.random() < 0.2:
                    self.index()
                else:
                    (ask,) = self.choose.choices(asks, (6, 6, 4, 0.5))
                    ask(self.choose.choice(list(self.runs)))
            except Exception as error:
                self.torn.append(f"{type(error).__name__}: {error}"[:400])
            time.sleep(self.choose.uniform(0, 2 * THINKS))


if __name__ == "__main__":
    reader = Reader(int(sys.argv[1]), seed=int(sys.argv[3]))
    reader.read(float(sys.argv[2]))
    told = {"took": reader.took, "statuses": dict(reader.statuses), "torn": reader.torn}
    sys.stdout.write(json.dumps(told))
