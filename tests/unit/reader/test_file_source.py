"""A folder in place of TensorBoard answers what the store asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_pastnet.reader.file_source import FileSource
from tb_pastnet.reader.series_source import LOCAL, SeriesVersion, StoredMessage
from tests import event_files as files


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    for run in ("a", "b/c"):
        path = tmp_path / run / "events.out.tfevents.1"
        path.parent.mkdir(parents=True)
        events = [
            files.event(tag, step, b"%d" % step, content=b"x") for tag in "tu" for step in (1, 2)
        ]
        path.write_bytes(b"".join(map(files.frame, events)))
    other = tmp_path / "other" / "events.out.tfevents.1"
    other.parent.mkdir()
    other.write_bytes(files.frame(files.scalar_event("loss", 1, 0.5)))
    begun = tmp_path / "not begun" / "events.out.tfevents.1"
    begun.parent.mkdir()
    begun.touch()
    return FileSource(tmp_path)


STAMP = SeriesVersion(2, repr(float(files.CREATED)), b"x")


def test_all_runs_are_known_and_ours_are_listed(source: FileSource) -> None:
    assert source.runs(LOCAL) == ["a", "b/c", "other"]
    both = {"t": STAMP, "u": STAMP}
    assert source.listing(LOCAL) == ({"a": both, "b/c": both}, [])
    assert source.listing(LOCAL, ["b/c", "other", "none"]) == ({"b/c": both}, [])


def test_some_tags_are_listed_alone(source: FileSource) -> None:
    assert source.glance(LOCAL, ["u", "v"]) == {"a": {"u": STAMP}, "b/c": {"u": STAMP}}
    assert source.glance(LOCAL, ["v"]) == {}
    assert source.probe(LOCAL, "a", ["t", "v"]) == {"t": STAMP}
    assert source.probe(LOCAL, "none", ["t"]) == {}


def test_events_are_read_oldest_first_and_what_isnt_there_is_left_out(source: FileSource) -> None:
    found, failed = source.read(LOCAL, ["a", "other", "none"], ["u", "v"], most=1)
    messages = [StoredMessage(step, files.CREATED, b"%d" % step) for step in (1, 2)]
    assert (found, failed) == ({("a", "u"): messages}, [])
    assert source.read(LOCAL, [], ["u"]) == ({}, [])


def test_what_is_handed_out_is_the_callers_own(source: FileSource) -> None:
    source.listing(LOCAL)[0]["a"].clear()
    assert source.listing(LOCAL)[0]["a"] == {"t": STAMP, "u": STAMP}
