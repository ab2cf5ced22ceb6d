"""Held weights that moved, in both loaders: the list, the marks, restarts, damage, old logs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_pastnet.core.channel_states import VIOLATED
from tb_pastnet.core.quantize import quantize, quantize_shares
from tb_pastnet.core.statistics import CHANGED, DELTA_MAX
from tb_pastnet.core.violation import Violation
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.description import Series, encode_series
from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.tags import TAG_VIOLATIONS
from tb_pastnet.reader import notes
from tb_pastnet.serve.http.answers import SCHEMA
from tests import event_files as files
from tests.both_loaders import in_both
from tests.tensorboards import Board

STEPS = range(1, 41)
KERNEL, OTHER = "conv1/kernel", "block/conv2/kernel"
PARTIAL = Violation(KERNEL, 1, 10, 20, 2, 5, 0.25, "weight_decay")


def moved(layer: str, found: Violation) -> dict[str, Any]:
    """The entry of the list that a violation becomes."""
    largest = found.largest if math.isfinite(found.largest) else None
    return {"layer": layer, **vars(found), "largest": largest, "text": found.text}


@pytest.mark.parametrize("audited", [False, True])
def test_partial_channels_are_listed_marked_and_counted(tmp_path: Path, audited: bool) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0, audited=audited)
    writer.records(STEPS)
    other = replace(PARTIAL, variable=OTHER, channel=5, largest=math.inf, cause="of tomorrow")
    bias = replace(PARTIAL, variable="conv1/bias", first_step=3)
    writer.violations(12, [replace(PARTIAL, last_step=12, elements=1), other, bias])
    writer.violations(20, [PARTIAL, replace(PARTIAL, first_step=30, last_step=30)])

    def look(here: Board) -> Any:
        answer = here.json("/violations", run="a")
        _, layer = here.arrays("/layer", run="a", layer="conv1")
        _, overview = here.arrays("/overview", run="a", cols=4)
        _, told = here.arrays("/records", run="a")
        channel = here.json("/channel", run="a", layer="conv1", channel=1)
        quiet = here.json("/channel", run="a", layer="conv1", channel=0)["violations"]
        text = here.get("/export.csv", run="a", layer="conv1", channel=1).get_data(as_text=True)
        marks = [int(line.split(",")[4]) for line in text.splitlines()[1:]]
        assert marks == [int(one) for one in channel["violated"]]
        return (
            answer,
            (layer["state"] & VIOLATED != 0).tolist(),
            overview["marks"].tolist(),
            told["violated"].tolist(),
            channel["violations"],
            channel["violated"],
            quiet,
        )

    answer, state, overview, violated, entries, flags, quiet = in_both(tmp_path, look)
    again = replace(PARTIAL, first_step=30, last_step=30)
    assert answer == {
        "schema": SCHEMA,
        "run": "a",
        "total": 4,
        "violations": [
            moved("conv1", bias),
            moved("conv1", PARTIAL),
            moved("block/conv2", other),
            moved("conv1", again),
        ],
        "notes": [],
    }
    right = [10 <= step <= 20 or step == 30 for step in STEPS]
    assert state == [[False] * 40, right, [False] * 40, [False] * 40]
    assert flags == right
    assert overview == [[1, 1, 1, 0], [1, 1, 0, 0]]
    assert violated == [list(map(int, right)), [int(10 <= step <= 20) for step in STEPS]]
    assert (entries, quiet) == ([moved("conv1", PARTIAL), moved("conv1", again)], [])


def leaking(channels: int = 4) -> np.ndarray:
    """Frozen from the second record on; the third channel moves at steps 11 to 13."""
    codes = files.freeze(files.codes(STEPS, channels), slice(1, None), slice(None))
    codes[DELTA_MAX, 10:13, 2] = quantize([0.5, 2.0, 1.0])
    codes[CHANGED, 10:13, 2] = quantize_shares(2 / 9)
    return codes


FROM_RECORDS = {
    "layer": "conv1",
    "variable": KERNEL,
    "channel": 2,
    "first_step": 11,
    "last_step": 13,
    "elements": 2,
    "held": 9,
    "largest": 2.0,
    "cause": "unknown",
    "text": "conv1/kernel, channel 2: held weights moved from step 11 to 13, by at most 2 in one "
    "record. Likely cause: unknown.",
}


def test_a_run_without_an_audit_lists_what_its_records_show(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(STEPS, {KERNEL: leaking()})

    def look(here: Board) -> Any:
        return (
            here.json("/violations", run="a"),
            here.json("/channel", run="a", layer="conv1", channel=2)["violations"],
        )

    answer, channel = in_both(tmp_path, look)
    assert (answer["total"], answer["violations"]) == (1, [FROM_RECORDS])
    assert channel == [FROM_RECORDS]


def test_a_channel_that_the_audit_knows_is_listed_once(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(STEPS, {KERNEL: leaking()})
    whole = Violation(KERNEL, 2, 11, 40, 9, 9, 3.5, "ema")
    writer.violations(40, [whole])
    answer = in_both(tmp_path, lambda here: here.json("/violations", run="a"))
    assert answer["violations"] == [moved("conv1", whole)]


def test_summary_calls_have_a_list_too(tmp_path: Path) -> None:
    codes = leaking()
    content = encode_series(Series((3, 3, 1, 4), "-1", 4))
    (tmp_path / "own").mkdir()
    with (tmp_path / "own" / "events.out.tfevents.1700000000.me").open("wb") as file:
        for at, step in enumerate(STEPS):
            one = np.array([step])
            block = Block(one, one, one - 1, codes[:, at : at + 1])
            data = encode_block(block, tag=KERNEL, lineage=0)
            file.write(files.frame(files.event(KERNEL, step, data, content=content)))
    answer = in_both(tmp_path, lambda here: here.json("/violations", run="own"))
    assert answer["violations"] == [FROM_RECORDS]


def test_after_a_restart_what_was_replaced_is_gone(tmp_path: Path) -> None:
    one = files.LineageWriter(tmp_path, ordinal=1, lineage=9)
    one.describe(0)
    one.records(STEPS)
    over, after = replace(PARTIAL, last_step=40), replace(PARTIAL, channel=2, first_step=15)
    one.violations(40, [over, after])
    two = files.write_run(tmp_path, steps=range(15, 51), ordinal=2, lineage=4)
    again = replace(PARTIAL, channel=3, first_step=30, last_step=50)
    two.violations(50, [again])

    def look(here: Board) -> Any:
        _, layer = here.arrays("/layer", run="a", layer="conv1")
        return here.json("/violations", run="a"), (layer["state"] & VIOLATED != 0).sum(1).tolist()

    answer, marked = in_both(tmp_path, look)
    assert answer["violations"] == [
        moved("conv1", replace(over, last_step=14)),
        moved("conv1", again),
    ]
    assert marked == [0, 5, 0, 21]


@pytest.mark.parametrize(
    ("spoil", "note"),
    [
        (lambda message: message[:-1] + bytes([message[-1] ^ 1]), notes.DAMAGED),
        (lambda message: message[:4] + b"\x02" + message[5:], notes.NEWER),
        (lambda _: b"not ours", notes.FOREIGN),
        (
            lambda _: seal(
                b"\xff" * 9, Kind.VIOLATIONS, tag=TAG_VIOLATIONS, step=21, lineage=0x3F9A2C1B
            ),
            notes.DAMAGED,
        ),
    ],
    ids=["flipped", "future", "foreign", "sealed nonsense"],
)
def test_what_cant_be_read_is_counted_and_the_rest_shown(
    tmp_path: Path, spoil: Any, note: str
) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.violations(20, [PARTIAL])
    whole = files.encode_violations([PARTIAL], tag=TAG_VIOLATIONS, step=21, lineage=writer.lineage)
    writer.put(TAG_VIOLATIONS, 21, spoil(whole))
    writer.violations(22, [replace(PARTIAL, channel=99), replace(PARTIAL, variable="gone")])
    writer.records(STEPS)

    def look(here: Board) -> Any:
        header, _ = here.arrays("/overview", run="a")
        layer, _ = here.arrays("/layer", run="a", layer="conv1")
        answer = here.json("/violations", run="a")
        assert answer["notes"] == header["notes"] == layer["notes"]
        return answer

    answer = in_both(tmp_path, look)
    assert answer["violations"] == [moved("conv1", PARTIAL)]
    said = {one["text"]: one["count"] for one in answer["notes"]}
    assert said == {note: 1, notes.VIOLATIONS_ELSEWHERE: 2}


def test_thousands_are_counted_and_the_first_4096_listed(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path, layers={"wide": 5000})
    writer.describe(0)
    writer.records(range(1, 4))
    found = [replace(PARTIAL, variable="wide/kernel", channel=n, first_step=2) for n in range(5000)]
    writer.violations(3, found[::-1])
    answer = in_both(tmp_path, lambda here: here.json("/violations", run="a"))
    assert answer["total"] == 5000
    assert [one["channel"] for one in answer["violations"]] == list(range(4096))
