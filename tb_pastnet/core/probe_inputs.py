"""A probe batch of any framework: the names of its inputs, and whether their samples match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tb_pastnet.errors import InvalidArgument

Shape = tuple[int, ...]


def named_leaves(nest: object, name: str = "") -> list[tuple[str, Any]]:
    """The leaves of a nest of mappings, lists and tuples, by path."""
    if isinstance(nest, Mapping):
        parts = [(str(key), nest[key]) for key in sorted(nest)]
    elif isinstance(nest, list | tuple):
        parts = [(str(number), part) for number, part in enumerate(nest)]
    else:
        return [(name, nest)]
    return [
        leaf for key, part in parts for leaf in named_leaves(part, f"{name}/{key}" if name else key)
    ]


def sample_count(shapes: Sequence[tuple[str, Shape]], kind: str) -> int:
    """How many samples the inputs of a probe have, by name and shape; `kind` is for errors.

    Raises InvalidArgument if there is no array, no sample, or another number than in the first.
    """
    if not shapes:
        raise refused("at least one array or tensor", f"a {kind} without one")
    for name, shape in shapes:
        shown = f"shape {shape}" + (f" in {name!r}" if name else "")
        if not shape or 0 in shape:
            raise refused("samples along the first axis", shown)
        if shape[0] != shapes[0][1][0]:
            raise refused(f"{shapes[0][1][0]} samples in each input", shown)
    return shapes[0][1][0]


def refused(expected: str, got: str) -> InvalidArgument:
    """The error for a batch that can't be used."""
    return InvalidArgument(
        f"Could not use the probe: expected {expected}, got {got}. Pass a fixed batch of the "
        f"network's inputs, such as the first images of the validation set."
    )
