from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest

from demo import NAMES, __main__
from tb_pastnet.cli import board


def test_a_foreign_directory_that_holds_a_run_is_left_alone(tmp_path, capsys):
    (tmp_path / "dense").mkdir()
    assert __main__.main(["--once", "--logdir", str(tmp_path)]) == 1
    assert (
        "expected no run 'dense' there, got one. Name another --logdir" in capsys.readouterr().out
    )
    assert (tmp_path / "dense").is_dir()


def test_what_cannot_be_trained_is_said_before_anything_is_deleted(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(__main__, "OWN", [tmp_path])
    (tmp_path / "dense").mkdir()
    arguments = ["--framework", "torch", "--runs", "dense", "lottery", "--logdir", str(tmp_path)]
    assert __main__.main(arguments) == 1
    assert "Could not train 'lottery' with torch" in capsys.readouterr().out
    assert (tmp_path / "dense").is_dir()


def test_the_demos_own_directory_is_emptied_of_its_runs_only(tmp_path, monkeypatch):
    monkeypatch.setattr(__main__, "OWN", [tmp_path])
    for name in ("dense", "mine"):
        (tmp_path / name).mkdir()
    __main__.clear(tmp_path, NAMES)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_taken_port_is_passed_over():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert board.free_port(port) != port
        with pytest.raises(OSError, match="Could not find a free port: expected one from"):
            board.free_port(port, tries=1)


def test_waiting_ends_with_the_server_or_with_what_is_awaited():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as server:
        answers = iter([False, True])
        assert board.wait(lambda: next(answers), server)
        assert not board.wait(lambda: False, server, 0.0)
        server.communicate(b"\n")
        assert not board.wait(lambda: True, server)


def test_a_server_that_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
    assert board.answer(f"http://localhost:{port}/") is None


@pytest.mark.parametrize(("records", "expected"), [([], False), ([1, 0], False), ([0, 2], True)])
def test_a_run_with_two_records_is_a_picture(records, expected):
    index = json.dumps({"runs": [{"records": count} for count in records]}).encode()
    assert board.has_picture(index) is expected
    assert not board.has_picture(None)
