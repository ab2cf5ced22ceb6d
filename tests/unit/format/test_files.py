"""Files of this machine and of stores."""

from __future__ import annotations

import builtins
import re
import sys

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

from tb_pastnet.format import files
from tb_pastnet.format.files import (
    GrowingFile,
    UnusableURL,
    base_name,
    join,
    list_directory,
    located,
    store_of,
)

LOCATED = [
    ("~/x", "/home/me/x"), ("a/~", "a/~"), ("file:///tmp/a%20b", "/tmp/a b"), ("a b", "a b"),
    ("s3://bucket/a/", "s3://bucket/a"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "meant"), LOCATED)
def test_a_path_is_as_it_is_meant(given, meant, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert located(given) == meant


def test_a_url_with_a_query_is_refused():
    with pytest.raises(UnusableURL, match="a URL with a query"):
        located("s3://bucket/a?versionId=1")
    for empty in ("s3://", "memory:///"):
        with pytest.raises(UnusableURL, match="a URL without a path"):
            located(empty)


def test_names_of_paths():
    assert join("s3://b/a/", "x") == "s3://b/a/x"
    assert base_name("s3://b/a/") == "a"
    assert join("a", "x") == "a/x"


def test_a_short_write_goes_on(tmp_path):
    file = GrowingFile(str(tmp_path / "x"))
    written = []

    class Slow:
        def write(self, data):
            written.append(bytes(data[:3]))
            return len(data[:3])

    file.close()
    file._file = Slow()
    file.write(b"0123456789")
    assert b"".join(written) == b"0123456789"
    file._file.write = lambda data: 0
    with pytest.raises(OSError, match="nothing could be written"):
        file.write(b"x")


def test_a_file_that_is_there_is_not_written_over(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(FileExistsError):
        GrowingFile(str(tmp_path / "x"))


@pytest.mark.parametrize("change", [lambda p: p.write_bytes(b"ab"), lambda p: p.unlink()])
def test_a_file_that_others_cut_or_removed_is_not_intact(tmp_path, change):
    file = GrowingFile(str(tmp_path / "x"))
    file.write(b"abc")
    assert file.intact()
    change(tmp_path / "x")
    assert not file.intact()
    file.close()


def test_a_store():
    store, place = store_of("memory://files/a"), "memory://files/a"
    assert list_directory(place) == []
    store.write(f"{place}/b/c", b"1")
    store.write(f"{place}/d", b"2")
    assert list_directory(place) == ["b", "d"]
    assert store.below(place) == ["b/c", "d"]
    assert files.open_to_read(f"{place}/b/c").read() == b"1"
    files.remove_directory(place)
    assert list_directory(place) == []


@pytest.mark.parametrize(("asynchronous", "made"), [(False, ["/made/b"]), (True, [])])
def test_only_a_store_of_files_has_its_directories_made(asynchronous, made, monkeypatch):
    asked = []
    monkeypatch.setattr(MemoryFileSystem, "async_impl", asynchronous)
    monkeypatch.setattr(MemoryFileSystem, "makedirs", lambda _, path, exist_ok: asked.append(path))
    store_of("memory://made").write("memory://made/b/c", b"1")
    assert asked == made
    assert files.open_to_read("memory://made/b/c").read() == b"1"


def test_files_are_fetched(tmp_path):
    place = "memory://fetched"
    store = store_of(place)
    store.write(f"{place}/b/a", b"1")
    assert store.below(place) == ["b/a"]
    (tmp_path / "b").mkdir()
    store.fetch(place, ["b/a"], tmp_path)
    assert (tmp_path / "b" / "a").read_bytes() == b"1"


@pytest.mark.parametrize(
    ("url", "mend"),
    [
        ("gs://b/a", "Run: pip install gcsfs."),
        ("nowhere://b/a", "Use one of s3://, s3a://, gs://, .*, or another of fsspec."),
    ],
)
def test_without_a_driver_it_says_what_to_install(url, mend, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    monkeypatch.delitem(_registry, "gs", raising=False)  # where a test has loaded it
    scheme = url.partition("://")[0]
    with pytest.raises(UnusableURL, match=f"^no driver for {scheme}://$") as caught:
        store_of(url)
    assert re.fullmatch(mend, caught.value.fix)


def test_without_fsspec_it_says_what_to_install(monkeypatch):
    original = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("fsspec"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnusableURL) as caught:
        store_of("s3://b/a")
    assert caught.value.fix == "Run: pip install s3fs."
