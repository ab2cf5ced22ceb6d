"""The masks of modules: they are copied, pickled and saved with them."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.record.masks import packed
from tb_pastnet.torch.masks.held_places import HELD
from tb_pastnet.torch.masks.place_masks import PlaceMasks
from tb_pastnet.torch.module_tensors import is_spread

METADATA = "tb_pastnet_masks"
"""The key of a module's masks in the `_metadata` of a `state_dict`."""

_HOOKS = "_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"


class ModuleMasks:
    """The masks of a module's own parameters, among its hooks: so its copies have them, too.

    torch calls it as a hook after `state_dict`.

    Attributes:
        places: the masks by the keys of their tensors.
        weights: the log's names, and the channels, of all that can be masked, by key.
        enforced: whether masks that a file brings are held, not only declared.
        last: it is of the module that `Masks` are of: at loading its turn comes last.
        origin: that of the weights, if `Masks` are of the module.
    """

    def __init__(self, owner: nn.Module) -> None:
        self._owner = weakref.ref(owner)
        self.places: dict[str, PlaceMasks] = {}
        self.weights: dict[str, tuple[str, ChannelAxis]] = {}
        self.enforced = self.last = False
        self.origin = ""
        self._file: tuple[Any, bool] = None, False

    @classmethod
    def on(cls, owner: nn.Module) -> ModuleMasks:
        """Those of a module, which gets hooks at the first call."""
        masks = find_masks(owner)
        if masks is None:
            masks = cls(owner)
            owner.register_state_dict_post_hook(masks)
            owner.register_load_state_dict_pre_hook(masks.before_load)
            owner.register_load_state_dict_post_hook(masks.after_load)
        return masks

    def remove(self) -> None:
        """Ends the masks, and removes all hooks."""
        for place in self.places.values():
            HELD.remove(place)
        self.places.clear()
        owner = self._owner()
        for hooks in (getattr(owner, name, {}) for name in _HOOKS):
            for key in [key for key, hook in hooks.items() if _belongs(hook, self)]:
                del hooks[key]

    def place(self, key: str) -> PlaceMasks:
        """The masks of a tensor, made at the first call."""
        owner = self._owner()
        if key not in self.places and owner is not None:
            name, axis = self.weights[key]
            self.places[key] = PlaceMasks(owner, key, name, axis, enforced=self.enforced)
            HELD.add(self.places[key])
        return self.places[key]

    # -- saved with the module

    def __call__(self, module: nn.Module, state: Any, prefix: str, metadata: Any) -> None:
        """Called after `state_dict`: adds the masks to its metadata, which plain torch ignores."""
        if any(is_spread(each.tensor()) for each in self.places.values()):
            return  # all ranks would have to take part
        saved = {key: each.saved() for key, each in self.places.items()}
        data = packed.save("", saved) if saved else b""
        metadata[METADATA] = torch.from_numpy(np.frombuffer(data, np.uint8).copy())

    def before_load(
        self, module: nn.Module, state: Any, prefix: str, metadata: Any, *_: Any
    ) -> None:
        """Called before values are loaded."""
        loads = any(f"{prefix}{key}" in state for key in self.places)
        self._file = metadata.get(METADATA), loads

    def after_load(self, module: nn.Module, keys: Any) -> None:
        """Called after it: masks are those of the file, and hold what was loaded."""
        (data, loads), self._file = self._file, (None, False)
        if data is not None:
            self._set(data)
        elif loads:
            HELD.news.without += [each.name for each in self.places.values()]
        for place in self.places.values():
            tensor = place.tensor()
            if tensor is not None:
                HELD.news.loaded[place.name] = place.accept(tensor)
                HELD.moved(place)
                if data is not None and place.sums is not None:
                    place.sums = place.sums[0], place.saved().sums
        if self.last:
            HELD.news.log()

    def _set(self, data: Any) -> None:
        masks = self.unpacked(data)
        for key in {*self.places, *masks}:
            place = self.place(key)
            free = np.ones(place.axis.shape, bool)
            own = masks.get(key, packed.SavedMasks(free, free, np.zeros(0, np.uint32)))
            place.write(own.kept, own.through | ~own.kept)
            place.sums = (own.sums, own.sums) if key in masks else None
        HELD.news.restored += [self.weights[key][0] for key in masks]
        HELD.changed()

    def unpacked(self, data: Any) -> Mapping[str, packed.SavedMasks]:
        """The masks in a file, by key; raises InvalidArgument if they don't fit the module."""
        if not data.numel():
            return {}
        axes = {key: axis for key, (_, axis) in self.weights.items()}
        shapes = {key: axis.shape for key, axis in axes.items()}
        bounds = packed.Bounds.of(shapes, sum(axis.channels for axis in axes.values()))

        def check(key: str, shape: tuple[int, ...]) -> int:
            if shapes.get(key) != shape:
                raise packed.misfit(self.weights.get(key, (key,))[0], shape, shapes.get(key))
            return int(axes[key].channels)

        return packed.load(data.cpu().numpy().tobytes(), bounds, check, "a state_dict")[1]

    # -- copied with the module

    def __deepcopy__(self, memo: dict[int, Any]) -> ModuleMasks:
        copied = ModuleMasks(memo.get(id(self._owner()), nn.Module()))
        tensors = {key: memo.get(id(each.tensor())) for key, each in self.places.items()}
        copied._fill(self._state(), tensors)
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._owner(), self._state())

    def _state(self) -> Any:
        places = {key: (each.packed, each.elements) for key, each in self.places.items()}
        return dict(self.weights), self.enforced, self.last, self.origin, places

    def _fill(self, state: Any, tensors: Mapping[str, Any]) -> None:
        self.weights, self.enforced, self.last, self.origin, places = state
        for key, (bits, elements) in places.items():
            place = self.place(key)
            place.packed, place.elements = bits, elements
            if tensors.get(key) is not None:
                place.hang(tensors[key])


def _unpickled(owner: Any, state: Any) -> ModuleMasks:
    masks = ModuleMasks(nn.Module() if owner is None else owner)
    masks._fill(state, {})
    return masks


def find_masks(owner: nn.Module) -> ModuleMasks | None:
    """The masks of a module's own parameters, None if it has none."""
    hooks = owner._state_dict_hooks.values()
    return next((each for each in hooks if isinstance(each, ModuleMasks)), None)


def _belongs(hook: Any, masks: ModuleMasks) -> bool:
    own = getattr(hook, "hook", hook)  # torch wraps some
    return own is masks or getattr(own, "__self__", None) is masks
