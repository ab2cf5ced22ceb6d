"""A log directory is untrusted: every length is checked before it is allocated."""

from __future__ import annotations

import functools
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tb_pastnet.core.channel_states import VIOLATED
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.format import json_payload, limits, planes, varint
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.function_change import FunctionChange, Place
from tb_pastnet.format.tags import (
    TAG_DESCRIPTION,
    TAG_FOLLOWS,
    TAG_FUNCTION,
    TAG_MASKS,
    TAG_OVERHEAD,
    TAG_SKETCHES,
    TAG_STANDING,
    TAG_TIMELINE,
    TAG_VIOLATIONS,
    channels_tag,
    mask_tag,
)
from tb_pastnet.reader import mask_changes as mask_log
from tb_pastnet.reader import mask_history
from tb_pastnet.reader import notes as said
from tb_pastnet.reader.store import Store
from tests import event_files as files
from tests import probed
from tests.masks_in_force import masks_in_force
from tests.providers import CALLER, MemoryProvider, memory_run
from tests.sampled import sampled
from tests.security import bombs as bombs_in_logs
from tests.tensorboards import LOADERS, Board, board

pytestmark = pytest.mark.promise("fuzz")

MEBIBYTE = 1 << 20
MOST_RSS = 512
"""MiB of a process that reads a hostile log in every way, 180 of which are what it imports."""
QUICK = {("shape", 1), ("digits", 1), ("rates", 1_000), ("mask of ones", 10), ("records", 10),
         ("own nothing", 1), ("own digits", 10), ("probe places", 1)}  # fmt: skip
"""Of all bombs in whole logs, those that run at each change."""

TAG = channels_tag("conv1/kernel")
BITS = mask_tag("kept", "conv1/kernel")
CHANGE = {"number": 0, "step": 5, "variable": "conv1/kernel", "mask": "kept", "through": 30,
          "elements": 36}  # fmt: skip
MOVED = {"variable": "conv1/kernel", "first_step": 5, "last_step": 9, "cause": "ema",
         "channel": [1], "elements": [1], "held": [4], "largest": [0.5]}  # fmt: skip


PLACED = {"kind": "layer", "name": "conv1", "elements": 9}
HEAD = {"measures": ["relative", "cosine", "divergence", "decisions"], "inputs": [],
        "places": [PLACED], "sequence": [0], "steps": [17], "past_steps": [16]}  # fmt: skip


def probe(head: dict[str, object], values: Callable[[], bytes]) -> bytes:
    packed = json_payload.pack({**HEAD, **head})
    return varint.encode([len(packed)]) + packed + values()


def log_with(logdir: Path, tag: str, kind: Kind, payload: bytes) -> None:
    """A good run, and one message that is sealed as it should be and hostile inside."""
    writer = files.LineageWriter(logdir)
    writer.describe(0)
    writer.records(range(1, 17))
    writer.put(tag, 17, seal(payload, kind, tag=tag, step=17, lineage=writer.lineage))


def look(here: Board) -> None:
    for route, query in (
        ("/index", {}),
        ("/overview", {"run": "a"}),
        ("/layer", {"run": "a", "layer": "conv1"}),
        ("/channel", {"run": "a", "layer": "conv1", "channel": 0}),
        ("/violations", {"run": "a"}),
        ("/function", {"run": "a"}),
        ("/overlap", {"run": ["a", "a"], "mask": "trainable"}),
        ("/overlap_layers", {"run": "a", "other": "a"}),
        ("/overlap_layers", {"run": "a", "other": "a", "unit": "channels"}),
        ("/export.csv", {"run": "a"}),
    ):
        assert here.get(route, **query).status_code == 200


@functools.cache
def zeros(size: int) -> bytes:
    return zlib.compress(bytes(size), 1)


def far() -> bytes:
    return zeros(80 * MEBIBYTE)


