"""Draws initial values again, by copies of what drew them first."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.v1.clones.graph_copy import Copied, Pair, copy_part, storage
from tb_pastnet.v1.clones.graph_part import Part
from tb_pastnet.v1.clones.seeds import other_seeds, reseed


class Draw:
    """Copies initial values. What several are made of is copied once.

    Seeds are changed, so that a copy doesn't draw the same numbers as its original.

    Args:
        network: whose variables they are.
        scope: the full name scope of the copies.
    """

    def __init__(self, network: Part, scope: str) -> None:
        self._network = network
        self._scope = scope
        self._copied: dict[str, Any] = {}

    def check(self, operation: Any, value: Any) -> None:
        """Looks at an initial value, before the graph is changed.

        Args:
            operation: what holds the variable.
            value: the tensor that it is initialized with, or None.

        Raises:
            InvalidArgument: it has none, or one that can't be copied.
        """
        if value is None:
            raise InvalidArgument(
                f"Could not draw an initial value for the copy of {operation.name!r}: expected an "
                f"initializer in the graph, got none. Pass initial='copy'."
            )
        self._part(value).check(f"draw an initial value for the copy of {operation.name!r}")

    def __call__(self, value: Any, pairs: Iterable[Pair]) -> Any:
        """Copies an initial value.

        Args:
            value: the tensor.
            pairs: of operations and the copies of variables that it may be made of.
        """
        part = self._part(value)
        part.check("draw an initial value")
        earlier = Copied({one.outputs[0].name: storage(two) for one, two in pairs}, self._copied)
        with tf.name_scope(self._scope + "/"):
            seeds = other_seeds(part, self._scope)
        replaced = [(one, earlier(one)) for one in part.outside() if earlier(one) is not one]
        change = partial(reseed, scope=self._scope)
        copied = copy_part(part, [*replaced, *seeds], self._scope, change)
        self._copied |= copied.operations
        return earlier(copied(value))

    def _part(self, value: Any) -> Part:
        part = Part(self._network.graph, self._network.starts | self._copied.keys())
        part.take([value])
        return part
