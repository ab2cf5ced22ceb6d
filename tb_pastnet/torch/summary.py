"""A summary call into a user's own `torch.utils.tensorboard.SummaryWriter`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from tensorboard.compat.proto.summary_pb2 import Summary

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.mask_input import as_mask
from tb_pastnet.core.statistics import channel_statistics, quantize_statistics
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.description import Series, encode_series
from tb_pastnet.record.messages import carry
from tb_pastnet.torch.module_weights import array_of, checked, mask_values


@answered
def channels(
    writer: Any,
    name: str,
    current: torch.Tensor,
    past: torch.Tensor,
    step: int,
    *,
    trainable: torch.Tensor | None = None,
    kept: torch.Tensor | None = None,
    channel_axis: int | tuple[int, ...] = 0,
) -> None:
    """Writes how far each channel of a weight is from its past value, next to `add_scalar`.

    Such a writer doesn't report lost records; use `Recorder` if that matters.

    Args:
        writer: a torch.utils.tensorboard.SummaryWriter.
        name: of the summary, such as "conv1/weight".
        current: the current value, of floating dtype.
        past: the value that it is compared with, of the same shape, such as a clone from before the
            step. The tab shows it as the value at the previous step.
        step: the step.
        trainable: trainable mask, 1 lets the update through and 0 = frozen: of the same shape.
            None: all trainable.
        kept: kept mask, 1 lets the weight through and 0 = pruned: of the same shape. None: nothing
            is pruned.
        channel_axis: the axis that numbers the channels, or several to be numbered together.

    Raises:
        InvalidArgument: shapes differ, the dtype isn't a floating one, there are no elements, the
            axis is out of range, a mask has other values than 0 and 1, or something isn't a dense
            tensor, or not a writer.

    Example:
        >>> import tempfile
        >>> from torch.utils.tensorboard import SummaryWriter
        >>> with SummaryWriter(tempfile.mkdtemp()) as writer:
        ...     channels(writer, "dense/weight", torch.ones(2, 3), torch.zeros(2, 3), step=1)
    """
    shape = _shape_of(writer, name, current, past)
    axis = explicit_axis(channel_axis, shape, name)
    masks = [
        None if mask is None else as_mask(mask_values(mask, name, word), shape, name, word)
        for word, mask in (("kept", kept), ("trainable", trainable))
    ]
    statistics = channel_statistics(array_of(current), array_of(past), axis, *masks)
    steps = np.array([step], np.int64)
    block = Block(steps, steps, steps - 1, quantize_statistics(statistics)[:, None])
    summary = Summary()
    value = summary.value.add(tag=name)
    carry(value, encode_block(block, tag=name, lineage=0))
    series = Series(shape, axis.text, axis.channels)
    value.metadata.plugin_data.content = encode_series(series)
    writer._get_file_writer().add_summary(summary, step)


def _shape_of(writer: Any, name: str, current: torch.Tensor, past: torch.Tensor) -> tuple[int, ...]:
    """The shape of both values; raises InvalidArgument if they can't be compared and written."""
    shape, other = (
        tuple(checked(value, name, word).shape)
        for word, value in (("current", current), ("past", past))
    )
    dtype = str(current.dtype).removeprefix("torch.")
    writes = hasattr(writer, "_get_file_writer"), type(writer).__name__
    for fits, got, expected, mend in (
        (*writes, "writer= a torch.utils.tensorboard.SummaryWriter", "Pass the writer itself"),
        (current.is_floating_point(), dtype, "a value of floating dtype", "Cast it first"),
        (current.numel() > 0, f"shape {shape}", "at least one element", "Leave it out"),
        (shape == other, str(other), f"past= of shape {shape}", "Pass one element per weight"),
    ):
        if not fits:
            raise InvalidArgument(
                f"Could not write the channels of {name!r}: expected {expected}, got {got}. {mend}."
            )
    return shape
