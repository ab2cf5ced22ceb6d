"""Which values of a file count, and what reads them again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.util import tensor_util

from tb_pastnet.errors import UnreadableLog
from tb_pastnet.reader.file_source import StoredValue, read, scan
from tests import event_files as files

SIZE = len(files.frame(files.event("t", 1, b"abc")))


def write(path: Path, *events: bytes) -> Path:
    path.write_bytes(b"".join(map(files.frame, events)))
    return path


def bytes_of(paths: list[Path], places: list[StoredValue]) -> list[bytes | None]:
    return [data for _, _, data in read(paths, [(place, "t") for place in places])]


def test_places_are_those_of_the_frames(tmp_path: Path) -> None:
    one = write(tmp_path / "1", *(files.event("t", step, b"abc") for step in (1, 2)))
    two = write(tmp_path / "2", files.event("t", 3, b"abc", wall_time=4.5))
    found, begun, unopened = scan([one, two])
    assert (list(found), begun, unopened) == (["t"], True, 0)
    places = list(found["t"])
    assert [place[:4] for place in places] == [
        (0, 0, 1, files.CREATED),
        (0, SIZE, 2, files.CREATED),
        (1, 0, 3, 4.5),
    ]
    assert found["t"].version[:2] == (3, repr(float(files.CREATED)))
    assert bytes_of([one, two], places) == [b"abc"] * 3
    assert bytes_of([one, two], places[1:2]) == [b"abc"]


def test_a_step_that_doesnt_grow_replaces_what_was_there(tmp_path: Path) -> None:
    path = write(tmp_path / "1", *(files.event("t", step, b"x") for step in (1, 5, 9, 5, 6, 6, 7)))
    assert [place.step for place in scan([path]).series["t"]] == [1, 5, 6, 7]


def test_the_first_value_says_whose_series_it_is(tmp_path: Path) -> None:
    content = (
        files.event("ours", 1, b"a", content=b"first"),
        files.event("ours", 2, b"b", content=b"2"),
    )
    foreign = files.event("theirs", 1, b"a", plugin="scalars"), files.event("theirs", 2, b"b")
    plain = event_pb2.Event(step=1)
    plain.summary.value.add(tag="plain").tensor.CopyFrom(tensor_util.make_tensor_proto(1.0))
    unclassed = event_pb2.Event.FromString(files.event("unclassed", 1, b"a"))
    unclassed.summary.value[0].metadata.data_class = summary_pb2.DATA_CLASS_UNKNOWN
    rest = [one.SerializeToString() for one in (plain, unclassed)]
    more = files.event("plain", 2, b"b"), files.event("unclassed", 2, b"b")
    path = write(tmp_path / "1", *content, *foreign, *rest, *more)
    found = scan([path]).series
    assert list(found) == ["ours"]
    assert found["ours"].content == b"first"


def test_values_of_another_kind_are_left_out_and_replace_all_the_same(tmp_path: Path) -> None:
    number = event_pb2.Event.FromString(files.event("t", 3, b"a"))
    number.summary.value[0].simple_value = 1.0
    path = write(
        tmp_path / "1",
        *(files.event("t", step, b"a") for step in (1, 2, 3)),
        number.SerializeToString(),
        files.event("t", 4, None),
        files.event("t", 5, None, tensor=tensor_util.make_tensor_proto(np.zeros(3, np.float32))),
    )
    places = list(scan([path]).series["t"])
    assert [place.step for place in places] == [1, 2, 4, 5]
    assert bytes_of([path], places) == [b"a", b"a", None, None]


def test_of_two_values_of_one_tag_in_an_event_the_last_counts(tmp_path: Path) -> None:
    event = event_pb2.Event.FromString(files.event("t", 1, b"a"))
    event.MergeFromString(files.event("t", 1, b"b"))
    path = write(tmp_path / "1", event.SerializeToString())
    places = list(scan([path]).series["t"])
    assert bytes_of([path], places) == [b"b"]


def test_a_run_without_an_event_has_not_begun(tmp_path: Path) -> None:
    assert scan([write(tmp_path / "1")]) == ({}, False, 0)
    (tmp_path / "2").write_bytes(b"no event file")
    assert scan([tmp_path / "2"]) == ({}, False, 0)
    assert scan([write(tmp_path / "3", files.scalar_event("loss", 1, 0.5))]) == ({}, True, 0)


def test_a_file_that_cant_be_opened_is_counted_and_the_others_are_read(tmp_path: Path) -> None:
    there = write(tmp_path / "2", files.event("t", 1, b"a"))
    found, begun, unopened = scan([tmp_path / "1", there])
    assert (list(found), begun, unopened) == (["t"], True, 1)
    assert next(iter(found["t"])).file == 1


@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda path: path.unlink(), r"\[Errno 2\] No such file or directory"),
        (lambda path: path.write_bytes(b""), "another one, without step 1 at byte 0"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "another one, without step 2"),
        (
            lambda path: write(path, *(files.event("t", step, b"abc") for step in (1, 9))),
            f"another one, without step 2 at byte {SIZE}",
        ),
        (
            lambda path: write(path, files.event("t", 1, b"abc"), files.event("u", 2, b"abc")),
            f"another one, without step 2 at byte {SIZE}",
        ),
    ],
)
def test_a_file_that_changed_since_is_an_error(tmp_path: Path, change, got) -> None:
    path = write(tmp_path / "1", *(files.event("t", step, b"abc") for step in (1, 2)))
    places = list(scan([path]).series["t"])
    change(path)
    with pytest.raises(
        UnreadableLog, match=f"Could not read .*/1': expected the file .* got {got}"
    ):
        bytes_of([path], places)


@pytest.mark.parametrize("apart", [0, 40_000])
def test_values_of_several_tags_are_read_in_the_order_of_the_file(
    tmp_path: Path, apart: int
) -> None:
    events = [
        files.event(tag, step, f"{tag}{step}".encode() + bytes(apart))
        for step in range(1, 40)
        for tag in "tu"
    ]
    path = write(tmp_path / "1", *events)
    series = scan([path]).series
    wanted = sorted((place, tag) for tag in "ut" for place in series[tag])
    found = [(value.step, tag, data) for value, tag, data in read([path], wanted)]
    assert found == [
        (step, tag, f"{tag}{step}".encode() + bytes(apart)) for step in range(1, 40) for tag in "tu"
    ]


def test_what_is_appended_since_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "1", files.event("t", 1, b"abc"))
    places = list(scan([path]).series["t"])
    with path.open("ab") as stream:
        stream.write(files.frame(files.event("t", 2, b"abc")) + b"torn")
    assert bytes_of([path], places) == [b"abc"]
