from __future__ import annotations

import shutil

import pytest

from tb_pastnet.errors import UnwritableLog
from tb_pastnet.record import segments
from tb_pastnet.record.segments import Segments, create_lineage, lineages


def test_segments_follow_each_other_by_size(tmp_path):
    writer = Segments(str(tmp_path / "a" / "b"), 1_700_000_000.7, size=100)
    for _ in range(3):
        writer.write(lambda: b"H" * 10, lambda _: b"B" * 100)
    writer.close()
    files = sorted(path.name for path in (tmp_path / "a" / "b").iterdir())
    assert files == [f"events.out.tfevents.1700000000.{n:06d}.pastnet" for n in range(3)]
    for name in files:
        assert (tmp_path / "a" / "b" / name).read_bytes().endswith(b"H" * 10 + b"B" * 100)


def test_an_open_segment_gets_its_head_with_the_first_group(tmp_path):
    writer = Segments(str(tmp_path), 0.0)
    writer.open()
    writer.write(lambda: b"H", lambda _: b"1")
    writer.write(lambda: b"H", lambda _: b"2")
    writer.close()
    (file,) = tmp_path.iterdir()
    assert file.read_bytes().endswith(b"H12")


def test_a_deleted_directory_is_made_again(tmp_path):
    writer = Segments(str(tmp_path / "log"), 0.0)
    writer.write(lambda: b"H", lambda _: b"1")
    shutil.rmtree(tmp_path / "log")
    writer.write(lambda: b"H", lambda _: b"2")
    writer.close()
    (file,) = (tmp_path / "log").iterdir()
    assert file.name.endswith(".000001.pastnet")
    assert file.read_bytes().endswith(b"H2")


def test_after_an_error_the_group_goes_to_a_new_segment(tmp_path, monkeypatch):
    writer = Segments(str(tmp_path), 0.0)
    writer.write(lambda: b"H", lambda _: b"1")
    monkeypatch.setattr(segments, "open_file", broken)
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

        def exists(self):
            return True

        def close(self):
            raise OSError(28, "No space left on device")

    return Broken()


def test_a_short_write_goes_on(tmp_path):
    file = segments.open_file(str(tmp_path / "x"))
    written = []

    class Slow:
        def write(self, data):
            written.append(bytes(data[:3]))
            return len(data[:3])

    file._file.close()
    file._file = Slow()
    file.write(b"0123456789")
    assert b"".join(written) == b"0123456789"
    file._file.write = lambda data: 0
    with pytest.raises(OSError, match="nothing could be written"):
        file.write(b"x")


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
            UnwritableLog, match=r"Could not write to log directory '.*expected one"
        ):
            create_lineage(str(logdir))


def test_remote_paths_go_through_tensorflow():
    import tensorflow as tf

    run = create_lineage("ram://logs/a")
    assert create_lineage("ram://logs/a/").ordinal == run.ordinal + 1
    writer = Segments("ram://logs/a/x", 0.0)
    writer.write(lambda: b"H", lambda _: b"1")
    writer.write(lambda: b"H", lambda _: b"2")
    writer.close()
    (name,) = tf.io.gfile.listdir("ram://logs/a/x")
    with tf.io.gfile.GFile(f"ram://logs/a/x/{name}", "rb") as stream:
        assert stream.read().endswith(b"H12")
