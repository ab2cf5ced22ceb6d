"""What the tests of TF1-style graphs share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import tensorflow.compat.v1 as tf


@pytest.fixture
def graph() -> Iterator[Any]:
    """A graph of its own, the default one."""
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture(params=["reference", "resource"])
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """How variables are kept that the test makes."""
    was = tf.resource_variables_enabled()
    (
        tf.enable_resource_variables
        if request.param == "resource"
        else tf.disable_resource_variables
    )()
    yield request.param
    (tf.enable_resource_variables if was else tf.disable_resource_variables)()


@pytest.fixture(params=["v1", "v2"])
def control_flow(request: pytest.FixtureRequest) -> Iterator[str]:
    """Which conditionals and loops the test builds."""
    was = tf.control_flow_v2_enabled()
    (tf.enable_control_flow_v2 if request.param == "v2" else tf.disable_control_flow_v2)()
    yield request.param
    (tf.enable_control_flow_v2 if was else tf.disable_control_flow_v2)()
