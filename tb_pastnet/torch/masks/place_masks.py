"""The masks of one place of a module, and how they hold the tensor that is there.

A place is a module and a key. The tensor there may be another one tomorrow: loading with
`assign=True`, `fully_shard` and a change of precision replace it, and the masks stay.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np
import torch
from torch import nn

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.mask_input import Mask
from tb_pastnet.core.mask_words import packed_words, unpacked_words
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.masks.packed import SavedMasks, Sums, check_sums
from tb_pastnet.record.weight import Array
from tb_pastnet.torch.masks.held_elements import Elements, held_elements
from tb_pastnet.torch.module_tensors import is_spread, local_of
from tb_pastnet.torch.module_weights import values_in


class PlaceMasks:
    """Both masks of the tensor at a place, one bit an element each, and its held elements.

    Attributes:
        key: the name of the tensor in its module.
        name: that of the weight in the log.
        axis: how the weight splits into channels, over all ranks.
        enforced: it is held, not only declared.
        elements: those that are held on this rank; None: there are none, or nothing is enforced.
        noted: it was logged that something else writes its values.
        sums: checksums of held values in a file, and of those that were loaded; None: nothing was.
    """

    def __init__(
        self, owner: nn.Module, key: str, name: str, axis: ChannelAxis, *, enforced: bool
    ) -> None:
        self._owner = weakref.ref(owner)
        self.key, self.name, self.axis, self.enforced = key, name, axis, enforced
        self.generation = 0
        self.noted = False
        self.sums: tuple[Sums, Sums] | None = None
        every = packed_words(np.ones(axis.shape, bool))
        self.packed = every, every
        """Kept, and through: what is kept and trainable."""
        self.elements: Elements | None = None
        self._handle: Any = None
        # The tensor that it holds: whether ranks share it, and its id, which isn't a reference.
        self.spread, self._id = False, 0
        # Grows with each write in place that torch sees, which isn't one through `.data`.
        self._version = -1
        # The gradient that was set to zero since the last step, and a state of it.
        self._zeroed: tuple[weakref.ref[Any] | None, int] = None, -1

    @property
    def owner(self) -> nn.Module | None:
        """The module of the place, None if it is gone."""
        return self._owner()

    @property
    def variable(self) -> Any:
        """See `MaskStorage`: the tensor that is there now."""
        return self.tensor()

    def tensor(self) -> Any:
        """The tensor that is there now; None if the module, or its tensor, is gone."""
        owner = self._owner()
        return None if owner is None else vars(owner).get("_parameters", {}).get(self.key)

    def read(self) -> tuple[Mask, Mask]:
        """See `MaskStorage`."""
        kept, through = map(self._unpacked, self.packed)
        return kept, through | ~kept

    def write(self, kept: Mask, trainable: Mask) -> None:
        """See `MaskStorage`: newly frozen elements are held at their current values."""
        self.packed = packed_words(kept), packed_words(kept & trainable)
        if self.enforced:
            self.hold()

    @property
    def nbytes(self) -> int:
        """The memory that the masks and the held values take."""
        arrays = [*self.packed, *(() if self.elements is None else self.elements.arrays)]
        return sum({id(each): int(each.nbytes) for each in arrays}.values())

    @torch.no_grad()
    def hold(self, *, afresh: bool = False) -> None:
        """Holds what the masks hold, at its former values; `afresh`: at the current ones."""
        tensor, former = self.tensor(), self.elements
        if tensor is None:
            return
        local = local_of(tensor.detach())
        kept, through = (self._part(bits, tensor) for bits in self.packed)
        if former is not None and former.fits(local) and not afresh:
            former.restore(local)  # what stays frozen, at its value
        packed = None if is_spread(tensor) else self.packed
        self.elements = held_elements(local, kept, through, packed)
        self.hang(tensor)
        self.restore(tensor)

    def hang(self, tensor: Any) -> None:
        """Has gradients of a tensor masked as soon as they are complete."""
        self.spread, self._id = is_spread(tensor), id(tensor)
        if self._handle is not None and (self.elements is None or not self._hooked(tensor)):
            self._handle.remove()
            self._handle = None
        if self._handle is None and self.elements is not None and tensor.requires_grad:
            # A compiled step may include the backward pass.
            hook = torch.compiler.disable(self.mask_gradient)
            self._handle = tensor.register_post_accumulate_grad_hook(hook)

    def release(self) -> None:
        """Ends it: nothing is held any more."""
        self.enforced, self.elements = False, None
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def is_at(self, tensor: Any) -> bool:
        """Whether it is this tensor that it holds."""
        if self._handle is None:
            return self._id in (0, id(tensor)) and tensor is self.tensor()
        return self._hooked(tensor)

    def _hooked(self, tensor: Any) -> bool:
        hooks = tensor._post_accumulate_grad_hooks
        return hooks is not None and self._handle.id in hooks

    @property
    def waits(self) -> bool:
        """Whether it has no hook yet: its tensor needed no gradient, or was just unpickled."""
        return self._handle is None and (not self._id or self.elements is not None)

    def mask_gradient(self, tensor: Any) -> None:
        """Sets the gradient of a tensor to zero where it is held, before anything else reads it."""
        gradient, elements = tensor.grad, self.elements
        if gradient is None or elements is None:
            return
        local = local_of(gradient) if self.spread else gradient
        if local.shape == elements.shape:
            zeroed = elements.zero(local)
            if zeroed is not local:
                tensor.grad = gradient = local = zeroed
            self._zeroed = weakref.ref(gradient), local._version

    def _is_zeroed(self, gradient: Any) -> bool:
        reference, version = self._zeroed
        same = reference is not None and reference() is gradient
        return same and local_of(gradient)._version == version

    def before_step(self, tensor: Any) -> int:
        """Before an optimizer's step: values that something else wrote stay, gradients are zero.

        Returns:
            How many held values something else wrote.
        """
        if self.elements is None:
            return 0
        local = tensor if not self.spread else local_of(tensor.detach())
        same = self._version == local._version and self.elements.fits(local)
        changed = 0 if same else self.accept(tensor)
        if tensor.grad is not None and not self._is_zeroed(tensor.grad):
            self.mask_gradient(tensor)
        self._zeroed = None, -1
        return changed

    def restore(self, tensor: Any) -> None:
        """Puts held values back into a tensor, the one of this place; without a graph."""
        if self.elements is not None:
            local = local_of(tensor.detach()) if self.spread else tensor
            self.elements.restore(local)
            self._version = local._version

    @torch.no_grad()
    def accept(self, tensor: Any) -> int:
        """Holds frozen elements as they are now, and pruned ones at zero; how many had changed."""
        if self.elements is None:
            return 0
        local, changed = local_of(tensor.detach()), 0
        if self.elements.fits(local):
            changed = self.elements.differing(local)
            if not changed:
                self._version = local._version
                return 0
        self.hold(afresh=True)
        return changed

    def saved(self) -> SavedMasks:
        """Its masks and checksums, to save them. If ranks share the tensor, all have to call it."""
        kept, through = map(self._unpacked, self.packed)
        return SavedMasks(
            kept, through, check_sums(whole_values(self.tensor()), through, self.axis)
        )

    def _unpacked(self, bits: Any) -> Mask:
        shape = self.axis.shape
        return unpacked_words(bits, math.prod(shape)).reshape(shape)

    def _part(self, bits: Any, tensor: Any) -> torch.Tensor:
        """The part of a mask that is on this rank."""
        values = torch.from_numpy(self._unpacked(bits))
        part: torch.Tensor = own_part(values, tensor, self.name).contiguous()
        return part


def whole_values(tensor: Any) -> Array:
    """The values of a tensor, gathered if it is spread over ranks, all of which have to call it."""
    with torch.no_grad():
        return values_in(tensor.full_tensor() if is_spread(tensor) else tensor.detach())


def own_part(values: Any, tensor: Any, name: str) -> Any:
    """The part of some values that a rank has of a tensor; all if it isn't spread over ranks."""
    if not is_spread(tensor):
        return values
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    if any(type(each).__name__ == "_StridedShard" for each in tensor.placements):
        raise InvalidArgument(
            f"Could not mask {name!r}: expected rows in one piece on each rank, got "
            f"{tensor.placements}. Shard over one axis, as fully_shard does."
        )
    place = tensor.shape, tensor.device_mesh, tensor.placements
    shape, offset = compute_local_shape_and_global_offset(*place)
    return values[tuple(slice(i, i + size) for i, size in zip(offset, shape, strict=True))]
