"""TensorFlow's file systems as a store: in memory, and its client of GCS against one on loopback."""

from __future__ import annotations

import sys

import fsspec.registry  # noqa: F401 - before a test hides a part of it
import pytest

from tb_pastnet.format.files import store_of
from tests.gcs import gcs

# Its file systems are used where it is loaded.
pytest.importorskip("tensorflow", reason="tensorflow isn't installed: an extra of its own")

DATA = b"\0 and some more\0"


@pytest.fixture(autouse=True)
def without_fsspec(monkeypatch):
    """TensorFlow's file systems are used where fsspec has none."""
    monkeypatch.setitem(sys.modules, "fsspec.core", None)


def test_what_is_written_is_listed_read_and_removed(tmp_path):
    url = "ram://unit/run"
    store = store_of(url)
    assert store.names(url) == []
    store.write(f"{url}/a/x", DATA)
    store.write(f"{url}/y", b"")
    assert store.names(url) == ["a", "y"]
    assert sorted(store.below(url)) == ["a/x", "y"]
    assert (store.read(f"{url}/a/x"), store.read(f"{url}/y")) == (DATA, b"")
    (tmp_path / "a").mkdir()
    store.fetch(url, ["a/x"], tmp_path)
    assert (tmp_path / "a/x").read_bytes() == DATA
    store.remove(url)
    assert store.names(url) == []


def test_an_object_of_google_is_one_upload_without_directories():
    store = store_of("gs://bucket")
    with gcs("tensorflow") as server:
        store.write("gs://bucket/runs/a/x", DATA)
        assert [(put.method, put.size) for put in server.puts] == [("PUT", len(DATA))]
        assert [request.method for request in server.requests] == ["POST", "PUT"]
        assert store.read("gs://bucket/runs/a/x") == DATA
        assert store.below("gs://bucket/runs") == ["a/x"]


def test_a_failed_upload_says_why_and_holds_nobody():
    # The server answers in this process: an upload that held the interpreter would never end.
    store = store_of("gs://bucket")
    with gcs("tensorflow") as server:
        server.fault = lambda number: 403
        with pytest.raises(OSError, match=r"HTTP response code 403 .* gs://bucket/x"):
            store.write("gs://bucket/x", DATA)
        with pytest.raises(OSError, match="gs://missing/x"):
            store.write("gs://missing/x", DATA)
        server.fault = lambda number: None
        store.write("gs://bucket/x", DATA)
        assert store.read("gs://bucket/x") == DATA
