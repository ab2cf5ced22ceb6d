"""`check` names every damage by file and offset, and counts as the tab does."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tb_pastnet.cli.check import inspect
from tb_pastnet.format.tags import TAG_TIMELINE
from tests import event_files as files
from tests.commands import command
from tests.contract.test_http_api import sample_log
from tests.tensorboards import LOADERS, board


def frames(data: bytes) -> list[tuple[int, int]]:
    """Offset and size of each frame, from the lengths alone."""
    found, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        found.append((at, length + 16))
        at += length + 16
    return found


def test_a_whole_log_is_whole(tmp_path: Path) -> None:
    sample_log(tmp_path)
    done = command("check", tmp_path)
    assert (done.code, done.error) == (0, "")
    found = command("check", tmp_path, "--json").json
    assert found["whole"]
    for file in found["files"]:
        path = tmp_path / file["file"]
        assert (file["bytes"], file["faults"]) == (path.stat().st_size, [])
        assert file["messages"] == file["readable"] == len(frames(path.read_bytes()))
    assert [run["account"]["shown"] for run in found["runs"]] == [6, 6]


@pytest.mark.parametrize("loader", LOADERS)
def test_its_account_is_that_of_the_tab(tmp_path: Path, loader: str) -> None:
    files.write_run(tmp_path, "re", range(1, 81))
    files.write_run(tmp_path, "re", range(50, 121), ordinal=2, lineage=77)
    writer = files.write_run(tmp_path, "cut", lineage=78)
    data = writer.path.read_bytes()
    writer.path.write_bytes(data[: len(data) // 2])
    found = command("check", tmp_path, "--json").json
    with board(tmp_path, loader) as here:
        told = {run["name"]: run["account"] for run in here.json("/index")["runs"]}
        assert {run["name"]: run["account"] for run in found["runs"]} == told
        for run in found["runs"]:
            for id_, account in run["variables"].items():
                layer, _, _ = id_.rpartition("/")
                header, _ = here.arrays("/layer", run=run["name"], layer=layer, variable=id_)
                assert header["account"] == account


def test_what_is_superseded_is_told_with_its_place(tmp_path: Path) -> None:
    first = files.write_run(tmp_path, "a", range(1, 81))
    files.write_run(tmp_path, "a", range(50, 121), ordinal=2, lineage=77)
    old, new = command("check", tmp_path, "--json").json["files"]
    assert new["superseded"] is None
    told = old["superseded"]
    assert (told["records"], told["first_step"]) == (31, 50)
    # The timeline that holds step 50 is that of the steps 49 to 64.
    from tensorboard.compat.proto.event_pb2 import Event

    data = first.path.read_bytes()
    events = {at: Event.FromString(data[at + 12 : at + size - 4]) for at, size in frames(data)}
    [at] = [
        at
        for at, event in events.items()
        if event.step == 64 and event.summary.value[0].tag == TAG_TIMELINE
    ]
    assert told["offset"] == at
    assert "31 records superseded from step 50 on, offset" in command("check", tmp_path).out


def test_every_kind_of_damage_has_its_name_and_place(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path, "a")
    writer.describe(0)
    writer.records(range(1, 17))
    places = [writer.path.stat().st_size]

    def put(tag: str, step: int, message: bytes | None, **more: object) -> None:
        writer.put(tag, step, message, **more)
        places.append(writer.path.stat().st_size)

    put("channels/conv1/kernel", 17, b"not ours")
    put("channels/conv1/kernel", 18, b"PAST\x02" + bytes(20))
    put("channels/conv1/kernel", 19, b"PAST\x01" + bytes(20))
    put("of/a/later/version", 20, b"PAST\x01" + bytes(20))
    tensor = files.tensor_pb2.TensorProto(dtype=1, float_val=[1.0])
    put("timeline", 21, None, tensor=tensor)
    with writer.path.open("ab") as file:
        file.write(b"\x05\0\0")
    [found] = command("check", tmp_path, "--json").json["files"]
    assert [(one["offset"], one["kind"], one["step"]) for one in found["faults"]] == [
        (places[0], "foreign", 17),
        (places[1], "version", 18),
        (places[2], "damaged", 19),
        (places[3], "damaged", 20),
        (places[4], "foreign", 21),
        (places[5], "torn", None),
    ]
    assert found["messages"] - found["readable"] == 5
    done = command("check", tmp_path)
    assert done.code == 1
    assert f"offset {places[0]:,}, channels/conv1/kernel, step 17: tb_pastnet did not" in done.out


def test_an_altered_frame_around_a_whole_message_is_told_apart(tmp_path: Path) -> None:
    writer = files.write_run(tmp_path)
    data = bytearray(writer.path.read_bytes())
    at, size = frames(bytes(data))[3]
    data[at + size - 1] ^= 1  # of the frame's own checksum
    writer.path.write_bytes(data)
    done = command("check", tmp_path, "--json")
    [file] = done.json["files"]
    assert [(one["offset"], one["kind"]) for one in file["faults"]] == [(at, "frame")]
    assert (done.code, file["readable"]) == (1, file["messages"])
    assert done.json["runs"][0]["account"]["unreadable"] == 0


@pytest.mark.promise("cut_and_flipped")
@pytest.mark.parametrize("stride", [97, pytest.param(1, marks=pytest.mark.prove)])
def test_no_flipped_bit_goes_unnoticed(
    tmp_path: Path, stride: int, figure: Callable[..., None]
) -> None:
    writer = files.write_run(tmp_path, steps=range(1, 4), layers={"c": 1})
    whole = writer.path.read_bytes()
    places = frames(whole)
    bits = range(0, 8 * len(whole), stride)
    for bit in bits:
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        writer.path.write_bytes(flipped)
        [file] = list(inspect(tmp_path))
        [at] = [at for at, size in places if at <= bit // 8 < at + size]
        assert [fault.offset for fault in file.faults][:1] == [at], bit
    figure(f"check: {len(bits):,} flipped bits of a file, each found at the offset of its record")


@pytest.mark.promise("cut_and_flipped")
@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.prove)])
def test_no_cut_goes_unnoticed(tmp_path: Path, long: bool, figure: Callable[..., None]) -> None:
    writer = files.write_run(tmp_path, steps=range(1, 9), layers={"conv1": 2})
    whole = writer.path.read_bytes()
    ends = {at for at, _ in frames(whole)}
    cuts = range(1, len(whole), 1 if long else 29)
    for cut in cuts:
        writer.path.write_bytes(whole[:cut])
        [file] = command("check", tmp_path, "--json").json["files"] or [{"faults": []}]
        kinds = [fault["kind"] for fault in file["faults"]]
        assert kinds == ([] if cut in ends else ["torn"]), cut
    figure(f"check: {len(cuts):,} cuts of a file, each torn record named by its offset")


def test_a_users_own_writer_is_checked(tmp_path: Path) -> None:
    from tb_pastnet.format.block import Block, encode_block
    from tests.event_files import event, frame

    content = json.dumps({"v": 1, "shape": [2, 3], "axis": "-1", "channels": 3}).encode()
    path = tmp_path / "own" / "events.out.tfevents.1700000000.host"
    path.parent.mkdir()
    parts = []
    for step in range(3):
        steps = np.array([step])
        block = Block(steps, steps, steps - 1, files.codes(steps, 3))
        message = encode_block(block, tag="dense/kernel", lineage=0)
        parts.append(frame(event("dense/kernel", step, message, content=content)))
    path.write_bytes(b"".join(parts) + frame(files.scalar_event("loss", 1, 0.5)))
    [file] = command("check", tmp_path, "--json").json["files"]
    assert (file["messages"], file["readable"]) == (3, 3)
    path.write_bytes(b"".join(parts)[:-60] + parts[0][-60:])
    done = command("check", tmp_path)
    assert done.code == 1
    assert "did not end" not in done.out


def test_files_without_anything_of_ours_are_not_listed(tmp_path: Path) -> None:
    path = tmp_path / "other" / "events.out.tfevents.1700000000.host"
    path.parent.mkdir()
    path.write_bytes(files.frame(files.scalar_event("loss", 1, 0.5)))
    done = command("check", tmp_path)
    assert done == (0, "This log contains no runs of tb_pastnet. Pass the directory that training wrote to, or one above it.\n", "")  # fmt: skip


def test_no_directory_is_no_log(tmp_path: Path) -> None:
    for name in ("check", "report", "export"):
        more = [tmp_path / "out"] if name == "export" else []
        done = command(name, tmp_path / "nowhere", *more)
        assert (done.code, done.out) == (2, "")
        assert "Could not read the log" in done.error
        assert "expected a directory, got No such file or directory" in done.error
