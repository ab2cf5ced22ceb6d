"""A summary call into a user's own `torch.utils.tensorboard.SummaryWriter`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from tensorboard.compat.proto.summary_pb2 import Summary

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.statistics import channel_statistics, quantize_statistics
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.description import Series, encode_series
from tb_pastnet.record.messages import carry
from tb_pastnet.torch.module_weights import array_of


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
        InvalidArgument: shapes differ, the dtype isn't a floating one, or the axis is out of range.

    Example:
        >>> import tempfile
        >>> from torch.utils.tensorboard import SummaryWriter
        >>> with SummaryWriter(tempfile.mkdtemp()) as writer:
        ...     channels(writer, "dense/weight", torch.ones(2, 3), torch.zeros(2, 3), step=1)
    """
    if not current.is_floating_point():
        raise InvalidArgument(
            f"Could not write the channels of {name!r}: expected a value of floating dtype, got "
            f"{str(current.dtype).removeprefix('torch.')}. Cast it first."
        )
    shape = tuple(current.shape)
    for word, tensor in (("past copy", past), ("kept", kept), ("trainable", trainable)):
        if tensor is not None and tuple(tensor.shape) != shape:
            raise InvalidArgument(
                f"Could not compare {name!r} with its {word}: expected shape {shape}, got "
                f"{tuple(tensor.shape)}. Pass one element per weight."
            )
    axis = explicit_axis(channel_axis, shape, name)
    masks = [None if mask is None else array_of(mask) for mask in (kept, trainable)]
    statistics = channel_statistics(array_of(current), array_of(past), axis, *masks)
    steps = np.array([step], np.int64)
    block = Block(steps, steps, steps - 1, quantize_statistics(statistics)[:, None])
    summary = Summary()
    value = summary.value.add(tag=name)
    carry(value, encode_block(block, tag=name, lineage=0))
    series = Series(shape, axis.text, axis.channels)
    value.metadata.plugin_data.content = encode_series(series)
    writer._get_file_writer().add_summary(summary, step)
