"""What conftest.py promises of all tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests import conftest

HERE = Path(__file__)


def test_a_file_of_tests_is_read_for_tests_alone(request: pytest.FixtureRequest) -> None:
    """If examples are looked for, pytest leaves out a file that can't be imported, and goes on."""
    hooks = request.session.gethookproxy(HERE.parent)
    folder = request.node.getparent(pytest.Directory)
    found = hooks.pytest_collect_file(file_path=HERE, parent=folder)
    assert [type(one) for one in found] == [pytest.Module]


def test_what_tests_do_without_is_as_if_it_were_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert importlib.util.find_spec("this") is not None
    monkeypatch.setattr(conftest, "WITHOUT", {"this"})
    assert importlib.util.find_spec("this") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("this")
