"""Runs TensorFlow code: eagerly here, or by a session, see `v1.graph.session`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import tensorflow as tf

from tb_pastnet.keras.strategies import outside_strategy


class Runner:
    """Makes variables, and functions of TensorFlow code, that run eagerly.

    The code has to work eagerly and in a graph: it reads variables by
    `tf.convert_to_tensor` and `read_value`, and writes them by `assign(…, read_value=False)`.
    """

    def variable(self, build: Callable[[], Any], name: str) -> Any:
        """An untrained variable with the value of `build`; in a graph still without a value."""
        with tf.init_scope():
            value = build()
            return outside_strategy(lambda: tf.Variable(value, trainable=False, name=name))

    def function(self, build: Callable[[], Any]) -> Callable[[], Any]:
        """Runs code that returns a tensor, or a list of them; compiled by its first call."""

        # Looked up once: `tf.function` searches its traces at each call, which is slow with
        # hundreds of captured variables, and warns of tracing too often with several recorders.
        @cache
        def compiled() -> Callable[[], Any]:
            return _quick(tf.function(build, autograph=False).get_concrete_function())

        def run() -> Any:
            return compiled()()

        return run

    def fetch(self, build: Callable[[], Any]) -> Callable[[], Any]:
        """The same, but returns arrays."""
        compiled = self.function(build)

        def fetched() -> Any:
            results = compiled()
            if isinstance(results, list):
                return [result.numpy() for result in results]
            return results.numpy()

        return fetched


def _quick(function: Any) -> Callable[[], Any]:
    """Runs a function as a single operation, if everything that it reads is on one processor."""
    # The rest of a call, for gradients, takes longer than reading a dozen variables.
    captured = function.captured_inputs
    if len({source.device for source in captured}) != 1 or "CPU" not in captured[0].device:
        return function  # type: ignore[no-any-return]
    dtypes = [output.dtype for output in function.outputs]
    call = partial(tf.raw_ops.StatefulPartitionedCall, args=captured, Tout=dtypes, f=function)
    return call if isinstance(function.structured_outputs, list) else lambda: call()[0]


EAGER = Runner()
