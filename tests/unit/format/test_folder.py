"""Runs are found as TensorBoard finds them, whatever lies in the directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tb_pastnet.errors import UnreadableLog
from tb_pastnet.format.folder import find_runs
from tests import event_files as files
from tests.tensorboards import board

NAME = "events.out.tfevents.1"


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(files.frame(files.scalar_event("loss", 1, 0.5)))
    return path


def test_a_run_is_a_directory_with_event_files(tmp_path: Path) -> None:
    # Not as Python encodes it here: in the locale C it can't.
    places = ("", "a", "a/b c", ".hidden", os.fsdecode("ü🧠".encode()))
    wanted = [touch(tmp_path / place / NAME) for place in places]
    touch(tmp_path / "none" / "model.h5")
    touch(tmp_path / "a" / "other.txt")
    (tmp_path / "empty").mkdir()
    (tmp_path / f"{NAME}.d").mkdir()
    assert find_runs(tmp_path) == {
        name: (path,)
        for name, path in sorted(zip([".", "a", "a/b c", ".hidden", "ü🧠"], wanted, strict=True))
    }
    assert list(find_runs(str(tmp_path))) == sorted([".", "a", "a/b c", ".hidden", "ü🧠"])


def test_files_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    names = [
        "events.out.tfevents.2",
        "events.out.tfevents.10",
        "xtfeventsx",
        "events.out.tfevents.1",
    ]
    for name in names:
        touch(tmp_path / name)
    assert [path.name for path in find_runs(tmp_path)["."]] == sorted(names)


def test_links_are_followed_and_never_in_circles(tmp_path: Path) -> None:
    touch(tmp_path / "log/a" / NAME)
    touch(tmp_path / "elsewhere/deep" / NAME)
    (tmp_path / "log/linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "log/a/again").symlink_to(tmp_path / "log")
    (tmp_path / "log/a/self").symlink_to(".")
    (tmp_path / "log/gone").symlink_to(tmp_path / "nothing")
    (tmp_path / "log/one").mkdir()
    (tmp_path / "log/one" / NAME).symlink_to(tmp_path / "log/a" / NAME)
    (tmp_path / "log/one" / f"{NAME}.gone").symlink_to(tmp_path / "nothing")
    found = find_runs(tmp_path / "log")
    assert list(found) == ["a", "linked/deep", "one"]
    assert len(found["one"]) == 1


def test_a_link_to_itself_is_passed_over(tmp_path: Path) -> None:
    touch(tmp_path / "b" / NAME)
    (tmp_path / "a").symlink_to("a")
    assert list(find_runs(tmp_path)) == ["b"]


def test_a_link_that_cant_be_followed_is_passed_over(tmp_path: Path) -> None:
    touch(tmp_path / "b" / NAME)
    (tmp_path / "a").symlink_to("d" * 300)  # too long for a name
    assert list(find_runs(tmp_path)) == ["b"]


def test_what_is_no_file_is_never_opened(tmp_path: Path) -> None:
    touch(tmp_path / "a" / NAME)
    os.mkfifo(tmp_path / "a" / f"{NAME}.pipe")
    assert [path.name for path in find_runs(tmp_path)["a"]] == [NAME]


def test_a_tree_deeper_than_pythons_stack_is_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path / "z" / NAME)
    monkeypatch.chdir(tmp_path)
    for _ in range(1200):
        Path("d").mkdir()
        os.chdir("d")
    Path(NAME).touch()
    os.chdir(tmp_path)
    found = find_runs(".")
    # By hand: pytest could not.
    os.chdir("/".join(["d"] * 1200))
    Path(NAME).unlink()
    for _ in range(1200):
        os.chdir("..")
        Path("d").rmdir()
    assert "z" in found
    assert "/".join(["d"] * 1200) in found


@pytest.mark.promise("hostile_names")
def test_tensorboard_finds_the_same_by_the_same_names(tmp_path: Path) -> None:
    names = [
        b"plain",
        b"\xff\xfe",
        b"a\xe2\x82b",
        b"\xf0\x9f\xa7\xa0",
        b"sp ace\n",
        b"\xc3",
        b"back\\slash",
    ]
    for name in names:
        touch(tmp_path / os.fsdecode(name) / NAME)
    touch(tmp_path / NAME)
    (tmp_path / "linked").symlink_to(tmp_path / "plain")
    (tmp_path / "plain/circle").symlink_to(tmp_path)
    with board(tmp_path, "fast") as here:
        known = here.provider.list_runs(None, experiment_id="")
    assert list(find_runs(tmp_path)) == sorted(run.run_name for run in known)
    assert "\ufffd\ufffd" in find_runs(tmp_path)


def test_two_names_that_read_alike_are_one_run(tmp_path: Path) -> None:
    for name in (b"\xff", b"\xfe"):
        touch(tmp_path / os.fsdecode(name) / NAME)
    found = find_runs(tmp_path)
    assert [os.fsencode(path.parent.name) for path in found["\ufffd"]] == [b"\xfe", b"\xff"]


@pytest.mark.parametrize(
    ("name", "got"),
    [
        ("nothing", "No such file or directory"),
        (NAME, "Not a directory"),
        ("a\0b", ".*embedded null"),
    ],
)
def test_what_is_no_directory_is_refused(tmp_path: Path, name: str, got: str) -> None:
    touch(tmp_path / NAME)
    with pytest.raises(
        UnreadableLog, match=f"expected a directory, got {got}.*. Pass the directory"
    ):
        find_runs(tmp_path / name)


def test_a_directory_that_cant_be_listed_stands_for_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path / "a" / NAME)
    touch(tmp_path / "b" / NAME)
    scandir = os.scandir

    def refuse(path: bytes) -> object:
        if os.fsencode(path).endswith(b"/a"):
            raise error
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    error: OSError = PermissionError(13, "Permission denied")
    assert find_runs(tmp_path) == {"a": (tmp_path / "a",), "b": (tmp_path / "b" / NAME,)}
    error = FileNotFoundError(2, "deleted in the meantime")
    assert list(find_runs(tmp_path)) == ["b"]
