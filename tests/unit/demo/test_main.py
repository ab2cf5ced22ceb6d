from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from demo import LOTTERY, NAMES, __main__, serve
from demo.runs import EPOCHS, RATES, RUNS, rate


def test_the_names_are_those_of_the_runs():
    assert (*RUNS, LOTTERY) == NAMES


def test_the_learning_rate_drops_by_the_calendar():
    assert [rate(epoch) for epoch, _ in RATES] == [value for _, value in RATES]
    assert rate(RATES[1][0] - 1) == RATES[0][1]
    assert rate(EPOCHS - 1) == RATES[-1][1]


def test_a_foreign_directory_that_holds_a_run_is_left_alone(tmp_path, capsys):
    (tmp_path / "dense").mkdir()
    assert __main__.main(["--once", "--logdir", str(tmp_path)]) == 1
    assert (
        "expected no run 'dense' there, got one. Name another --logdir" in capsys.readouterr().out
    )
    assert (tmp_path / "dense").is_dir()


def test_the_demos_own_directory_is_emptied_of_its_runs_only(tmp_path, monkeypatch):
    monkeypatch.setattr(__main__, "DEFAULT", tmp_path)
    for name in ("dense", "mine"):
        (tmp_path / name).mkdir()
    __main__.clear(tmp_path, NAMES)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_taken_port_is_passed_over():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert serve.free_port(port) != port
        with pytest.raises(OSError, match="Could not find a free port: expected one from"):
            serve.free_port(port, tries=1)


def test_waiting_ends_with_the_server():
    with subprocess.Popen([sys.executable, "-c", ""]) as server:
        server.wait()
        assert not serve.wait("http://localhost:1/", server)
