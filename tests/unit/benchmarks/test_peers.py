from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import _peers
from tools.steps import Failure

HERE = Path(sys.executable)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Writes a program beside the module, as it sees it."""
    monkeypatch.setattr(_peers, "__file__", str(tmp_path / "_peers.py"))

    def write(text):
        (tmp_path / "_peer.py").write_text(text)
        return "_peer.py"

    return write


def test_the_last_line_of_a_peer_is_its_answer(program):
    text = "import sys; print('chatter'); print([len(sys.argv[1]), int(sys.argv[2])])"
    assert _peers.told(HERE, program(text), "ResNet-50", 9) == [9, 9]


def test_a_peer_that_fails_tells_its_last_line(program):
    text = r"_peer.py ended with code 1: ValueError: no such layer$"
    with pytest.raises(Failure, match=text):
        _peers.told(HERE, program("raise ValueError('no such layer')"))
    with pytest.raises(Failure, match="ended with code 3: without a word"):
        _peers.told(HERE, program("raise SystemExit(3)"))


def test_a_peer_that_never_ends_is_given_up(program, monkeypatch):
    monkeypatch.setattr(_peers, "_SECONDS", 0.2)
    with pytest.raises(Failure, match="_peer.py took longer than 0 s"):
        _peers.told(HERE, program("import time; time.sleep(60)"))


def test_a_python_that_isnt_there_is_told(monkeypatch):
    monkeypatch.setattr(_peers.matrix, "pythons", lambda: {"3.12": "python3.12"})
    with pytest.raises(Failure, match=r"expected a Python 3\.10, found none"):
        _peers.ensure("wandb", ("wandb",), "3.10")


def test_an_environment_is_made_once_for_its_requirements(monkeypatch, tmp_path):
    ran = []

    def demand(doing, command):
        ran.append((doing, command[1:3]))
        Path(command[-1]).mkdir(exist_ok=True)

    monkeypatch.setattr(_peers, "HOME", tmp_path)
    monkeypatch.setattr(_peers, "demand", demand)
    monkeypatch.setattr(_peers.environment, "install", lambda command, doing: ran.append(doing))
    python = _peers.ensure("tfmot", ("a", "b"))
    assert python == _peers.environment.venv_python(tmp_path / "tfmot")
    assert ran == [("make tfmot", ["-m", "venv"]), "install tfmot"]
    assert _peers.ensure("tfmot", ("a", "b")) == python
    assert len(ran) == 2
    _peers.ensure("tfmot", ("a", "c"))
    assert len(ran) == 4


def test_each_peer_has_a_program_that_is_no_benchmark():
    for peer in _peers.PEERS:
        assert peer.program.startswith("_peer_")
        assert Path(_peers.__file__).with_name(peer.program).is_file()
