"""What conftest.py promises of all tests."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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


@pytest.fixture(scope="module")
def earlier_thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        yield pool


def test_log_lines_of_threads_that_lived_before_a_test_are_not_its_own(
    earlier_thread: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    warn = logging.getLogger("tb_pastnet").warning
    earlier_thread.submit(warn, "of another test").result()
    with ThreadPoolExecutor(1) as own:
        own.submit(warn, "of its thread").result()
    warn("its own")
    assert caplog.messages == ["of its thread", "its own"]
