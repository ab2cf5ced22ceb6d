from __future__ import annotations

import errno
import shutil

import pytest

from tb_pastnet.errors import UnwritableLog
from tb_pastnet.format.files import UnusableURL, join, list_directory, open_to_read
from tb_pastnet.format.tags import lineage_directory
from tb_pastnet.record import segments
from tb_pastnet.record.segments import LocalSegments, create_lineage, lineages, segments_in


def test_segments_follow_each_other_by_size(tmp_path):
    writer = LocalSegments(str(tmp_path / "a" / "b"), 1_700_000_000.7, size=100)
    for _ in range(3):
        writer.write(lambda: b"H" * 10, lambda _: b"B" * 100)
    writer.close()
    files = sorted(path.name for path in (tmp_path / "a" / "b").iterdir())
    assert files == [f"events.out.tfevents.1700000000.{n:06d}.pastnet" for n in range(3)]
    for name in files:
        assert (tmp_path / "a" / "b" / name).read_bytes().endswith(b"H" * 10 + b"B" * 100)


def test_an_open_segment_gets_its_head_with_the_first_group(tmp_path):
    writer = LocalSegments(str(tmp_path), 0.0)
    writer.open()
    writer.write(lambda: b"H", lambda _: b"1")
    writer.write(lambda: b"H", lambda _: b"2")
    writer.close()
    (file,) = tmp_path.iterdir()
    assert file.read_bytes().endswith(b"H12")


def test_a_deleted_directory_is_made_again(tmp_path):
    writer = LocalSegments(str(tmp_path / "log"), 0.0)
    writer.write(lambda: b"H", lambda _: b"1")
    shutil.rmtree(tmp_path / "log")
    writer.write(lambda: b"H", lambda _: b"2")
    writer.close()
    (file,) = (tmp_path / "log").iterdir()
    assert file.name.endswith(".000001.pastnet")
    assert file.read_bytes().endswith(b"H2")


def test_after_an_error_the_group_goes_to_a_new_segment(tmp_path, monkeypatch):
    writer = LocalSegments(str(tmp_path), 0.0)
    writer.write(lambda: b"H", lambda _: b"1")
    monkeypatch.setattr(segments, "GrowingFile", broken)
    writer._file.close()
    writer._file = broken("")
    with pytest.raises(OSError, match="No space"):
        writer.write(lambda: b"H", lambda _: b"2")
    monkeypatch.undo()
    writer.write(lambda: b"H", lambda _: b"2")
    writer.close()
    first, second = sorted(tmp_path.iterdir())
    assert first.read_bytes().endswith(b"H1")
    assert second.read_bytes().endswith(b"H2")


def broken(path):
    class Broken:
        def write(self, data):
            raise OSError(28, "No space left on device")

        def intact(self):
            return True

        def close(self):
            raise OSError(28, "No space left on device")

    return Broken()


def test_a_segment_that_was_cut_from_outside_is_followed_by_another(tmp_path):
    writer = LocalSegments(str(tmp_path), 0.0)
    writer.write(lambda: b"H", lambda _: b"1")
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"")
    writer.write(lambda: b"H", lambda _: b"2")
    writer.close()
    first, second = sorted(tmp_path.iterdir())
    assert first.read_bytes() == b""
    assert second.read_bytes().endswith(b"H2")


def test_lineages_are_numbered_on(tmp_path):
    first = create_lineage(str(tmp_path / "run"))
    second = create_lineage(str(tmp_path / "run"))
    (tmp_path / "run" / "train").mkdir()
    assert (first.ordinal, second.ordinal) == (1, 2)
    assert first.lineage != second.lineage
    assert lineages(str(tmp_path / "run")) == [first, second]


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for logdir in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(
            UnwritableLog,
            match=r"Could not write to log directory '.*expected one .*Choose another logdir, or "
            r"remove the file that is in the way\.$",
        ):
            create_lineage(str(logdir))


@pytest.mark.parametrize(
    ("logdir", "error", "mend"),
    [
        ("runs", PermissionError(errno.EACCES, "no"), "Choose another logdir, or change its perm"),
        ("runs", OSError(errno.ENOSPC, "full"), "Choose another logdir, or make room"),
        (
            "s3://b/a",
            OSError("no bucket"),
            "Choose another logdir, or check the connection, the bucket",
        ),
        ("s3://b/a", UnusableURL("no driver for s3://", "Run: pip install s3fs."), "Run: pip"),
    ],
)
def test_each_cause_has_its_own_mend(logdir, error, mend):
    assert f"'. {mend}" in str(segments.unwritable(logdir, error))


@pytest.fixture
def clock(monkeypatch):
    """The time that pacing goes by."""
    now = [1000.0]
    monkeypatch.setattr(segments.time, "monotonic", lambda: now[0])
    return now


def test_in_a_store_each_group_is_an_object_with_a_head_of_its_own():
    directory = "memory://logs/a/x"
    writer = segments_in(directory, 0.0, 60.0)
    writer.open()
    sizes = []
    for body in (b"1", b"2"):
        writer.write(lambda: b"H", lambda size, body=body: sizes.append(size) or body)
    opened, first, second = (
        open_to_read(join(directory, name)).read() for name in list_directory(directory)
    )
    assert (first, second) == (opened + b"H1", opened + b"H2")
    assert sizes == [len(opened), len(opened + first)]


def test_objects_come_ever_more_rarely(clock):
    writer = segments_in("memory://paced/x", 0.0, 60.0)
    writer.open()
    waited = []
    for _ in range(7):
        waited.append(writer.wait(0.0, full=True))
        clock[0] += waited[-1]
        writer.write(lambda: b"", lambda _: b"")
    assert waited == [10, 20, 40, 80, 160, 300, 300]


def test_lineages_of_a_store_are_numbered_on():
    run = create_lineage("memory://numbered/a")
    segments_in(f"memory://numbered/a/{lineage_directory(*run[1:])}", 0.0, 60.0).open()
    assert create_lineage("memory://numbered/a/").ordinal == run.ordinal + 1
