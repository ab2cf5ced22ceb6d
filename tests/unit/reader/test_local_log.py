"""Keys of a store are any text: those that no file can have, and objects that can't be read, are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

import tb_pastnet as pastnet
from tests import event_files as files
from tests.commands import command

KEYS = {
    "long": "x" * 300 + ".tfevents",
    "nul": "a\0b/events.out.tfevents.1",
    "above": "../events.out.tfevents.1",
    "surrogate": "a\ud800/events.out.tfevents.1",
    "below a file": "good/{file}/events.out.tfevents.2",
}
HARMLESS = ("events.out.tfevents.9\n", "con/aux.tfevents", "a*[b]?/events.out.tfevents.1")


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with two runs."""
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
    for name in ("good", "other"):
        writer = files.write_run(tmp_path, name, range(1, 5))
        key = f"/b/{writer.path.relative_to(tmp_path).as_posix()}"
        MemoryFileSystem().pipe_file(key, writer.path.read_bytes())
    return "memory://b"


def put(key: str) -> None:
    store = MemoryFileSystem.store
    path = "/b/" + key.format(file=next(iter(store)).removeprefix("/b/good/"))
    store[path] = MemoryFile(MemoryFileSystem(), path, b"x")


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_that_no_file_can_have_is_left_out_and_said(url: str, key: str) -> None:
    put(key)
    log = pastnet.read(url)
    assert (list(log), log.unopened) == (["good", "other"], 1)
    assert len(log.runs["good"].steps) == 4
    [warning] = log.warnings
    assert warning.endswith(": 1")
    assert command("check", url).code == 1
    assert command("report", url).code == 0
    done = command("report", url, "--fail-on", "unreadable")
    assert (done.code, done.error[:6]) == (1, "failed")


@pytest.mark.parametrize("key", HARMLESS)
def test_odd_keys_that_a_file_can_have_are_read(url: str, key: str) -> None:
    put(key)
    log = pastnet.read(url)
    assert (log.warnings, log.unopened, len(log.runs["good"].steps)) == ((), 0, 4)


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError])
def test_an_object_that_cannot_be_read_is_its_runs_alone(
    url: str, error: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = "/good/"
    for name in ("get_file", "cat_file"):
        given = getattr(MemoryFileSystem, name)

        def refuse(self: Any, path: str, *args: Any, given: Any = given, **more: Any) -> Any:
            if refused in path:
                raise error(path)
            return given(self, path, *args, **more)

        monkeypatch.setattr(MemoryFileSystem, name, refuse)
    log = pastnet.read(url)
    assert (list(log), log.unopened) == (["other"], 1)
    refused = "/b/"
    with pytest.raises(pastnet.errors.UnreadableLog):
        pastnet.read(url)
