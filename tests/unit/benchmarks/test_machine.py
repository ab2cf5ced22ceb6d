from __future__ import annotations

import platform
import re

from benchmarks import _machine


def test_a_machine_is_told_in_words(monkeypatch):
    monkeypatch.setattr(_machine, "_told", lambda *_: ["NVIDIA H100", "NVIDIA H100", "Other"])
    words = _machine.words()
    assert re.match(r"\d+ cores of \S", words)
    assert ", 2 NVIDIA H100, 1 Other, " in words
    monkeypatch.setattr(_machine, "_told", lambda *_: [])
    assert ", no GPU, " in _machine.words()


def test_versions_are_those_that_are_installed(monkeypatch):
    versions = _machine.versions()
    assert versions["python"] == platform.python_version()
    assert {"numpy", "tensorboard"} < set(versions)
    monkeypatch.setattr(_machine, "PACKAGES", ("numpy", "no-such-package"))
    assert set(_machine.versions()) == {"python", "numpy"}


def test_outside_of_a_checkout_the_commit_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(_machine, "_ROOT", tmp_path)
    assert _machine.commit() == "unknown"


def test_a_program_that_isnt_there_or_fails_tells_nothing():
    assert _machine._told("no-such-program-anywhere") == []
    assert _machine._told("git", "no-such-command") == []
