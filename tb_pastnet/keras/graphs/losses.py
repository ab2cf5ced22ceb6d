"""What `add_loss` collects in the layers of Keras, kept apart from what a trace adds to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def own_losses(layers: Sequence[Any]) -> Iterator[None]:
    """Without the losses of before, which come back afterwards.

    Args:
        layers: of Keras; those inside of them as well.
    """
    every = {id(one): one for layer in layers for one in layer._flatten_layers()}
    # No public names: `losses` is made anew from these.
    parts = [getattr(one, part) for one in every.values() for part in ("_losses", "_loss_ids")]
    before = [type(part)(part) for part in parts]
    for part in parts:
        part.clear()
    try:
        yield
    finally:
        for part, content in zip(parts, before, strict=True):
            part.clear()
            (part.update if isinstance(part, set) else part.extend)(content)
