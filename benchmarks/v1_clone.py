"""How long `pastnet.v1.clone_network` takes for a ResNet-50, and whether the copy is equal.

The network is built while it trains: with the updates of its statistics, and weight decay. It has
25.6 million weights. Equal means: the same logits for a batch, the same gradients of all
weights up to rounding, the same statistics after an update of both, and the same losses.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from benchmarks._options import parser
from benchmarks._rows import Rows
from benchmarks._v1_resnet import RESNET_50, Layers, by_hand, of_tensorflow, resnet
from tb_pastnet.v1 import ClonedGraph, clone_network

BAR = 5.0  # seconds
SIZE = 64  # of an image


def equal(image: Any, logits: Any, copy: ClonedGraph) -> bool:
    """Whether a clone is equal to its original, in a session of its own."""
    originals = [one for one in tf.global_variables() if one.op.name in copy.mapping]
    collections = [
        tf.get_collection(key)
        for key in (tf.GraphKeys.UPDATE_OPS, tf.GraphKeys.REGULARIZATION_LOSSES)
    ]
    # Those of the clone are the second half.
    (updates, own_updates), (losses, own_losses) = (
        (each[: len(each) // 2], each[len(each) // 2 :]) for each in collections
    )
    sides = [
        (_measured(logits, originals, losses), updates, originals),
        (_measured(copy.outputs, copy.variables, own_losses), own_updates, copy.variables),
    ]
    feed = {image: np.random.default_rng(0).normal(size=(2, SIZE, SIZE, 3)).astype("f")}
    found = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for fetches, update, variables in sides:
            values = session.run(fetches, feed)
            session.run(update, feed)
            found.append([*values, *session.run(list(variables))])
    return len(found[0]) == len(found[1]) > len(originals) and all(
        np.allclose(one, two, rtol=1e-4, atol=1e-5 * np.abs(one).max())
        for one, two in zip(*found, strict=True)
    )


def _measured(logits: Any, variables: Sequence[Any], losses: Sequence[Any]) -> list[Any]:
    trained = [one for one in variables if one in tf.trainable_variables()]
    loss = tf.reduce_mean(tf.nn.log_softmax(logits)[:, 0])
    return [logits, *losses, *tf.gradients(loss, trained)]


def timed(
    layers: Layers, kind: str, initial: str, blocks: Sequence[int] = RESNET_50, width: int = 64
) -> tuple[float, bool, int, int]:
    """Clones a ResNet: a ResNet-50, unless its blocks and its width are others.

    Returns:
        Seconds, whether it is equal or drawn afresh, and how many operations and variables it has.
    """
    with tf.Graph().as_default() as graph, tf.variable_scope("", use_resource=kind == "resource"):
        image = tf.placeholder(tf.float32, (None, SIZE, SIZE, 3), "image")
        logits = resnet(image, layers, blocks, width)
        before = len(graph.get_operations())
        start = time.perf_counter()
        copy = clone_network(image, logits, initial=initial)
        seconds = time.perf_counter() - start
        made = len(graph.get_operations()) - before
        good = initial == "initializer" or equal(image, logits, copy)
        return seconds, good, made, len(copy.variables)


def main(argv: Sequence[str]) -> int:
    """Prints a table.

    Returns:
        The exit code: 1 if a copy took longer than the bar, or isn't equal.
    """
    top = parser("v1_clone", __doc__)
    top.add_argument(
        "--tf-layers", action="store_true", help="of tf.layers; needs tf-keras installed"
    )
    chosen = top.parse_args(argv)
    layers = of_tensorflow() if chosen.tf_layers else by_hand()
    size = ((1,), 4) if chosen.smoke else (RESNET_50, 64)
    rows = Rows("v1_clone")
    print(f"TensorFlow {tf.__version__}. ResNet-50, seconds of a clone; the bar is {BAR:g}.\n")
    print("| variables | initial | operations | variables made | seconds | |")
    print("| --- | --- | --- | --- | --- | --- |")
    missed = False
    for kind in ("reference", "resource"):
        for initial in ("copy", "initializer"):
            seconds, good, made, variables = timed(layers, kind, initial, *size)
            missed |= not good
            title = "A clone of a ResNet-50 in a TF1-style graph"
            rows.add(title, f"{kind} variables", seconds, "s", column=initial, bar=BAR)
            said = (
                ("drawn afresh" if initial == "initializer" else "equal") if good else "NOT EQUAL"
            )
            print(
                f"| {kind} | {initial} | {made} | {variables} | {seconds:.2f} | {said} |",
                flush=True,
            )
    return rows.finish(missed=missed)


if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    sys.exit(main(sys.argv[1:]))