def bombs() -> list[tuple[str, str, Kind, Callable[[], bytes]]]:
    """By name, and how each is made: not before it goes off."""
    claim = varint.encode([limits.MAX_JSON])
    many = varint.encode([1 << 23, 1 << 12])
    head = varint.encode([4, 16]) + bytes(48)
    return [
        ("description inflates far", TAG_DESCRIPTION, Kind.DESCRIPTION, lambda: claim + far()),
        ("description claims more", TAG_DESCRIPTION, Kind.DESCRIPTION,
         lambda: varint.encode([1 << 60]) + far()),
        ("deep JSON", TAG_DESCRIPTION, Kind.DESCRIPTION,
         lambda: varint.encode([200_000]) + zlib.compress(b"[" * 200_000)),
        ("block claims many cells", TAG, Kind.CHANNELS, lambda: many),
        ("block claims many channels", TAG, Kind.CHANNELS,
         lambda: varint.encode([1 << 62, 1])),
        ("plane inflates far", TAG, Kind.CHANNELS,
         lambda: head + bytes([1]) + varint.encode([len(far())]) + far()),
        ("timeline claims many records", TAG_TIMELINE, Kind.TIMELINE,
         lambda: varint.encode([1 << 40, 0, 0, 0, 0])),
        ("timeline claims a long note", TAG_TIMELINE, Kind.TIMELINE,
         lambda: varint.encode([0, 0, 0, 0, 0, 1, 1 << 40])),
        ("mask log inflates far", TAG_MASKS, Kind.MASKS, lambda: claim + far()),
        ("deep JSON in a mask log", TAG_MASKS, Kind.MASKS,
         lambda: varint.encode([200_000]) + zlib.compress(b"[" * 200_000)),
        ("a change of no number", TAG_MASKS, Kind.MASKS,
         lambda: json_payload.pack({"changes": [{**CHANGE, "number": "0"}]})),
        ("a change past all numbers", TAG_MASKS, Kind.MASKS,
         lambda: json_payload.pack({"changes": [{**CHANGE, "number": 1 << 70}]})),
        ("violations inflate far", TAG_VIOLATIONS, Kind.VIOLATIONS, lambda: claim + far()),
        ("violations of one column", TAG_VIOLATIONS, Kind.VIOLATIONS,
         lambda: json_payload.pack({"violations": [{**MOVED, "channel": [0, 1]}]})),
        ("violations that go back", TAG_VIOLATIONS, Kind.VIOLATIONS,
         lambda: json_payload.pack({"violations": [{**MOVED, "last_step": 1}]})),
        *((f"a probe {name}", TAG_FUNCTION, Kind.FUNCTION, functools.partial(probe, head, values))
          for name, head, values in (
            ("that inflates far", {}, far),
            ("of many values", {"places": [{**PLACED, "name": str(n)} for n in range(60_000)],
                                "steps": list(range(20)), "sequence": list(range(20)),
                                "past_steps": [0] * 20}, functools.partial(zeros, 80 * 60_000 * 4)),
            ("of many places", {"places": [{**PLACED, "name": str(n)} for n in range(70_000)]}, bytes),
            ("of many records", {"steps": list(range(5000))}, bytes),
            ("of many dimensions", {"inputs": [{"name": "", "shape": [1] * 999, "dtype": ""}]}, bytes),
            ("of measures without end", {"measures": [str(n) for n in range(999)]}, bytes),
            ("of one place twice", {"places": [PLACED, PLACED]}, functools.partial(zeros, 32)),
          )),
        ("a probe whose head inflates far", TAG_FUNCTION, Kind.FUNCTION,
         lambda: varint.encode([len(claim + far())]) + claim + far()),
        ("a probe whose head claims more", TAG_FUNCTION, Kind.FUNCTION,
         lambda: varint.encode([1 << 27])),
        ("an overhead of numbers without end", TAG_OVERHEAD, Kind.OVERHEAD,
         lambda: varint.encode([1 << 60, *range(1000)])),
        ("numbers without end", TAG_TIMELINE, Kind.TIMELINE, lambda: b"\xff" * 1000),
    ]  # fmt: skip


@pytest.mark.parametrize(("tag", "kind", "make"), [one[1:] for one in bombs()],
                         ids=[one[0] for one in bombs()])  # fmt: skip
