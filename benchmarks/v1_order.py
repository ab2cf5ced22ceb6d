"""How often past, sync and train in one session.run go wrong, with and without dependencies.

Each step adds one to each weight, so every value is known. The order is TensorFlow's choice where
nothing says what waits for what; other machines will choose otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from benchmarks._options import parser
from benchmarks._rows import Rows
from tb_pastnet.v1 import sync_op

LAYERS, WIDTH, STEPS = 3, 32, 200
NAMES = "reference", "resource"
ORDERS = "without dependencies", "past, then sync, then train"


class Ordered:
    """A training in the default graph: an answer of the past, then a sync, then an update.

    Args:
        resource: whether the variables are resource variables, or else reference variables.
        dependencies: whether the sync waits for the answer, and the update for the sync.
    """

    def __init__(self, *, resource: bool, dependencies: bool) -> None:
        self.x = tf.placeholder(tf.float32, (1, WIDTH))
        _network("net", self.x, resource)
        self.answer = _network("past", self.x, resource)
        self.sync = sync_op("net", "past", after=self.answer if dependencies else ())
        self.past, self.current = tf.trainable_variables("past/"), tf.trainable_variables("net/")
        with tf.control_dependencies([self.sync] if dependencies else []):
            loss = -tf.add_n([tf.reduce_sum(weight) for weight in self.current])
            descent = tf.train.GradientDescentOptimizer(1.0)
            self.train = descent.minimize(loss, var_list=self.current)

    def wrong(self, session: Any, steps: int = STEPS) -> int:
        """Trains from the initial values on, and counts the steps with any wrong value."""
        feed = {self.x: np.ones((1, WIDTH))}
        count = 0
        for now in range(steps):
            answer, _, _ = session.run([self.answer, self.sync, self.train], feed)
            past, current = session.run([self.past, self.current])
            count += not (
                answer == LAYERS * WIDTH * max(now - 1, 0)
                and all((weight == now).all() for weight in past)
                and all((weight == now + 1).all() for weight in current)
            )
        return count


def _network(scope: str, x: Any, resource: bool) -> Any:
    """Where x is one, LAYERS * WIDTH times the weight."""
    with tf.variable_scope(scope, use_resource=resource, initializer=tf.zeros_initializer()):
        weights = [tf.get_variable(f"w{n}", (WIDTH, 1)) for n in range(LAYERS)]
    return tf.add_n([tf.matmul(x, weight) for weight in weights])[0, 0]


def main(argv: Sequence[str]) -> int:
    """Prints a table."""
    top = parser("v1_order", __doc__)
    top.add_argument("--graphs", type=int, default=6, help="of each kind (default 6)")
    chosen = top.parse_args(argv)
    graphs = 1 if chosen.smoke else chosen.graphs
    rows = Rows("v1_order")
    print(
        f"TensorFlow {tf.__version__}. Wrong steps of {STEPS}, in {graphs} graphs of each kind.\n"
    )
    print(f"| variables | {' | '.join(ORDERS)} |")
    print("| --- | --- | --- |")
    for resource in (False, True):
        shown = []
        for dependencies in (False, True):
            counts = []
            for _ in range(graphs):
                with tf.Graph().as_default(), tf.Session() as session:
                    training = Ordered(resource=resource, dependencies=dependencies)
                    session.run(tf.global_variables_initializer())
                    counts.append(training.wrong(session))
            shown.append(f"{min(counts)} to {max(counts)}")
            kind, order = NAMES[resource], ORDERS[dependencies]
            title = f"Graphs of one session.run: wrong steps of {STEPS}"
            rows.add(title, f"{kind} variables", counts, column=order)
        print(f"| {NAMES[resource]} | {' | '.join(shown)} |", flush=True)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
