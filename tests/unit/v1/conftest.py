"""What the tests of TF1-style graphs share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import tensorflow.compat.v1 as tf

from tests.interpreter import Interpreter
from tests.v1_networks import WORLDS

DISABLE = """
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
shared["tf"] = tf
"""


@pytest.fixture
def graph() -> Iterator[Any]:
    """A graph of its own, the default one."""
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def session() -> Iterator[Any]:
    """A session of the default graph, and the default one."""
    with tf.Session() as session:
        yield session


@pytest.fixture(params=["reference", "resource"])
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """How variables are kept that the test makes."""
    with _resource_variables(request.param == "resource"):
        yield request.param


@pytest.fixture(params=["v1", "v2"])
def control_flow(request: pytest.FixtureRequest) -> Iterator[str]:
    """Which conditionals and loops the test builds."""
    with _control_flow_v2(request.param == "v2"):
        yield request.param


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both. The functions of TensorFlow that v2 makes of branches take no reference variables."""
    kind, flow = request.param.split("-")
    with _resource_variables(kind == "resource"), _control_flow_v2(flow == "v2"):
        yield request.param


@pytest.fixture(scope="session")
def python() -> Iterator[Interpreter]:
    """A process whose programs run as in TensorFlow 1."""
    process = Interpreter(begin=DISABLE)
    yield process
    process.close()


@contextmanager
def _resource_variables(enabled: bool) -> Iterator[None]:
    was = tf.resource_variables_enabled()
    (tf.enable_resource_variables if enabled else tf.disable_resource_variables)()
    yield
    (tf.enable_resource_variables if was else tf.disable_resource_variables)()


@contextmanager
def _control_flow_v2(enabled: bool) -> Iterator[None]:
    was = tf.control_flow_v2_enabled()
    (tf.enable_control_flow_v2 if enabled else tf.disable_control_flow_v2)()
    yield
    (tf.enable_control_flow_v2 if was else tf.disable_control_flow_v2)()
