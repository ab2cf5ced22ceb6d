"""All places whose tensors are held in this process, and the hooks of optimizers that do it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.failures import LOGGER
from tb_pastnet.record.masks.mask_table import MaskRegistry
from tb_pastnet.torch.masks.place_masks import PlaceMasks
from tb_pastnet.torch.module_tensors import is_spread


@dataclass
class News:
    """What loading did, to be logged once for all modules."""

    loaded: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    restored: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)

    @property
    def any(self) -> bool:
        """Whether something is to be logged."""
        return bool(self.loaded or self.written or self.restored or self.without or self.replaced)

    def log(self) -> None:
        """Logs what happened since the last call."""
        for how, counts in (("loaded", self.loaded), ("written", self.written)):
            changed = {name: count for name, count in counts.items() if count}
            if changed:
                LOGGER.warning(
                    "Held values of %s were %s: %s differ. Frozen ones are held as they are now, "
                    "pruned ones are zero.",
                    _listed(changed),
                    how,
                    f"{sum(changed.values()):,}",
                )
            counts.clear()
        if self.restored:
            LOGGER.info("Restored the masks of %s from a state_dict.", _listed(self.restored))
        if self.without:
            LOGGER.warning(
                "Loaded %s from a state_dict without masks: those that were set stay in force.",
                _listed(self.without),
            )
        if self.replaced:
            LOGGER.warning(
                "The tensors of %s aren't those that were masked, as after fully_shard: the masks "
                "hold the new ones from this step on. Its gradients were clipped before that, if "
                "they were: make Masks once the model has its final tensors.",
                _listed(self.replaced),
            )
        for names in (self.restored, self.without, self.replaced):
            names.clear()


class HeldPlaces(MaskRegistry):
    """The masks of all modules, by place: see `MaskRegistry`. Modules own them.

    In each step of an optimizer its hooks come first: a Recorder's see values put back.

    Attributes:
        news: what loading did.
        steps: of each optimizer, since the first masks were made.
        followers: called after each step.
    """

    def __init__(self) -> None:
        super().__init__()
        self.news = News()
        self.steps: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self.followers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._places: weakref.WeakSet[PlaceMasks] = weakref.WeakSet()
        self._by_tensor: dict[int, PlaceMasks] = {}
        self._by_place: weakref.WeakValueDictionary[tuple[int, str], PlaceMasks] = (
            weakref.WeakValueDictionary()
        )
        # Those that have made a step since all places were looked at.
        self._stepped: set[int] = set()
        self._handles: list[Any] = []
        # An optimizer in its step, by id, and what it trains.
        self._current: tuple[int, list[tuple[PlaceMasks, Any]]] = 0, []

    def of(self, variable: Any) -> PlaceMasks | None:
        """See `MaskRegistry`: by a `ModuleTensor`, or by a tensor."""
        if isinstance(variable, torch.Tensor):
            return self._of_tensor(variable)
        place = self._by_place.get((id(variable.owner), variable.key))
        if place is not None and place.owner is variable.owner:
            return place
        # A tied tensor may have been masked at another place.
        return self._of_tensor(variable.stored)

    def _of_tensor(self, tensor: Any) -> PlaceMasks | None:
        place = self._by_tensor.get(id(tensor))
        return place if place is not None and place.tensor() is tensor else None

    def all(self) -> list[PlaceMasks]:
        """See `MaskRegistry`."""
        return list(self._places)

    def add(self, storage: Any) -> None:
        """See `MaskRegistry`."""
        self.generation += 1
        storage.generation = self.generation
        self._places.add(storage)
        self._by_place[id(storage.owner), storage.key] = storage
        self._stepped.clear()
        self.moved(storage)
        if storage.enforced:
            self.hook_steps()

    def hook_steps(self) -> None:
        """From now on optimizers call its hooks before all others."""
        if not self._handles:
            self._handles = [
                register_optimizer_step_pre_hook(_hook(self.before_step)),
                register_optimizer_step_post_hook(_hook(self.after_step)),
            ]
            for handle in self._handles:
                handle.hooks_dict_ref().move_to_end(handle.id, last=False)

    def remove(self, place: PlaceMasks) -> None:
        """Ends the masks of a place."""
        place.release()
        self._places.discard(place)
        self._by_place.pop((id(place.owner), place.key), None)
        self._by_tensor = {key: each for key, each in self._by_tensor.items() if each is not place}
        if not self._places:
            for handle in self._handles:
                handle.remove()
            self._handles.clear()
            self._by_tensor.clear()
        self.changed()

    def moved(self, place: PlaceMasks) -> None:
        """Another tensor may be at a place now."""
        tensor = place.tensor()
        if tensor is not None:
            place.hang(tensor)
            self._by_tensor[id(tensor)] = place

    def before_step(self, optimizer: Optimizer) -> None:
        """Masks gradients that no hook has seen, and holds values that something else wrote."""
        self._look(optimizer)
        if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
            raise InvalidArgument(
                "Could not hold weights in a CUDA graph: expected a step that calls its hooks, got "
                "one that is captured and replayed without them. Step outside the graph."
            )
        pairs = self._pairs(optimizer)
        self._current = id(optimizer), pairs
        with torch.no_grad():
            for place, tensor in pairs:
                changed = place.before_step(tensor)
                if changed and not place.noted:
                    place.noted = True  # something may write at each step
                    self.news.written[place.name] = changed
        if self.news.any:
            self.news.log()

    def after_step(self, optimizer: Optimizer) -> None:
        """Puts held values back."""
        (key, pairs), self._current = self._current, (0, [])
        with torch.no_grad():
            for place, tensor in pairs if key == id(optimizer) else self._pairs(optimizer):
                place.restore(tensor)
            for follow in list(self.followers):
                follow()

    def _pairs(self, optimizer: Optimizer) -> list[tuple[PlaceMasks, Any]]:
        places = self._by_tensor
        return [
            (place, tensor)
            for group in optimizer.param_groups
            for tensor in group["params"]
            if (place := places.get(id(tensor))) is not None
            and place.elements is not None
            and place.is_at(tensor)
        ]

    def _look(self, optimizer: Optimizer) -> None:
        """Looks at all places, once in a step of each optimizer: their tensors may be others."""
        new = optimizer not in self.steps
        self.steps[optimizer] = self.steps.get(optimizer, 0) + 1
        if not new and self._stepped and id(optimizer) not in self._stepped:
            self._stepped.add(id(optimizer))
            return
        self._stepped = {id(optimizer)}
        by_tensor = {key: each for key, each in self._by_tensor.items() if each.spread}
        for place in list(self._places):
            tensor = place.tensor()
            # FSDP2 has whole tensors there for a while.
            if tensor is not None and (is_spread(tensor) or not place.spread):
                by_tensor[id(tensor)] = place
                if not place.is_at(tensor):
                    self._replace(place, tensor)
                elif place.waits:
                    place.hang(tensor)
        self._by_tensor = by_tensor

    def _replace(self, place: PlaceMasks, tensor: Any) -> None:
        changed = place.accept(tensor)
        place.hang(tensor)
        if place.elements is not None:
            self.news.replaced.append(place.name)
            self.news.written[place.name] = changed


HELD = HeldPlaces()


def _hook(act: Any) -> Any:
    """A hook that calls a method, even in a compiled step: compilers don't trace into it."""
    return torch.compiler.disable(lambda optimizer, *_: act(optimizer))


def _listed(names: Iterable[str]) -> str:
    """The first few names."""
    every = list(dict.fromkeys(names))
    return ", ".join(map(repr, every[:3])) + (", …" if len(every) > 3 else "")
