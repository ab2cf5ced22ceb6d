"""What holds for every test."""

from __future__ import annotations

import gc
import logging
import os
import random
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import PathFinder
from itertools import chain, zip_longest
from typing import Any

import hypothesis
import numpy as np
import pytest

from tests.devices import two_devices, two_workers  # noqa: F401 - fixtures
from tests.patience import be_patient
from tests.proving import figure, keep_results, leave_out_others, name_promises  # noqa: F401

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
# What is tested is small: more threads cost more than they bring, in each of several processes.
for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ.setdefault(name, "1")

WITHOUT = {*os.environ.get("PASTNET_WITHOUT", "").split()}
"""Packages that tests have to do without: see `dev.py test --fast`."""


ORDER = os.environ.get("PASTNET_ORDER")
"""A seed: tests run in an order of their own, to find those that need others before them."""


class Finder(PathFinder):
    """Doesn't find these, as if they weren't installed."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> Any:
        """None, and not an entry None in `sys.modules`, on which SciPy fails."""
        hidden = fullname.partition(".")[0] in WITHOUT
        return None if hidden else super().find_spec(fullname, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Finder

# Two cores, shared with other work: a slow example is no failure.
# `--hypothesis-profile=thorough` digs deeper; `dev.py test --fast` takes "fast".
hypothesis.settings.register_profile("change", deadline=None, max_examples=50, print_blob=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=2000, print_blob=True)
hypothesis.settings.register_profile("fast", deadline=None, max_examples=10, print_blob=True)
hypothesis.settings.load_profile("change")

be_patient()

WAITING = ("tests/contract/", "tests/e2e/", "tests/fault/")
COMPUTING = (
    *("tests/golden/", "tests/unit/tools/", "tests/security/"),
    *("tests/unit/demo/", "tests/unit/test_docs", "tests/unit/test_readme", "tests/unit/keras/"),
    *("tests/unit/v1/", "tests/unit/torch/", "tests/unit/jax/", "tests/unit/test_package"),
    *("tests/property/", "tests/programs/", "tests/oracle/"),
)


@pytest.fixture(autouse=True)
def names_from_the_first():
    """Keras numbers layers through a process: here through a test, so that its names are known."""
    # Where a test has imported it: most need no framework.
    state = sys.modules.get("keras.src.backend.common.global_state")
    if state is not None:
        state.set_global_attribute("object_name_uids", None)


@pytest.fixture(autouse=True)
def chance_is_given():
    """What a network begins with, and so what is found of it, doesn't depend on earlier tests."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - what Keras and programs of others draw from
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)
    if tensorflow := sys.modules.get("tensorflow"):
        tensorflow.random.set_seed(0)


@pytest.fixture(autouse=True)
def only_own_log_lines(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What threads of earlier tests log, such as writers that end late, isn't in this one's log."""
    others = {*threading.enumerate()} - {threading.current_thread()}

    def is_own(_: logging.LogRecord) -> bool:
        return threading.current_thread() not in others

    caplog.handler.addFilter(is_own)
    yield
    caplog.handler.removeFilter(is_own)


def pytest_configure(config: pytest.Config) -> None:
    """Keeps what is shown of the promises, where that is asked for."""
    keep_results(config)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A test tells the promises that it shows."""
    name_promises(item)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Iterator[None]:
    """No examples are looked for in files of tests: one that can't be imported would be skipped."""
    return [found for found in (yield) if type(found) is pytest.Module]


def pytest_collection() -> None:
    """Imports leave no garbage, and looking for it takes a third of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was imported stays: it isn't looked at again and again."""
    gc.enable()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files come first, those that wait for servers and browsers between those that compute.

    Processes that run tests take files in this order. One alone keeps the order of its arguments.
    """
    leave_out_others(config, items)
    if ORDER:
        random.Random(ORDER).shuffle(items)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(str(item.path), []).append(item)
    waiting = [file for file in files if any(room in file for room in WAITING)]
    computing = [file for file in files if any(room in file for room in COMPUTING)]
    short = [file for file in files if file not in {*waiting, *computing}]
    order = chain(*zip_longest(waiting, reversed(computing)), short)
    items[:] = [item for file in order if file is not None for item in files[file]]
