"""Random operations that draw other numbers than those that they are copies of."""

from __future__ import annotations

import zlib
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.v1.clones.graph_part import Part


def reseed(node: Any, scope: str) -> None:
    """Gives the copy of a random operation another seed, the same in every process.

    One without a seed draws other numbers anyway.

    Args:
        node: its definition, which is changed.
        scope: of the copy.
    """
    seeds = [node.attr[key] for key in ("seed", "seed2") if key in node.attr]
    if any(one.i for one in seeds):
        seeds[-1].i = (seeds[-1].i ^ _number(scope, node.name)) or 1


def other_seeds(part: Part, scope: str) -> list[tuple[Any, Any]]:
    """The seeds of stateless random operations, which are tensors, each with another one.

    Args:
        part: that is to be copied.
        scope: of the copy.
    """
    seeds = {}
    for operation in part.operations.values():
        for argument, tensor in zip(operation.op_def.input_arg, operation.inputs, strict=False):
            if argument.type_attr == "Tseed":
                seeds[tensor.name] = tensor
    return [
        (seed, tf.bitwise.bitwise_xor(seed, tf.constant(_number(scope, name), seed.dtype)))
        for name, seed in seeds.items()
    ]


def _number(scope: str, name: str) -> int:
    return zlib.crc32(f"{scope}/{name}".encode()) & 0x7FFFFFFF