def test_a_bomb_is_one_unreadable_message(
    tmp_path: Path, tag: str, kind: Kind, make: Callable[[], bytes]
) -> None:
    log_with(tmp_path, tag, kind, make())
    with board(tmp_path, "slow") as here:
        here.get("/index.js")
        tracemalloc.start()
        try:
            look(here)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # The largest description that is allowed, twice: as it inflates and as one piece.
        assert peak < 2 * limits.MAX_JSON + 8 * MEBIBYTE
        header, arrays = here.arrays("/layer", run="a", layer="conv1")
        assert arrays["steps"].tolist() == list(range(1, 17))
        assert not (arrays["state"] & VIOLATED).any()
        notes = here.json("/index")["runs"][0]["notes"] + header["notes"]
        if tag == TAG_FUNCTION:
            header, arrays = here.arrays("/function", run="a")
            assert arrays["steps"].size == 0
            notes = [one for one in header["notes"] if one["text"] != said.FUNCTION_MISSING]
        assert "Damaged" in notes[0]["text"]


@pytest.mark.parametrize("loader", sampled(LOADERS, every=2))
def test_blocks_of_constant_planes_dont_add_up_without_bound(tmp_path: Path, loader: str) -> None:
    """Each takes 150 bytes in the log and 16 MiB once decoded: 60 of them would take 1 GiB."""
    channels, records = 1 << 18, 4
    writer = files.LineageWriter(tmp_path, layers={"conv1": channels})
    writer.describe(0)
    codes = np.zeros((len(STATISTICS), records, channels), np.int16)
    for at in range(60):
        steps = np.arange(records) + at * records
        block = Block(steps, steps, steps, codes)
        writer.put(TAG, int(steps[-1]), encode_block(block, tag=TAG, lineage=writer.lineage))
    assert writer.path.stat().st_size < 100_000
    with board(tmp_path, loader) as here:
        tracemalloc.start()
        try:
            header, arrays = here.arrays("/layer", run="a", layer="conv1", since=16)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 400 * MEBIBYTE, peak / MEBIBYTE
    account = header["account"]
    # A half of what is free: the bias is as wide.
    assert (account["shown"], account["unreadable"]) == (32, 208)
    assert header["notes"][0] == {"text": said.IN_PART, "count": 208}
    assert arrays["steps"].tolist() == list(range(17, 32))


@pytest.mark.parametrize("loader", LOADERS)
def test_logs_of_masks_and_violations_dont_add_up_without_bound(
    tmp_path: Path, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mask_log, "MOST_CHANGES", 4_000)
    monkeypatch.setattr(mask_history, "MOST_VIOLATIONS", 4_000)
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(range(1, 17))
    columns = {name: [1] * 1000 for name in ("elements", "held", "largest")}
    for step in range(1, 21):
        changes = [{**CHANGE, "number": 1000 * step + n} for n in range(1000)]
        moved = {**MOVED, **columns, "channel": list(range(1000)), "first_step": step,
                 "last_step": step}  # fmt: skip
        for tag, kind, payload in (
            (TAG_MASKS, Kind.MASKS, {"changes": changes}),
            (TAG_VIOLATIONS, Kind.VIOLATIONS, {"violations": [moved]}),
        ):
            message = json_payload.pack(payload)
            writer.put(tag, step, seal(message, kind, tag=tag, step=step, lineage=writer.lineage))
    with board(tmp_path, loader) as here:
        tracemalloc.start()
        try:
            header, _ = here.arrays("/overview", run="a")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 20 * MEBIBYTE, peak / MEBIBYTE
    found = {one["text"] for one in header["notes"]}
    assert {said.MASKS_TOO_MANY, said.VIOLATIONS_TOO_MANY} <= found


