"""The held elements of one tensor: gradients become zero there, and values are put back."""

from __future__ import annotations

from typing import Any

import torch

from tb_pastnet.torch.saved_state import as_integers


class HeldElements:
    """Which elements of a tensor are held, one byte for each, and at which values.

    Nothing here changes a free element, and nothing computes with a held one: bits are copied.

    Args:
        held: bool tensor of the shape of what this rank has, on its device: True is held.
        values: of the held elements, in their order; None: all of them are zero.
    """

    def __init__(self, held: torch.Tensor, values: torch.Tensor | None) -> None:
        self.held = held
        self.values = values

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return int(self.held.nbytes + (0 if self.values is None else self.values.nbytes))

    def fits(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor has its shape, device and dtype."""
        values = self.values
        return (
            tensor.shape == self.held.shape
            and tensor.device == self.held.device
            and (values is None or values.dtype == tensor.dtype)
        )

    def zero(self, gradient: torch.Tensor) -> torch.Tensor:
        """Sets a gradient to zero at held elements, even if it is NaN there; returns it."""
        if gradient.is_sparse:
            gradient = gradient.coalesce()
            gradient.values().masked_fill_(self.held[tuple(gradient.indices())], 0)
        else:
            _words(gradient).masked_fill_(self.held, 0)
        return gradient

    def restore(self, tensor: torch.Tensor) -> None:
        """Puts the values of held elements back."""
        if self.values is None:
            _words(tensor).masked_fill_(self.held, 0)
        else:
            _words(tensor).masked_scatter_(self.held, _words(self.values))

    def differing(self, tensor: torch.Tensor) -> int:
        """How many held elements of a tensor have other bits than they are held at.

        If nothing is frozen, a zero may have either sign.
        """
        current = tensor[self.held]
        if self.values is None:
            return int(torch.count_nonzero(current))
        return int(torch.count_nonzero(as_integers(current) != as_integers(self.values)))


def _words(tensor: torch.Tensor) -> Any:
    """The tensor, or its bytes where torch can't fill such numbers, as float8."""
    return tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor
