"""Blocks that nobody's writer makes, with checksums that hold: the routes show what is read back."""

from __future__ import annotations

import math
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto import event_pb2

import tb_pastnet as pastnet
from tb_pastnet.format import planes, varint
from tb_pastnet.format.tags import TAG_TIMELINE, channels_tag
from tb_pastnet.format.timeline import Timeline
from tb_pastnet.reader.series_source import StoredMessage, standing
from tests import event_files as files
from tests.sealed import EIGHT, sealed
from tests.tensorboards import LOADERS, board

TAG = channels_tag("c/kernel")
RECORDS = 4
SHIFT = st.sampled_from([0, 0, 0, 0, -9, -5, -4, -2, -1, 1, 4])

FEW = settings(max_examples=4, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Crafted:
    """A block of `RECORDS` records, and by how much its numbers are off.

    Attributes:
        event: the step of its event.
        last: its own last step, less that of its event.
        sequence: its first number.
        claimed: how many records it says that it has.
        falls: the difference of its last two numbers, 1 in order.
        goes_back: that of its last two steps.
        times: how often it is written.
        wall_time: of its event.
    """

    event: int = 0
    last: int = 0
    sequence: int = 0
    claimed: int = 0
    falls: int = 1
    goes_back: int = 1
    times: int = 1
    wall_time: float = 1.7e9

    def message(self, first: int, step: int, lineage: int) -> bytes:
        """In place of one whose first number is `first`, in an event of `step`."""
        ones = [1] * (RECORDS - 2)
        numbers = [first + self.sequence, *ones, self.falls]
        numbers += [-self.last, self.goes_back, *ones, *[1] * RECORDS]
        codes = np.full((RECORDS, 2), first, np.int16)
        head = varint.encode([2, RECORDS + self.claimed]) + varint.encode_signed(numbers)
        payload = bytes(head) + b"".join(planes.pack(codes) for _ in EIGHT)
        return sealed(payload, version=1, kind=1, tag=TAG, step=step, lineage=lineage)


BLOCKS = st.builds(
    Crafted,
    event=SHIFT,
    last=st.sampled_from([0, 0, 0, -2, 3]),
    sequence=SHIFT,
    claimed=st.sampled_from([0, 0, 0, 0, -1, 1, 1 << 20]),
    falls=st.sampled_from([1, 1, 1, 1, 0, -1, 3]),
    goes_back=st.sampled_from([1, 1, 1, 1, 0, -1, 3]),
    times=st.sampled_from([1, 1, 1, 2]),
    wall_time=st.sampled_from([1.7e9, 1.7e9, 1.7e9, math.inf, -math.inf]),
)
LOGS = st.lists(st.lists(BLOCKS, min_size=2, max_size=6), min_size=8, max_size=16)


@pytest.fixture(scope="module", autouse=True)
def imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What TensorBoard imports changes Python's recursion limit, which Hypothesis watches."""
    for loader in LOADERS:
        with board(tmp_path_factory.mktemp("empty"), loader):
            pass


def write(logdir: Path, run: str, blocks: list[Crafted]) -> None:
    writer = files.LineageWriter(logdir, run, layers={"c": 2})
    version = event_pb2.Event(wall_time=1.7e9, file_version="brain.Event:2")
    writer.raw(version.SerializeToString())
    writer.describe(0)
    for number, block in enumerate(blocks):
        first, step = RECORDS * number, RECORDS * (number + 1)
        for _ in range(block.times):
            message = block.message(first, step + block.event, writer.lineage)
            writer.raw(files.event(TAG, step + block.event, message, wall_time=block.wall_time))
        numbers = np.arange(first, step)
        line = Timeline(numbers, numbers + 1, numbers + 1.0, numbers + 0.5, offered=step)
        writer.put(TAG_TIMELINE, step, writer.sealed(line, step))


def compare(logdir: Path, loader: str) -> int:
    """How many records are shown, after everything about them was compared."""
    log = pastnet.read(logdir)
    with board(logdir, loader) as here:
        index = {run["name"]: run for run in here.json("/index")["runs"]}
        assert list(index) == list(log.runs)
        for name, run in log.runs.items():
            layer = run.layers["c"]
            assert index[name]["account"] == asdict(run.account)
            channel = here.json("/channel", run=name, layer="c", channel=1)
            header, arrays = here.arrays("/layer", run=name, layer="c")
            assert channel["steps"] == layer.steps.tolist() == arrays["steps"].ravel().tolist()
            assert channel["past_steps"] == layer.past_steps.tolist()
            assert channel["norm"] == [float(f"{norm:.4g}") for norm in layer.norm[:, 1]]
            assert header["account"] == asdict(layer.account)
    return sum(len(run.layers["c"].steps) for run in log.runs.values())


@pytest.mark.promise("read_back")
@FEW
@given(LOGS)
@example([[Crafted(), Crafted(), Crafted(event=-5)], [Crafted(), Crafted(wall_time=math.inf)]])
def test_routes_of_both_loaders_show_the_records_that_are_read_back(
    runs: list[list[Crafted]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, blocks in enumerate(runs):
            write(Path(folder), f"r{number:02d}", blocks)
        slow, fast = (compare(Path(folder), loader) for loader in LOADERS)
        assert slow == fast


STEPS = st.lists(st.integers(-3, 12), max_size=12)


@given(STEPS)
def test_of_a_series_stand_the_events_before_which_no_later_one_goes_back(steps: list[int]) -> None:
    messages = [StoredMessage(step, 1.0, bytes([place])) for place, step in enumerate(steps)]
    expected = [
        message
        for place, message in enumerate(messages)
        if message.step < min(steps[place + 1 :], default=99)
    ]
    assert standing(messages) == expected
