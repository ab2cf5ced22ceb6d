"""Summary calls into a user's own tf.summary writer, next to `tf.summary.scalar`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.statistics import channel_statistics, quantize_statistics
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.description import Series, encode_series
from tb_pastnet.format.tags import PLUGIN
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.types import Tensor, TensorLike


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
) -> Any:
    """Writes how far each channel of a variable is from its past value.

    Works eagerly and in a tf.function, under name scopes and `tf.summary.record_if`, as other
    summary calls do. It can't be compiled by XLA: under `jit_compile=True` TensorFlow raises, so
    call it next to the compiled step. A TensorFlow writer doesn't report lost records, and loses
    the latest on kill -9; use `Recorder` if that matters.

    Args:
        name: of the summary; active name scopes come before it.
        current: the current value: a variable, a tensor or an array of floating dtype.
        past: the value that it is compared with, of the same shape; see `PastVariables`. The tab
            shows it as the value at the previous step.
        trainable: trainable mask, 1 lets the update through and 0 = frozen: of the same shape, or
            one number for all. None: all trainable.
        kept: kept mask, 1 lets the weight through and 0 = pruned: of the same shape, or one number
            for all. None: nothing is pruned.
        channel_axis: the axis that numbers the channels, or several to be numbered together.
        step: the step; None takes `tf.summary.experimental.get_step()`.

    Returns:
        True if it was written, False if there is no default writer or recording is off; a tensor
        inside a tf.function.

    Raises:
        InvalidArgument: shapes don't match, the dtype isn't a floating one, or the axis is out of
            range.
        ValueError: there is a writer, but no step.

    Example:
        >>> bool(channels("dense0/kernel", [[1.0, 2.0]], [[1.0, 1.0]], step=1))  # without a writer
        False
    """
    compared = WithPast(name, current, past, trainable, kept, channel_axis)
    if step is None:
        step = tf.summary.experimental.get_step()
    scope = tf.summary.experimental.summary_scope
    with scope(name, "channels_summary", values=[*compared.values, step]) as (tag, _):

        def message() -> Any:
            return compared.message(tag, step)

        return tf.summary.write(tag, message, step=step, metadata=compared.metadata)


class WithPast:
    """A current and a past value, and masks kept and trainable, for a user's own writer."""

    def __init__(
        self,
        name: str,
        current: TensorLike,
        past: TensorLike,
        trainable: TensorLike,
        kept: TensorLike,
        channel_axis: int | tuple[int, ...],
    ) -> None:
        current = _value(name, "current value", current)
        past = _value(name, "past value", past)
        if not current.dtype.is_floating:
            raise InvalidArgument(
                f"Could not write the channels of {name!r}: expected a value of floating dtype, "
                f"got {current.dtype.name}. Cast it first."
            )
        if current.shape != past.shape or not current.shape.is_fully_defined():
            raise InvalidArgument(
                f"Could not compare {name!r} with its past copy: expected shape {_shape(current)}, "
                f"got {_shape(past)}. Make a new PastVariables after changing a layer's width."
            )
        self._axis = explicit_axis(channel_axis, current.shape.as_list(), name)
        masks = [_mask(name, "kept", kept, current), _mask(name, "trainable", trainable, current)]
        self.values = [current, past, *masks]
        self.metadata = tf.compat.v1.SummaryMetadata()
        self.metadata.plugin_data.plugin_name = PLUGIN
        series = Series(tuple(current.shape.as_list()), self._axis.text, self._axis.channels)
        self.metadata.plugin_data.content = encode_series(series)
        # DATA_CLASS_TENSOR, without which TensorBoard doesn't show it.
        self.metadata.data_class = 2

    @tf.autograph.experimental.do_not_convert
    def message(self, tag: str, step: TensorLike) -> Any:
        """Builds the record, a tensor of bytes."""
        current, past, *masks = self.values
        # Half precision is exact in float32, which numpy_function accepts everywhere.
        wide = current.dtype if current.dtype == tf.float64 else tf.float32
        values = [tf.cast(step, tf.int64), tf.cast(current, wide), tf.cast(past, wide), *masks]
        axis = self._axis

        def pastnet_channels(
            step: TensorLike, current: Tensor, past: Tensor, kept: Tensor, trainable: Tensor
        ) -> npt.NDArray[np.uint8]:
            statistics = channel_statistics(current, past, axis, kept, trainable)
            steps = np.array([step], np.int64)
            block = Block(steps, steps, steps - 1, quantize_statistics(statistics)[:, None])
            return np.frombuffer(encode_block(block, tag=tag, lineage=0), np.uint8)

        encoded = tf.numpy_function(pastnet_channels, values, tf.uint8)
        encoded.set_shape([None])
        return encoded


def _value(name: str, kind: str, value: TensorLike) -> Any:
    variable = tf_variable(value)
    try:
        return tf.convert_to_tensor(value if variable is None else variable)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"Could not write the channels of {name!r}: expected a variable, a tensor or an array "
            f"as {kind}, got {value!r:.60}. Pass a {kind} of the variable's shape."
        ) from error


def _mask(name: str, kind: str, mask: TensorLike, like: Tensor) -> Any:
    if mask is None:
        return tf.ones(like.shape, tf.bool)
    value = _value(name, f"{kind} mask", mask)
    known = tf.get_static_value(value)
    if known is not None and not np.all((known == 0) | (known == 1)):
        raise InvalidArgument(
            f"Could not write the channels of {name!r}: expected a {kind} mask of 0 and 1, got "
            f"{mask!r:.60}. Give 1 for each weight that goes through and 0 for each that is held."
        )
    if value.shape.rank != 0 and value.shape != like.shape:
        raise InvalidArgument(
            f"Could not write the channels of {name!r}: expected a {kind} mask of shape "
            f"{_shape(like)}, got {_shape(value)}. Pass one element per weight, or one for all."
        )
    return tf.broadcast_to(tf.cast(value, tf.bool), like.shape)


def _shape(value: TensorLike) -> str:
    return str(tuple(value.shape.as_list()) if value.shape.rank is not None else None)