@pytest.mark.parametrize("loader", ["fast", pytest.param("slow", marks=pytest.mark.prove)])
def test_records_of_a_probe_dont_add_up_without_bound(
    tmp_path: Path, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message takes 4 MiB once decoded: 24 of them would take 96 MiB, and more as one."""
    monkeypatch.setattr(planes, "_MOST_DEFLATED", 1 << 30)  # no writer of ours deflates so far
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    monkeypatch.setattr("tb_pastnet.format.planes.deflate", zlib.compress)  # ours makes no bombs
    places = [Place("layer", f"{n}", 1) for n in range(1 << 12)]
    zeros = np.zeros((4, 1 << 6, len(places)), np.float32)
    for at in range(24):
        steps = np.arange(1 << 6) + at * (1 << 6)
        change = FunctionChange((), tuple(places), steps, steps, steps, zeros)
        probed.write(writer, change)
    assert writer.path.stat().st_size < 2 * MEBIBYTE
    with board(tmp_path, loader) as here:
        tracemalloc.start()
        try:
            header, arrays = here.arrays("/function", run="a")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 200 * MEBIBYTE, peak / MEBIBYTE
    assert arrays["steps"].tolist() == list(range(0, 24 << 6, 2))
    assert header["notes"] == [{"text": said.FUNCTION_TOO_MANY, "count": (24 << 6) // 2}]


@pytest.mark.parametrize("elements", [1 << 31, (1 << 31) - 1, 37])
def test_a_mask_that_claims_to_be_large_is_unknown(elements: int) -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 17))
    change = {**CHANGE, "elements": elements}
    log = json_payload.pack({"changes": [change]})
    zeros = varint.encode([0]) + varint.encode_signed([0]) + varint.encode([elements, 0])
    for tag, kind, payload in ((TAG_MASKS, Kind.MASKS, log), (BITS, Kind.MASK, zeros)):
        writer.put(tag, 5, seal(payload, kind, tag=tag, step=5, lineage=writer.lineage))
    store = Store(provider)
    run = store.catalog(CALLER).runs["a"]
    tracemalloc.start()
    try:
        found = masks_in_force(store.reader(CALLER, run), "conv1/kernel", 9)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (found.kept, found.unknown) == (None, ("kept",))
    assert peak < MEBIBYTE


def sealed_numbers(numbers: list[int]) -> bytes:
    return varint.encode(numbers)


@pytest.mark.parametrize("make", [
    lambda rng: rng.bytes(int(rng.integers(0, 400))),
    lambda rng: sealed_numbers(rng.integers(0, 1 << 20, int(rng.integers(0, 60))).tolist()),
    lambda rng: varint.encode([2, 3]) + rng.bytes(int(rng.integers(0, 300))),
])  # fmt: skip
def test_sealed_nonsense_is_never_an_error(
    tmp_path: Path, make: Callable[[np.random.Generator], bytes]
) -> None:
    rng = np.random.default_rng(5)
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(range(1, 17))
    step = 17
    for _ in range(60):
        for tag, kind in (
            (TAG, Kind.CHANNELS),
            (TAG_TIMELINE, Kind.TIMELINE),
            (TAG_DESCRIPTION, Kind.DESCRIPTION),
            (TAG_MASKS, Kind.MASKS),
            (TAG_VIOLATIONS, Kind.VIOLATIONS),
            (TAG_FUNCTION, Kind.FUNCTION),
            (TAG_OVERHEAD, Kind.OVERHEAD),
            (TAG_FOLLOWS, Kind.FOLLOWS),
            (TAG_SKETCHES, Kind.SKETCHES),
            (TAG_STANDING, Kind.STANDING),
            (BITS, Kind.MASK),
        ):
            message = seal(make(rng), kind, tag=tag, step=step, lineage=writer.lineage)
            writer.put(tag, step, message)
        step += 1
    with board(tmp_path, "slow") as here:
        look(here)


@pytest.mark.parametrize(("name", "repeats", "lineages"), [
    case if case[:2] in QUICK else pytest.param(*case, marks=pytest.mark.prove)
    for case in bombs_in_logs.names()
])  # fmt: skip
def test_a_hostile_log_costs_no_more_than_its_budget(
    name: str, repeats: int, lineages: bool
) -> None:
    cost = bombs_in_logs.set_off(name, repeats, lineages)
    assert not cost["raised"], cost
    assert cost["over"] == {}, cost
    assert cost["rss"] <= MOST_RSS, cost
