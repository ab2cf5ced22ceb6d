"""Variables that are measured together: small ones of one shape are stacked.

That halves the cost of networks with many of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tb_pastnet.core.axes import ChannelAxis

STACK_ELEMENTS = 1 << 16
"""Variables up to this size are stacked with others of their shape."""


class Stack(NamedTuple):
    """Variables of one shape, dtype and channel axis; `members` numbers them among all."""

    members: tuple[int, ...]
    variables: tuple[Any, ...]
    axis: ChannelAxis

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the tensor that holds them."""
        return (len(self.members), *self.axis.view)

    @property
    def channels(self) -> int:
        """Channels of all of them."""
        return len(self.members) * self.axis.channels

    def read(self) -> Any:
        """Their values, in one tensor of `shape`: that of a single one is not copied."""
        values = [tf.convert_to_tensor(variable) for variable in self.variables]
        return tf.reshape(values[0] if len(values) == 1 else tf.stack(values), self.shape)


def stacks(variables: Sequence[Any], axes: Sequence[ChannelAxis]) -> list[Stack]:
    """Puts variables together that can be measured together."""
    groups: dict[Any, list[int]] = {}
    for number, (variable, axis) in enumerate(zip(variables, axes, strict=True)):
        small = axis.channels * axis.elements <= STACK_ELEMENTS
        key = (axis.view, axis.axes, variable.dtype, None if small else number)
        groups.setdefault(key, []).append(number)
    return [
        Stack(tuple(members), tuple(variables[number] for number in members), axes[members[0]])
        for members in groups.values()
    ]
