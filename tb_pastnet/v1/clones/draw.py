"""Draws initial values again, by copies of what drew them first."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.v1.clones.graph_copy import Copied, Pair, copy_part, storage
from tb_pastnet.v1.clones.graph_part import GraphPart


class Draw:
    """Copies the initial values of a network's variables. What several are made of is copied once.

    Seeds are changed, so that a copy doesn't draw the same numbers as its original.
    """

    def __init__(self, network: GraphPart, scope: str) -> None:
        self._network = network
        self._scope = scope
        self._copied: dict[str, tf.Operation] = {}

    def check(self, operation: tf.Operation, value: tf.Tensor | None) -> None:
        """Looks at a variable's initial value, before the graph is changed.

        Raises:
            InvalidArgument: it has none, or one that can't be copied.
        """
        if value is None:
            raise InvalidArgument(
                f"Could not draw an initial value for the copy of {operation.name!r}: expected an "
                f"initializer in the graph, got none. Pass initial='copy'."
            )
        self._part(value).check(f"draw an initial value for the copy of {operation.name!r}")

    def __call__(self, value: tf.Tensor, pairs: Iterable[Pair]) -> tf.Tensor:
        """Copies an initial value, which may be made of the variables of earlier pairs."""
        part = self._part(value)
        part.check("draw an initial value")
        storages = {held.outputs[0].name: storage(twin) for held, twin in pairs}
        earlier = Copied(storages, self._copied)
        with tf.name_scope(self._scope + "/"):
            seeds = self._other_seeds(part)
        outside = [(tensor, earlier(tensor)) for tensor in part.outside()]
        replaced = [(tensor, copy) for tensor, copy in outside if copy is not tensor]
        copied = copy_part(part, [*replaced, *seeds], self._scope, self._reseed)
        self._copied |= copied.operations
        return earlier(copied(value))

    def _part(self, value: tf.Tensor) -> GraphPart:
        part = GraphPart(self._network.graph, self._network.starts | self._copied.keys())
        part.take([value])
        return part

    def _reseed(self, node: tf.NodeDef) -> None:
        """Gives the copy of a random operation another seed, the same in every process.

        One without a seed draws other numbers anyway.
        """
        seeds = [node.attr[key] for key in ("seed", "seed2") if key in node.attr]
        if any(seed.i for seed in seeds):
            seeds[-1].i = (seeds[-1].i ^ self._number(node.name)) or 1

    def _other_seeds(self, part: GraphPart) -> list[Pair]:
        """The seeds of stateless random operations, which are tensors, each with another one."""
        seeds = {}
        for operation in part.operations.values():
            for argument, tensor in zip(operation.op_def.input_arg, operation.inputs, strict=False):
                if argument.type_attr == "Tseed":
                    seeds[tensor.name] = tensor
        return [
            (seed, tf.bitwise.bitwise_xor(seed, tf.constant(self._number(name), seed.dtype)))
            for name, seed in seeds.items()
        ]

    def _number(self, name: str) -> int:
        return zlib.crc32(f"{self._scope}/{name}".encode()) & 0x7FFFFFFF
