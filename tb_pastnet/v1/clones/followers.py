"""What belongs to a network beside its outputs: updates of its statistics, and losses."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow import Variable  # the base of all; tf.compat.v1.Variable isn't that of a resource

from tb_pastnet.v1.clones.graph_part import Part

KEYS = (tf.GraphKeys.UPDATE_OPS, tf.GraphKeys.REGULARIZATION_LOSSES)
"""The collections that list them."""


def take_followers(part: Part) -> list[tuple[str, Any]]:
    """Takes into a part of a graph the updates and losses that are made of it.

    An update may write variables that the outputs don't use, as that of a batch normalization does
    while training. It is left out if it is made of other inputs as well, or of weights that aren't
    part of the network: it is that of another network then.

    Args:
        part: with all that its outputs need; it grows.

    Returns:
        Pairs of the key of a collection, and what it lists.
    """
    weights = {one.op.name for one in part.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)}
    found = []
    for key in KEYS:
        for one in part.graph.get_collection(key):
            element = _element(one, part.graph)
            more = part.beyond([element])
            others = more.variables if key != tf.GraphKeys.UPDATE_OPS else weights
            foreign = more.variables.keys() & others
            if _made_of(part, more.reached) and not more.lacking and not foreign:
                part.add(more)
                found.append((key, element))
    return found


def _element(listed: Any, graph: Any) -> Any:
    """The tensor or operation behind what a collection lists."""
    if isinstance(listed, tf.Operation):
        return listed
    if isinstance(listed, Variable):  # so the assignment of a resource variable looks
        return listed.op
    with graph.as_default():
        return tf.convert_to_tensor(listed)


def _made_of(part: Part, names: set[str]) -> bool:
    operations = (part.operations[name] for name in names if name in part.operations)
    # A constant may be anyone's.
    return bool(names & part.variables.keys()) or any(one.type != "Const" for one in operations)
