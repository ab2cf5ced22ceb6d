"""Summary ops for `tf.compat.v1.summary.FileWriter`, next to `tf.summary.scalar`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow import Variable  # the base of all

from tb_pastnet.core.arguments import answered
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.summary import WithPast
from tb_pastnet.keras.types import TensorLike
from tb_pastnet.v1.graph.graph_variables import graph_variable
from tb_pastnet.v1.graph.session import SCOPE

_TAGS = f"{SCOPE}tags/"
"""The name scope in which tags are unique."""


@answered
def channels(
    name: str,
    current: TensorLike,
    past: TensorLike,
    *,
    trainable: TensorLike = None,
    kept: TensorLike = None,
    channel_axis: int | tuple[int, ...] = -1,
    step: TensorLike = None,
    collections: Iterable[str] | None = None,
) -> Any:
    """Builds a summary of how far each channel of a variable is from its past value.

    Pass `add_summary` the same step with which the summary was made: fetch both in one
    `session.run`, without an update. A summary with another step is refused.

    Arguments are those of `pastnet.summary.channels`. The default step is the graph's global step,
    the default collection that of `tf.summary.merge_all`.

    Returns:
        A scalar string tensor: a serialized Summary.

    Raises:
        InvalidArgument: shapes don't match, the dtype isn't a floating one, the axis is out of
            range, or there is no step.

    Example:
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     made = channels("dense0/kernel", [[1.0, 2.0]], [[1.0, 1.0]], step=1)
        ...     tf.Summary.FromString(session.run(made)).value[0].tag
        'dense0/kernel'
    """
    step = tf.train.get_global_step() if step is None else step
    if step is None:
        raise InvalidArgument(
            f"Could not write the channels of {name!r}: expected a step, got none. Pass step=, or "
            f"call tf.train.get_or_create_global_step()."
        )
    tag = _tag(name)
    with tf.name_scope(name):
        current, past, trainable, kept = map(_read, (current, past, trainable, kept))
        compared = WithPast(name, current, past, trainable, kept, channel_axis)
        summary = tf.raw_ops.TensorSummaryV2(
            tag=tag,
            tensor=compared.message(tag, step),
            serialized_summary_metadata=compared.metadata.SerializeToString(),
        )
    for collection in [tf.GraphKeys.SUMMARIES] if collections is None else collections:
        tf.add_to_collection(collection, summary)
    return summary


def _tag(name: str) -> str:
    """The name in its scope, unlike that of any other summary; a variable may have it, too."""
    graph = tf.get_default_graph()
    path = f"{graph.get_name_scope()}/{name}".strip("/")
    with tf.name_scope(_TAGS):
        return str(graph.unique_name(path)).removeprefix(_TAGS)


def _read(value: TensorLike) -> Any:
    # As a tensor, a reference variable is a read from its creation; a partitioned one has none.
    variable = isinstance(value, Variable) or hasattr(value, "as_tensor")
    return graph_variable(value).tensor() if variable else value
