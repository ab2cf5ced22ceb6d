"""The masks that a user gives to what records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.masks.commands import wrong_masks
from tb_pastnet.torch.masks.module_masks import find_masks
from tb_pastnet.torch.masks.module_table import ModuleTable
from tb_pastnet.torch.module_weights import TorchWeight


def origin_of(model: nn.Module, masks: Any, weights: Iterable[TorchWeight]) -> str:
    """The origin of the weights by their masks; "" without masks, or if these have none.

    Raises InvalidArgument if what a user gives as `masks=` isn't of these weights.
    """
    if masks is not None:
        check_concerns(masks, weights, "record masks")
        return str(masks.state.origin)
    own = find_masks(model)
    return "" if own is None else own.origin


def check_concerns(masks: Any, weights: Iterable[TorchWeight], doing: str) -> None:
    """Raises InvalidArgument if masks are of none of some weights."""
    table = getattr(masks, "state", None)
    if not isinstance(table, ModuleTable):
        if isinstance(masks, Mapping):
            raise InvalidArgument(
                f"Could not {doing}: expected masks= the Masks of a module, got a "
                f"{type(masks).__name__}. Write trainable= for masks that nothing has to hold."
            )
        raise wrong_masks(doing, f"a {type(masks).__name__}")
    table.look()
    own = {id(weight.entry.stored) for weight in table.weights.values()}
    if own.isdisjoint(id(weight.entry.stored) for weight in weights):
        raise wrong_masks(doing, f"masks of {', '.join([*table.weights][:2])} of another one")
