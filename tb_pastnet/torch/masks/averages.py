"""Averages of a module's weights, in which masks hold the same elements."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import nn

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.torch.masks.held_places import HELD
from tb_pastnet.torch.masks.module_table import ModuleTable
from tb_pastnet.torch.module_tensors import local_of
from tb_pastnet.torch.module_weights import network_of


class Follower:
    """Puts held values into an average: before it is called or saved, and after each step.

    It is a hook of the average, whose copies have one that does nothing.

    Args:
        masks: of the module that is averaged.
        averaged: a module with the same weights, such as torch.optim.swa_utils.AveragedModel.
    """

    def __init__(self, masks: ModuleTable, averaged: nn.Module) -> None:
        inner = averaged.module if isinstance(averaged, _AVERAGES) else averaged
        self._masks, self._model = weakref.ref(masks), weakref.ref(masks.model)
        self._weights = {each.name: each for each in network_of(inner).everything}
        missing = [name for name in masks.masked if name not in self._weights]
        if missing:
            raise InvalidArgument(
                f"Could not follow an average: expected a module with {missing[0]!r}, as the one "
                f"that is masked, got a {type(averaged).__name__} without. Pass its average."
            )
        self._handles = [
            averaged.register_forward_pre_hook(self),
            averaged.register_state_dict_pre_hook(self),
        ]
        HELD.followers.add(self)
        self()

    @torch.no_grad()
    def __call__(self, *_: Any) -> None:
        """Puts held values in."""
        masks = self._masks()
        if masks is None:
            return
        for name, place in masks.masked.items():
            elements = place.elements
            if elements is None or name not in self._weights:
                continue
            own = local_of(self._weights[name].entry.stored.detach())
            if not elements.fits(own):
                elements = elements.for_other(own)
            elements.restore(own)

    def is_of(self, model: nn.Module) -> bool:
        """Whether it follows the masks of a module."""
        return self._model() is model

    def close(self) -> None:
        """Holds nothing any more, and removes its hooks."""
        HELD.followers.discard(self)
        for handle in self._handles:
            handle.remove()

    def __deepcopy__(self, memo: Any) -> _Nothing:
        return _Nothing()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Nothing, ()


class _Nothing:
    def __call__(self, *_: Any) -> None:
        """Does nothing."""


_AVERAGES = (torch.optim.swa_utils.AveragedModel,)
